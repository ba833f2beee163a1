#include "kiln/support/shape.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kiln/support/error.hpp"

namespace kiln {
namespace {

/// The text of the ShapeError that `f` must throw.
template <class F>
std::string shape_error(F f) {
  try {
    f();
  } catch (const ShapeError& error) {
    return error.what();
  }
  return "no ShapeError";
}

TEST(Shape, NegativeAxesCountFromTheEnd) {
  const Shape s{2, 3, 4};
  EXPECT_EQ(s.rank(), 3);
  EXPECT_EQ(s[0], 2);
  EXPECT_EQ(s[-1], 4);
  EXPECT_EQ(s[-3], 2);
}

TEST(Shape, SizesCanBeSetThroughEitherKindOfAxis) {
  Shape s{2, 3};
  s[0] = 5;
  s[-1] = 7;
  EXPECT_EQ(s, (Shape{5, 7}));
}

TEST(Shape, AnAxisOutsideIsRefusedByNumberAndShape) {
  const Shape s{2, 3};
  EXPECT_EQ(shape_error([&] { (void)s[2]; }), "shape: axis 2 is out of range for [2, 3]");
  EXPECT_EQ(shape_error([&] { (void)s[-3]; }), "shape: axis -3 is out of range for [2, 3]");
  EXPECT_EQ(shape_error([] { (void)Shape{}[0]; }), "shape: axis 0 is out of range for []");
}

TEST(Shape, NegativeSizesAreRefused) {
  EXPECT_EQ(shape_error([] { Shape{2, -1}; }), "shape: sizes must not be negative, got -1");
}

TEST(Shape, RankEightIsTheHighest) {
  EXPECT_EQ((Shape{1, 1, 1, 1, 1, 1, 1, 1}.rank()), 8);
  EXPECT_EQ(shape_error([] { Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}; }),
            "shape: the rank must be at most 8, got [1, 1, 1, 1, 1, 1, 1, 1] and another axis");
}

TEST(Shape, ElementsIsTheProductAndOneForAScalar) {
  EXPECT_EQ((Shape{2, 3, 4}.elements()), 24);
  EXPECT_EQ(Shape{}.elements(), 1);
  EXPECT_EQ((Shape{4, 0}.elements()), 0);
}

TEST(Shape, ElementsNeverWraps) {
  const std::int64_t half = std::int64_t{1} << 32;
  EXPECT_EQ((Shape{half, half / 4}.elements()), std::int64_t{1} << 62);
  EXPECT_EQ(shape_error([&] { (void)Shape{half, half / 2}.elements(); }),
            "shape: the number of elements of [4294967296, 2147483648] exceeds 2^63");
}

TEST(Shape, AnEmptyShapeHasNoElementsHoweverLargeTheOtherSizesAre) {
  const std::int64_t half = std::int64_t{1} << 32;
  EXPECT_EQ((Shape{half, half, 0}.elements()), 0);
  EXPECT_EQ((Shape{0, half, half}.elements()), 0);
}

TEST(Shape, EqualityLooksAtRankAndSizes) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_NE((Shape{2, 3}), (Shape{2, 3, 1}));
  EXPECT_NE((Shape{}), (Shape{0}));
}

TEST(Shape, CanBeMadeFromASpanAndIterated) {
  const std::vector<std::int64_t> sizes{4, 5, 6};
  const Shape s{std::span<const std::int64_t>(sizes)};
  EXPECT_EQ(std::vector<std::int64_t>(s.begin(), s.end()), sizes);
  EXPECT_EQ(s.size(), 3U);
}

TEST(Shape, PrintsInBrackets) {
  EXPECT_EQ(to_string(Shape{2, 3, 4}), "[2, 3, 4]");
  EXPECT_EQ(to_string(Shape{}), "[]");
}

TEST(TensorSpec, PrintsDtypeThenShape) {
  EXPECT_EQ(to_string(TensorSpec{{2, 3}, DType::f16}), "f16 [2, 3]");
  EXPECT_EQ(to_string(TensorSpec{{}, DType::boolean}), "bool []");
}

TEST(TensorSpec, EqualityLooksAtShapeAndDtype) {
  EXPECT_EQ((TensorSpec{{2}, DType::f32}), (TensorSpec{{2}, DType::f32}));
  EXPECT_NE((TensorSpec{{2}, DType::f32}), (TensorSpec{{2}, DType::f16}));
  EXPECT_NE((TensorSpec{{2}, DType::f32}), (TensorSpec{{3}, DType::f32}));
}

TEST(Broadcast, AlignsAtTheLastAxis) {
  EXPECT_EQ(broadcast("add", {2, 3}, {3}), (Shape{2, 3}));
  EXPECT_EQ(broadcast("add", {3}, {2, 1}), (Shape{2, 3}));
  EXPECT_EQ(broadcast("add", {4, 1, 5}, {1, 3, 1}), (Shape{4, 3, 5}));
}

TEST(Broadcast, AScalarTakesTheOtherShape) {
  EXPECT_EQ(broadcast("add", {}, {2, 3}), (Shape{2, 3}));
  EXPECT_EQ(broadcast("add", {1, 1}, {}), (Shape{1, 1}));
  EXPECT_EQ(broadcast("add", {}, {}), Shape{});
}

TEST(Broadcast, ASizeOfOneGoesWithZero) {
  EXPECT_EQ(broadcast("add", {0, 3}, {1, 3}), (Shape{0, 3}));
  EXPECT_EQ(broadcast("add", {1}, {0}), (Shape{0}));
}

TEST(Broadcast, SizesThatDifferAreRefusedWithTheOperationAndBothShapes) {
  EXPECT_EQ(
      shape_error([] { (void)broadcast("mul", {2, 3}, {2, 4}); }),
      "mul: shapes must broadcast: sizes equal or 1, aligned at the last axis ([2, 3], [2, 4])");
  EXPECT_EQ(shape_error([] { (void)broadcast("mul", {0}, {2}); }),
            "mul: shapes must broadcast: sizes equal or 1, aligned at the last axis ([0], [2])");
}

TEST(NormalizeAxis, GivesTheAxisFromTheFront) {
  EXPECT_EQ(normalize_axis("sum", -1, {2, 3}), 1);
  EXPECT_EQ(normalize_axis("sum", 0, {2, 3}), 0);
}

TEST(NormalizeAxis, RefusesAnAxisOutsideInTheNameOfTheOperation) {
  EXPECT_EQ(shape_error([] { normalize_axis("sum", 2, {2, 3}); }),
            "sum: axis 2 is out of range for [2, 3]");
  EXPECT_EQ(shape_error([] { normalize_axis("sum", -3, {2, 3}); }),
            "sum: axis -3 is out of range for [2, 3]");
}

}  // namespace
}  // namespace kiln
