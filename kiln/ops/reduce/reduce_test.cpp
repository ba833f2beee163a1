#include "kiln/ops/reduce/reduce.hpp"

#include "kiln/ops/elementwise/elementwise.hpp"
#include "kiln/ops/test_support.hpp"

namespace kiln {
namespace {

using test::expect_near;
using test::make;
using test::make_wave;
using test::message_of;
using test::values;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float inf = std::numeric_limits<float>::infinity();

/// The elements of x that go into each output, in order.
std::vector<std::vector<double>> groups(const AnyTensor& x, unsigned axes) {
  const Shape& shape = x.shape();
  std::int64_t outputs = 1;
  for (int axis = 0; axis < shape.rank(); ++axis)
    outputs *= (axes >> axis & 1U) != 0 ? 1 : shape[axis];
  std::vector<std::vector<double>> out(static_cast<std::size_t>(outputs));
  const std::vector<float> all = values(x);
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::int64_t rest = static_cast<std::int64_t>(i);
    std::int64_t at = 0;
    std::int64_t step = 1;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      if ((axes >> axis & 1U) == 0) {
        at += rest % shape[axis] * step;
        step *= shape[axis];
      }
      rest /= shape[axis];
    }
    out[static_cast<std::size_t>(at)].push_back(all[i]);
  }
  return out;
}

double sum_of(const std::vector<double>& v) {
  double sum = 0;
  for (const double x : v) sum += x;
  return sum;
}

Shape reduced(const Shape& shape, unsigned axes, bool keepdim) {
  Shape out;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if ((axes >> axis & 1U) == 0)
      out.push_back(shape[axis]);
    else if (keepdim)
      out.push_back(1);
  }
  return out;
}

/// AxisList takes a literal list: every set of axes up to rank 4.
AxisList list(unsigned axes) {
  switch (axes) {
    case 1:
      return {0};
    case 2:
      return {1};
    case 3:
      return {0, 1};
    case 4:
      return {2};
    case 5:
      return {0, 2};
    case 6:
      return {2, 1};
    case 7:
      return {0, 1, 2};
    case 8:
      return {3};
    case 9:
      return {0, -1};
    case 10:
      return {1, 3};
    case 11:
      return {3, 1, 0};
    case 12:
      return {-2, -1};
    case 13:
      return {0, 2, 3};
    case 14:
      return {1, 2, 3};
    default:
      return {0, 1, 2, 3};
  }
}

void expect_reductions(const AnyTensor& x, unsigned axes, double tolerance) {
  const auto parts = groups(x, axes);
  std::vector<double> sums;
  std::vector<double> means;
  std::vector<double> largest;
  std::vector<double> smallest;
  for (const auto& part : parts) {
    sums.push_back(sum_of(part));
    means.push_back(sum_of(part) / static_cast<double>(part.size()));
    if (part.empty()) continue;
    largest.push_back(*std::ranges::max_element(part));
    smallest.push_back(*std::ranges::min_element(part));
  }
  const std::string what = to_string(x.shape()) + " over " + std::to_string(axes);
  for (const bool keepdim : {false, true}) {
    const TensorSpec spec{reduced(x.shape(), axes, keepdim), x.dtype()};
    EXPECT_EQ(sum(x, list(axes), keepdim).spec(), spec) << what;
    expect_near(values(sum(x, list(axes), keepdim)), sums, tolerance, "sum " + what);
    expect_near(values(mean(x, list(axes), keepdim)), means, tolerance, "mean " + what);
    if (largest.empty()) continue;
    EXPECT_EQ(max(x, list(axes), keepdim).spec(), spec) << what;
    expect_near(values(max(x, list(axes), keepdim)), largest, 0, "max " + what);
    expect_near(values(min(x, list(axes), keepdim)), smallest, 0, "min " + what);
  }
}

TEST(Reduce, OverEveryCombinationOfAxes) {
  for (const DType dtype : {DType::f32, DType::f16}) {
    const AnyTensor x = make_wave({2, 5, 3, 7}, 0, dtype);
    for (unsigned axes = 1; axes < 16; ++axes)
      expect_reductions(x, axes, test::tolerance_of(dtype));
  }
}

