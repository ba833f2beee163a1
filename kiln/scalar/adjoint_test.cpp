#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "kiln/scalar/body_of_test.hpp"
#include "kiln/scalar/infer.hpp"
#include "kiln/support/error.hpp"

namespace kiln {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();

/// Compares all gradients with central differences.
void expect_differences(const BodyPtr& body, const std::vector<double>& at) {
  const double g = 1.7;
  const auto actual = gradients(*body, at, g);
  ASSERT_EQ(actual.size(), at.size());
  for (std::size_t i = 0; i < at.size(); ++i) {
    const double h = 1e-5;
    auto up = at;
    auto down = at;
    up[i] += h;
    down[i] -= h;
    const double slope = (evaluate(*body, 0, up) - evaluate(*body, 0, down)) / (2 * h);
    EXPECT_NEAR(actual[i], g * slope, 1e-7 * (1 + std::abs(slope))) << "input " << i;
  }
}

template <class F>
void expect_differences_at(F body, std::initializer_list<std::vector<double>> points) {
  for (const auto& at : points) expect_differences(body_of(body), at);
}

TEST(Adjoint, OfUnaryFunctionsMatchesDifferences) {
  const auto any = {std::vector{-3.1}, std::vector{-0.4}, std::vector{0.7}, std::vector{2.5}};
  const auto positive = {std::vector{0.2}, std::vector{1.0}, std::vector{3.3}};
  expect_differences_at([](Expr x) { return x; }, any);
  expect_differences_at([](Expr x) { return -x; }, any);
  expect_differences_at([](Expr x) { return abs(x); }, any);
  expect_differences_at([](Expr x) { return exp(x); }, any);
  expect_differences_at([](Expr x) { return log(x); }, positive);
  expect_differences_at([](Expr x) { return sqrt(x); }, positive);
  expect_differences_at([](Expr x) { return rsqrt(x); }, positive);
  expect_differences_at([](Expr x) { return tanh(x); }, any);
  expect_differences_at([](Expr x) { return sigmoid(x); }, any);
  expect_differences_at([](Expr x) { return softplus(x); }, any);
  expect_differences_at([](Expr x) { return relu(x); }, any);
  expect_differences_at([](Expr x) { return erf(x); }, any);
  const auto inside = {std::vector{-0.9}, std::vector{-0.4}, std::vector{0.7}};
  const auto between = {std::vector{-3.1}, std::vector{-0.4}, std::vector{2.3}};
  const auto outside = {std::vector{1.2}, std::vector{3.0}, std::vector{20.0}};
  expect_differences_at([](Expr x) { return sin(x); }, any);
  expect_differences_at([](Expr x) { return cos(x); }, any);
  expect_differences_at([](Expr x) { return tan(x); }, any);
  expect_differences_at([](Expr x) { return asin(x); }, inside);
  expect_differences_at([](Expr x) { return acos(x); }, inside);
  expect_differences_at([](Expr x) { return atan(x); }, any);
  expect_differences_at([](Expr x) { return sinh(x); }, any);
  expect_differences_at([](Expr x) { return cosh(x); }, any);
  expect_differences_at([](Expr x) { return asinh(x); }, any);
  expect_differences_at([](Expr x) { return acosh(x); }, outside);
  expect_differences_at([](Expr x) { return atanh(x); }, inside);
  expect_differences_at([](Expr x) { return exp2(x); }, any);
  expect_differences_at([](Expr x) { return log2(x); }, positive);
  expect_differences_at([](Expr x) { return log1p(x); }, positive);
  expect_differences_at([](Expr x) { return expm1(x); }, any);
  expect_differences_at([](Expr x) { return floor(x); }, between);
  expect_differences_at([](Expr x) { return ceil(x); }, between);
  expect_differences_at([](Expr x) { return round(x); }, between);
  expect_differences_at([](Expr x) { return trunc(x); }, between);
  expect_differences_at([](Expr x) { return sign(x); }, between);
}

TEST(Adjoint, OfBinaryFunctionsMatchesDifferences) {
  const auto any = {std::vector{-3.1, 0.8}, std::vector{0.4, -1.3}, std::vector{2.0, 2.5}};
  const auto positive = {std::vector{0.3, -1.5}, std::vector{2.0, 3.0}, std::vector{1.5, 0.4}};
  expect_differences_at([](Expr x, Expr y) { return x + y; }, any);
  expect_differences_at([](Expr x, Expr y) { return x - y; }, any);
  expect_differences_at([](Expr x, Expr y) { return x * y; }, any);
  expect_differences_at([](Expr x, Expr y) { return x / y; }, any);
  expect_differences_at([](Expr x, Expr y) { return pow(x, y); }, positive);
  expect_differences_at([](Expr x, Expr y) { return atan2(x, y); }, any);
  expect_differences_at([](Expr x, Expr y) { return min(x, y); }, any);
  expect_differences_at([](Expr x, Expr y) { return max(x, y); }, any);
}

// The result of an inner operation is computed again, not read: both ways must be right.
TEST(Adjoint, OfInnerOperationsMatchesDifferences) {
  const auto points = {std::vector{0.3, 1.5}, std::vector{2.0, 0.6}};
  expect_differences_at([](Expr x, Expr y) { return exp(x) * sqrt(y) + rsqrt(x); }, points);
  expect_differences_at([](Expr x, Expr y) { return tanh(x / y) - sigmoid(x * y); }, points);
  expect_differences_at([](Expr x, Expr y) { return relu(x - y) * pow(x, y); }, points);
  expect_differences_at([](Expr x, Expr y) { return log(max(x, y)) * erf(min(x, y)); }, points);
}

TEST(Adjoint, OfASelectFollowsTheBranchTaken) {
  const auto body = body_of([](Expr x, Expr y, Expr z) { return select(x < y, x * z, y / z); });
  expect_differences(body, {1.0, 2.0, 3.0});
  expect_differences(body, {2.0, 1.0, 3.0});
}

TEST(Adjoint, AddsUpWhereAnOperandIsUsedTwice) {
  expect_differences_at([](Expr x) { return x * x; }, {{-1.5}, {2.0}});
  expect_differences_at([](Expr x) { return x / (x * x + 1) + x; }, {{-1.5}, {2.0}});
  EXPECT_EQ(gradients(*body_of([](Expr x) { return x + x; }), {3.0}, 5), (std::vector{10.0}));
  EXPECT_EQ(gradients(*body_of([](Expr x) { return max(x, x); }), {3.0}, 5), (std::vector{5.0}));
}

TEST(Adjoint, OfUnusedInputsLiteralsAndTruthsIsZero) {
  EXPECT_EQ(gradients(*body_of([](Expr x, Expr) { return exp(x); }), {0.0, 7.0}),
            (std::vector{1.0, 0.0}));
  EXPECT_EQ(gradients(*body_of([](Expr) { return Expr(3); }), {2.0}), (std::vector{0.0}));
  EXPECT_EQ(gradients(*body_of([](Expr x, Expr y) { return x < y; }), {1.0, 2.0}),
            (std::vector{0.0, 0.0}));
  EXPECT_EQ(gradients(*body_of([](Expr x) { return is_nan(x); }), {nan}), (std::vector{0.0}));
  EXPECT_EQ(gradients(*body_of([](Expr x) { return floor(x) + sign(x); }), {2.5}),
            (std::vector{0.0}));
  EXPECT_EQ(gradients(*body_of([](Expr x, Expr y) { return floor_div(x, y) + (x & y); }), {7, 2}),
            (std::vector{0.0, 0.0}));
  const auto mask = body_of([](Expr x) { return cast(x < 1 && x != 0, DType::f32); });
  EXPECT_EQ(gradients(*mask, {0.5}), (std::vector{0.0}));
}

TEST(Adjoint, StopsAtACastToAnInteger) {
  const auto body = body_of([](Expr x) { return x * cast(cast(x, DType::i32), DType::f32); });
  EXPECT_EQ(gradients(*body, {2.7}, 10), (std::vector{20.0}));
}

TEST(Adjoint, KeepsParamSlots) {
  const Param p{0};
  ExprGraph graph({&p});
  const auto body = make_body(graph, 1, 1, std::array{(graph.input(0) * p).id()});
  const auto back = adjoint(*body);
  EXPECT_EQ(back->params, 1);
  EXPECT_EQ(back->inputs, 3);
  EXPECT_EQ(evaluate(*back, 0, std::array{2.0, 12.0, 10.0}, std::array{6.0}), 60);
}

TEST(Adjoint, TakesOneResultOnly) {
  ExprGraph graph;
  const Expr x = graph.input(0);
  const auto two = make_body(graph, 1, 0, std::array{x.id(), exp(x).id()});
  try {
    adjoint(*two);
    FAIL() << "must throw";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "adjoint: takes a function of one result");
  }
}

