#pragma once
#include <cstdint>

namespace kiln {

/// IEEE 754 binary16, for storage and conversion only: arithmetic is done in float.
///
///     float16 h(1.5f);
///     float f = h;          // 1.5f, exact
class float16 {
 public:
  constexpr float16() = default;
  /// Rounds to nearest, ties to even; above 65504 gives infinity; NaN stays NaN.
  explicit float16(float value);
  /// Exact.
  operator float() const;  // NOLINT(google-explicit-constructor): widening loses nothing

  static constexpr float16 from_bits(std::uint16_t bits) {
    float16 h;
    h.bits_ = bits;
    return h;
  }
  [[nodiscard]] constexpr std::uint16_t bits() const { return bits_; }

 private:
  std::uint16_t bits_ = 0;
};

}  // namespace kiln
