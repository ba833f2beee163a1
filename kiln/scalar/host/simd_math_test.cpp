#include "kiln/scalar/host/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/scalar/host/simd_math_test.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// After Highway's, which choose the target.
#include "kiln/scalar/host/simd_functions-inl.h"
#include "kiln/scalar/host/simd_math-inl.h"

#ifndef KILN_SCALAR_SIMD_MATH_TEST_ONCE
#define KILN_SCALAR_SIMD_MATH_TEST_ONCE
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "kiln/scalar/opcode.hpp"
#endif

HWY_BEFORE_NAMESPACE();
namespace kiln {
namespace HWY_NAMESPACE {

// What is tested, over arrays; all sizes are multiples of the lanes of the widest target.

template <class Function>
HWY_INLINE void each(std::span<const float> in, std::span<float> out, Function function) {
  const hn::ScalableTag<float> d;
  for (std::size_t i = 0; i < out.size(); i += hn::Lanes(d)) {
    hn::StoreU(function(d, hn::LoadU(d, in.data() + i)), d, out.data() + i);
  }
}

void run_unary(Opcode function, std::span<const float> in, std::span<float> out) {
  switch (function) {
    case Opcode::exp:
      return each(in, out, [](auto d, auto x) HWY_ATTR { return Exp(d, x); });
    case Opcode::log:
      return each(in, out, [](auto d, auto x) HWY_ATTR { return Log(d, x); });
    case Opcode::tanh:
      return each(in, out, [](auto d, auto x) HWY_ATTR { return Tanh(d, x); });
    case Opcode::sigmoid:
      return each(in, out, [](auto d, auto x) HWY_ATTR { return Sigmoid(d, x); });
    case Opcode::softplus:
      return each(in, out, [](auto d, auto x) HWY_ATTR { return Softplus(d, x); });
    case Opcode::erf:
      return each(in, out, [](auto d, auto x) HWY_ATTR { return Erf(d, x); });
    case Opcode::sqrt:
      return each(in, out, [](auto d, auto x) HWY_ATTR { return Sqrt(d, x); });
    case Opcode::rsqrt:
      return each(in, out, [](auto d, auto x) HWY_ATTR { return Rsqrt(d, x); });
    case Opcode::relu:
      return each(in, out, [](auto d, auto x) HWY_ATTR { return Relu(d, x); });
    case Opcode::sin:
      return each(in, out, [](auto d, auto x) HWY_ATTR { return Sin(d, x); });
    case Opcode::cos:
      return each(in, out, [](auto d, auto x) HWY_ATTR { return Cos(d, x); });
    case Opcode::tan:
      return each(in, out, [](auto d, auto x) HWY_ATTR { return Tan(d, x); });
    case Opcode::asin:
      return each(in, out, [](auto d, auto x) HWY_ATTR { return Asin(d, x); });
    case Opcode::acos:
      return each(in, out, [](auto d, auto x) HWY_ATTR { return Acos(d, x); });
    case Opcode::atan:
      return each(in, out, [](auto d, auto x) HWY_ATTR { return Atan(d, x); });
    case Opcode::sinh:
      return each(in, out, [](auto d, auto x) HWY_ATTR { return Sinh(d, x); });
    case Opcode::cosh:
      return each(in, out, [](auto d, auto x) HWY_ATTR { return Cosh(d, x); });
    case Opcode::exp2:
      return each(in, out, [](auto d, auto x) HWY_ATTR { return Exp2(d, x); });
    case Opcode::log2:
      return each(in, out, [](auto d, auto x) HWY_ATTR { return Log2(d, x); });
    case Opcode::log1p:
      return each(in, out, [](auto d, auto x) HWY_ATTR { return Log1p(d, x); });
    case Opcode::expm1:
      return each(in, out, [](auto d, auto x) HWY_ATTR { return Expm1(d, x); });
    case Opcode::sign:
      return each(in, out, [](auto d, auto x) HWY_ATTR { return Sign(d, x); });
    case Opcode::floor:
      return each(in, out, [](auto d, auto x) HWY_ATTR { return Floor(d, x); });
    case Opcode::ceil:
      return each(in, out, [](auto d, auto x) HWY_ATTR { return Ceil(d, x); });
    case Opcode::trunc:
      return each(in, out, [](auto d, auto x) HWY_ATTR { return Trunc(d, x); });
    case Opcode::round:
      return each(in, out, [](auto d, auto x) HWY_ATTR { return Round(d, x); });
    default:
      std::ranges::fill(out, std::numeric_limits<float>::quiet_NaN());  // no test passes
  }
}

void round_f16(std::span<const float> in, std::span<float> out) {
  each(in, out, [](auto d, auto x) HWY_ATTR { return RoundF16(d, x); });
}

void run_binary(Opcode function, std::span<const float> a, std::span<const float> b,
                std::span<float> out) {
  const hn::ScalableTag<float> d;
  for (std::size_t i = 0; i < out.size(); i += hn::Lanes(d)) {
    const auto x = hn::LoadU(d, a.data() + i);
    const auto y = hn::LoadU(d, b.data() + i);
    auto result = hn::Zero(d);
    if (function == Opcode::min) result = Min(d, x, y);
    if (function == Opcode::max) result = Max(d, x, y);
    if (function == Opcode::pow) result = Pow(d, x, y);
    if (function == Opcode::atan2) result = Atan2(d, x, y);
    hn::StoreU(result, d, out.data() + i);
  }
}

void to_i32(std::span<const float> in, std::span<std::int32_t> out) {
  const hn::ScalableTag<float> d;
  const hn::ScalableTag<std::int32_t> di;
  for (std::size_t i = 0; i < out.size(); i += hn::Lanes(d)) {
    hn::StoreU(F32ToI32(d, hn::LoadU(d, in.data() + i)), di, out.data() + i);
  }
}

void to_u32(std::span<const float> in, std::span<std::uint32_t> out) {
  const hn::ScalableTag<float> d;
  const hn::ScalableTag<std::uint32_t> du;
  for (std::size_t i = 0; i < out.size(); i += hn::Lanes(d)) {
    hn::StoreU(F32ToU32(d, hn::LoadU(d, in.data() + i)), du, out.data() + i);
  }
}

void from_i32(std::span<const std::int32_t> in, std::span<float> out) {
  const hn::ScalableTag<float> d;
  const hn::ScalableTag<std::int32_t> di;
  for (std::size_t i = 0; i < out.size(); i += hn::Lanes(d)) {
    hn::StoreU(I32ToF32(d, hn::LoadU(di, in.data() + i)), d, out.data() + i);
  }
}

void from_u32(std::span<const std::uint32_t> in, std::span<float> out) {
  const hn::ScalableTag<float> d;
  const hn::ScalableTag<std::uint32_t> du;
  for (std::size_t i = 0; i < out.size(); i += hn::Lanes(d)) {
    hn::StoreU(U32ToF32(d, hn::LoadU(du, in.data() + i)), d, out.data() + i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kiln
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kiln/scalar/opcode_table.hpp"
#include "kiln/support/float16.hpp"

namespace kiln {
namespace {

HWY_EXPORT(run_unary);
HWY_EXPORT(run_binary);
HWY_EXPORT(round_f16);
HWY_EXPORT(to_i32);
HWY_EXPORT(to_u32);
HWY_EXPORT(from_i32);
HWY_EXPORT(from_u32);

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr std::size_t lanes = 16;  // a multiple of every target's

/// Calls `check` with each instruction set in turn chosen for what is dispatched.
template <class Check>
void on_every_target(Check check) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    check();
    hwy::SetSupportedTargetsForTest(0);
  }
}

template <class T>
std::vector<T> padded(std::vector<T> values) {
  values.resize((values.size() + lanes - 1) / lanes * lanes, values.back());
  return values;
}

/// The values at which functions change their mind, and their neighbours.
std::vector<float> special_values() {
  std::vector<float> out{nan, -nan};
  for (const float x :
       {0.0F,          1e-45F,        5.877e-39F,    1.1754943e-38F, 5.9604645e-8F, 2.9802322e-8F,
        6.097555e-5F,  6.1035156e-5F, 1e-4F,         1.0F / 3,       0.5F,          0.625F,
        0.70710677F,   0.9277344F,    1.0F,          1.4142135F,     1.5F,          2.0F,
        2.5F,          3.0F,          3.92F,         4.0F,           9.02F,         10.0F,
        13.24F,        17.0F,         80.0F,         87.33654F,      88.0F,         88.72283F,
        89.0F,         100.0F,        103.27893F,    103.97208F,     104.0F,        127.0F,
        128.0F,        149.0F,        2049.0F,       65504.0F,       65519.996F,    65520.0F,
        65536.0F,      8388607.5F,    8388608.0F,    16777215.0F,    16777216.0F,   2147483520.0F,
        2147483648.0F, 4294967040.0F, 4294967296.0F, 1e10F,          3.4028235e38F, inf}) {
    for (const float near : {std::nextafter(x, 0.0F), x, std::nextafter(x, inf)}) {
      out.push_back(near);
      out.push_back(-near);
    }
  }
  return out;
}

/// The special values and every 997th of all floats.
const std::vector<float>& all_floats() {
  static const std::vector<float> floats = [] {
    std::vector<float> out = special_values();
    for (std::uint64_t bits = 0; bits < 0x100000000; bits += 997) {
      out.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    }
    return padded(std::move(out));
  }();
  return floats;
}

/// How far apart, in units in the last place of floats at `want`; infinities count as 2^128, and
/// results of different sign, one of them 0, as infinitely far.
double ulps_apart(float got, double want) {
  if (std::isnan(got) || std::isnan(want))
    return std::isnan(got) && std::isnan(want) ? 0 : HUGE_VAL;
  if (got == 0 && std::signbit(got) != std::signbit(want)) return HUGE_VAL;
  const double limit = 0x1p128;
  want = std::clamp(want, -limit, limit);
  const double from = std::clamp(static_cast<double>(got), -limit, limit);
  if (from == want) return 0;
  const auto exponent = static_cast<int>((std::bit_cast<std::uint64_t>(want) >> 52) & 0x7FF) - 1023;
  const int last = std::max(std::min(exponent, 127) - 23, -149);
  return std::abs(from - want) *
         std::bit_cast<double>(static_cast<std::uint64_t>(1023 - last) << 52);
}

void expect_near(std::span<const float> got, std::span<const double> want, double limit,
                 const std::function<std::string(std::size_t)>& call) {
  double worst = 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double apart = ulps_apart(got[i], want[i]);
    if (apart <= worst) continue;
    worst = apart;
    at = i;
  }
  EXPECT_LE(worst, limit) << call(at) << " gave " << got[at] << " for " << want[at];
}

std::string called(std::string_view name, float x) { return fmt::format("{}({:a})", name, x); }

/// Checks against the opcode's definition in double precision.
void check_unary(Opcode op, double limit) {
  const std::vector<float>& in = all_floats();
  std::vector<double> want;
  want.reserve(in.size());
  for (const float x : in) want.push_back(row(op).evaluate({static_cast<double>(x)}, DType::f32));
  std::vector<float> got(in.size());
  on_every_target([&] {
    HWY_DYNAMIC_DISPATCH(run_unary)(op, in, got);
    expect_near(got, want, limit, [&](std::size_t i) { return called(row(op).name, in[i]); });
  });
}

TEST(SimdMath, ExpIsRightForEveryFloat) { check_unary(Opcode::exp, 2); }
TEST(SimdMath, LogIsRightForEveryFloat) { check_unary(Opcode::log, 2); }
TEST(SimdMath, TanhIsRightForEveryFloat) { check_unary(Opcode::tanh, 4); }
TEST(SimdMath, SigmoidIsRightForEveryFloat) { check_unary(Opcode::sigmoid, 4); }
TEST(SimdMath, SoftplusIsRightForEveryFloat) { check_unary(Opcode::softplus, 4); }
TEST(SimdMath, ErfIsRightForEveryFloat) { check_unary(Opcode::erf, 2); }
TEST(SimdMath, SqrtIsRightForEveryFloat) { check_unary(Opcode::sqrt, 0.5); }
TEST(SimdMath, RsqrtIsRightForEveryFloat) { check_unary(Opcode::rsqrt, 1.5); }
TEST(SimdMath, ReluIsRightForEveryFloat) { check_unary(Opcode::relu, 0); }

TEST(SimdMath, SinIsRightForEveryFloat) { check_unary(Opcode::sin, 2); }
TEST(SimdMath, CosIsRightForEveryFloat) { check_unary(Opcode::cos, 2); }
TEST(SimdMath, TanIsRightForEveryFloat) { check_unary(Opcode::tan, 4); }
TEST(SimdMath, AsinIsRightForEveryFloat) { check_unary(Opcode::asin, 3); }
TEST(SimdMath, AcosIsRightForEveryFloat) { check_unary(Opcode::acos, 3); }
TEST(SimdMath, AtanIsRightForEveryFloat) { check_unary(Opcode::atan, 3); }
TEST(SimdMath, SinhIsRightForEveryFloat) { check_unary(Opcode::sinh, 4); }
TEST(SimdMath, CoshIsRightForEveryFloat) { check_unary(Opcode::cosh, 3); }
TEST(SimdMath, Exp2IsRightForEveryFloat) { check_unary(Opcode::exp2, 2); }
TEST(SimdMath, Log2IsRightForEveryFloat) { check_unary(Opcode::log2, 3); }
TEST(SimdMath, Log1pIsRightForEveryFloat) { check_unary(Opcode::log1p, 4); }
TEST(SimdMath, Expm1IsRightForEveryFloat) { check_unary(Opcode::expm1, 2); }
TEST(SimdMath, SignIsRightForEveryFloat) { check_unary(Opcode::sign, 0); }

// Also the zeros that they give have the sign of x.
TEST(SimdMath, RoundingIsRightForEveryFloat) {
  const std::vector<float>& in = all_floats();
  std::vector<float> got(in.size());
  const auto check = [&](Opcode op, float (*want)(float)) {
    on_every_target([&] {
      HWY_DYNAMIC_DISPATCH(run_unary)(op, in, got);
      std::size_t wrong = 0;
      float first = 0;
      for (std::size_t i = 0; i < in.size(); ++i) {
        const float right = want(in[i]);
        const bool equal = std::isnan(right)
                               ? std::isnan(got[i])
                               : right == got[i] && std::signbit(right) == std::signbit(got[i]);
        if (!equal && wrong++ == 0) first = in[i];
      }
      EXPECT_EQ(wrong, 0U) << called(row(op).name, first);
    });
  };
  check(Opcode::floor, [](float x) { return std::floor(x); });
  check(Opcode::ceil, [](float x) { return std::ceil(x); });
  check(Opcode::trunc, [](float x) { return std::trunc(x); });
  check(Opcode::round, [](float x) { return std::nearbyint(x); });
}

TEST(SimdMath, RoundF16IsTheConversionThereAndBack) {
  const std::vector<float>& in = all_floats();
  std::vector<double> want;
  for (const float x : in) want.push_back(static_cast<double>(static_cast<float>(float16(x))));
  std::vector<float> got(in.size());
  on_every_target([&] {
    HWY_DYNAMIC_DISPATCH(round_f16)(in, got);
    expect_near(got, want, 0, [&](std::size_t i) { return called("round_f16", in[i]); });
  });
}

struct Pairs {
  std::vector<float> a;
  std::vector<float> b;
};

/// Every pair of special values; random floats; and random bases with exponents for which the power
/// is a float, or just not.
Pairs pairs() {
  Pairs out;
  const auto add = [&](float a, float b) {
    out.a.push_back(a);
    out.b.push_back(b);
  };
  const std::vector<float> special = special_values();
  for (const float a : special) {
    for (const float b : special) add(a, b);
  }
  std::mt19937 random(7);
  const auto any = [&] { return std::bit_cast<float>(static_cast<std::uint32_t>(random())); };
  std::uniform_real_distribution<float> power(-155, 130);
  for (int i = 0; i < 200'000; ++i) {
    add(any(), any());
    const float base = std::abs(any());
    add(base, power(random) / std::log2(base));
    const float near_one = std::exp2(power(random) * 1e-4F);
    add(near_one, power(random) / std::log2(near_one));
    add(any(), std::round(power(random) / 8));
  }
  out.a = padded(std::move(out.a));
  out.b = padded(std::move(out.b));
  return out;
}

void check_binary(Opcode op, double limit) {
  static const Pairs in = pairs();
  std::vector<double> want;
  for (std::size_t i = 0; i < in.a.size(); ++i) {
    const auto a = static_cast<double>(in.a[i]);
    const auto b = static_cast<double>(in.b[i]);
    want.push_back(row(op).evaluate({a, b}, DType::f32));
  }
  std::vector<float> got(in.a.size());
  on_every_target([&] {
    HWY_DYNAMIC_DISPATCH(run_binary)(op, in.a, in.b, got);
    expect_near(got, want, limit, [&](std::size_t i) {
      return fmt::format("{}({:a}, {:a})", row(op).name, in.a[i], in.b[i]);
    });
  });
}

TEST(SimdMath, MinKeepsNaN) { check_binary(Opcode::min, 0); }
TEST(SimdMath, MaxKeepsNaN) { check_binary(Opcode::max, 0); }
TEST(SimdMath, PowIsRightForSpecialAndRandomPairs) { check_binary(Opcode::pow, 1); }

TEST(SimdMath, Atan2IsRightForSpecialAndRandomPairs) { check_binary(Opcode::atan2, 4); }

TEST(SimdMath, CastsToIntegersTruncateAndSaturate) {
  const std::vector<float>& in = all_floats();
  std::vector<std::int32_t> ints(in.size());
  std::vector<std::uint32_t> uints(in.size());
  on_every_target([&] {
    HWY_DYNAMIC_DISPATCH(to_i32)(in, ints);
    HWY_DYNAMIC_DISPATCH(to_u32)(in, uints);
    for (std::size_t i = 0; i < in.size(); ++i) {
      const double x = std::isnan(in[i]) ? 0 : static_cast<double>(in[i]);
      ASSERT_EQ(ints[i], row(Opcode::cast).evaluate({x}, DType::i32)) << in[i];
      ASSERT_EQ(uints[i], row(Opcode::cast).evaluate({x}, DType::u32)) << in[i];
    }
  });
}

TEST(SimdMath, CastsFromIntegersRoundToNearest) {
  std::vector<std::int32_t> ints;
  std::vector<std::uint32_t> uints;
  for (std::uint64_t bits = 0; bits < 0x100000000; bits += 4093) {
    for (std::uint64_t near = bits; near < bits + 3; ++near) {
      uints.push_back(static_cast<std::uint32_t>(near));
      ints.push_back(static_cast<std::int32_t>(uints.back()));
    }
  }
  for (const std::uint32_t x : {0x7FFFFFFFU, 0x80000000U, 0xFFFFFF7FU, 0xFFFFFF80U, 0xFFFFFFFFU}) {
    uints.push_back(x);
    ints.push_back(static_cast<std::int32_t>(x));
  }
  ints = padded(std::move(ints));
  uints = padded(std::move(uints));
  std::vector<float> from_ints(ints.size());
  std::vector<float> from_uints(ints.size());
  on_every_target([&] {
    HWY_DYNAMIC_DISPATCH(from_i32)(ints, from_ints);
    HWY_DYNAMIC_DISPATCH(from_u32)(uints, from_uints);
    for (std::size_t i = 0; i < ints.size(); ++i) {
      ASSERT_EQ(from_ints[i], static_cast<float>(ints[i])) << ints[i];
      ASSERT_EQ(from_uints[i], static_cast<float>(uints[i])) << uints[i];
    }
  });
}

}  // namespace
}  // namespace kiln
#endif