TEST(Adjoint, IsInternedLikeAnyBody) {
  const auto body = body_of([](Expr x) { return tanh(x); });
  EXPECT_EQ(adjoint(*body), adjoint(*body));
}

TEST(Adjoint, OfTheAdjointIsTheSecondDerivative) {
  const auto body = body_of([](Expr x) { return x * x * x; });
  const auto first = adjoint(*body);  // of x, result, gradient
  expect_differences(first, {1.3, 1.3 * 1.3 * 1.3, 0.7});
}

TEST(Adjoint, ReadsTheResultInsteadOfTheInputWhereItCan) {
  const auto expect = [](const BodyPtr& body, bool input, bool result) {
    const auto back = adjoint(*body);
    EXPECT_EQ(back->uses(0, 0), input) << body->key;
    EXPECT_EQ(back->uses(0, body->inputs), result) << body->key;
    EXPECT_TRUE(back->uses(0, body->inputs + 1)) << body->key;
  };
  expect(body_of([](Expr x) { return relu(x); }), false, true);
  expect(body_of([](Expr x) { return exp(x); }), false, true);
  expect(body_of([](Expr x) { return sigmoid(x); }), false, true);
  expect(body_of([](Expr x) { return tanh(x); }), false, true);
  expect(body_of([](Expr x) { return sqrt(x); }), false, true);
  expect(body_of([](Expr x) { return rsqrt(x); }), false, true);
  expect(body_of([](Expr x, Expr y) { return relu(x + y); }), false, true);
  expect(body_of([](Expr x, Expr y) { return x + y; }), false, false);
  expect(body_of([](Expr x) { return -x; }), false, false);
  expect(body_of([](Expr x) { return cast(x, DType::f16); }), false, false);
  expect(body_of([](Expr x) { return log(x); }), true, false);
  expect(body_of([](Expr x) { return abs(x); }), true, false);
}

