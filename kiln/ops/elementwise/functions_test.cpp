#include "kiln/ops/elementwise/functions.hpp"

#include <algorithm>
#include <limits>

#include "kiln/ops/compare/compare.hpp"
#include "kiln/ops/elementwise/elementwise.hpp"
#include "kiln/ops/matmul/matmul.hpp"
#include "kiln/ops/reduce/reduce.hpp"
#include "kiln/ops/test_support.hpp"

namespace kiln {
namespace {

using test::expect_near;
using test::make;
using test::values;

constexpr float inf = std::numeric_limits<float>::infinity();

struct Case {
  const char* name;
  AnyTensor (*run)(const AnyTensor&);
  double (*expected)(double);
  double (*slope)(double);
  double growth = 0;    ///< of the relative error with |x|, as WGSL has it of exp
  double absolute = 0;  ///< as WGSL has it of log near 1
};

double flat(double) { return 0; }
double root(double x) { return std::sqrt(x); }
double square(double x) { return x * x; }

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"sin", sin, std::sin, std::cos},
      {"cos", cos, std::cos, [](double x) { return -std::sin(x); }},
      {"tan", tan, std::tan, [](double x) { return 1 + square(std::tan(x)); }},
      {"asin", asin, std::asin, [](double x) { return 1 / root((1 - x) * (1 + x)); }},
      {"acos", acos, std::acos, [](double x) { return -1 / root((1 - x) * (1 + x)); }},
      {"atan", atan, std::atan, [](double x) { return 1 / (1 + square(x)); }},
      {"sinh", sinh, std::sinh, std::cosh, 3e-7},
      {"cosh", cosh, std::cosh, std::sinh, 3e-7},
      {"asinh", asinh, std::asinh, [](double x) { return 1 / root(1 + square(x)); }},
      {"acosh", acosh, std::acosh, [](double x) { return 1 / root((x - 1) * (x + 1)); }},
      {"atanh", atanh, std::atanh, [](double x) { return 1 / ((1 - x) * (1 + x)); }},
      {"exp2", exp2, std::exp2, [](double x) { return M_LN2 * std::exp2(x); }, 3e-7},
      {"log2", log2, std::log2, [](double x) { return 1 / (M_LN2 * x); }, 0, 1e-6},
      {"log1p", log1p, std::log1p, [](double x) { return 1 / (1 + x); }},
      {"expm1", expm1, std::expm1, std::exp, 3e-7},
      {"floor", floor, std::floor, flat},
      {"ceil", ceil, std::ceil, flat},
      {"round", round, std::nearbyint, flat},
      {"trunc", trunc, std::trunc, flat},
      {"sign", sign,
       [](double x) { return std::isnan(x) ? x : static_cast<double>((x > 0) - (x < 0)); }, flat},
  };
  return all;
}

/// Each of both signs: around the bounds of reductions and series, and of domains.
std::vector<float> points() {
  std::vector<float> out{NAN};
  for (const float x :
       {0.0F,    1e-30F,   1e-6F,    9.9e-5F,    1.1e-4F, 0.01F,      0.29F,   0.3F,
        0.41F,   0.42F,    0.5F,     0.51F,      0.7F,    0.785F,     0.99F,   1.0F,
        1.001F,  1.5F,     1.57079F, 2.5F,       3.0F,    3.1415927F, 10.0F,   22.0F,
        80.0F,   88.9F,    89.5F,    130.0F,     150.5F,  399.9F,     400.0F,  401.5F,
        9999.0F, 10001.0F, 65504.0F, 8388607.5F, 1e10F,   5.3e20F,    3.4e38F, inf}) {
    out.push_back(x);
    out.push_back(-x);
  }
  return out;
}

void expect_value(const Case& c, float x, float got, double want, double relative, double least) {
  if (std::isnan(want) || std::isinf(want)) {
    EXPECT_TRUE(std::isnan(want) ? std::isnan(got) : double{got} == want)
        << c.name << "(" << x << ") is " << got << ", not " << want;
    return;
  }
  const double off =
      (relative + c.growth * std::min(std::abs(double{x}), 200.0)) * std::abs(want) + least;
  EXPECT_NEAR(got, want, off) << c.name << "(" << x << ")";
  if (want == 0) {
    EXPECT_EQ(std::signbit(got), std::signbit(want)) << c.name << "(" << x << ")";
  }
}

TEST(Functions, AreThoseOfTheStandardLibraryForEveryKindOfNumber) {
  const std::vector<float> x = points();
  const AnyTensor t = make(x, {static_cast<std::int64_t>(x.size())});
  for (const Case& c : cases()) {
    const std::vector<float> y = values(c.run(t));
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double want = c.expected(double{x[i]});
      // Beyond the last float it is an infinity.
      const bool over = std::abs(want) > double{std::numeric_limits<float>::max()};
      expect_value(c, x[i], y[i], over ? std::copysign(HUGE_VAL, want) : want, 2e-6,
                   1e-37 + c.absolute);
    }
  }
}

TEST(Functions, InF16AreTheNearestF16) {
  const std::vector<float> x = points();
  const AnyTensor t = make(x, {static_cast<std::int64_t>(x.size())}, DType::f16);
  const std::vector<float> held = values(t);
  for (const Case& c : cases()) {
    const AnyTensor y = c.run(t);
    EXPECT_EQ(y.dtype(), DType::f16);
    const std::vector<float> got = values(y);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double want = c.expected(double{held[i]});
      const bool over = std::abs(want) >= 65520;
      expect_value(c, held[i], got[i], over ? std::copysign(HUGE_VAL, want) : want, 1e-3, 6e-8);
    }
  }
}