TEST(Reduce, OfEveryWayToLieInMemory) {
  for (const AnyTensor& x : test::other_views(make_wave({2, 3, 4, 5}))) {
    for (unsigned axes = 1; axes < 16; ++axes) expect_reductions(x, axes, 4e-6);
  }
  const AnyTensor wide = broadcast_to(make_wave({3, 1, 4}), {2, 3, 5, 4});
  for (unsigned axes = 1; axes < 16; ++axes) expect_reductions(wide, axes, 4e-6);
  const AnyTensor turned = permute(make_wave({4, 3, 2, 5}), {2, 0, 3, 1});
  for (unsigned axes = 1; axes < 16; ++axes) expect_reductions(turned, axes, 4e-6);
}

TEST(Reduce, BothKernelsAndTheirSplitsAgreeWithTheHost) {
  // Rows and columns, few outputs and many, short and long: each takes another path.
  const std::vector<std::pair<Shape, unsigned>> cases = {
      {{3, 5000}, 2},    {{1, 20001}, 2}, {{2000, 33}, 2}, {{2000, 31}, 2}, {{5000, 3}, 1},
      {{300, 1025}, 1},  {{20001, 1}, 1}, {{129, 4}, 1},   {{7, 257}, 2},   {{40, 30, 50}, 5},
      {{40, 30, 50}, 2}, {{70000, 2}, 2}, {{100000}, 1},   {{257, 255}, 3},
  };
  for (const auto& [shape, axes] : cases) expect_reductions(make_wave(shape), axes, 2e-5);
}

TEST(Reduce, SplitSumsOfF16AreMadeInF32) {
  const AnyTensor ones = broadcast_to(make({1}, {1}, DType::f16), {60000});
  EXPECT_EQ(values(sum(ones))[0], static_cast<float>(float16(60000)));
  EXPECT_EQ(values(mean(ones))[0], 1);
  const AnyTensor more = broadcast_to(make({2}, {1}, DType::f16), {60000});
  EXPECT_EQ(values(sum(more))[0], inf);
  EXPECT_EQ(values(mean(more))[0], 2) << "scaled before it is rounded to f16";
}

TEST(Reduce, NoAxesMeansAllAndRankEightIsNothingSpecial) {
  const AnyTensor x = make_wave({1, 2, 1, 3, 2, 1, 2, 2});
  EXPECT_EQ(sum(x).shape(), Shape{});
  expect_near(values(sum(x)), {sum_of(groups(x, 255)[0])}, 1e-6);
  EXPECT_EQ(sum(x, {}, true).shape(), (Shape{1, 1, 1, 1, 1, 1, 1, 1}));
  const AnyTensor y = sum(x, {1, 4, -1});
  EXPECT_EQ(y.shape(), (Shape{1, 1, 3, 1, 2}));
  const auto parts = groups(x, 0b10010010);
  for (std::size_t i = 0; i < parts.size(); ++i) EXPECT_NEAR(values(y)[i], sum_of(parts[i]), 1e-5);
  const AnyTensor scalar = make<float>({3}, {});
  for (const AnyTensor& t : {sum(scalar), mean(scalar), max(scalar), min(scalar)})
    EXPECT_THAT(values(t), ElementsAre(3));
}

TEST(Reduce, AxesAreChecked) {
  const AnyTensor x = make_wave({2, 3});
  EXPECT_THAT(message_of<ShapeError>([&] { (void)sum(x, 2); }),
              AllOf(HasSubstr("sum"), HasSubstr("axis 2"), HasSubstr("[2, 3]")));
  EXPECT_THAT(message_of<ShapeError>([&] { (void)max(x, -3); }),
              AllOf(HasSubstr("max"), HasSubstr("axis -3")));
  EXPECT_THAT(message_of<ShapeError>([&] { (void)mean(x, {1, -1}); }),
              AllOf(HasSubstr("mean"), HasSubstr("twice")));
  EXPECT_THAT(message_of<ShapeError>([&] { (void)argmax(x, 5); }), HasSubstr("argmax"));
}

