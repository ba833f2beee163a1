#include "kiln/ops/elementwise/elementwise_test_support.hpp"
#include "kiln/ops/test_support.hpp"
#include "kiln/tensor/apply.hpp"

/// NaN, infinities, signed zeros, and numbers so large or small that a formula leaves their range.
namespace kiln {
namespace {

using test::binary;
using test::Binary;
using test::expect_near;
using test::make;
using test::unary;
using test::Unary;
using test::values;
using ::testing::ElementsAre;

constexpr float inf = std::numeric_limits<float>::infinity();

TEST(SpecialValues, NaNsStay) {
  for (const int n : {3, 16, 64, 1024}) {
    std::vector<float> x = test::wave(n);
    const auto at = static_cast<std::size_t>(n / 2);
    x[at] = NAN;
    const AnyTensor t = make(x, {n});
    const AnyTensor one = make<float>({0.5F}, {1});
    for (const AnyTensor& y :
         {relu(t), clamp(t, -0.5, 0.5), abs(t), tanh(t), sigmoid(t), softplus(t), gelu(t), silu(t),
          erf(t), maximum(t, one), maximum(one, t), minimum(t, one), minimum(one, t), exp(t),
          t * 0.0}) {
      for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(std::isnan(values(y)[i]), i == at) << n;
    }
  }
}

TEST(SpecialValues, WhatCancelsOnPaperIsNaNWhereAnOperandIsNaNOrInfinite) {
  const AnyTensor x = make<float>({-2, 0, NAN, inf, -inf, 3}, {6});
  const auto nan_at = [](const AnyTensor& y) {
    std::string out;
    for (const float v : values(y)) out += std::isnan(v) ? 'n' : '.';
    return out;
  };
  EXPECT_EQ(nan_at(x - x), "..nnn.");
  EXPECT_EQ(nan_at(x + -x), "..nnn.");
  EXPECT_EQ(nan_at(x / x), ".nnnn.");
  EXPECT_EQ(nan_at(x * 0.0), "..nnn.");
  EXPECT_EQ(nan_at(sqrt(x) * sqrt(x)), "n.n.n.");
  EXPECT_EQ(nan_at((x + 1.0) - (x + 1.0)), "..nnn.");
  EXPECT_EQ(nan_at((x + 1.0) - (x + 2.0)), "..nnn.");
  EXPECT_EQ(nan_at(x * 3.0 / x), ".nnnn.");
  EXPECT_EQ(nan_at(x / sqrt(x)), "nnnnn.");
  EXPECT_EQ(nan_at(exp(x) * exp(-x)), "..nnn.");
  EXPECT_EQ(nan_at(exp(log(x))), "n.n.n.");
  EXPECT_THAT(values(equal(x, x)), ElementsAre(1, 1, 0, 1, 1, 1));
  EXPECT_THAT(values(less_equal(x, x)), ElementsAre(1, 1, 0, 1, 1, 1));
}

/// Functions in which a compiler may find what cancels, as literals and not as numbers of a launch.
struct Cancelling {
  static constexpr std::string_view name = "cancelling";
  int which;
  Expr body(Expr x, Expr y) const {
    switch (which) {
      case 0:
        return (x + y) - y;
      case 1:
        return (x + 16777216) - 16777216;
      case 2:
        return x * 1e30 * 1e-30;
      case 3:
        return log(exp(x));
      case 4:
        return log(x) + log(y);
      case 5:
        return exp(x) / exp(y);
      case 6:
        return sqrt(x * x);
      case 7:
        return x * y / y;
      default:
        return sqrt(exp(x));
    }
  }
};

TEST(SpecialValues, NothingIsReassociated) {
  const float big = 16777216.0F;
  const auto run = [](int which, float x, float y) {
    return values(apply(Cancelling{which}, make<float>({x}, {1}), make<float>({y}, {1})))[0];
  };
  EXPECT_EQ(run(0, 0.3F, big), 0);
  EXPECT_EQ(run(1, 0.3F, 0), 0);
  EXPECT_EQ(run(2, 1e10F, 0), inf);
  EXPECT_EQ(run(3, 100, 0), inf);
  EXPECT_NEAR(run(4, 1e30F, 1e30F), 138.155, 1e-3);
  EXPECT_TRUE(std::isnan(run(5, 100, 99)));
  EXPECT_EQ(run(6, 1e30F, 0), inf);
  EXPECT_EQ(run(7, 1e30F, 1e30F), inf);
  EXPECT_EQ(run(8, 100, 0), inf);
}

TEST(SpecialValues, NaNsStayInGradientsToo) {
  const std::vector<float> x{1, NAN, -1};
  const auto gradient = [&](const test::Function& f) {
    return values(test::gradients_of(f, {make(x, {3})})[0]);
  };
  const std::vector<float> seeds = test::wave(3, 5);
  const std::vector<float> by_relu = gradient([](const auto& in) { return relu(in[0]); });
  EXPECT_EQ(by_relu[0], seeds[0]);
  EXPECT_EQ(by_relu[1], seeds[1]) << "what is not known to be flat lets the gradient pass";
  EXPECT_EQ(by_relu[2], 0);
  EXPECT_TRUE(std::isnan(gradient([](const auto& in) { return tanh(in[0]); })[1]));
  EXPECT_TRUE(std::isnan(gradient([](const auto& in) { return in[0] * in[0]; })[1]));
}

TEST(SpecialValues, LargeArgumentsOverflowNowhere) {
  const std::vector<float> x{-1e30F, -1000, -89, -88.8F, -13.24F, -11.09F, 11.09F,
                             13.24F, 88.8F, 89,  1000,   1e30F,   -inf,    inf};
  const auto n = static_cast<std::int64_t>(x.size());
  for (const Unary& op : unary()) {
    const std::string name = op.name;
    if (name != "tanh" && name != "sigmoid" && name != "erf" && name != "gelu" && name != "silu" &&
        name != "softplus")
      continue;
    std::vector<double> expected;
    for (const float v : x)
      expected.push_back(v == -inf && (name == "gelu" || name == "silu") ? NAN : op.expected(v));
    const std::vector<float> y = values(op.run(make(x, {n})));
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(expected[i])) continue;  // -inf * 0
      if (std::isinf(expected[i])) {
        EXPECT_EQ(y[i], expected[i]) << name << " of " << x[i];
        continue;
      }
      EXPECT_NEAR(y[i], expected[i], 2e-6 * std::max(1.0, std::abs(expected[i])))
          << name << " of " << x[i];
    }
    // Gradients are finite everywhere but at the infinities.
    const auto g = values(
        test::gradients_of([&](const auto& in) { return op.run(in[0]); }, {make(x, {n})})[0]);
    for (std::size_t i = 0; i + 2 < x.size(); ++i)
      EXPECT_TRUE(std::isfinite(g[i])) << name << " of " << x[i];
  }
  EXPECT_NEAR(values(tanh(make<float>({-13.24F}, {1})))[0], -1, 1e-6);
  EXPECT_THAT(values(exp(make<float>({89, -110, inf, -inf}, {4}))), ElementsAre(inf, 0, inf, 0));
}

