#include "kiln/support/float16.hpp"

#include <bit>

namespace kiln {
namespace {

constexpr std::uint32_t sign_mask = 0x8000'0000;
constexpr std::uint32_t f32_infinity = 0x7f80'0000;

}  // namespace

float16::float16(float value) {
  const auto word = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (word & sign_mask) >> 16;
  const std::uint32_t magnitude = word & ~sign_mask;
  std::uint32_t half = 0;
  if (magnitude > f32_infinity) {
    half = 0x7e00;  // a quiet NaN; its payload is not kept
  } else if (magnitude >= 0x477f'f000) {
    half = 0x7c00;  // 65520 and above round to infinity
  } else if (magnitude >= 0x3880'0000) {
    const std::uint32_t rebased = magnitude - 0x3800'0000;  // exponent bias 127 -> 15
    half = (rebased + 0x0fff + ((rebased >> 13) & 1)) >> 13;
  } else {
    // Subnormal: adding 0.5 lets the FPU round the mantissa to units of 2^-24, ties to even.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    half = std::bit_cast<std::uint32_t>(shifted) - 0x3f00'0000;
  }
  bits_ = static_cast<std::uint16_t>(sign | half);
}

float16::operator float() const {
  const std::uint32_t sign = std::uint32_t{bits_ & 0x8000U} << 16;
  const std::uint32_t exponent = (bits_ >> 10) & 0x1fU;
  const std::uint32_t mantissa = bits_ & 0x3ffU;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | f32_infinity | (mantissa << 13));
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}

}  // namespace kiln