TEST(Adjoint, OfAQuotientNeedsNotTheNumerator) {
  const auto back = adjoint(*body_of([](Expr x, Expr y) { return x / y; }));
  EXPECT_FALSE(back->uses(0, 0));
  EXPECT_FALSE(back->uses(1, 0));
  EXPECT_TRUE(back->uses(1, 1));
  EXPECT_TRUE(back->uses(1, 2));
}

TEST(Adjoint, ANaNOperandPassesTheGradientOn) {
  EXPECT_EQ(gradients(*body_of([](Expr x) { return relu(x); }), {nan}, 3), (std::vector{3.0}));
  EXPECT_EQ(gradients(*body_of([](Expr x) { return abs(x); }), {nan}, 3), (std::vector{3.0}));
  const auto clamp = body_of([](Expr x) { return min(max(x, -1), 1); });
  EXPECT_EQ(gradients(*clamp, {nan}, 3), (std::vector{3.0}));
  const auto high = body_of([](Expr x, Expr y) { return max(x, y); });
  EXPECT_EQ(gradients(*high, {nan, 1.0}, 3), (std::vector{3.0, 3.0}));
  EXPECT_EQ(gradients(*high, {1.0, nan}, 3), (std::vector{3.0, 3.0}));
  const auto low = body_of([](Expr x, Expr y) { return min(x, y); });
  EXPECT_EQ(gradients(*low, {nan, 1.0}, 3), (std::vector{3.0, 3.0}));
}

