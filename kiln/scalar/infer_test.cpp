#include "kiln/scalar/infer.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "kiln/scalar/body_of_test.hpp"
#include "kiln/support/error.hpp"

namespace kiln {
namespace {

constexpr DType f32 = DType::f32;
constexpr DType f16 = DType::f16;
constexpr DType i32 = DType::i32;
constexpr DType u32 = DType::u32;
constexpr DType boolean = DType::boolean;

template <class F>
DType dtype_of_body(F f, const std::vector<DType>& inputs, DType fallback = f32) {
  return infer_dtypes("op", *body_of(f), inputs, fallback).at(0);
}

template <class F>
std::string error_of(F f, const std::vector<DType>& inputs) {
  try {
    (void)dtype_of_body(f, inputs);
  } catch (const DTypeError& error) {
    return error.what();
  }
  return "no DTypeError";
}

TEST(Infer, ArithmeticKeepsTheDtypeOfItsOperands) {
  for (const DType dtype : {f32, f16, i32, u32}) {
    EXPECT_EQ(dtype_of_body([](Expr x, Expr y) { return x * y + 2; }, {dtype, dtype}), dtype);
    EXPECT_EQ(dtype_of_body([](Expr x) { return relu(abs(max(x, 1))); }, {dtype}), dtype);
  }
}

TEST(Infer, ComparisonsAndLogicGiveBool) {
  EXPECT_EQ(dtype_of_body([](Expr x) { return x < 2; }, {f16}), boolean);
  EXPECT_EQ(dtype_of_body([](Expr x) { return x != 2; }, {u32}), boolean);
  EXPECT_EQ(dtype_of_body([](Expr x, Expr y) { return x && !y; }, {boolean, boolean}), boolean);
  EXPECT_EQ(dtype_of_body([](Expr x, Expr y) { return x == y; }, {boolean, boolean}), boolean);
  EXPECT_EQ(dtype_of_body([](Expr x) { return is_nan(x); }, {f16}), boolean);
  EXPECT_EQ(dtype_of_body([](Expr x) { return is_inf(x); }, {f16}), boolean);
  EXPECT_EQ(dtype_of_body([](Expr x) { return is_finite(x); }, {f32}), boolean);
}

TEST(Infer, BitsAndFlooredDivisionAreOfIntegers) {
  const auto mixed = [](Expr x, Expr y) { return (floor_div(x, y) << 3) ^ ~(mod(x, 7) & y); };
  for (const DType dtype : {i32, u32}) EXPECT_EQ(dtype_of_body(mixed, {dtype, dtype}), dtype);
  EXPECT_EQ(error_of([](Expr x) { return floor_div(x, 2); }, {f32}),
            "op: floor_div takes i32 or u32, got f32");
  EXPECT_EQ(error_of([](Expr x) { return x | 1; }, {boolean}),
            "op: bit_or takes i32 or u32, got bool");
  EXPECT_EQ(error_of([](Expr x) { return x << 1; }, {f16}),
            "op: shift_left takes i32 or u32, got f16");
  EXPECT_EQ(error_of([](Expr x) { return x & -1; }, {u32}), "op: the literal -1 is no u32");
  EXPECT_EQ(error_of([](Expr x) { return sin(x); }, {i32}), "op: sin takes f32 or f16, got i32");
  EXPECT_EQ(dtype_of_body([](Expr x) { return sign(x); }, {u32}), u32);
}

TEST(Infer, ACastGivesItsTarget) {
  for (const DType to : {f32, f16, i32, u32, boolean}) {
    ExprGraph graph;
    const Expr x = cast(graph.input(0), to);
    const auto body = make_body(graph, 1, 0, std::array{x.id()});
    for (const DType from : {f32, f16, i32, u32, boolean}) {
      EXPECT_EQ(infer_dtypes("op", *body, std::array{from}), std::vector{to});
    }
  }
}

TEST(Infer, ASelectHasTheDtypeOfItsBranches) {
  const auto choose = [](Expr c, Expr x, Expr y) { return select(c, x, y); };
  EXPECT_EQ(dtype_of_body(choose, {boolean, i32, i32}), i32);
  EXPECT_EQ(dtype_of_body(choose, {boolean, boolean, boolean}), boolean);
  EXPECT_EQ(dtype_of_body([](Expr c, Expr x) { return select(c, x, 0); }, {boolean, f16}), f16);
}

TEST(Infer, LiteralsAloneTakeTheFallback) {
  EXPECT_EQ(dtype_of_body([](Expr) { return Expr(2); }, {f32}, i32), i32);
  EXPECT_EQ(dtype_of_body([](Expr) { return Expr(2); }, {f32}), f32);
  EXPECT_EQ(dtype_of_body([](Expr x) { return select(x < 0, 1, 2); }, {f32}, u32), u32);
}

// A printer knows no fallback: what only a cast or a comparison sees is f32 for both.
TEST(Infer, LiteralsBelowACastOrAComparisonAreF32WhateverTheFallback) {
  const Param p{0};
  ExprGraph graph({&p});
  const Expr x = graph.input(0);
  const Expr y = cast(select(x < 0, p, 0.5), i32);
  const auto body = make_body(graph, 1, 1, std::array{y.id()});
  const BodyTypes types = infer("op", *body, std::array{f32}, i32);
  EXPECT_EQ(types.roots, std::vector{i32});
  EXPECT_EQ(types.params, std::vector{f32});
}

TEST(Infer, AParamTakesTheDtypeOfWhatItMeets) {
  const Param p{0};
  const auto dtype = [&](auto f, DType input) {
    ExprGraph graph({&p});
    const auto root = graph.place(f(graph.input(0)));
    return infer("op", *make_body(graph, 1, 1, std::array{root}), std::array{input}, f32).params;
  };
  const auto scaled = [&](Expr x) { return x * p; };
  EXPECT_EQ(dtype(scaled, f16), std::vector{f32}) << "it takes part in f32, as the operands do";
  EXPECT_EQ(dtype(scaled, i32), std::vector{i32});
  EXPECT_EQ(dtype([&](Expr) { return Expr(p); }, i32), std::vector{f32});
  EXPECT_EQ(dtype([&](Expr x) { return x + select(x < 0, p, 1); }, u32), std::vector{u32});
}

TEST(Infer, AParamOfTwoDtypesIsRefused) {
  const Param p{0};
  ExprGraph graph({&p});
  const Expr x = graph.input(0);
  const Expr y = graph.input(1);
  const Expr scaled = x * p;
  const Expr counted = cast(y * p, f32);
  const auto body = make_body(graph, 2, 1, std::array{(scaled + counted).id()});
  try {
    (void)infer("scale", *body, std::array{f32, i32}, f32);
    FAIL() << "must throw";
  } catch (const DTypeError& error) {
    EXPECT_STREQ(error.what(), "scale: one Param is used both as f32 and as i32");
  }
}

TEST(Infer, OperandsOfTwoDtypesAreRefused) {
  EXPECT_EQ(error_of([](Expr x, Expr y) { return x + y; }, {f32, i32}),
            "op: add takes operands of one dtype, got f32 and i32; cast one of them");
  EXPECT_EQ(error_of([](Expr x, Expr y) { return x < y; }, {f32, f16}),
            "op: less takes operands of one dtype, got f32 and f16; cast one of them");
  EXPECT_EQ(error_of([](Expr x, Expr y) { return select(x < 0, x, y); }, {f32, u32}),
            "op: select takes operands of one dtype, got f32 and u32; cast one of them");
}

TEST(Infer, DtypesThatAnOpcodeDoesNotTakeAreRefused) {
  EXPECT_EQ(error_of([](Expr x) { return exp(x); }, {i32}), "op: exp takes f32 or f16, got i32");
  EXPECT_EQ(error_of([](Expr x) { return pow(x, 2); }, {u32}), "op: pow takes f32 or f16, got u32");
  EXPECT_EQ(error_of([](Expr x) { return x + 1; }, {boolean}),
            "op: add takes f32, f16, i32 or u32, got bool");
  EXPECT_EQ(error_of([](Expr x, Expr y) { return x < y; }, {boolean, boolean}),
            "op: less takes f32, f16, i32 or u32, got bool");
  EXPECT_EQ(error_of([](Expr x) { return !x; }, {f32}), "op: logical_not takes bool, got f32");
  EXPECT_EQ(error_of([](Expr x, Expr y) { return x && y; }, {i32, i32}),
            "op: logical_and takes bool, got i32");
  EXPECT_EQ(error_of([](Expr x) { return -x; }, {u32}), "op: neg takes f32, f16 or i32, got u32");
}

TEST(Infer, OpcodesOverLiteralsAreCheckedOnceTheirDtypeIsKnown) {
  EXPECT_EQ(error_of([](Expr x) { return x + exp(select(x < 0, 1, 2)); }, {i32}),
            "op: exp takes f32 or f16, got i32");
  EXPECT_EQ(error_of([](Expr x) { return x * -select(x < 1, 1, 2); }, {u32}),
            "op: neg takes f32, f16 or i32, got u32");
  EXPECT_EQ(dtype_of_body([](Expr x) { return x + exp(select(x < 0, 1, 2)); }, {f16}), f16);
}

TEST(Infer, AConditionThatIsNoBoolIsRefused) {
  EXPECT_EQ(error_of([](Expr x) { return select(x, x, 0); }, {f32}),
            "op: the condition must be bool, got f32");
  EXPECT_EQ(error_of([](Expr x) { return select(1, x, 0); }, {f32}),
            "op: the condition must be bool, got a number");
}

TEST(Infer, LiteralsThatTheDtypeCannotHoldAreRefused) {
  EXPECT_EQ(error_of([](Expr x) { return x * 0.5; }, {i32}), "op: the literal 0.5 is no i32");
  EXPECT_EQ(error_of([](Expr x) { return x + -1; }, {u32}), "op: the literal -1 is no u32");
  EXPECT_EQ(error_of([](Expr x) { return x + 4294967296.0; }, {u32}),
            "op: the literal 4294967296 is no u32");
  EXPECT_EQ(error_of([](Expr x) { return x + 2147483648.0; }, {i32}),
            "op: the literal 2147483648 is no i32");
  EXPECT_EQ(error_of([](Expr x) { return x + -2147483649.0; }, {i32}),
            "op: the literal -2147483649 is no i32");
  EXPECT_EQ(error_of([](Expr x) { return x == 2; }, {boolean}), "op: the literal 2 is no bool");
  EXPECT_EQ(error_of([](Expr x) { return x + std::numeric_limits<double>::infinity(); }, {i32}),
            "op: the literal inf is no i32");
}

TEST(Infer, LiteralsAtTheEdgeOfTheDtypeAreTaken) {
  EXPECT_EQ(dtype_of_body([](Expr x) { return max(x, -2147483648.0); }, {i32}), i32);
  EXPECT_EQ(dtype_of_body([](Expr x) { return min(x, 2147483647); }, {i32}), i32);
  EXPECT_EQ(dtype_of_body([](Expr x) { return min(x, 4294967295.0); }, {u32}), u32);
  EXPECT_EQ(dtype_of_body([](Expr x) { return x == 1; }, {boolean}), boolean);
}

TEST(Infer, EveryRootHasItsDtype) {
  ExprGraph graph;
  const Expr x = graph.input(0);
  const auto body = make_body(graph, 1, 0, std::array{(x + 1).id(), (x < 1).id()});
  EXPECT_EQ(infer_dtypes("op", *body, std::array{i32}), (std::vector{i32, boolean}));
}

}  // namespace
}  // namespace kiln