TEST(Reduce, OfNothing) {
  const dispatch::PoisonOutputs poison;
  const AnyTensor x = make<float>({}, {2, 0, 3});
  EXPECT_THAT(values(sum(x, 1)), AllOf(Each(0), ::testing::SizeIs(6)));
  EXPECT_THAT(values(sum(x)), ElementsAre(0));
  for (const float v : values(mean(x, 1))) EXPECT_TRUE(std::isnan(v));
  EXPECT_EQ(sum(x, 0).shape(), (Shape{0, 3}));
  EXPECT_EQ(sum(x, 0, true).shape(), (Shape{1, 0, 3}));
  EXPECT_EQ(max(x, 0).shape(), (Shape{0, 3})) << "no output, so nothing is missing";
  EXPECT_THAT(message_of<ShapeError>([&] { (void)max(x, 1); }),
              AllOf(HasSubstr("max: needs at least one element"), HasSubstr("[2, 0, 3]")));
  EXPECT_THROW((void)argmin(x, 1), ShapeError);
  EXPECT_THAT(values(sum(make<std::int32_t>({}, {0}))), ElementsAre(0));
}

TEST(Reduce, NaNsWinAndInfinitiesCount) {
  for (const int n : {3, 16, 64, 1024, 20000}) {
    std::vector<float> x = test::wave(n);
    x[static_cast<std::size_t>(n / 2)] = NAN;
    const AnyTensor row = make(x, {1, n});
    const AnyTensor column = make(x, {n, 1});
    for (const AnyTensor& t :
         {max(row, 1), min(row, 1), sum(row, 1), max(column, 0), min(column, 0), mean(column, 0)}) {
      EXPECT_TRUE(std::isnan(values(t)[0])) << n;
    }
  }
  const AnyTensor x = make<float>({-inf, -inf, inf, 1}, {2, 2});
  EXPECT_THAT(values(max(x, 1)), ElementsAre(-inf, inf));
  EXPECT_THAT(values(min(x, 1)), ElementsAre(-inf, 1));
}

TEST(Reduce, ArgmaxGivesTheFirstOfEqualAndTheFirstNaN) {
  const AnyTensor x = make<float>({1, 3, 3, 2, 5, NAN, 7, NAN, -inf, -inf, -inf, -inf}, {3, 4});
  EXPECT_EQ(argmax(x, 1).dtype(), DType::i32);
  EXPECT_THAT(values(argmax(x, 1)), ElementsAre(1, 1, 0));
  EXPECT_THAT(values(argmin(x, -1)), ElementsAre(0, 1, 0));
  EXPECT_THAT(values(argmax(x, 0)), ElementsAre(1, 1, 1, 1));
  EXPECT_EQ(argmax(x, 1, true).shape(), (Shape{3, 1}));
  EXPECT_THAT(values(argmax(make<std::int32_t>({-5, -2, -2}, {3}), 0)), ElementsAre(1));
  EXPECT_THAT(values(argmin(make<std::uint32_t>({5, 2, 2, 4000000000U}, {4}), 0)), ElementsAre(1));
  EXPECT_THAT(values(argmax(make({1, 2, 2}, {3}, DType::f16), 0)), ElementsAre(1));
}

TEST(Reduce, ArgmaxOfLongRowsAndColumns) {
  for (const std::int64_t n : {255, 256, 257, 1000, 20000}) {
    std::vector<float> x(static_cast<std::size_t>(n), 1);
    x[static_cast<std::size_t>(n - 3)] = 9;
    x[static_cast<std::size_t>(n - 2)] = 9;
    const auto at = static_cast<float>(n - 3);
    EXPECT_THAT(values(argmax(make(x, {1, n}), 1)), ElementsAre(at));
    EXPECT_THAT(values(argmax(make(x, {n, 1}), 0)), ElementsAre(at));
    EXPECT_THAT(values(argmin(make(x, {n}), 0)), ElementsAre(0))
        << "the first of equals, across all lanes";
    const AnyTensor columns = transpose(broadcast_to(make(x, {n}), {3, n}));
    EXPECT_THAT(values(argmax(columns, 0)), ElementsAre(at, at, at));
  }
}

