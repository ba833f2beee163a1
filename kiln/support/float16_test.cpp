#include "kiln/support/float16.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace kiln {
namespace {

constexpr std::uint16_t infinity_bits = 0x7c00;

std::uint16_t to_bits(float value) { return float16(value).bits(); }

/// The value of a pattern by the definition of the format.
double value_of(int bits) {
  const int exponent = (bits >> 10) & 0x1f;
  const int mantissa = bits & 0x3ff;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 0x1f) {
    return mantissa == 0 ? sign * HUGE_VAL : std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

/// The pattern nearest to a number that is not negative, ties to even, found by search.
int nearest(double magnitude) {
  int low = 0;
  int high = infinity_bits;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (value_of(middle) <= magnitude ? low : high) = middle;
  }
  if (std::isinf(magnitude)) return infinity_bits;
  // Above the largest finite value the next step of the grid stands for infinity.
  const double above = high == infinity_bits ? 65536.0 : value_of(high);
  const double to_low = magnitude - value_of(low);
  const double to_high = above - magnitude;
  if (to_low != to_high) return to_low < to_high ? low : high;
  return low % 2 == 0 ? low : high;
}

TEST(Float16, EveryPatternWidensToItsValue) {
  for (int bits = 0; bits <= 0xffff; ++bits) {
    const float widened = float16::from_bits(static_cast<std::uint16_t>(bits));
    const double expected = value_of(bits);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(widened)) << bits;
    } else {
      EXPECT_EQ(static_cast<double>(widened), expected) << bits;
      EXPECT_EQ(std::signbit(widened), (bits & 0x8000) != 0) << bits;
    }
  }
}

TEST(Float16, EveryPatternSurvivesTheWayToFloatAndBack) {
  for (int bits = 0; bits <= 0xffff; ++bits) {
    const auto pattern = static_cast<std::uint16_t>(bits);
    const float widened = float16::from_bits(pattern);
    if (std::isnan(widened)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(float16(widened)))) << bits;
    } else {
      EXPECT_EQ(to_bits(widened), pattern) << bits;
    }
  }
}

TEST(Float16, HalfwayBetweenNeighboursGoesToTheEvenOne) {
  for (int bits = 0; bits < infinity_bits - 1; ++bits) {
    const auto halfway = static_cast<float>((value_of(bits) + value_of(bits + 1)) / 2);
    const int even = bits % 2 == 0 ? bits : bits + 1;
    EXPECT_EQ(to_bits(halfway), even) << bits;
    EXPECT_EQ(to_bits(-halfway), even | 0x8000) << bits;
    EXPECT_EQ(to_bits(std::nextafter(halfway, 0.0F)), bits) << bits;
    EXPECT_EQ(to_bits(std::nextafter(halfway, 1e30F)), bits + 1) << bits;
  }
}

TEST(Float16, OverflowBeginsHalfwayPastTheLargestValue) {
  EXPECT_EQ(to_bits(65504.0F), 0x7bff);
  EXPECT_EQ(to_bits(65519.996F), 0x7bff);
  EXPECT_EQ(to_bits(65520.0F), infinity_bits);
  EXPECT_EQ(to_bits(1e30F), infinity_bits);
  EXPECT_EQ(to_bits(-65520.0F), infinity_bits | 0x8000);
  EXPECT_EQ(to_bits(std::numeric_limits<float>::infinity()), infinity_bits);
}

TEST(Float16, TinyNumbersUnderflowToZeroOfTheirSign) {
  EXPECT_EQ(to_bits(0x1p-24F), 1);
  EXPECT_EQ(to_bits(0x1p-25F), 0);
  EXPECT_EQ(to_bits(0x1.000002p-25F), 1);
  EXPECT_EQ(to_bits(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_EQ(to_bits(-std::numeric_limits<float>::denorm_min()), 0x8000);
  EXPECT_EQ(to_bits(-0.0F), 0x8000);
}

TEST(Float16, TheLargestSubnormalRoundsUpIntoTheNormals) {
  EXPECT_EQ(to_bits(0x1.ff8p-15F), 0x03ff);
  EXPECT_EQ(to_bits(0x1.ffcp-15F), 0x0400);
  EXPECT_EQ(to_bits(0x1p-14F), 0x0400);
}

TEST(Float16, EveryKindOfNaNStaysNaN) {
  for (const std::uint32_t word : {0x7f80'0001U, 0x7fc0'0000U, 0x7fff'ffffU, 0xff80'0001U}) {
    const float16 half(std::bit_cast<float>(word));
    EXPECT_TRUE(std::isnan(static_cast<float>(half))) << word;
  }
}

TEST(Float16, IsZeroUnlessSet) {
  constexpr float16 zero;
  static_assert(zero.bits() == 0);
  static_assert(float16::from_bits(0x3c00).bits() == 0x3c00);
  EXPECT_EQ(static_cast<float>(zero), 0.0F);
}

RC_GTEST_PROP(Float16, AnyFloatGoesToTheNearestPattern, ()) {
  const auto word = static_cast<std::uint32_t>(*rc::gen::arbitrary<std::int32_t>());
  // Half of the time an exponent near the range of the format.
  const std::uint32_t exponent = 96 + (word >> 23) % 50;
  const bool close = *rc::gen::arbitrary<bool>();
  const float value = std::bit_cast<float>(close ? (word & 0x807f'ffffU) | (exponent << 23) : word);
  RC_PRE(!std::isnan(value));
  const int sign = std::signbit(value) ? 0x8000 : 0;
  RC_ASSERT(int{to_bits(value)} == (nearest(std::abs(static_cast<double>(value))) | sign));
}

}  // namespace
}  // namespace kiln
