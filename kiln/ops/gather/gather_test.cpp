#include "kiln/ops/gather/gather.hpp"

#include "kiln/ops/elementwise/elementwise.hpp"
#include "kiln/ops/reduce/reduce.hpp"
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

AnyTensor index(const std::vector<std::int32_t>& at, const Shape& shape) { return make(at, shape); }

TEST(Gather, PicksAlongEachAxis) {
  const AnyTensor x = make<float>({0, 1, 2, 10, 11, 12}, {2, 3});
  EXPECT_THAT(values(gather(x, 1, index({2, 0, 0, 1}, {2, 2}))), ElementsAre(2, 0, 10, 11));
  EXPECT_THAT(values(gather(x, -1, index({1, 2}, {2, 1}))), ElementsAre(1, 12));
  EXPECT_THAT(values(gather(x, 0, index({1, 0, 1}, {1, 3}))), ElementsAre(10, 1, 12));
  EXPECT_THAT(values(gather(x, 0, index({1, 0, 1, 1, 1, 0, 0, 0, 0}, {3, 3}))),
              ElementsAre(10, 1, 12, 10, 11, 2, 0, 1, 2));
  EXPECT_THAT(values(gather(x, 1, index({2}, {1, 1}))), ElementsAre(2))
      << "an index may be smaller than x";
  EXPECT_THAT(values(gather(make<float>({5, 6}, {2}), 0, make<std::uint32_t>({1, 1, 0}, {3}))),
              ElementsAre(6, 6, 5));
}

TEST(Gather, TakesEveryDType) {
  const AnyTensor at = index({1, 0}, {2});
  EXPECT_THAT(values(gather(make({1, 2}, {2}, DType::f16), 0, at)), ElementsAre(2, 1));
  EXPECT_THAT(gather(make<std::int32_t>({-5, 16777217}, {2}), 0, at).to_vector<std::int32_t>(),
              ElementsAre(16777217, -5));
  EXPECT_THAT(values(gather(make<std::uint32_t>({5, 6}, {2}), 0, at)), ElementsAre(6, 5));
}

TEST(Gather, AnIndexOutsideGivesNaNOrZeroAndNoGradient) {
  const AnyTensor at = index({0, 3, -1, 2147483647}, {4});
  for (const DType dtype : {DType::f32, DType::f16}) {
    const std::vector<float> out = values(gather(make({1, 2, 3}, {3}, dtype), 0, at));
    EXPECT_EQ(out[0], 1);
    for (std::size_t i = 1; i < 4; ++i) EXPECT_TRUE(std::isnan(out[i])) << i;
  }
  EXPECT_THAT(values(gather(make<std::int32_t>({7, 8, 9}, {3}), 0, at)), ElementsAre(7, 0, 0, 0));
  const auto g = test::gradients_of([&](const auto& in) { return gather(in[0], 0, at); },
                                    {make<float>({1, 2, 3}, {3})});
  EXPECT_THAT(values(g[0]), ElementsAre(test::wave(4, 5)[0], 0, 0));
}

TEST(Gather, ViewsAreReadInPlace) {
  const AnyTensor x = make_wave({3, 4});
  const AnyTensor at = index({0, 2, 1, 2, 2, 0, 1, 1}, {2, 4});
  const std::vector<float> expected = values(gather(x, 0, at));
  for (const AnyTensor& view : test::other_views(x))
    EXPECT_EQ(values(gather(view, 0, at)), expected);
  const AnyTensor turned = transpose(index({0, 2, 2, 0, 1, 1, 2, 1}, {4, 2}));
  EXPECT_EQ(values(gather(x, 0, turned)), expected);
  EXPECT_EQ(test::counted([&] { return gather(transpose(x), 1, transpose(at)); }).launches, 1U);
  const AnyTensor repeated = broadcast_to(index({1}, {1, 1}), {3, 4});
  EXPECT_EQ(values(gather(x, 1, repeated))[4], values(x)[5]);
}

TEST(Gather, EmptyAndHighRank) {
  EXPECT_EQ(gather(make_wave({3, 4}), 0, index({}, {0, 4})).shape(), (Shape{0, 4}));
  for (const float v : values(gather(make<float>({}, {0}), 0, index({0, 1}, {2}))))
    EXPECT_TRUE(std::isnan(v));
  const Shape shape{1, 2, 1, 2, 3, 1, 2, 2};
  const AnyTensor x = make_wave(shape);
  const AnyTensor back = gather(x, 4, index(std::vector<std::int32_t>(48, 2), shape));
  const std::vector<float> in = values(x);
  for (std::size_t i = 0; i < 48; ++i) EXPECT_EQ(values(back)[i], in[i / 12 * 12 + 8 + i % 4]) << i;
}

TEST(Gather, GradientsAgreeWithDifferences) {
  const AnyTensor at = index({0, 0, 2, 0}, {2, 2});
  test::expect_gradients("axis 1", [&](const auto& in) { return gather(in[0], 1, at); },
                         {make_wave({2, 3})});
  test::expect_gradients("axis 0", [&](const auto& in) { return gather(in[0], 0, at); },
                         {make_wave({3, 2})});
  test::expect_gradients("smaller index", [&](const auto& in) { return gather(in[0], 1, at); },
                         {make_wave({4, 3})});
  test::expect_gradients("of a view",
                         [&](const auto& in) { return gather(transpose(in[0]), 1, at); },
                         {make_wave({3, 2})});
  const auto g = test::gradients_of([&](const auto& in) { return gather(in[0], 1, at); },
                                    {make_wave({2, 3}, 0, DType::f16)});
  EXPECT_EQ(g[0].spec(), (TensorSpec{{2, 3}, DType::f16}));
}

// More picks than some adapters let a loop have rounds.
TEST(Gather, TheGradientOfManyPicksAddsUpAllOfThem) {
  const std::int64_t picks = 70000;
  std::vector<std::int32_t> at(static_cast<std::size_t>(picks), 1);
  at.back() = 2;
  for (const DType dtype : {DType::f32, DType::f16}) {
    const AnyTensor x = make({1, 2, 3}, {3, 1}, dtype).to(test::device().autodiff()).require_grad();
    const AnyTensor y = gather(x, 0, index(at, {picks, 1}));
    const AnyTensor seed = broadcast_to(make({0.5F}, {1, 1}, dtype), {picks, 1});
    EXPECT_THAT(values(sum(y * seed).backward().of(x)),
                ElementsAre(0, dtype == DType::f16 ? 35008 : 34999.5F, 0.5F))
        << to_string(dtype);
  }
}

TEST(Gather, SaysWhatDoesNotFit) {
  const AnyTensor x = make_wave({2, 3});
  EXPECT_THAT(message_of<DTypeError>([&] { (void)gather(x, 0, x); }),
              AllOf(HasSubstr("gather"), HasSubstr("f32 [2, 3]")));
  EXPECT_THAT(message_of<ShapeError>([&] { (void)gather(x, 0, index({0}, {1})); }),
              AllOf(HasSubstr("gather"), HasSubstr("[2, 3]"), HasSubstr("[1]")));
  EXPECT_THROW((void)gather(x, 1, index({0, 0, 0}, {3, 1})), ShapeError);
  EXPECT_THROW((void)gather(x, 2, index({0, 0}, {2, 1})), ShapeError);
}

}  // namespace
}  // namespace kiln