TEST(Functions, RoundTakesTheEvenNeighbour) {
  for (const DType dtype : {DType::f32, DType::f16}) {
    const AnyTensor x = make({-2.5F, -1.5F, -0.5F, 0.5F, 1.5F, 2.5F, 1023.5F}, {7}, dtype);
    EXPECT_EQ(values(round(x)), (std::vector<float>{-2, -2, 0, 0, 2, 2, 1024}));
  }
}

TEST(Functions, SignTakesIntegersToo) {
  EXPECT_EQ(values(sign(make<std::int32_t>({-2147483648, -3, 0, 7}, {4}))),
            (std::vector<float>{-1, -1, 0, 1}));
  EXPECT_EQ(values(sign(make<std::uint32_t>({0, 7, 4000000000U}, {3}))),
            (std::vector<float>{0, 1, 1}));
}

TEST(Functions, HaveTheSlopesOfTheirDerivatives) {
  const std::vector<float> x{-300.25F, -2.5F, -0.7F, -0.1F, 0.3F, 0.9F, 1.2F, 3.3F, 30.0F};
  const AnyTensor t = make(x, {static_cast<std::int64_t>(x.size())});
  for (const Case& c : cases()) {
    const auto f = [&](const std::vector<AnyTensor>& in) { return c.run(in[0]); };
    const std::vector<float> g = values(test::gradients_of(f, {t}, 2.0F)[0]);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double want = 2 * c.slope(double{x[i]});
      if (!std::isfinite(c.expected(double{x[i]})) || std::abs(want) > 3e38) continue;
      EXPECT_NEAR(g[i], want, (3e-5 + c.growth * std::abs(double{x[i]})) * std::abs(want) + 1e-37)
          << "slope of " << c.name << " at " << x[i];
    }
  }
}

TEST(Functions, AGradientOfZeroStaysZero) {
  const std::vector<float> x = points();
  const AnyTensor t = make(x, {static_cast<std::int64_t>(x.size())});
  for (const Case& c : cases()) {
    const auto f = [&](const std::vector<AnyTensor>& in) { return c.run(in[0]); };
    for (const float g : values(test::gradients_of(f, {t}, 0.0F)[0])) EXPECT_EQ(g, 0) << c.name;
  }
}

TEST(Functions, Atan2KnowsEveryQuadrantAndSpecialNumber) {
  const std::vector<float> x{-inf, -1e30F, -2, -1e-20F, -0.0F, 0, 1e-20F, 0.5F, 2, 1e30F, inf, NAN};
  const auto n = static_cast<std::int64_t>(x.size());
  const std::vector<float> got = values(atan2(make(x, {n, 1}), make(x, {n})));
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double want = std::atan2(double{x[i / x.size()]}, double{x[i % x.size()]});
    expect_value({"atan2", nullptr, nullptr, nullptr}, x[i % x.size()], got[i], want, 1e-6, 1e-37);
  }
  test::expect_gradients(
      "atan2", [](const auto& in) { return atan2(in[0], in[1] + 1.6); },
      {test::make_wave({2, 3}), test::make_wave({3}, 1)}, 6e-3);
}

TEST(Functions, FuseIntoWhatComesAfterAndBefore) {
  const AnyTensor x = test::make_wave({4, 5});
  const std::vector<float> in = values(x);
  std::vector<double> waves;
  double total = 0;
  for (const float v : in) {
    waves.push_back(std::sin(double{v} * 900) + std::cos(double{v}));
    total += waves.back();
  }
  const auto wave = [](const AnyTensor& t) { return sin(t * 900) + cos(t); };
  EXPECT_EQ(test::counted([&] { return wave(x); }).launches, default_device().is_eager() ? 4U : 1U);
  // An angle of 900 is rounded to 6e-5.
  expect_near(values(wave(x)), waves, 1e-4);
  expect_near(values(wave(x).sum()), {total}, 1e-3);
  const AnyTensor one = make<float>({1}, {1, 1});
  expect_near(values(tan(matmul(make<float>({0.5F}, {1, 1}), one))), {std::tan(0.5)}, 1e-6);
}

TEST(Functions, WhatCancelsOnPaperStays) {
  EXPECT_EQ(values(log2(exp2(make<float>({200}, {1}))))[0], inf);
  EXPECT_TRUE(std::isnan(values(exp2(log2(make<float>({-1}, {1}))))[0]));
  EXPECT_TRUE(std::isnan(values(expm1(log1p(make<float>({-2}, {1}))))[0]));
}

TEST(Functions, KindsOfNumbersAreTold) {
  for (const DType dtype : {DType::f32, DType::f16}) {
    const AnyTensor x = make({0, -1, 65504, inf, -inf, NAN, 1e-7F}, {7}, dtype);
    EXPECT_EQ(values(is_inf(x)), (std::vector<float>{0, 0, 0, 1, 1, 0, 0}));
    EXPECT_EQ(values(is_finite(x)), (std::vector<float>{1, 1, 1, 0, 0, 0, 1}));
  }
}

}  // namespace
}  // namespace kiln