TEST(SpecialValues, LargeArgumentsInF16) {
  const AnyTensor x = make({-60000, -12, -11.09F, 11.09F, 12, 60000}, {6}, DType::f16);
  EXPECT_THAT(values(tanh(x)), ElementsAre(-1, -1, -1, 1, 1, 1));
  expect_near(values(sigmoid(x)), {0, 6e-6, 1.5e-5, 1, 1, 1}, 1e-5);
  expect_near(values(gelu(x)), {0, 0, 0, 11.09, 12, 60000}, 1e-3);
  expect_near(values(silu(x)), {0, -7e-5, -1.7e-4, 11.09, 12, 60000}, 1e-3);
  const std::vector<float> e = values(exp(x));
  EXPECT_EQ(e[4], inf);
  EXPECT_EQ(e[3], inf) << "as f16, 11.09 is 11.09375, whose exponential is above 65520";
  EXPECT_NEAR(values(exp(make({11.0F}, {1}, DType::f16)))[0], 59874, 32);
}

TEST(SpecialValues, TiesShareTheGradient) {
  const AnyTensor a = make<float>({1, 2, 3}, {3});
  const AnyTensor b = make<float>({1, 3, 2}, {3});
  const std::vector<float> s = test::wave(3, 5);
  const auto larger =
      test::gradients_of([](const auto& in) { return maximum(in[0], in[1]); }, {a, b});
  EXPECT_THAT(values(larger[0]), ElementsAre(s[0] / 2, 0, s[2]));
  EXPECT_THAT(values(larger[1]), ElementsAre(s[0] / 2, s[1], 0));
  const auto smaller =
      test::gradients_of([](const auto& in) { return minimum(in[0], in[1]); }, {a, b});
  EXPECT_THAT(values(smaller[0]), ElementsAre(s[0] / 2, s[1], 0));
  EXPECT_THAT(values(smaller[1]), ElementsAre(s[0] / 2, 0, s[2]));
}