TEST(Adjoint, AnIncomingNaNIsNotLost) {
  for (const auto& body :
       {body_of([](Expr x) { return relu(x); }), body_of([](Expr x) { return sigmoid(x); }),
        body_of([](Expr x) { return min(max(x, -1), 9); })}) {
    EXPECT_TRUE(std::isnan(gradients(*body, {2.0}, nan)[0])) << body->key;
  }
}

TEST(Adjoint, AtKinksTakesTheUsualSubgradient) {
  EXPECT_EQ(gradients(*body_of([](Expr x) { return relu(x); }), {0.0}, 3), (std::vector{0.0}));
  EXPECT_EQ(gradients(*body_of([](Expr x) { return abs(x); }), {0.0}, 3), (std::vector{0.0}));
  EXPECT_EQ(gradients(*body_of([](Expr x) { return abs(x); }), {-0.0}, 3), (std::vector{0.0}));
  const auto high = body_of([](Expr x, Expr y) { return max(x, y); });
  EXPECT_EQ(gradients(*high, {2.0, 2.0}, 3), (std::vector{1.5, 1.5}));
}

TEST(Adjoint, ABranchNotTakenGivesZeroWhateverTheGradient) {
  EXPECT_EQ(gradients(*body_of([](Expr x) { return relu(x); }), {-1.0}, inf), (std::vector{0.0}));
  EXPECT_EQ(gradients(*body_of([](Expr x) { return abs(x); }), {0.0}, inf), (std::vector{0.0}));
  const auto either = body_of([](Expr x, Expr y) { return select(x < 0, y, x); });
  EXPECT_EQ(gradients(*either, {1.0, 2.0}, inf), (std::vector{inf, 0.0}));
  const auto high = body_of([](Expr x, Expr y) { return max(x, y); });
  EXPECT_EQ(gradients(*high, {1.0, 2.0}, inf), (std::vector{0.0, inf}));
}

TEST(Adjoint, AnInfiniteSlopeInABranchNotTakenDoesNotLeak) {
  const auto root = body_of([](Expr x) { return select(x > 0, sqrt(x), 0); });
  EXPECT_EQ(gradients(*root, {0.0}), (std::vector{0.0}));
  EXPECT_EQ(gradients(*root, {4.0}), (std::vector{0.25}));
  const auto entropy = body_of([](Expr x) { return select(x == 0, 0, x * log(x)); });
  EXPECT_EQ(gradients(*entropy, {0.0}), (std::vector{0.0}));
  EXPECT_EQ(gradients(*entropy, {1.0}), (std::vector{1.0}));
  const auto quotient = body_of([](Expr x, Expr y) { return select(y != 0, x / y, x); });
  EXPECT_EQ(gradients(*quotient, {3.0, 0.0}), (std::vector{1.0, 0.0}));
  EXPECT_EQ(gradients(*quotient, {3.0, 2.0}), (std::vector{0.5, -0.75}));
}

