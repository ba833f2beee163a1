#pragma once
#include <cstdint>
#include <vector>

namespace example {

inline constexpr int pixels_per_image = 64;  // 8 x 8
inline constexpr int classes = 10;

/// Handwritten digits on the host.
struct Images {
  std::vector<float> pixels;  ///< [size(), 64], from 0 to 1
  std::vector<std::int32_t> labels;

  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
  /// Those at `places` [begin, end), in that order.
  [[nodiscard]] Images pick(const std::vector<std::size_t>& places, std::size_t begin,
                            std::size_t end) const;
};

/// The data set, a fifth of it held out. The split is always the same.
struct Digits {
  Images train;
  Images held_out;
};
Digits load_digits();

/// 0, 1, ..., count - 1 in an order that depends on `seed` alone, on every machine.
std::vector<std::size_t> shuffled(std::size_t count, std::uint64_t seed);

}  // namespace example
