#include "kiln/ops/gather/gather.hpp"

#include "kiln/ops/compare/compare.hpp"
#include "kiln/ops/create/create.hpp"
#include "kiln/ops/elementwise/elementwise.hpp"
#include "kiln/ops/movement/movement.hpp"
#include "kiln/ops/reduce/reduce.hpp"
#include "kiln/ops/test_support.hpp"
#include "kiln/runtime/cpu/cpu.hpp"

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

TEST(Gather, TheGradientOfNoPicksIsZero) {
  const auto g = test::gradients_of(
      [](const auto& in) { return gather(in[0], 0, index({}, {0, 2})); }, {make_wave({3, 2})});
  EXPECT_THAT(values(g[0]), ElementsAre(0, 0, 0, 0, 0, 0));
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

TEST(ScatterAdd, AddsWhereGatherPicks) {
  const AnyTensor x = make<float>({0, 1, 2, 10, 11, 12}, {2, 3});
  const AnyTensor values_added = make<float>({100, 200, 300, 400}, {2, 2});
  EXPECT_THAT(values(scatter_add(x, 1, index({2, 2, 0, 1}, {2, 2}), values_added)),
              ElementsAre(0, 1, 302, 310, 411, 12));
  EXPECT_THAT(values(scatter_add(x, 0, index({1, 0, 1, 1}, {2, 2}), values_added)),
              ElementsAre(0, 201, 2, 410, 411, 12));
  EXPECT_THAT(values(scatter_add(x, -1, index({5, -1, 3, 2147483647}, {2, 2}), values_added)),
              ElementsAre(0, 1, 2, 10, 11, 12))
      << "outside";
  const auto large = make<std::uint32_t>({0, 4294967295U}, {2});
  EXPECT_THAT(values(scatter_add(make<float>({5, 6}, {2}), 0, large, make<float>({1, 1}, {2}))),
              ElementsAre(6, 6));
  EXPECT_THAT(
      values(scatter_add(transpose(x), 0, index({2, 0, 2, 0}, {2, 2}), transpose(values_added))),
      ElementsAre(0, 710, 1, 11, 302, 12));
}

TEST(ScatterAdd, TakesEveryDTypeOfNumbers) {
  const AnyTensor at = index({1, 1, 0}, {3});
  EXPECT_THAT(values(scatter_add(make({1, 2}, {2}, DType::f16), 0, at,
                                 make({0.5F, 0.25F, 3}, {3}, DType::f16))),
              ElementsAre(4, 2.75F));
  EXPECT_THAT(scatter_add(make<std::int32_t>({1, 2147483647}, {2}), 0, at,
                          make<std::int32_t>({1, 5, -7}, {3}))
                  .to_vector<std::int32_t>(),
              ElementsAre(-6, -2147483643));
  EXPECT_THAT(scatter_add(make<std::uint32_t>({1, 4294967295U}, {2}), 0, at,
                          make<std::uint32_t>({1, 5, 7}, {3}))
                  .to_vector<std::uint32_t>(),
              ElementsAre(8U, 5U));
}

TEST(ScatterAdd, SumsAreExactButForOneRoundingAndTheSameOnEveryRuntime) {
  std::vector<std::int32_t> at;
  std::vector<float> added;
  std::vector<double> expected(7);
  std::uint32_t state = 1;
  for (int i = 0; i < 5000; ++i) {
    state = state * 1664525U + 1013904223U;
    const auto place = static_cast<std::int32_t>(state >> 16 & 7);  // 7 is outside
    const float scale = std::ldexp(1.0F, place * 17 - 60);  // each place has sizes of its own
    added.push_back((static_cast<float>(state >> 8) / 8388608.0F - 1) * scale);
    at.push_back(place);
    if (place < 7) expected[static_cast<std::size_t>(place)] += double{added.back()};
  }
  const auto sums_on = [&](const Device& device) {
    return values(
        scatter_add(zeros({7}, device), 0, make(at, {5000}, device), make(added, {5000}, device)));
  };
  const std::vector<float> sums = sums_on(test::device());
  for (std::size_t i = 0; i < 7; ++i) EXPECT_FLOAT_EQ(sums[i], static_cast<float>(expected[i]));
  EXPECT_EQ(sums, sums_on(test::device()));
  EXPECT_EQ(sums, sums_on(cpu::device()));
}

TEST(ScatterAdd, ValuesOfAllSizesMeet) {
  constexpr float huge = 3e38F;
  const std::vector<std::vector<float>> groups{
      {1, 16777216, -16777216},  // the first is not lost
      {huge, huge, -huge},       // no sum is too large on the way
      {huge, huge},              // this one is
      {-huge, -huge},            //
      {1.2e-38F, 1.3e-38F},      // barely normal
      {0, -0.0F},                //
      {16777216, 1},             // to even
      {16777218, 1},             //
      {16777216, 1, 1e-3F},      // above the middle
      {1, 1e-30F},               //
      {-5},                      //
  };
  std::vector<std::int32_t> at;
  std::vector<float> added;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const float v : groups[g]) {
      at.push_back(static_cast<std::int32_t>(g));
      added.push_back(v);
    }
  }
  const auto n = std::ssize(at);
  const std::vector<float> sums = values(scatter_add(zeros({std::ssize(groups)}, test::device()), 0,
                                                     index(at, {n}), make(added, {n})));
  constexpr float infinity = std::numeric_limits<float>::infinity();
  EXPECT_THAT(sums, ElementsAre(1, huge, infinity, -infinity, ::testing::FloatEq(2.5e-38F), 0,
                                16777216, 16777220, 16777218, 1, -5));
}

