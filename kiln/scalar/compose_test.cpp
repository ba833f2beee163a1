#include "kiln/scalar/compose.hpp"

#include <gtest/gtest.h>

#include <array>

#include "kiln/scalar/body_of_test.hpp"
#include "kiln/scalar/infer.hpp"
#include "kiln/support/error.hpp"

namespace kiln {
namespace {

constexpr std::array f32{DType::f32};
constexpr std::array f16{DType::f16};

TEST(Compose, OneFunctionAfterAnother) {
  const BodyPtr twice = body_of([](Expr x) { return x + x; });
  const BodyPtr less = body_of([](Expr a, Expr b) { return a - b; });
  Composer c;
  const std::int32_t first = c.input(0);
  const auto doubled = c.add("twice", *twice, std::array{c.input(1)}, f32, {}, f32);
  const std::array inputs{first, doubled[0]};
  const auto out = c.add("less", *less, inputs, std::array{DType::f32, DType::f32}, {}, f32);
  const BodyPtr both = c.finish(2, 0, out);
  EXPECT_EQ(both, (body_of([](Expr a, Expr b) { return a - (b + b); })));
}

TEST(Compose, AHalfIsRoundedBetweenTheFunctions) {
  const BodyPtr add = body_of([](Expr x) { return x + 1; });
  const BodyPtr sub = body_of([](Expr x) { return x - 1; });
  Composer c;
  const auto sum = c.add("add", *add, std::array{c.input(0)}, f16, {}, f16);
  const BodyPtr both = c.finish(1, 0, c.add("sub", *sub, sum, f16, {}, f16));
  EXPECT_EQ(evaluate(*both, 0, std::array{0.0001}), 0.0);
  EXPECT_EQ(infer_dtypes("both", *both, f16), std::vector{DType::f16});
}

TEST(Compose, AResultOfLiteralsAloneHasTheDtypeOfItsTensor) {
  ExprGraph graph;
  const std::int32_t root = graph.place(Expr(1));
  const BodyPtr one = make_body(graph, 0, 0, std::array{root});
  const BodyPtr cast_up = body_of([](Expr x) { return cast(x, DType::f32); });
  Composer c;
  const auto half = c.add("one", *one, {}, {}, {}, f16);
  const BodyPtr both = c.finish(0, 0, c.add("cast", *cast_up, half, f16, {}, f32));
  EXPECT_EQ(infer_dtypes("both", *both, {}), std::vector{DType::f32});
}

TEST(Compose, ParamsKeepTheirOwnSlots) {
  const Param factor;
  ExprGraph graph({&factor});
  const BodyPtr scale =
      make_body(graph, 1, 1, std::array{graph.place(graph.input(0) * Expr(factor))});
  Composer c;
  const auto once = c.add("scale", *scale, std::array{c.input(0)}, f32, std::array{0}, f32);
  const BodyPtr both = c.finish(1, 2, c.add("scale", *scale, once, f32, std::array{1}, f32));
  EXPECT_EQ(evaluate(*both, 0, std::array{2.0}, std::array{3.0, 5.0}), 30.0);
}

TEST(Compose, RefusesDtypesThatAFunctionDoesNotTake) {
  const BodyPtr root = body_of([](Expr x) { return sqrt(x); });
  Composer c;
  EXPECT_THROW((void)c.add("sqrt", *root, std::array{c.input(0)}, std::array{DType::i32}, {}, f32),
               DTypeError);
}

}  // namespace
}  // namespace kiln
