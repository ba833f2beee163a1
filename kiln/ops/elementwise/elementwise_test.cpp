#include "kiln/ops/elementwise/elementwise.hpp"

#include "kiln/ops/compare/compare.hpp"
#include "kiln/ops/test_support.hpp"
#include "kiln/tensor/apply.hpp"

namespace kiln {
namespace {

using test::expect_near;
using test::make;
using test::make_wave;
using test::message_of;
using test::values;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float inf = std::numeric_limits<float>::infinity();

struct Unary {
  const char* name;
  AnyTensor (*run)(const AnyTensor&);
  double (*expected)(double);
  bool positive = false;  ///< defined above 0 only
};

double phi(double x) { return 0.5 * std::erfc(-x / M_SQRT2); }

const std::vector<Unary>& unary() {
  static const std::vector<Unary> all{
      {"neg", [](const AnyTensor& x) { return -x; }, [](double x) { return -x; }},
      {"abs", abs, [](double x) { return std::abs(x); }},
      {"exp", exp, [](double x) { return std::exp(x); }},
      {"log", log, [](double x) { return std::log(x); }, true},
      {"sqrt", sqrt, [](double x) { return std::sqrt(x); }, true},
      {"rsqrt", rsqrt, [](double x) { return 1 / std::sqrt(x); }, true},
      {"tanh", tanh, [](double x) { return std::tanh(x); }},
      {"sigmoid", sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"relu", relu, [](double x) { return x <= 0 ? 0 : x; }},
      {"gelu", gelu, [](double x) { return x * phi(x); }},
      {"silu", silu, [](double x) { return x / (1 + std::exp(-x)); }},
      {"softplus", softplus,
       [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }},
      {"erf", erf, [](double x) { return std::erf(x); }},
      {"x + 2.5", [](const AnyTensor& x) { return x + 2.5; }, [](double x) { return x + 2.5; }},
      {"x - 2.5", [](const AnyTensor& x) { return x - 2.5; }, [](double x) { return x - 2.5; }},
      {"x * 2.5", [](const AnyTensor& x) { return x * 2.5; }, [](double x) { return x * 2.5; }},
      {"x / 2.5", [](const AnyTensor& x) { return x / 2.5; }, [](double x) { return x / 2.5; }},
      {"2.5 + x", [](const AnyTensor& x) { return 2.5 + x; }, [](double x) { return 2.5 + x; }},
      {"2.5 - x", [](const AnyTensor& x) { return 2.5 - x; }, [](double x) { return 2.5 - x; }},
      {"2.5 * x", [](const AnyTensor& x) { return 2.5 * x; }, [](double x) { return 2.5 * x; }},
      {"2.5 / x", [](const AnyTensor& x) { return 2.5 / x; }, [](double x) { return 2.5 / x; }},
      {"pow(x, 3)", [](const AnyTensor& x) { return pow(x, 3); },
       [](double x) { return std::pow(x, 3); }},
      {"pow(x, 2.5)", [](const AnyTensor& x) { return pow(x, 2.5); },
       [](double x) { return std::pow(x, 2.5); }, true},
      {"clamp", [](const AnyTensor& x) { return clamp(x, -0.25, 0.5); },
       [](double x) { return std::clamp(x, -0.25, 0.5); }},
  };
  return all;
}

std::vector<float> numbers(const Unary& op, std::int64_t count) {
  std::vector<float> x = test::wave(count);
  for (float& v : x) v = op.positive ? std::abs(v) * 3 : v * 3;
  return x;
}

TEST(Elementwise, UnaryValuesInF32AndF16) {
  for (const Unary& op : unary()) {
    for (const DType dtype : {DType::f32, DType::f16}) {
      const AnyTensor x = make(numbers(op, 37), {37}, dtype);
      const AnyTensor y = op.run(x);
      EXPECT_EQ(y.spec(), x.spec());
      std::vector<double> expected;
      for (const float v : values(x)) expected.push_back(op.expected(v));
      expect_near(values(y), expected, test::tolerance_of(dtype), op.name);
    }
  }
}

TEST(Elementwise, UnaryGradientsAgreeWithDifferences) {
  for (const Unary& op : unary()) {
    std::vector<float> x = numbers(op, 7);
    for (float& v : x) v = op.positive ? v + 0.3F : v;
    test::expect_gradients(
        op.name, [&](const auto& in) { return op.run(in[0]); }, {make(x, {7})}, 5e-3);
  }
}

TEST(Elementwise, UnaryGradientsInF16AreThoseOfF32) {
  for (const Unary& op : unary()) {
    std::vector<float> x = numbers(op, 8);
    for (float& v : x) v = static_cast<float>(float16(op.positive ? v + 0.5F : v));
    const auto f = [&](const std::vector<AnyTensor>& in) { return op.run(in[0]); };
    const AnyTensor f16 = test::gradients_of(f, {make(x, {8}, DType::f16)})[0];
    EXPECT_EQ(f16.dtype(), DType::f16);
    expect_near(values(f16), test::doubles(values(test::gradients_of(f, {make(x, {8})})[0])), 8e-3,
                op.name);
  }
}

struct Binary {
  const char* name;
  AnyTensor (*run)(const AnyTensor&, const AnyTensor&);
  double (*expected)(double, double);
};

const std::vector<Binary>& binary() {
  static const std::vector<Binary> all{
      {"add", add, [](double a, double b) { return a + b; }},
      {"sub", sub, [](double a, double b) { return a - b; }},
      {"mul", mul, [](double a, double b) { return a * b; }},
      {"div", div, [](double a, double b) { return a / b; }},
      {"pow", [](const AnyTensor& a, const AnyTensor& b) { return pow(abs(a) + 0.5, b); },
       [](double a, double b) { return std::pow(std::abs(a) + 0.5, b); }},
      {"minimum", minimum, [](double a, double b) { return std::min(a, b); }},
      {"maximum", maximum, [](double a, double b) { return std::max(a, b); }},
  };
  return all;
}

TEST(Elementwise, BinaryValuesInF32AndF16) {
  for (const Binary& op : binary()) {
    for (const DType dtype : {DType::f32, DType::f16}) {
      const AnyTensor a = make_wave({33}, 0, dtype);
      const AnyTensor b = make_wave({33}, 1, dtype);
      std::vector<double> expected;
      for (std::size_t i = 0; i < 33; ++i)
        expected.push_back(op.expected(values(a)[i], values(b)[i]));
      expect_near(values(op.run(a, b)), expected, 2 * test::tolerance_of(dtype), op.name);
    }
  }
}

TEST(Elementwise, BinaryGradientsAgreeWithDifferencesAndReduceOverBroadcasts) {
  for (const Binary& op : binary()) {
    const auto f = [&](const std::vector<AnyTensor>& in) { return op.run(in[0], in[1] + 1.6); };
    test::expect_gradients(op.name, f, {make_wave({2, 3}), make_wave({2, 3}, 1)}, 6e-3);
    test::expect_gradients(op.name, f, {make_wave({2, 1}), make_wave({3}, 1)}, 6e-3);
  }
}

/// Element `i` of a result of shape `out`, seen in an operand that broadcasts to it.
std::size_t source_of(std::size_t i, const Shape& out, const Shape& operand) {
  std::size_t at = 0;
  std::size_t step = 1;
  for (int axis = -1; axis >= -out.rank(); --axis) {
    const auto size = static_cast<std::size_t>(out[axis]);
    if (axis >= -operand.rank()) {
      if (operand[axis] != 1) at += i % size * step;
      step *= static_cast<std::size_t>(operand[axis]);
    }
    i /= size;
  }
  return at;
}

TEST(Elementwise, ShapesBroadcastAtEveryPlace) {
  const std::vector<std::pair<Shape, Shape>> pairs = {
      {{}, {}},
      {{}, {3}},
      {{1}, {2}},
      {{4, 3}, {3}},
      {{4, 1}, {3}},
      {{1, 1}, {}},
      {{2, 1, 4}, {3, 1}},
      {{2, 3, 4}, {1, 3, 1}},
      {{3, 1, 1}, {1, 2, 4}},
      {{2, 1, 2, 1, 2, 1, 2, 1}, {1, 3, 1, 2, 1, 3, 1, 2}},
      {{2, 1, 2, 1, 2, 1, 2, 2}, {2}},
      {{0}, {1}},
      {{0, 4}, {4}},
      {{2, 0, 3}, {1, 1}},
      {{0, 1}, {0, 3}},
  };
  for (const auto& [left, right] : pairs) {
    const AnyTensor a = make_wave(left);
    const AnyTensor b = make_wave(right, 1);
    for (const bool swapped : {false, true}) {
      const AnyTensor y = swapped ? b - a : a - b;
      EXPECT_EQ(y.shape(), broadcast("test", left, right));
      std::vector<double> expected;
      for (std::size_t i = 0; i < values(y).size(); ++i) {
        const double difference = double{values(a)[source_of(i, y.shape(), left)]} -
                                  double{values(b)[source_of(i, y.shape(), right)]};
        expected.push_back(swapped ? -difference : difference);
      }
      expect_near(values(y), expected, 1e-6, to_string(left) + " - " + to_string(right));
    }
  }
  EXPECT_THAT(message_of<ShapeError>([] { (void)(make_wave({2, 3}) + make_wave({2})); }),
              AllOf(HasSubstr("add"), HasSubstr("[2, 3]"), HasSubstr("[2]")));
}

TEST(Elementwise, EveryWayToLieInMemoryIsRead) {
  for (const Shape& shape :
       {Shape{5}, Shape{3, 4}, Shape{2, 3, 4}, Shape{1, 3, 1, 2, 2, 1, 2, 2}, Shape{0, 3}}) {
    for (const DType dtype : {DType::f32, DType::f16}) {
      const AnyTensor a = make_wave(shape, 0, dtype);
      const AnyTensor b = make_wave(shape, 1, dtype);
      const std::vector<float> expected = values(a * b);
      for (const AnyTensor& x : test::other_views(a)) {
        EXPECT_EQ(values(x), values(a));
        EXPECT_EQ(values(x * b), expected) << to_string(shape);
        EXPECT_EQ(values(b * x), expected) << to_string(shape);
        for (const AnyTensor& y : test::other_views(b)) EXPECT_EQ(values(x * y), expected);
        EXPECT_EQ(test::counted([&] { return (x * b); }).launches, shape[0] == 0 ? 0U : 1U)
            << "nothing is copied";
      }
    }
  }
  const AnyTensor row = broadcast_to(make<float>({1, 2}, {2}), {3, 2});
  EXPECT_THAT(values(row + row), ElementsAre(2, 4, 2, 4, 2, 4));
  EXPECT_THAT(values(transpose(row) + transpose(row)), ElementsAre(2, 2, 2, 4, 4, 4));
}

TEST(Elementwise, NaNsStay) {
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

TEST(Elementwise, WhatCancelsOnPaperIsNaNWhereAnOperandIsNaNOrInfinite) {
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

TEST(Elementwise, NothingIsReassociated) {
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

TEST(Elementwise, NaNsStayInGradientsToo) {
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

TEST(Elementwise, LargeArgumentsOverflowNowhere) {
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

TEST(Elementwise, LargeArgumentsInF16) {
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

TEST(Elementwise, TiesShareTheGradient) {
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

TEST(Elementwise, GradientsAtKinks) {
  const AnyTensor x = make<float>({0, -0.0F, -0.25F, 0.5F, 0.6F}, {5});
  const std::vector<float> s = test::wave(5, 5);
  const auto of = [&](const test::Function& f) { return values(test::gradients_of(f, {x})[0]); };
  EXPECT_THAT(of([](const auto& in) { return relu(in[0]); }), ElementsAre(0, 0, 0, s[3], s[4]));
  EXPECT_THAT(of([](const auto& in) { return abs(in[0]); }), ElementsAre(0, 0, -s[2], s[3], s[4]));
  EXPECT_THAT(of([](const auto& in) { return clamp(in[0], -0.25, 0.5); }),
              ElementsAre(s[0], s[1], s[2], s[3], 0));
}

TEST(Elementwise, ReluBackwardTakesTheResult) {
  const AnyTensor out = make<float>({0, 2, NAN}, {3});
  EXPECT_THAT(values(relu_backward(out, make<float>({5, 6, 7}, {3}))), ElementsAre(0, 6, 7));
}

TEST(Elementwise, PowersOfSpecialNumbers) {
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

TEST(Elementwise, SignedZerosKeepTheirOrder) {
  for (const DType dtype : {DType::f32, DType::f16}) {
    const AnyTensor a = make({0, -0.0F, -0.0F, 0}, {4}, dtype);
    const AnyTensor b = make({-0.0F, 0, -0.0F, 0}, {4}, dtype);
    EXPECT_EQ(signs(minimum(a, b)), (std::vector{true, true, true, false}));
    EXPECT_EQ(signs(maximum(a, b)), (std::vector{false, false, true, false}));
    EXPECT_EQ(signs(minimum(a * 1, b * 1)), signs(minimum(a, b))) << "fused";
  }
}

TEST(Elementwise, OfMinusZeroTheOddFunctionsAreMinusZero) {
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
TEST(Elementwise, AGradientOfZeroStaysZero) {
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
    test::expect_near(values(scale_gradient(grad, make({NAN, inf, -inf, 3, 1}, {5}, dtype))),
                      {0, 0, 0, 6, NAN}, 0);
  }
}

TEST(Elementwise, AZeroOnTheWayBackStopsAnInfiniteSlope) {
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
    test::expect_near(values(g[0]), {0, 0.6}, test::tolerance_of(dtype));
    test::expect_near(values(g[1]), {0, 0.8}, test::tolerance_of(dtype));
  }
}

/// x / (x + a small number), which f16 has not.
struct Damped {
  static constexpr std::string_view name = "damped";
  Param small;
  Expr body(Expr x) const { return x / (x + small); }
};
struct DampedByLiteral {
  static constexpr std::string_view name = "damped";
  static Expr body(Expr x) { return x / (x + 1e-8); }
};

TEST(Elementwise, NumbersBesideF16TakePartInF32) {
  const AnyTensor x = make({0, 1}, {2}, DType::f16);
  EXPECT_THAT(values(apply(Damped{{1e-8}}, x)), ElementsAre(0, 1));
  EXPECT_THAT(values(apply(DampedByLiteral{}, x)), ElementsAre(0, 1));
  // Rounded once, at the end: neither 1e-5 nor 1e6 is a number of f16.
  EXPECT_THAT(values(make({1000}, {1}, DType::f16) * 1e-5),
              ElementsAre(static_cast<float>(float16(1e-2F))));
  EXPECT_THAT(values(make({0.5F}, {1}, DType::f16) / 1e6),
              ElementsAre(static_cast<float>(float16(5e-7F))));
  EXPECT_THAT(values(less(make({0.1F}, {1}, DType::f16), 0.1)), ElementsAre(1))
      << "the nearest f16 is below";
}

TEST(Elementwise, ClampTakesIntegersToo) {
  const AnyTensor i = make<std::int32_t>({-7, 0, 7, -2147483648}, {4});
  EXPECT_THAT(clamp(i, -2, 5).to_vector<std::int32_t>(), ElementsAre(-2, 0, 5, -2));
  const AnyTensor u = make<std::uint32_t>({0, 3, 4000000000U}, {3});
  EXPECT_THAT(clamp(u, 1, 3000000000.0).to_vector<std::uint32_t>(),
              ElementsAre(1U, 3U, 3000000000U));
  EXPECT_THAT(message_of<DTypeError>([&] { (void)clamp(i, -0.5, 5); }),
              AllOf(HasSubstr("clamp"), HasSubstr("-0.5"), HasSubstr("i32")));
}

TEST(Elementwise, MishHasAGradientFarOut) {
  const auto mish = [](const std::vector<AnyTensor>& in) { return in[0] * tanh(softplus(in[0])); };
  const AnyTensor x = make<float>({-200, -20, 0, 20, 89, 1000}, {6});
  test::expect_near(values(test::gradients_of(mish, {x}, 1.0F)[0]), {0, -3.9e-8, 0.6, 1, 1, 1},
                    1e-6);
}

TEST(Elementwise, IntegersComputeAsIntegers) {
  const AnyTensor a = make<std::int32_t>({7, -7, 16777217, -2147483647}, {4});
  const AnyTensor b = make<std::int32_t>({2, 2, 1, 1}, {4});
  EXPECT_THAT((a + b).to_vector<std::int32_t>(), ElementsAre(9, -5, 16777218, -2147483646));
  EXPECT_THAT((a / b).to_vector<std::int32_t>(), ElementsAre(3, -3, 16777217, -2147483647));
  EXPECT_THAT((a * 2 - 1).to_vector<std::int32_t>()[1], -15);
  EXPECT_THAT(maximum(a, b).to_vector<std::int32_t>(), ElementsAre(7, 2, 16777217, 1));
  EXPECT_THAT(relu(a).to_vector<std::int32_t>(), ElementsAre(7, 0, 16777217, 0));
  EXPECT_THAT(abs(a).to_vector<std::int32_t>(), ElementsAre(7, 7, 16777217, 2147483647));
  const AnyTensor u = make<std::uint32_t>({4000000000U, 3}, {2});
  EXPECT_THAT((u / 2).to_vector<std::uint32_t>(), ElementsAre(2000000000U, 1U));
  EXPECT_THAT(minimum(u, u + 1).to_vector<std::uint32_t>(), ElementsAre(4000000000U, 3U));
}

TEST(Elementwise, DTypesThatDoNotFitAreRefused) {
  const AnyTensor i = make<std::int32_t>({1}, {1});
  EXPECT_THAT(message_of<DTypeError>([&] { (void)(i + make<float>({1}, {1})); }),
              AllOf(HasSubstr("add"), HasSubstr("i32"), HasSubstr("f32")));
  EXPECT_THAT(message_of<DTypeError>([&] { (void)exp(i); }),
              AllOf(HasSubstr("exp"), HasSubstr("i32")));
  EXPECT_THAT(message_of<DTypeError>([&] { (void)(i * 0.5); }),
              AllOf(HasSubstr("mul"), HasSubstr("0.5")));
  EXPECT_THAT(message_of<DTypeError>([&] { (void)(make<std::uint32_t>({1}, {1}) + -1); }),
              HasSubstr("-1"));
  EXPECT_THROW((void)(make<std::uint32_t>({1}, {1}) * make({1}, {1}, DType::f16)), DTypeError);
}

TEST(Elementwise, ScalarsNeverCompileAKernelOfTheirOwn) {
  const AnyTensor x = make<float>({1, 2}, {2});
  (void)(x * 2);
  const auto spent = test::counted([&] {
    for (int i = 0; i < 10; ++i)
      EXPECT_THAT(values(x * (0.5 * i)),
                  ElementsAre(0.5F * static_cast<float>(i), static_cast<float>(i)));
  });
  EXPECT_EQ(spent.compiled, 0U);
  EXPECT_THAT(values(make({1}, {1}, DType::f16) * 0.1),
              ElementsAre(static_cast<float>(float16(0.1F))));
}

TEST(Elementwise, ManyElementsTakeAFoldedGrid) {
  const std::int64_t n = 65535LL * 256 + 300;
  const AnyTensor x = broadcast_to(make<float>({1}, {1}), {n}) + 1;
  EXPECT_EQ(values(slice(x, 0, n - 1))[0], 2);
  EXPECT_EQ(values(slice(x, 0, 65535LL * 256 - 1, 65535LL * 256 + 1)), (std::vector<float>{2, 2}));
}

TEST(Elementwise, ExtremesTakeANumberOnEitherSide) {
  for (const DType dtype : {DType::f32, DType::f16}) {
    const AnyTensor x = make({-2, 0.5, 3, NAN}, {4}, dtype);
    for (const AnyTensor& y : {maximum(x, 0.0), maximum(0, x)}) {
      EXPECT_EQ(y.dtype(), dtype);
      EXPECT_THAT(values(slice(y, 0, 0, 3)), ElementsAre(0, 0.5F, 3));
      EXPECT_TRUE(std::isnan(values(y)[3]));
    }
    for (const AnyTensor& y : {minimum(x, 1), minimum(1.F, x)}) {
      EXPECT_THAT(values(slice(y, 0, 0, 3)), ElementsAre(-2, 0.5F, 1));
      EXPECT_TRUE(std::isnan(values(y)[3]));
    }
  }
  EXPECT_THAT(values(maximum(make<std::int32_t>({-3, 4}, {2}), 1)), ElementsAre(1, 4));
  EXPECT_THROW((void)maximum(make<std::uint32_t>({3}, {1}), -1), DTypeError);
  const AnyTensor x = make_wave({2, 5});
  test::expect_gradients("maximum", [](const auto& in) { return maximum(in[0], 0.1); }, {x});
  test::expect_gradients("minimum", [](const auto& in) { return minimum(-0.2, in[0]); }, {x});
  const auto g = test::gradients_of([](const auto& in) { return maximum(in[0], 0); },
                                    {make<float>({-1, 0, 1}, {3})}, 1.0F);
  EXPECT_THAT(values(g[0]), ElementsAre(0, 0.5F, 1)) << "half of it where both are equal";
}

TEST(Elementwise, AssigningOperatorsGiveTheHandleAnotherTensor) {
  AnyTensor x = make<float>({1, 2}, {2});
  const AnyTensor old = x;
  x += make<float>({10, 20}, {2});
  EXPECT_THAT(values(x), ElementsAre(11, 22));
  x -= 1;
  EXPECT_THAT(values(x), ElementsAre(10, 21));
  x *= make<float>({2, 3}, {2});
  EXPECT_THAT(values(x), ElementsAre(20, 63));
  x /= 2.0;
  EXPECT_THAT(values(x), ElementsAre(10, 31.5F));
  ((x -= old) *= old) += 1;
  EXPECT_THAT(values(x), ElementsAre(10, 60));
  x /= x;
  EXPECT_THAT(values(x), ElementsAre(1, 1));
  x *= 2;
  x /= make<float>({4, 8}, {2});
  x -= x;
  EXPECT_THAT(values(x), ElementsAre(0, 0));
  EXPECT_THAT(values(old), ElementsAre(1, 2)) << "others keep what they have";
  AnyTensor i = make<std::int32_t>({1}, {1});
  EXPECT_THROW(i += 0.5, DTypeError);
  EXPECT_THAT(i.to_vector<std::int32_t>(), ElementsAre(1)) << "nothing was assigned";
}

TEST(Elementwise, AssigningOperatorsBroadcastAndKeepARank) {
  AnyTensor x = make<float>({1, 2}, {2});
  const AnyTensor column = make<float>({10, 20}, {2, 1});
  Tensor<1> typed = x;
  EXPECT_THAT(message_of<ShapeError>([&] { typed += column; }),
              AllOf(HasSubstr("+="), HasSubstr("[2, 2]"), HasSubstr("rank 1")));
  EXPECT_THAT(values(typed), ElementsAre(1, 2));
  Tensor<1>& same = typed *= 3;
  EXPECT_THAT(values(same), ElementsAre(3, 6));
  x += column;
  EXPECT_EQ(x.shape(), (Shape{2, 2}));
  EXPECT_THAT(values(x), ElementsAre(11, 12, 21, 22));
}

TEST(Elementwise, AssigningOperatorsAreDifferentiable) {
  test::expect_gradients("assigning",
                         [](const auto& in) {
                           AnyTensor x = in[0];
                           x *= in[1];
                           x += in[0];
                           x -= 2 * in[1];
                           x /= 4;
                           return x;
                         },
                         {make_wave({2, 3}), make_wave({3}, 1)});
  // A step of training.
  AnyTensor w = make<float>({1, 2}, {2}, test::device().autodiff()).require_grad();
  const AnyTensor g = (w * w).sum().backward().of(w);
  w = w.detach();
  w -= 0.25 * g;
  EXPECT_FALSE(w.tracked());
  EXPECT_THAT(values(w), ElementsAre(0.5F, 1));
}

TEST(Elementwise, ClampHasTheUpperBoundWhereBoundsAreSwapped) {
  EXPECT_THAT(values(clamp(make<float>({0, 2, 4}, {3}), 3, 1)), ElementsAre(1, 1, 1));
  EXPECT_THAT(values(clamp(make<std::int32_t>({0, 2, 4}, {3}), 3, 1)), ElementsAre(1, 1, 1));
}

}  // namespace
}  // namespace kiln