TEST(Adjoint, AnInfiniteSlopeDoesNotLeakFromNestedOrSharedBranches) {
  const auto nested =
      body_of([](Expr x) { return select(x < 5, select(x > 0, sqrt(x), 2 * x), log(x)); });
  EXPECT_EQ(gradients(*nested, {0.0}), (std::vector{2.0}));
  EXPECT_EQ(gradients(*nested, {4.0}), (std::vector{0.25}));
  EXPECT_EQ(gradients(*nested, {8.0}), (std::vector{0.125}));
  // sqrt(x) is used in branches of two selects, neither of them taken at 0.
  const auto shared = body_of([](Expr x) {
    const Expr s = sqrt(x);
    return select(x > 0, s, x) + select(x > 1, s * s, 3 * x);
  });
  EXPECT_EQ(gradients(*shared, {0.0}), (std::vector{4.0}));
  EXPECT_EQ(gradients(*shared, {0.25}), (std::vector{4.0}));
  EXPECT_EQ(gradients(*shared, {4.0}), (std::vector{1.25}));
  EXPECT_EQ(gradients(*body_of([](Expr x) { return select(x < 1, x, x); }), {3.0}, 7),
            (std::vector{7.0}));
}

// Where nothing comes in nothing goes out, at poles, beyond them and at NaN.
TEST(Adjoint, ZeroTimesAnySlopeIsZero) {
  const std::vector<double> hard{0.0, -0.0, -1.0, 1.0, 1e300, -1e300, inf, -inf, nan};
  const auto expect_zero = [](const BodyPtr& body, const std::vector<double>& at) {
    for (const double g : {0.0, -0.0}) {
      for (const double out : gradients(*body, at, g)) EXPECT_EQ(out, 0) << at[0];
    }
  };
  for (const double x : hard) {
    expect_zero(body_of([](Expr a) { return exp(a); }), {x});
    expect_zero(body_of([](Expr a) { return log(a); }), {x});
    expect_zero(body_of([](Expr a) { return sqrt(a); }), {x});
    expect_zero(body_of([](Expr a) { return rsqrt(a); }), {x});
    expect_zero(body_of([](Expr a) { return tanh(a) + sigmoid(a) * softplus(a); }), {x});
    expect_zero(body_of([](Expr a) { return erf(a) * relu(a) + abs(a) / 3; }), {x});
    expect_zero(body_of([](Expr a) { return cast(1 / a, DType::f16); }), {x});
    expect_zero(body_of([](Expr a) { return sin(a) * cos(a) + tan(a); }), {x});
    expect_zero(body_of([](Expr a) { return asin(a) + acos(a) * atan(a); }), {x});
    expect_zero(body_of([](Expr a) { return sinh(a) + cosh(a) * exp2(a); }), {x});
    expect_zero(body_of([](Expr a) { return asinh(a) + acosh(a) * atanh(a); }), {x});
    expect_zero(body_of([](Expr a) { return log2(a) + log1p(a) * expm1(a); }), {x});
    for (const double y : hard) {
      expect_zero(body_of([](Expr a, Expr b) { return a * b; }), {x, y});
      expect_zero(body_of([](Expr a, Expr b) { return a / b; }), {x, y});
      expect_zero(body_of([](Expr a, Expr b) { return pow(a, b); }), {x, y});
      expect_zero(body_of([](Expr a, Expr b) { return atan2(a, b); }), {x, y});
      expect_zero(body_of([](Expr a, Expr b) { return max(a, b) - min(a * 2, b); }), {x, y});
    }
  }
}

TEST(Adjoint, AZeroOnTheWayIsAsStrongAsOneThatComesIn) {
  const auto distance = body_of([](Expr x, Expr y) { return max(sqrt(x * x + y * y), 1e-10); });
  EXPECT_EQ(gradients(*distance, {0.0, 0.0}), (std::vector{0.0, 0.0}));
  EXPECT_NEAR(gradients(*distance, {3.0, 4.0})[0], 0.6, 1e-15);
  EXPECT_NEAR(gradients(*distance, {3.0, 4.0})[1], 0.8, 1e-15);
  const auto branches = body_of([](Expr x) { return select(x < 0, 2 * x, sqrt(x)); });
  EXPECT_EQ(gradients(*branches, {-1.0}), (std::vector{2.0}));
  EXPECT_EQ(gradients(*branches, {0.25}), (std::vector{1.0}));
}

