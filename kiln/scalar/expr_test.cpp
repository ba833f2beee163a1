#include "kiln/scalar/expr.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <string>

#include "kiln/scalar/body_of_test.hpp"
#include "kiln/support/error.hpp"

namespace kiln {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no Error";
}

std::int32_t constant(ExprGraph& graph, double value) {
  return graph.intern({.op = Opcode::constant, .value = value});
}

TEST(ExprGraph, EqualSubexpressionsAreOneNode) {
  ExprGraph graph;
  const Expr x = graph.input(0);
  EXPECT_EQ((exp(x) + 1).id(), (exp(x) + 1).id());
  EXPECT_NE((exp(x) + 1).id(), (exp(x) + 2).id());
  EXPECT_EQ(graph.nodes().size(), 6U);  // x, exp, 1, +, 2, +
}

TEST(ExprGraph, OperandsComeBeforeTheirUsers) {
  ExprGraph graph;
  const Expr x = graph.input(0);
  const Expr y = tanh(x) * (x - 3);
  for (const std::int32_t arg : graph.node(y.id()).args) EXPECT_LT(arg, y.id());
}

TEST(ExprGraph, OrderOfOperandsAndTargetOfCastsTellNodesApart) {
  ExprGraph graph;
  const Expr x = graph.input(0);
  const Expr y = graph.input(1);
  EXPECT_NE((x - y).id(), (y - x).id());
  EXPECT_NE(cast(x, DType::f16).id(), cast(x, DType::i32).id());
  EXPECT_EQ(cast(x, DType::f16).id(), cast(x, DType::f16).id());
}

