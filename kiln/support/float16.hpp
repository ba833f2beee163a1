#pragma once
#include <cstdint>

namespace kiln {

/// IEEE 754 binary16, for storage and conversion only: arithmetic is done in float.
///
///     const float16 h(1.5F);
///     float{h};   // [1.5]
class float16 {
 public:
  constexpr float16() = default;
  /// Rounds to nearest, ties to even. From 65520 on it is infinity. NaN stays NaN.
  explicit float16(float value);
  /// The same number, exactly.
  operator float() const;  // NOLINT(google-explicit-constructor): widening loses nothing

  /// The number of 16 bits, and the bits of the number.
  ///
  ///     float16::from_bits(0x3c00);   // [1]
  ///     float16(1.F).bits() == 0x3c00;   // [true]
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