// Strong zeros are not in the function: an infinite slope and a NaN stay where something comes in.
TEST(Adjoint, WhereAGradientComesInTheSlopeCounts) {
  EXPECT_EQ(gradients(*body_of([](Expr x) { return sqrt(x); }), {0.0}, 2), (std::vector{inf}));
  EXPECT_EQ(gradients(*body_of([](Expr x) { return log(x); }), {0.0}, -2), (std::vector{-inf}));
  EXPECT_TRUE(std::isnan(gradients(*body_of([](Expr x) { return sqrt(x); }), {-1.0}, 2)[0]));
  EXPECT_TRUE(std::isnan(gradients(*body_of([](Expr x) { return x * x; }), {0.0}, nan)[0]));
  EXPECT_TRUE(std::isnan(gradients(*body_of([](Expr x) { return x * x; }), {nan}, 1)[0]));
}

// The second derivative is that of the function, also where the first gradient is 0.
TEST(Adjoint, OfAStrongZeroPassesThrough) {
  const auto first = adjoint(*body_of([](Expr x) { return exp(x); }));  // of x, result, gradient
  const auto second = adjoint(*first);
  const std::array at{0.5, std::exp(0.5), 0.0, 0.0, 1.0};
  EXPECT_DOUBLE_EQ(evaluate(*second, 2, at), std::exp(0.5)) << "by the incoming gradient";
  EXPECT_EQ(evaluate(*second, 1, at), 0) << "by the result, times a gradient of 0";
}

// What cannot be infinite takes no guard, so that the commonest gradients cost what they did.
TEST(Adjoint, FiniteSlopesAreNotGuarded) {
  const auto guards = [](const BodyPtr& body) {
    const auto gradient =
        adjoint(*body);  // held: a range-for would let go of it before the first node
    std::size_t count = 0;
    for (const auto& node : gradient->graph->nodes())
      count += node.op == Opcode::unless_zero ? 1U : 0U;
    return count;
  };
  EXPECT_EQ(guards(body_of([](Expr x) { return relu(x) + 1; })), 0U);
  EXPECT_EQ(guards(body_of([](Expr x) { return -x * 3 - x / 2; })), 0U);
  EXPECT_EQ(guards(body_of([](Expr x, Expr y) { return max(x, abs(y)) - y; })), 0U);
  EXPECT_EQ(guards(body_of([](Expr x) { return cast(select(x < 0, x, 1), DType::f16); })), 0U);
  EXPECT_EQ(guards(body_of([](Expr x) { return x / 0; })), 1U);
  EXPECT_EQ(guards(body_of([](Expr x) { return sqrt(x); })), 1U);
  EXPECT_EQ(guards(body_of([](Expr x, Expr y) { return x * y; })), 2U);
}

TEST(Adjoint, OfSoftplusAndMishIsFiniteFarOut) {
  const auto body = body_of([](Expr x) { return softplus(x); });
  EXPECT_EQ(gradients(*body, {1e4}), (std::vector{1.0}));
  EXPECT_EQ(gradients(*body, {-1e4}), (std::vector{0.0}));
  EXPECT_NEAR(gradients(*body, {-100.0})[0] / std::exp(-100.0), 1, 1e-12);
  const auto mish = body_of([](Expr x) { return x * tanh(softplus(x)); });
  EXPECT_EQ(gradients(*mish, {89.0}), (std::vector{1.0}));
  EXPECT_EQ(gradients(*mish, {-1e4}), (std::vector{0.0}));
  expect_differences_at([](Expr x) { return x * tanh(softplus(x)); }, {{-2.0}, {0.3}, {4.0}});
}