TEST(SpecialValues, GradientsAtKinks) {
  const AnyTensor x = make<float>({0, -0.0F, -0.25F, 0.5F, 0.6F}, {5});
  const std::vector<float> s = test::wave(5, 5);
  const auto of = [&](const test::Function& f) { return values(test::gradients_of(f, {x})[0]); };
  EXPECT_THAT(of([](const auto& in) { return relu(in[0]); }), ElementsAre(0, 0, 0, s[3], s[4]));
  EXPECT_THAT(of([](const auto& in) { return abs(in[0]); }), ElementsAre(0, 0, -s[2], s[3], s[4]));
  EXPECT_THAT(of([](const auto& in) { return clamp(in[0], -0.25, 0.5); }),
              ElementsAre(s[0], s[1], s[2], s[3], 0));
}

TEST(SpecialValues, ReluBackwardTakesTheResult) {
  const AnyTensor out = make<float>({0, 2, NAN}, {3});
  EXPECT_THAT(values(relu_backward(out, make<float>({5, 6, 7}, {3}))), ElementsAre(0, 6, 7));
}

TEST(SpecialValues, PowersOfSpecialNumbers) {
  const auto power = [](float a, float b) {
    return values(pow(make<float>({a}, {1}), make<float>({b}, {1})))[0];
  };
  for (const float a : {-inf, -2.0F, -1.0F, -0.0F, 0.0F, 0.5F, 1.0F, 3.0F, inf}) {
    for (const float b : {-3.0F, -2.0F, -0.5F, 0.0F, 0.5F, 1.0F, 2.0F, 3.0F}) {
      expect_near({power(a, b)}, {std::pow(double{a}, double{b})}, 4e-6,
                  std::to_string(a) + " ^ " + std::to_string(b));
    }
  }
  // Of anything, as the C standard has it.
  for (const float x : {NAN, inf, -inf, -2.0F, 0.0F}) {
    EXPECT_EQ(power(x, 0), 1) << x;
    EXPECT_EQ(power(x, -0.0F), 1) << x;
    EXPECT_EQ(power(1, x), 1) << x;
    EXPECT_EQ(values(pow(make<float>({x}, {1}), 0))[0], 1) << x;
  }
  EXPECT_TRUE(std::isnan(power(NAN, 1)));
  EXPECT_TRUE(std::isnan(power(2, NAN)));
  EXPECT_FALSE(std::signbit(power(-0.0F, 0.5F)));
  EXPECT_TRUE(std::signbit(power(-0.0F, 3)));
  // x^0 is 1 and flat, at 0 as well; x^2 has its gradient at 0.
  const AnyTensor zero = make<float>({0, -2}, {2});
  const std::vector<float> s = test::wave(2, 5);
  EXPECT_THAT(values(test::gradients_of([](const auto& in) { return pow(in[0], 0); }, {zero})[0]),
              ElementsAre(0, 0));
  EXPECT_THAT(values(test::gradients_of([](const auto& in) { return pow(in[0], 2); }, {zero})[0]),
              ElementsAre(0, ::testing::FloatEq(-4 * s[1])));
}

/// The bits of all elements, by which -0 is not 0.
std::vector<bool> signs(const AnyTensor& t) {
  std::vector<bool> out;
  for (const float v : values(t)) out.push_back(std::signbit(v));
  return out;
}

TEST(SpecialValues, SignedZerosKeepTheirOrder) {
  for (const DType dtype : {DType::f32, DType::f16}) {
    const AnyTensor a = make({0, -0.0F, -0.0F, 0}, {4}, dtype);
    const AnyTensor b = make({-0.0F, 0, -0.0F, 0}, {4}, dtype);
    EXPECT_EQ(signs(minimum(a, b)), (std::vector{true, true, true, false}));
    EXPECT_EQ(signs(maximum(a, b)), (std::vector{false, false, true, false}));
    EXPECT_EQ(signs(minimum(a * 1, b * 1)), signs(minimum(a, b))) << "fused";
  }
}