TEST(Reduce, VeryLongRowsAndColumnsAreReducedWhole) {
  const std::int64_t n = 1 << 22;
  const AnyTensor one = make<float>({1}, {1, 1});
  EXPECT_THAT(values(sum(broadcast_to(one, {2, n}), 1)), Each(n));
  EXPECT_THAT(values(sum(broadcast_to(one, {n, 2}), 0)), Each(n));
  EXPECT_THAT(values(max(broadcast_to(one, {1, n}), 1)), Each(1));
}

TEST(WgslReduce, AnArgmaxThatTheAdapterWouldCutShortIsRefused) {
  const std::uint32_t most = test::device().limits().loop_rounds;
  if (most == 0) GTEST_SKIP() << test::device().adapter() << " gives a loop all of its rounds";
  const AnyTensor x = broadcast_to(make<float>({1}, {1}), {std::int64_t{1} << 30});
  EXPECT_THAT(message_of<UnsupportedError>([&] { (void)values(argmax(x, 0)); }),
              AllOf(HasSubstr("argmax"), HasSubstr(std::to_string(most))));
}

TEST(Reduce, IntegersStayIntegers) {
  const AnyTensor x = make<std::int32_t>({16777217, 2, -3, -16777219}, {2, 2});
  EXPECT_THAT(sum(x, 1).to_vector<std::int32_t>(), ElementsAre(16777219, -16777222));
  EXPECT_THAT(max(x, 0).to_vector<std::int32_t>(), ElementsAre(16777217, 2));
  EXPECT_THAT(min(x).to_vector<std::int32_t>(), ElementsAre(-16777219));
  const AnyTensor u = make<std::uint32_t>({4000000000U, 1}, {2});
  EXPECT_THAT(sum(u).to_vector<std::uint32_t>(), ElementsAre(4000000001U));
  EXPECT_THAT(max(u).to_vector<std::uint32_t>(), ElementsAre(4000000000U));
  const AnyTensor many = broadcast_to(make<std::int32_t>({-2}, {1}), {30000});
  EXPECT_THAT(sum(many).to_vector<std::int32_t>(), ElementsAre(-60000));
  EXPECT_THROW((void)mean(x), DTypeError);
  EXPECT_THROW((void)sum(make<std::uint32_t>({1}, {1}).to(test::device()), 3), ShapeError);
}

TEST(Reduce, BoolsAreRefusedByName) {
  const AnyTensor b(make<std::uint32_t>({1}, {1}));
  RawTensor raw = b.value().raw();
  raw.dtype = DType::boolean;
  const AnyTensor boolean(Value(raw), test::device());
  EXPECT_THAT(message_of<DTypeError>([&] { (void)sum(boolean); }),
              AllOf(HasSubstr("sum"), HasSubstr("bool")));
  EXPECT_THAT(message_of<DTypeError>([&] { (void)argmax(boolean, 0); }),
              AllOf(HasSubstr("argmax"), HasSubstr("bool")));
}

TEST(Reduce, ResultsRepeatBitForBit) {
  const AnyTensor x = make_wave({3, 50000});
  const std::vector<float> first = values(sum(x, 1));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(values(sum(x, 1)), first);
}

TEST(Reduce, GradientsAgreeWithDifferences) {
  for (unsigned axes = 1; axes < 8; ++axes) {
    for (const bool keepdim : {false, true}) {
      const std::string what = std::to_string(axes);
      const AnyTensor x = make_wave({2, 3, 2});
      test::expect_gradients("sum " + what,
                             [=](const auto& in) { return sum(in[0], list(axes), keepdim); }, {x});
      test::expect_gradients("mean " + what,
                             [=](const auto& in) { return mean(in[0], list(axes), keepdim); }, {x});
      test::expect_gradients("max " + what,
                             [=](const auto& in) { return max(in[0], list(axes), keepdim); }, {x});
      test::expect_gradients("min " + what,
                             [=](const auto& in) { return min(in[0], list(axes), keepdim); }, {x});
    }
  }
}