TEST(ExprGraph, ZeroAndNegativeZeroAreTwoConstants) {
  ExprGraph graph;
  EXPECT_NE(constant(graph, 0.0), constant(graph, -0.0));
  const auto body = body_of([](Expr x) { return (x + 0.0) / (x * -0.0); });
  const auto swapped = body_of([](Expr x) { return (x + -0.0) / (x * 0.0); });
  EXPECT_NE(body, swapped);
  EXPECT_EQ(evaluate(*body, 0, std::array{1.0}), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(evaluate(*swapped, 0, std::array{1.0}), std::numeric_limits<double>::infinity());
}

TEST(ExprGraph, ANaNConstantIsNoOtherConstant) {
  ExprGraph graph;
  const std::int32_t one = constant(graph, 1);
  const std::int32_t bad = constant(graph, nan);
  EXPECT_NE(bad, one);
  EXPECT_EQ(constant(graph, nan), bad);
  EXPECT_EQ(constant(graph, 1), one);
  EXPECT_EQ(graph.nodes().size(), 2U);
}

TEST(ExprGraph, ExactIdentitiesAreSimplified) {
  ExprGraph graph;
  const Expr x = graph.input(0);
  EXPECT_EQ((x * 1).id(), x.id());
  EXPECT_EQ((1 * x).id(), x.id());
  EXPECT_EQ((x / 1).id(), x.id());
  EXPECT_EQ((x - 0).id(), x.id());
}

TEST(ExprGraph, WhatChangesNegativeZeroNaNOrInfinityIsKept) {
  ExprGraph graph;
  const Expr x = graph.input(0);
  EXPECT_NE((x + 0).id(), x.id());     // -0 + 0 is 0
  EXPECT_NE((x - -0.0).id(), x.id());  // so is -0 - -0
  EXPECT_NE((0 - x).id(), (-x).id());  // 0 - 0 is 0, not -0
  EXPECT_NE(graph.node((x * 0).id()).op, Opcode::constant);
  EXPECT_NE(graph.node((x - x).id()).op, Opcode::constant);
  EXPECT_NE(graph.node((x / x).id()).op, Opcode::constant);
  EXPECT_NE(graph.node((x == x).id()).op, Opcode::constant);
  EXPECT_NE((1 / x).id(), x.id());
  EXPECT_NE((1 - x).id(), x.id());
  EXPECT_NE((x * -1).id(), x.id());
}

TEST(Expr, LiteralsAloneAreNoExpression) {
  EXPECT_EQ(error_of([] { (void)(Expr(1) + Expr(2)); }),
            "body: an expression needs at least one input of the operation");
  const detail::KeptForEveryParam kept("seven", "body");
  EXPECT_EQ(error_of([] { (void)(Expr(3) + Expr(4)); }),
            "seven: an expression needs at least one input of the operation");
}

TEST(Expr, OfAnotherGraphIsRefused) {
  ExprGraph one;
  ExprGraph two;
  const Expr x = one.input(0);
  const Expr y = two.input(0);
  EXPECT_EQ(error_of([&] { (void)(x + y); }), "body: an expression of another operation was used");
  EXPECT_EQ(error_of([&] { two.place(x); }), "body: an expression of another operation was used");
}

struct Scaled {
  Param gain{2};
  Param shift{3};
  [[nodiscard]] Expr body(const Expr& x) const { return shift + x * gain; }
};

TEST(Param, SlotsFollowTheListOfFields) {
  const Scaled op;
  ExprGraph graph({&op.gain, &op.shift});
  const auto root = graph.place(op.body(graph.input(0)));
  const auto body = make_body(graph, 1, 2, std::array{root});
  EXPECT_EQ(evaluate(*body, 0, std::array{10.0}, std::array{2.0, 3.0}), 23);
  EXPECT_EQ(evaluate(*body, 0, std::array{10.0}, std::array{-1.0, 0.5}), -9.5);
}

TEST(Param, ItsValueIsInNoKey) {
  const auto key = [](const Scaled& op) {
    ExprGraph graph({&op.gain, &op.shift});
    const auto root = graph.place(op.body(graph.input(0)));
    return make_body(graph, 1, 2, std::array{root});
  };
  EXPECT_EQ(key({{2}, {3}}), key({{7}, {8}}));
}

TEST(Param, UsedTwiceIsOneNode) {
  const Param p{1};
  ExprGraph graph({&p});
  const Expr x = graph.input(0);
  EXPECT_EQ((x * p).id(), (x * p).id());
  EXPECT_EQ(graph.nodes().size(), 3U);
}

TEST(Param, ThatIsNoFieldIsRefused) {
  const Param field{1};
  const Param copy = field;
  ExprGraph graph({&field});
  const Expr x = graph.input(0);
  EXPECT_EQ(error_of([&] { (void)(x * copy); }),
            "body: a Param must be a field of the operation, and be used in place, not copied");
}

TEST(Body, EqualFunctionsAreOneObject) {
  const auto one = body_of([](Expr x) { return x * sigmoid(x); });
  const auto two = body_of([](Expr a) { return a * sigmoid(a); });
  EXPECT_EQ(one, two);
  EXPECT_NE(one, body_of([](Expr x) { return sigmoid(x) * x; }));
}

TEST(Body, NodesThatNoRootNeedsAreDropped) {
  const auto plain = body_of([](Expr x) { return exp(x); });
  const auto busy = body_of([](Expr x) {
    (void)(log(x) * 7);
    return exp(x);
  });
  EXPECT_EQ(plain, busy);
  EXPECT_EQ(busy->graph->nodes().size(), 2U);
}

TEST(Body, NumberOfInputsParamsAndTheRootsTellBodiesApart) {
  ExprGraph graph;
  const Expr x = graph.input(0);
  const Expr y = exp(x);
  const auto body = [&](int inputs, int params, std::vector<std::int32_t> roots) {
    return make_body(graph, inputs, params, roots);
  };
  const auto plain = body(1, 0, {y.id()});
  EXPECT_EQ(plain, body(1, 0, {y.id()}));
  EXPECT_NE(plain, body(2, 0, {y.id()}));
  EXPECT_NE(plain, body(1, 1, {y.id()}));
  EXPECT_NE(plain, body(1, 0, {y.id(), x.id()}));
  EXPECT_NE(body(1, 0, {x.id(), y.id()}), body(1, 0, {y.id(), x.id()}));
}

TEST(Body, ConstantsThatDifferInTheLastBitAreTwoBodies) {
  const auto one = body_of([](Expr x) { return x * 0.1; });
  const auto two = body_of([](Expr x) { return x * 0.10000000000000002; });
  EXPECT_NE(one, two);
}

// The digits of a constant must not run into the opcode that follows: "...1" "3(" is not "..."
// "13(".
TEST(Body, KeysOfDifferentFunctionsNeverCollide) {
  const auto body = [](std::uint64_t bits, int op) {
    ExprGraph graph;
    const Expr x = graph.input(0);
    const auto number = constant(graph, std::bit_cast<double>(bits));
    const auto result = graph.intern({.op = static_cast<Opcode>(op), .args = {x.id(), -1, -1}});
    return make_body(graph, 1, 0, std::array{number, result});
  };
  for (int op = static_cast<int>(Opcode::neg); op < 10; ++op) {
    if (10 + op >= static_cast<int>(Opcode::add)) break;  // the last of the unary ones
    EXPECT_NE(body(0x0123'4567'89ab'cdef, 10 + op), body(0x1234'5678'9abc'def1, op)) << op;
  }
}

TEST(Body, WhatNobodyUsesAnyMoreIsNotKept) {
  const auto power = [](int n) {
    ExprGraph graph;
    Expr y = graph.input(0);
    for (int i = 0; i < n; ++i) y = y * graph.input(0);
    return make_body(graph, 1, 0, std::array{graph.place(y)});
  };
  const BodyPtr kept = power(40);
  const std::size_t before = bodies_interned();
  for (int round = 0; round < 20; ++round) {
    for (int n = 0; n < 40; ++n) {
      ExprGraph graph;
      const Expr x = graph.input(round * 40 + n);
      (void)make_body(graph, round * 40 + n + 1, 0, std::array{graph.place(x * x)});
    }
  }
  EXPECT_LT(bodies_interned(), std::max<std::size_t>(2 * before, 256) + 1);
  EXPECT_EQ(power(40), kept) << "what is in use stays one";
}

TEST(Body, UsesTellsWhichInputsAResultDependsOn) {
  ExprGraph graph;
  const Expr x = graph.input(0);
  const Expr y = graph.input(1);
  const auto body = make_body(graph, 3, 0, std::array{exp(x).id(), (x * y).id()});
  EXPECT_TRUE(body->uses(0, 0));
  EXPECT_FALSE(body->uses(0, 1));
  EXPECT_TRUE(body->uses(1, 0));
  EXPECT_TRUE(body->uses(1, 1));
  EXPECT_FALSE(body->uses(1, 2));
}

TEST(Body, MayBeAnInputOrALiteral) {
  EXPECT_EQ(evaluate(*body_of([](Expr x) { return x; }), 0, std::array{4.0}), 4);
  EXPECT_EQ(evaluate(*body_of([](Expr) { return Expr(2.5); }), 0, std::array{4.0}), 2.5);
}

}  // namespace
}  // namespace kiln