TEST(SpecialValues, OfMinusZeroTheOddFunctionsAreMinusZero) {
  for (const DType dtype : {DType::f32, DType::f16}) {
    const AnyTensor x = make({-0.0F, 0}, {2}, dtype);
    for (const AnyTensor& y :
         {tanh(x), erf(x), sqrt(x), x * 3, x / 3, x * sigmoid(x), silu(x), gelu(x), pow(x, 3),
          cast(x, DType::f16), cast(x, DType::f32), x + x, clamp(x, -1, 1)})
      EXPECT_EQ(signs(y), (std::vector{true, false}));
    EXPECT_EQ(signs(-x), (std::vector{false, true}));
    for (const AnyTensor& y : {abs(x), relu(x), pow(x, 2), pow(x, 0.5), x + 0.0, exp(x)})
      EXPECT_EQ(signs(y), (std::vector{false, false}));
    EXPECT_THAT(values(1.0 / x), ElementsAre(-inf, inf));
    EXPECT_THAT(values(rsqrt(x)), ElementsAre(-inf, inf));
    EXPECT_THAT(values(log(x)), ElementsAre(-inf, -inf));
  }
}

// An incoming gradient of 0 gives 0, even where the slope is infinite or NaN.
TEST(SpecialValues, AGradientOfZeroStaysZero) {
  const std::vector<float> hard{0, -0.0F, 1, -1, 3e38F, -3e38F, inf, -inf, NAN};
  const auto n = static_cast<std::int64_t>(hard.size());
  for (const DType dtype : {DType::f32, DType::f16}) {
    const AnyTensor x = make(hard, {n}, dtype);
    for (const Unary& op : unary()) {
      const auto g = test::gradients_of([&](const auto& in) { return op.run(in[0]); }, {x}, 0.0F);
      for (const float v : values(g[0])) EXPECT_EQ(v, 0) << op.name;
    }
    const AnyTensor column = make(hard, {n, 1}, dtype);
    for (const Binary& op : binary()) {
      const auto f = [&](const std::vector<AnyTensor>& in) { return op.run(in[0], in[1]); };
      for (const AnyTensor& g : test::gradients_of(f, {x, column}, 0.0F)) {
        for (const float v : values(g)) EXPECT_EQ(v, 0) << op.name;
      }
    }
    const AnyTensor grad = make({0, -0.0F, 0, 2, NAN}, {5}, dtype);
    expect_near(values(scale_gradient(grad, make({NAN, inf, -inf, 3, 1}, {5}, dtype))),
                {0, 0, 0, 6, NAN}, 0);
  }
}

TEST(SpecialValues, AZeroOnTheWayBackStopsAnInfiniteSlope) {
  for (const DType dtype : {DType::f32, DType::f16}) {
    const AnyTensor x = make({-1, 0.25F, 4}, {3}, dtype);
    const auto branches = [](const std::vector<AnyTensor>& in) {
      return where(less(in[0], 0), 2 * in[0], sqrt(in[0]));
    };
    EXPECT_THAT(values(test::gradients_of(branches, {x}, 1.0F)[0]), ElementsAre(2, 1, 0.25F));
    const auto distance = [](const std::vector<AnyTensor>& in) {
      const AnyTensor least = make(std::vector<float>(2, 1e-4F), {2}, in[0].dtype());
      return maximum(sqrt(in[0] * in[0] + in[1] * in[1]), least);
    };
    const auto g =
        test::gradients_of(distance, {make({0, 3}, {2}, dtype), make({0, 4}, {2}, dtype)}, 1.0F);
    expect_near(values(g[0]), {0, 0.6}, test::tolerance_of(dtype));
    expect_near(values(g[1]), {0, 0.8}, test::tolerance_of(dtype));
  }
}

TEST(SpecialValues, MishHasAGradientFarOut) {
  const auto mish = [](const std::vector<AnyTensor>& in) { return in[0] * tanh(softplus(in[0])); };
  const AnyTensor x = make<float>({-200, -20, 0, 20, 89, 1000}, {6});
  expect_near(values(test::gradients_of(mish, {x}, 1.0F)[0]), {0, -3.9e-8, 0.6, 1, 1, 1}, 1e-6);
}

}  // namespace
}  // namespace kiln