TEST(Adjoint, OfSigmoidAndSiluIsFiniteFarOut) {
  const auto sigmoid_body = body_of([](Expr x) { return sigmoid(x); });
  const auto silu = body_of([](Expr x) { return x * sigmoid(x); });
  const double tail = std::exp(-100.0);
  EXPECT_NEAR(gradients(*sigmoid_body, {-100.0})[0] / tail, 1, 1e-12);
  EXPECT_NEAR(gradients(*silu, {-100.0})[0] / (-99 * tail), 1, 1e-12);
  EXPECT_EQ(gradients(*sigmoid_body, {-1e4})[0], 0);
  EXPECT_EQ(gradients(*silu, {-1e4})[0], 0);
  EXPECT_EQ(gradients(*silu, {1e4})[0], 1);
  EXPECT_EQ(gradients(*body_of([](Expr x) { return tanh(x); }), {1e4})[0], 0);
  EXPECT_EQ(gradients(*body_of([](Expr x) { return erf(x); }), {1e4})[0], 0);
}

TEST(Adjoint, OfPowAtZeroIsWhatTheLimitSays) {
  const auto body = body_of([](Expr x, Expr y) { return pow(x, y); });
  EXPECT_EQ(gradients(*body, {0.0, 2.0}), (std::vector{0.0, 0.0}));
  EXPECT_EQ(gradients(*body, {0.0, 1.0}), (std::vector{1.0, 0.0}));
  EXPECT_EQ(gradients(*body, {0.0, 0.0}), (std::vector{0.0, 0.0}));
  EXPECT_EQ(gradients(*body, {-3.0, 2.0})[0], -6);
  EXPECT_EQ(gradients(*body_of([](Expr x) { return pow(x, 3); }), {-2.0}), (std::vector{12.0}));
}

TEST(Adjoint, OfACastInsideABodyMeetsOtherDtypes) {
  const auto body = body_of([](Expr x) { return cast(sigmoid(x), DType::f16); });
  const auto back = adjoint(*body);
  const std::array in{DType::f32, DType::f16, DType::f16};  // x, result, gradient
  EXPECT_EQ(infer_dtypes("mixed", *back, in), (std::vector{DType::f32}));
  const auto rounded = body_of([](Expr x) { return exp(cast(x * x, DType::f32)); });
  EXPECT_DOUBLE_EQ(gradients(*rounded, {0.5})[0], std::exp(0.25));
}

TEST(Adjoint, InfersForEveryFloatingOpcode) {
  const auto expect = [](const BodyPtr& body) {
    for (const DType dtype : {DType::f32, DType::f16}) {
      const auto back = adjoint(*body);
      const std::vector<DType> in(static_cast<std::size_t>(back->inputs), dtype);
      for (const DType out : infer_dtypes("op", *back, in, dtype)) EXPECT_EQ(out, dtype);
    }
  };
  expect(body_of([](Expr x) { return abs(exp(x)) + relu(-log(x)); }));
  expect(body_of([](Expr x) { return tanh(sqrt(x)) * sigmoid(rsqrt(x)) - erf(x); }));
  expect(body_of([](Expr x, Expr y) { return pow(x, y) / min(x, max(y, 2)); }));
  expect(body_of([](Expr x, Expr y) { return atan2(sin(x), cos(y)) * tan(x) + floor(y); }));
  expect(body_of([](Expr x) { return asin(x) + acos(x) + atan(x) - sinh(x) * cosh(x); }));
  expect(body_of([](Expr x) { return asinh(x) + acosh(x) * atanh(x) + sign(x) * round(x); }));
  expect(body_of([](Expr x) { return exp2(x) + log2(x) * log1p(x) - expm1(ceil(trunc(x))); }));
  expect(body_of([](Expr x) { return pow(x, 3) + pow(2, x); }));
  expect(body_of([](Expr x, Expr y) { return select(x < y && !(x == 0), x, 1); }));
}

}  // namespace
}  // namespace kiln
