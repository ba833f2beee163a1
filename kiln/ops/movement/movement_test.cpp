#include "kiln/ops/movement/movement.hpp"

#include <limits>

#include "kiln/ops/test_support.hpp"

namespace kiln {
namespace {

using test::make;
using test::make_wave;
using test::message_of;
using test::values;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

AnyTensor counting(const Shape& shape) {
  std::vector<float> x;
  for (std::int64_t i = 0; i < shape.elements(); ++i) x.push_back(static_cast<float>(i));
  return make(x, shape);
}

TEST(Movement, ReshapeKeepsTheOrder) {
  const AnyTensor x = counting({2, 3, 4});
  for (const AnyTensor& y : {reshape(x, {6, 4}), reshape(x, {-1}), reshape(x, {2, -1, 2}),
                             reshape(x, {1, 24, 1}), reshape(x, {2, 2, 2, 3, 1, 1, 1, 1})}) {
    EXPECT_EQ(values(y), values(x));
  }
  EXPECT_EQ(reshape(x, {2, -1, 2}).shape(), (Shape{2, 6, 2}));
  EXPECT_EQ(reshape(reshape(x, {24}), Shape{4, 6}).shape(), (Shape{4, 6}));
  EXPECT_THAT(values(reshape(make<float>({7}, {}), {1, 1})), ElementsAre(7));
  EXPECT_EQ(reshape(make<float>({7}, {1, 1}), Shape{}).shape(), Shape{});
  EXPECT_EQ(reshape(make<float>({}, {0, 3}), {5, 0}).shape(), (Shape{5, 0}));
}

TEST(Movement, ReshapeCopiesOnlyWhereStridesCannotSayIt) {
  const AnyTensor x = counting({2, 3, 4});
  EXPECT_EQ(test::counted([&] { return reshape(x, {4, 6}); }).launches, 0U);
  EXPECT_EQ(test::counted([&] { return reshape(transpose(x), {2, 2, 2, 3}); }).launches, 0U);
  EXPECT_THAT(values(reshape(transpose(counting({2, 3})), {6})), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_EQ(test::counted([&] { return reshape(transpose(x), {2, 12}); }).launches, 1U);
  EXPECT_EQ(values(reshape(transpose(x), {2, 12})), values(transpose(x)));
}

TEST(Movement, ReshapeRefusesAnotherNumberOfElements) {
  const AnyTensor x = counting({2, 3});
  EXPECT_THAT(message_of<ShapeError>([&] { (void)reshape(x, {4, 2}); }),
              AllOf(HasSubstr("reshape"), HasSubstr("[2, 3]"), HasSubstr("[4, 2]")));
  EXPECT_THAT(message_of<ShapeError>([&] { (void)reshape(x, {-1, 4}); }),
              AllOf(HasSubstr("-1"), HasSubstr("[2, 3]")));
  EXPECT_THROW((void)reshape(x, {-1, -1}), ShapeError);
  EXPECT_THROW((void)reshape(make<float>({}, {0}), {-1, 0}), ShapeError);
}

TEST(Movement, PermuteAndTransposeMoveAxes) {
  const AnyTensor x = counting({2, 3, 4});
  const AnyTensor y = permute(x, {2, 0, 1});
  EXPECT_EQ(y.shape(), (Shape{4, 2, 3}));
  EXPECT_EQ(values(y)[1 * 6 + 1 * 3 + 2], values(x)[1 * 12 + 2 * 4 + 1]);
  EXPECT_EQ(values(permute(x, {-1, 0, 1})), values(y));
  EXPECT_EQ(values(permute(y, {1, 2, 0})), values(x));
  EXPECT_EQ(values(transpose(transpose(x))), values(x));
  EXPECT_EQ(transpose(x).shape(), (Shape{2, 4, 3}));
  EXPECT_EQ(transpose(x, 0, -1).shape(), (Shape{4, 3, 2}));
  EXPECT_EQ(values(transpose(x, 1, 1)), values(x));
  EXPECT_EQ(test::counted([&] { return permute(x, {2, 1, 0}); }).launches, 0U);
  EXPECT_THAT(values(permute(make<float>({7}, {}), std::span<const int>())), ElementsAre(7));
}

TEST(Movement, PermuteAndTransposeCheckTheirAxes) {
  const AnyTensor x = counting({2, 3});
  EXPECT_THAT(message_of<ShapeError>([&] { (void)permute(x, {0, 0}); }),
              AllOf(HasSubstr("permute"), HasSubstr("[2, 3]")));
  EXPECT_THROW((void)permute(x, {0}), ShapeError);
  EXPECT_THROW((void)permute(x, {0, 2}), ShapeError);
  EXPECT_THROW((void)transpose(x, 0, 2), ShapeError);
  EXPECT_THAT(message_of<ShapeError>([] { (void)transpose(make<float>({1}, {1})); }),
              HasSubstr("transpose: needs rank 2"));
}

TEST(Movement, SliceTakesEveryStepThElement) {
  const AnyTensor x = counting({2, 10});
  EXPECT_THAT(values(slice(x, 1, 2, 5)), ElementsAre(2, 3, 4, 12, 13, 14));
  EXPECT_THAT(values(slice(x, -1, 1, 10, 4)), ElementsAre(1, 5, 9, 11, 15, 19));
  EXPECT_THAT(values(slice(x, 1, 8)), ElementsAre(8, 9, 18, 19));
  EXPECT_THAT(values(slice(x, 1, 8, 1000)), ElementsAre(8, 9, 18, 19));
  EXPECT_THAT(values(slice(slice(x, 1, 1, 10, 2), 1, 1, 5, 3)), ElementsAre(3, 9, 13, 19));
  EXPECT_THAT(values(slice(transpose(x), 0, 9)), ElementsAre(9, 19));
  EXPECT_EQ(slice(x, 1, 3, 3).shape(), (Shape{2, 0}));
  EXPECT_EQ(slice(x, 1, 10).shape(), (Shape{2, 0}));
  EXPECT_TRUE(values(slice(x, 1, 10)).empty());
  EXPECT_EQ(slice(x, 1, 0, 10, 100).shape(), (Shape{2, 1}));
}

TEST(Movement, SliceCountsFromTheEndWhereItIsNegative) {
  const AnyTensor x = counting({2, 10});
  EXPECT_THAT(values(slice(x, 1, -2)), ElementsAre(8, 9, 18, 19));
  EXPECT_THAT(values(slice(x, 1, -4, -2)), ElementsAre(6, 7, 16, 17));
  EXPECT_THAT(values(slice(x, 1, 7, -1)), ElementsAre(7, 8, 17, 18));
  EXPECT_THAT(values(slice(x, 1, -10, 2)), ElementsAre(0, 1, 10, 11));
  EXPECT_THAT(values(slice(x, 1, -7, -1, 3)), ElementsAre(3, 6, 13, 16));
  EXPECT_EQ(slice(x, 1, -3, -3).shape(), (Shape{2, 0}));
  EXPECT_THAT(values(slice(slice(x, 1, -5), 1, -2)), ElementsAre(8, 9, 18, 19));
}

TEST(Movement, SliceChecksItsBounds) {
  const AnyTensor x = counting({2, 10});
  for (const auto& [begin, end, step] : {std::array<std::int64_t, 3>{-1, 5, 1},
                                         {-11, 5, 1},
                                         {11, 12, 1},
                                         {5, 4, 1},
                                         {5, -6, 1},
                                         {3, -11, 1},
                                         {0, 5, 0},
                                         {0, 5, -1}}) {
    EXPECT_THAT(message_of<ShapeError>([&] { (void)slice(x, 1, begin, end, step); }),
                AllOf(HasSubstr("slice"), HasSubstr("begin " + std::to_string(begin)),
                      HasSubstr("end " + std::to_string(end)), HasSubstr("[2, 10]")));
  }
  EXPECT_THAT(message_of<ShapeError>([&] { (void)slice(x, 1, 11); }),
              AllOf(HasSubstr("begin 11, no end"), Not(HasSubstr("922337"))));
  EXPECT_THAT(message_of<ShapeError>([&] { (void)slice(x, 18446744073709551615U, 0); }),
              HasSubstr("18446744073709551615"));
  EXPECT_THROW((void)slice(x, 2, 0), ShapeError);
}

TEST(Movement, BroadcastCopiesNothing) {
  const AnyTensor x = counting({2, 1});
  EXPECT_EQ(test::counted([&] { return broadcast_to(x, {3, 2, 4}); }).launches, 0U);
  EXPECT_THAT(values(broadcast_to(x, {2, 2, 3})), ElementsAre(0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1));
  EXPECT_THAT(values(broadcast_to(make<float>({5}, {}), {2, 2})), Each(5));
  EXPECT_EQ(broadcast_to(make<float>({5}, {1}), {0}).shape(), Shape{0});
  EXPECT_THAT(message_of<ShapeError>([&] { (void)broadcast_to(x, {3, 1}); }),
              AllOf(HasSubstr("broadcast_to"), HasSubstr("[2, 1]"), HasSubstr("[3, 1]")));
  EXPECT_THROW((void)broadcast_to(counting({2, 3}), {2, 1}), ShapeError);
  EXPECT_THROW((void)broadcast_to(counting({2, 3}), {3}), ShapeError);
}

TEST(Movement, UnsqueezePutsAnAxisIn) {
  const AnyTensor x = counting({2, 3});
  EXPECT_EQ(unsqueeze(x, 0).shape(), (Shape{1, 2, 3}));
  EXPECT_EQ(unsqueeze(x, 2).shape(), (Shape{2, 3, 1}));
  EXPECT_EQ(unsqueeze(x, -1).shape(), (Shape{2, 3, 1}));
  EXPECT_EQ(unsqueeze(x, -3).shape(), (Shape{1, 2, 3}));
  EXPECT_EQ(unsqueeze(make<float>({1}, {}), 0).shape(), Shape{1});
  EXPECT_THAT(message_of<ShapeError>([&] { (void)unsqueeze(x, 3); }),
              AllOf(HasSubstr("unsqueeze"), HasSubstr("axis 3")));
  EXPECT_THROW((void)unsqueeze(counting({1, 1, 1, 1, 1, 1, 1, 1}), 0), ShapeError)
      << "rank 8 is the most";
}

TEST(Movement, SqueezeTakesAxesOfSizeOneAway) {
  const AnyTensor x = make<float>({1, 2, 3}, {1, 3, 1});
  EXPECT_EQ(squeeze(x).shape(), Shape{3});
  EXPECT_EQ(squeeze(x, 0).shape(), (Shape{3, 1}));
  EXPECT_EQ(squeeze(x, -1).shape(), (Shape{1, 3}));
  EXPECT_EQ(squeeze(x, {0, 2}).shape(), Shape{3});
  EXPECT_EQ(squeeze(make<float>({1}, {1, 1})).shape(), Shape{});
  EXPECT_EQ(squeeze(make<float>({}, {0, 1})).shape(), Shape{0});
  EXPECT_EQ(squeeze(counting({2, 3})).shape(), (Shape{2, 3}));
  EXPECT_THAT(values(squeeze(x)), ElementsAre(1, 2, 3));
  EXPECT_EQ(test::counted([&] { return squeeze(x); }).launches, 0U);
  EXPECT_THAT(message_of<ShapeError>([&] { (void)squeeze(x, 1); }),
              AllOf(HasSubstr("squeeze: axis 1"), HasSubstr("[1, 3, 1]")));
  EXPECT_THROW((void)squeeze(x, 3), ShapeError);
}

TEST(Movement, StackJoinsAlongANewAxis) {
  const AnyTensor a = counting({2});
  const AnyTensor b = make<float>({10, 11}, {2});
  EXPECT_EQ(stack({a, b}).shape(), (Shape{2, 2}));
  EXPECT_THAT(values(stack({a, b})), ElementsAre(0, 1, 10, 11));
  EXPECT_THAT(values(stack({a, b}, 1)), ElementsAre(0, 10, 1, 11));
  EXPECT_THAT(values(stack({a, b}, -1)), ElementsAre(0, 10, 1, 11));
  EXPECT_THAT(values(stack({a, b, a}, -2)), ElementsAre(0, 1, 10, 11, 0, 1));
  const AnyTensor half = make({1, 2}, {2}, DType::f16);
  EXPECT_EQ(stack(std::vector<AnyTensor>{half}).spec(), (TensorSpec{{1, 2}, DType::f16}));
  EXPECT_THAT(message_of<ShapeError>([&] { (void)stack({a, counting({3})}); }),
              AllOf(HasSubstr("stack"), HasSubstr("[2]"), HasSubstr("[3]")));
  EXPECT_THAT(message_of<DTypeError>([&] { (void)stack({a, half}); }),
              AllOf(HasSubstr("stack"), HasSubstr("f16")));
  EXPECT_THAT(message_of<ShapeError>([&] { (void)stack({a, b}, 2); }), HasSubstr("stack: axis 2"));
  EXPECT_THROW((void)stack(std::span<const AnyTensor>()), ShapeError);
}

TEST(Movement, ViewsOfViewsKeepTheirStrides) {
  // reshape, then permute, then a slice of the whole: the values are those of the permuted tensor.
  const AnyTensor x = counting({24});
  const AnyTensor y = slice(permute(reshape(x, {2, 3, 4}), {1, 2, 0}), 0, 0, 3);
  EXPECT_EQ(values(y), values(permute(reshape(x, {2, 3, 4}), {1, 2, 0})));
  const AnyTensor z = reshape(slice(y, 1, 1, 4, 2), {3, -1});
  EXPECT_THAT(values(z), ElementsAre(1, 13, 3, 15, 5, 17, 7, 19, 9, 21, 11, 23));
}

TEST(Movement, StepsAndSizesNear2To63DoNotWrap) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const AnyTensor x = counting({5, 3});
  for (const std::int64_t step : {std::int64_t{5}, most / 3, most - 4, most}) {
    EXPECT_THAT(values(slice(x, 0, 1, most, step)), ElementsAre(3, 4, 5)) << step;
    EXPECT_THAT(values(slice(x, 1, 2, 3, step)), ElementsAre(2, 5, 8, 11, 14)) << step;
    EXPECT_EQ(slice(x, 0, 5, most, step).shape(), (Shape{0, 3})) << step;
    const auto g = test::gradients_of(
        [&](const auto& in) { return slice(in[0], 0, 2, most, step); }, {x}, 1.0F);
    EXPECT_THAT(values(g[0]), ElementsAre(0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0)) << step;
  }
  EXPECT_EQ(slice(x, 0, 0, most, 4).shape(), (Shape{2, 3}));
  const AnyTensor wide = broadcast_to(counting({1}), {most / 2 + 1});
  EXPECT_THAT(message_of<ShapeError>([&] { (void)concat({wide, wide}, 0); }),
              AllOf(HasSubstr("concat"), HasSubstr("2^63")));
  EXPECT_THROW((void)reshape(x, {-1, 1LL << 40, 1LL << 40}), ShapeError);
}

TEST(Movement, ConcatJoinsAlongAnyAxis) {
  const AnyTensor a = counting({2, 2});
  const AnyTensor b = make<float>({10, 11}, {2, 1});
  EXPECT_THAT(values(concat({a, b}, 1)), ElementsAre(0, 1, 10, 2, 3, 11));
  EXPECT_THAT(values(concat({a, transpose(a)}, 0)), ElementsAre(0, 1, 2, 3, 0, 2, 1, 3));
  EXPECT_THAT(values(concat({b, a, b, a, b}, -1)),
              ElementsAre(10, 0, 1, 10, 0, 1, 10, 11, 2, 3, 11, 2, 3, 11));
  EXPECT_EQ(values(concat({a}, 0)), values(a));
  EXPECT_EQ(values(concat({a, make<float>({}, {0, 2})}, 0)), values(a));
  EXPECT_EQ(concat({make<float>({}, {0, 2}), make<float>({}, {0, 2})}, 0).shape(), (Shape{0, 2}));
}

TEST(Movement, ConcatOfOddHalvesAndIntegers) {
  const AnyTensor a = make({1, 2, 3}, {3}, DType::f16);
  const AnyTensor b = make({4, 5}, {2}, DType::f16);
  EXPECT_THAT(values(concat({a, b, a}, 0)), ElementsAre(1, 2, 3, 4, 5, 1, 2, 3));
  const AnyTensor i = make<std::int32_t>({1, -2}, {2});
  EXPECT_THAT(values(concat({i, i}, 0)), ElementsAre(1, -2, 1, -2));
}

TEST(Movement, ConcatSaysWhatDoesNotFit) {
  const AnyTensor a = counting({2, 2});
  EXPECT_THAT(message_of<ShapeError>([&] { (void)concat({a, counting({3, 3})}, 0); }),
              AllOf(HasSubstr("concat"), HasSubstr("[2, 2]"), HasSubstr("[3, 3]")));
  EXPECT_THROW((void)concat({a, counting({2})}, 0), ShapeError);
  EXPECT_THROW((void)concat({a, a}, 2), ShapeError);
  EXPECT_THROW((void)concat(std::span<const AnyTensor>(), 0), ShapeError);
  EXPECT_THAT(
      message_of<DTypeError>([&] { (void)concat({a, make<std::int32_t>({1, 2}, {1, 2})}, 0); }),
      AllOf(HasSubstr("concat"), HasSubstr("f32"), HasSubstr("i32")));
}

TEST(Movement, GradientsAgreeWithDifferences) {
  const AnyTensor x = make_wave({2, 3, 2});
  test::expect_gradients("reshape", [](const auto& in) { return reshape(in[0], {4, -1}); }, {x});
  test::expect_gradients("permute", [](const auto& in) { return permute(in[0], {2, 0, 1}); }, {x});
  test::expect_gradients("transpose", [](const auto& in) { return transpose(in[0], 0, 1); }, {x});
  test::expect_gradients("slice", [](const auto& in) { return slice(in[0], 1, 1, 3); }, {x});
  test::expect_gradients("slice by 2", [](const auto& in) { return slice(in[0], 1, 0, 3, 2); },
                         {x});
  test::expect_gradients("slice from the end",
                         [](const auto& in) { return slice(in[0], 1, -2, -1); }, {x});
  test::expect_gradients("slice of a view",
                         [](const auto& in) { return slice(transpose(in[0]), 1, 1, 2); }, {x});
  test::expect_gradients("empty slice", [](const auto& in) { return slice(in[0], 1, 3); }, {x});
  test::expect_gradients("broadcast",
                         [](const auto& in) { return broadcast_to(in[0], {3, 2, 3, 2}); }, {x});
  test::expect_gradients("broadcast ones",
                         [](const auto& in) { return broadcast_to(in[0], {2, 3, 4}); },
                         {make_wave({1, 3, 1})});
  test::expect_gradients("unsqueeze", [](const auto& in) { return unsqueeze(in[0], 1); }, {x});
  test::expect_gradients("squeeze", [](const auto& in) { return squeeze(in[0]); },
                         {make_wave({1, 3, 1})});
  test::expect_gradients("stack", [](const auto& in) { return stack({in[0], in[1], in[0]}, 1); },
                         {x, make_wave({2, 3, 2}, 1)});
  test::expect_gradients("concat", [](const auto& in) { return concat({in[0], in[1], in[0]}, 1); },
                         {x, make_wave({2, 1, 2}, 1)});
}

TEST(Movement, GradientsOfOddF16SlicesHaveZerosAround) {
  const AnyTensor x = make_wave({7}, 0, DType::f16);
  const auto g =
      test::gradients_of([](const auto& in) { return slice(in[0], 0, 1, 6, 2); }, {x})[0];
  EXPECT_EQ(g.spec(), x.spec());
  const std::vector<float> out = values(g);
  for (std::size_t i : {0U, 2U, 4U, 6U}) EXPECT_EQ(out[i], 0);
  for (std::size_t i : {1U, 3U, 5U}) EXPECT_NE(out[i], 0);
}

TEST(Movement, AViewKeepsItsElementsWhenTheWholeIsDropped) {
  AnyTensor view;
  {
    const AnyTensor x = counting({1024});
    view = slice(x, 0, 1000, 1003);
  }
  for (int i = 0; i < 20; ++i) (void)make_wave({1024}, i);  // takes what the pool has
  EXPECT_THAT(values(view), ElementsAre(1000, 1001, 1002));
}

}  // namespace
}  // namespace kiln