TEST(Reduce, OfZerosTheExtremeHasItsSign) {
  for (const std::int64_t n : {2, 7, 64, 3000}) {
    for (const std::int64_t at : {std::int64_t{0}, n / 2, n - 1}) {
      std::vector<float> plus(static_cast<std::size_t>(n), -0.0F);
      std::vector<float> minus(static_cast<std::size_t>(n), 0.0F);
      plus[static_cast<std::size_t>(at)] = 0;
      minus[static_cast<std::size_t>(at)] = -0.0F;
      for (const Shape& shape : {Shape{1, n}, Shape{n, 1}}) {
        const int axis = shape[0] == 1 ? 1 : 0;
        EXPECT_FALSE(std::signbit(values(max(make(plus, shape), axis))[0])) << n << " " << at;
        EXPECT_TRUE(std::signbit(values(min(make(minus, shape), axis))[0])) << n << " " << at;
        EXPECT_EQ(values(argmax(make(plus, shape), axis))[0], 0) << "equal: the first";
      }
    }
  }
}

// (x + 1) - (x + 2) is -1 on paper, and NaN for an infinity; before and behind the reduction.
TEST(Reduce, NothingCancelsInItsNeighbours) {
  const AnyTensor x = make<float>({inf, 1, 2, 3}, {2, 2});
  EXPECT_THAT(values(sum((x + 1.0) - (x + 2.0), -1)), ElementsAre(::testing::IsNan(), -2));
  const AnyTensor all = sum(x, -1);
  EXPECT_THAT(values((all + 1.0) - (all + 2.0)), ElementsAre(::testing::IsNan(), -1));
}

TEST(Reduce, WhatIsNoExtremeGetsNothingWhateverTheGradient) {
  const AnyTensor x = make<float>({1, 3, 2, 3}, {4});
  EXPECT_THAT(values(test::gradients_of([](const auto& in) { return max(in[0]); }, {x}, inf)[0]),
              ElementsAre(0, inf, 0, inf));
  // More equal ones than f16 counts to.
  const AnyTensor half = make(std::vector<float>(70000, 1), {70000}, DType::f16);
  EXPECT_EQ(
      values(test::gradients_of([](const auto& in) { return min(in[0]); }, {half}, 7.0F)[0])[5],
      static_cast<float>(float16(1e-4F)));
}

TEST(Reduce, EqualExtremesShareTheGradient) {
  const AnyTensor x = make<float>({2, 5, 5, 1, 4, 4, 4, 4, NAN, 1, NAN, 2}, {3, 4});
  const std::vector<float> s = test::wave(3, 5);
  const auto g = values(test::gradients_of([](const auto& in) { return max(in[0], 1); }, {x})[0]);
  expect_near(
      g,
      {0, s[0] / 2, s[0] / 2, 0, s[1] / 4, s[1] / 4, s[1] / 4, s[1] / 4, s[2] / 2, 0, s[2] / 2, 0},
      1e-6);
}

TEST(Reduce, GradientsOfNothingAndInF16) {
  EXPECT_EQ(
      test::gradients_of([](const auto& in) { return sum(in[0], 1); }, {make<float>({}, {2, 0})})[0]
          .shape(),
      (Shape{2, 0}));
  const AnyTensor half = make_wave({2, 3}, 0, DType::f16);
  for (const auto& g :
       {test::gradients_of([](const auto& in) { return mean(in[0], 1); }, {half})[0],
        test::gradients_of([](const auto& in) { return max(in[0], 1); }, {half})[0]}) {
    EXPECT_EQ(g.spec(), half.spec());
  }
}

TEST(Reduce, ArgmaxOfTrackedValuesIsFineAndUntracked) {
  const AnyTensor x = make_wave({2, 3}, 0, DType::f32, test::device().autodiff()).require_grad();
  EXPECT_FALSE(argmax(x, 1).tracked());
}

}  // namespace
}  // namespace kiln