TEST(ScatterAdd, NaNAndInfinitiesStayAtTheirPlaces) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const AnyTensor at = index({0, 0, 1, 1, 2, 2, 3, 3, 4, 4}, {10});
  for (const DType dtype : {DType::f32, DType::f16}) {
    const std::vector<float> sums = values(scatter_add(
        full({6}, 1, dtype, test::device()), 0, at,
        make({NAN, 1, infinity, -3, -infinity, 2, infinity, -infinity, 4, 5}, {10}, dtype)));
    EXPECT_TRUE(std::isnan(sums[0]));
    EXPECT_EQ(sums[1], infinity);
    EXPECT_EQ(sums[2], -infinity);
    EXPECT_TRUE(std::isnan(sums[3]));
    EXPECT_EQ(sums[4], 10);
    EXPECT_EQ(sums[5], 1);
  }
}

TEST(ScatterAdd, OfNothing) {
  const AnyTensor x = make_wave({2, 3});
  EXPECT_EQ(values(scatter_add(x, 1, index({}, {2, 0}), make<float>({}, {2, 0}))), values(x));
  EXPECT_EQ(
      scatter_add(make<float>({}, {0}), 0, index({0, 1}, {2}), make<float>({1, 2}, {2})).shape(),
      Shape{0});
}

TEST(ScatterAdd, GradientsAgreeWithDifferences) {
  const AnyTensor at = index({0, 0, 2, 0, 1, 9}, {3, 2});
  test::expect_gradients("x and values",
                         [&](const auto& in) { return exp(scatter_add(in[0], 1, at, in[1])); },
                         {make_wave({4, 3}), make_wave({3, 2}, 4)});
  test::expect_gradients("of a gather with many picks",
                         [&](const auto& in) {
                           const std::vector<std::int32_t> picks{0, 1, 0, 2, 2, 2, 0, 1, 1, 0, 1};
                           return gather(in[0], 0, index(picks, {11}));
                         },
                         {make_wave({3})});
}

TEST(ScatterAdd, SaysWhatDoesNotFit) {
  const AnyTensor x = make_wave({2, 3});
  const AnyTensor at = index({0, 0}, {2, 1});
  EXPECT_THAT(message_of<ShapeError>([&] { (void)scatter_add(x, 1, at, x); }),
              AllOf(HasSubstr("scatter_add: values must have index's shape"), HasSubstr("[2, 3]")));
  EXPECT_THAT(message_of<DTypeError>(
                  [&] { (void)scatter_add(x, 1, at, make({1, 2}, {2, 1}, DType::f16)); }),
              AllOf(HasSubstr("scatter_add: x and values"), HasSubstr("f16 [2, 1]")));
  EXPECT_THAT(
      message_of<DTypeError>([&] { (void)scatter_add(x > 0, 1, at, make_wave({2, 1}) > 0); }),
      HasSubstr("no bool"));
  EXPECT_THROW((void)scatter_add(x, 0, index({0, 0, 0, 0}, {1, 4}), make_wave({1, 4})), ShapeError);
  EXPECT_THROW((void)scatter_add(x, 1, x, x), DTypeError);
  const AnyTensor many = broadcast_to(make_wave({1, 1}), {1 << 16, 1 << 16});
  EXPECT_THAT(message_of<ShapeError>([&] {
                (void)scatter_add(many, 1, broadcast_to(index({0}, {1, 1}), {4, 1}),
                                  make_wave({4, 1}));
              }),
              AllOf(HasSubstr("scatter_add: sums by index"), HasSubstr("x is [65536, 65536]")));
  const AnyTensor long_one = broadcast_to(make_wave({1}), {std::int64_t{1} << 31});
  EXPECT_THAT(message_of<ShapeError>(
                  [&] { (void)scatter_add(long_one, 0, index({0}, {1}), make_wave({1})); }),
              HasSubstr("scatter_add: sums by index"));
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
