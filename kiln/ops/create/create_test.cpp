#include "kiln/ops/create/create.hpp"

#include "kiln/ops/compare/compare.hpp"
#include "kiln/ops/elementwise/elementwise.hpp"
#include "kiln/ops/reduce/reduce.hpp"
#include "kiln/ops/test_support.hpp"

namespace kiln {
namespace {

using test::device;
using test::message_of;
using test::values;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;

TEST(Create, TensorsOfGivenValues) {
  EXPECT_THAT(tensor({1.5F, 2.5F}, {2}, device()).to_vector(), ElementsAre(1.5F, 2.5F));
  EXPECT_THAT(tensor({-1, 2}, {2}, device()).to_vector<std::int32_t>(), ElementsAre(-1, 2));
  EXPECT_THAT(tensor({1U, 4000000000U}, {2}, device()).to_vector<std::uint32_t>(),
              ElementsAre(1U, 4000000000U));
  EXPECT_THAT(tensor({true, false, true}, {3}, device()).to_vector<bool>(),
              ElementsAre(true, false, true));
  EXPECT_THAT(values(tensor({float16(0.1F), float16(2), float16(3)}, {3}, device())),
              ElementsAre(static_cast<float>(float16(0.1F)), 2, 3));
  EXPECT_EQ(tensor<float>({}, {0, 3}, device()).shape(), (Shape{0, 3}));
  EXPECT_EQ(tensor({7.0F}, {}, device()).item(), 7);
  EXPECT_THAT(message_of<ShapeError>([] { (void)tensor({1.0F}, {2}, device()); }),
              AllOf(HasSubstr("tensor: 1 values"), HasSubstr("[2]")));
}

TEST(Create, TensorsOfBools) {
  const std::vector<bool> bits{true, false, false};
  EXPECT_EQ(tensor(bits, {3}, device()).to_vector<bool>(), bits);
  EXPECT_EQ(tensor(std::array{true, false, false}, {3}, device()).to_vector<bool>(), bits);
  EXPECT_EQ(tensor({true, false, false}, {3}, device()).to_vector<bool>(), bits);
  EXPECT_THAT(message_of<ShapeError>([&] { (void)tensor(bits, {2}, device()); }),
              AllOf(HasSubstr("tensor: 3 values"), HasSubstr("[2]")));
}

TEST(Create, TensorsOfAnArray) {
  EXPECT_THAT(tensor(std::array{1.5F, 2.5F}, {2, 1}, device()).to_vector(),
              ElementsAre(1.5F, 2.5F));
}

TEST(Create, ValuesAreCopiedAtOnce) {
  std::vector<float> x{1, 2};
  const AnyTensor t = tensor(x, {2}, device());
  x = {7, 7};
  EXPECT_THAT(values(t), ElementsAre(1, 2));
}

TEST(Create, ManyUploadsKeepTheirOrder) {
  std::vector<AnyTensor> all;
  for (int i = 0; i < 300; ++i)
    all.push_back(tensor(std::vector<float>(7, static_cast<float>(i)), {7}, device()));
  for (int i = 0; i < 300; ++i) EXPECT_THAT(values(all[static_cast<std::size_t>(i)]), Each(i));
}

TEST(Create, FullOfEveryDType) {
  EXPECT_THAT(values(full({2, 3}, 2.5, device())), AllOf(Each(2.5F), ::testing::SizeIs(6)));
  EXPECT_THAT(values(full({3}, 0.1, DType::f16, device())),
              Each(static_cast<float>(float16(0.1F))));
  EXPECT_THAT(full({2}, -7, DType::i32, device()).to_vector<std::int32_t>(), Each(-7));
  EXPECT_THAT(full({2}, 4e9, DType::u32, device()).to_vector<std::uint32_t>(), Each(4000000000U));
  EXPECT_THAT(full({2}, 1, DType::boolean, device()).to_vector<bool>(), Each(true));
  EXPECT_THAT(values(zeros({3}, device())), Each(0));
  EXPECT_THAT(values(ones({}, device())), ElementsAre(1));
  EXPECT_THAT(values(full({1}, INFINITY, device())), Each(INFINITY));
  EXPECT_TRUE(std::isnan(values(full({1}, NAN, device()))[0]));
  EXPECT_EQ(zeros({0, 2}, device()).shape(), (Shape{0, 2}));
  EXPECT_THAT(message_of<DTypeError>([] { (void)full({1}, 0.5, DType::i32, device()); }),
              AllOf(HasSubstr("full"), HasSubstr("0.5")));
  EXPECT_THROW((void)full({1}, -1, DType::u32, device()), DTypeError);
  EXPECT_THAT(message_of<DTypeError>([] { (void)full({1}, 70000, DType::f16, device()); }),
              AllOf(HasSubstr("full: "), HasSubstr("70000"), HasSubstr("f16")));
  EXPECT_THROW((void)full({1}, -1e39, DType::f32, device()), DTypeError);
  EXPECT_THAT(values(full({1}, 65519, DType::f16, device())), Each(65504));  // the nearest number
  EXPECT_THAT(values(full({1}, -INFINITY, DType::f16, device())), Each(-INFINITY));
}

TEST(Create, ArangeCounts) {
  EXPECT_THAT(values(arange(4, device())), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(values(arange(3, {.start = 0.5, .step = -0.25}, device())),
              ElementsAre(0.5F, 0.25F, 0));
  EXPECT_THAT(arange(3, {.start = -1}, DType::i32, device()).to_vector<std::int32_t>(),
              ElementsAre(-1, 0, 1));
  EXPECT_THAT(arange(3, {.start = 5, .step = 2}, DType::u32, device()).to_vector<std::uint32_t>(),
              ElementsAre(5U, 7U, 9U));
  EXPECT_THAT(values(arange(3, DType::f16, device())), ElementsAre(0, 1, 2));
  EXPECT_TRUE(values(arange(0, device())).empty());
  EXPECT_THROW((void)arange(-1, device()), ShapeError);
  EXPECT_THROW((void)arange(2, {.start = 70000}, DType::f16, device()), DTypeError);
  EXPECT_THAT(message_of<DTypeError>([] { (void)arange(1, DType::boolean, device()); }),
              HasSubstr("arange"));
}

TEST(Create, ArangeOfIntegersIsExact) {
  EXPECT_THAT(arange(3, {.start = 16777216}, DType::i32, device()).to_vector<std::int32_t>(),
              ElementsAre(16777216, 16777217, 16777218));
  EXPECT_THAT(arange(2, {.start = 4294967294.0}, DType::u32, device()).to_vector<std::uint32_t>(),
              ElementsAre(4294967294U, 4294967295U));
  EXPECT_THAT(
      arange(2, {.start = 7, .step = -16777217}, DType::i32, device()).to_vector<std::int32_t>(),
      ElementsAre(7, 7 - 16777217));
  EXPECT_THROW((void)arange(2, {.start = 0.5}, DType::i32, device()), DTypeError);
  EXPECT_THROW((void)arange(2, {.start = 0, .step = -1}, DType::u32, device()), DTypeError);
}

// Threefry-2x32-20 of an all-zero counter and key is (0x6b200159, 0x99ba4efe) in the authors'
// known-answer tests.
TEST(Create, RandomNumbersAreThreefrys) {
  const float first = static_cast<float>(0x6b200159U >> 8U) / 16777216;
  const float second = static_cast<float>(0x99ba4efeU >> 8U) / 16777216;
  EXPECT_THAT(values(random_uniform({2}, 0, device())), ElementsAre(first, second));
  // The last three bits of the second word: no exchange of sine and cosine, and both are negative.
  const double radius = std::sqrt(-2 * std::log(1 - double{first}));
  const double angle = M_PI / 4 * (0x99ba4efeU >> 11U) / (1U << 21U);
  EXPECT_THAT(values(random_normal({2}, 0, device())),
              ElementsAre(FloatNear(static_cast<float>(-radius * std::cos(angle)), 1e-5F),
                          FloatNear(static_cast<float>(-radius * std::sin(angle)), 1e-5F)));
}

TEST(Create, OneSeedGivesOneSequence) {
  const std::vector<float> a = values(random_uniform({100}, 7, device()));
  EXPECT_EQ(values(random_uniform({100}, 7, device())), a);
  EXPECT_EQ(values(random_uniform({10, 10}, 7, device())), a)
      << "element i depends on the seed and i alone";
  const std::vector<float> longer = values(random_uniform({1000}, 7, device()));
  EXPECT_EQ(std::vector(longer.begin(), longer.begin() + 100), a);
  EXPECT_EQ(values(random_uniform({100}, 7, webgpu::device({.f16 = false}))), a);
  EXPECT_NE(values(random_uniform({100}, 8, device())), a);
  EXPECT_NE(values(random_uniform({100}, 7 + (1ULL << 32U), device())), a)
      << "all 64 bits of a seed count";
}

TEST(Create, UniformNumbersFillTheirInterval) {
  const std::vector<float> x = values(random_uniform({50000}, 1, {-2, 6}, device()));
  double sum = 0;
  double squares = 0;
  for (const float v : x) {
    ASSERT_TRUE(v >= -2 && v < 6) << v;
    sum += double{v};
    squares += double{v} * double{v};
  }
  const double mean = sum / 50000;
  EXPECT_NEAR(mean, 2, 0.06);
  EXPECT_NEAR(squares / 50000 - mean * mean, 64.0 / 12, 0.1);
}

TEST(Create, TheUpperBoundIsNeverDrawnThoughResultsAreRounded) {
  struct Range {
    double low;
    double high;
    DType dtype;
  };
  const std::vector<Range> ranges{
      {0, 1, DType::f16},          {1, 2, DType::f32},         {1, 2, DType::f16},
      {-3, -1, DType::f16},        {-1, 0, DType::f32},        {-1e-3, 0, DType::f16},
      {0.1, 0.3, DType::f16},      {1000, 1000.1, DType::f32}, {16777215, 16777217, DType::f32},
      {-65504, 65504, DType::f16}, {-3e38, 3e38, DType::f32},  {0, 1e-45, DType::f32}};
  for (const auto& [low, high, dtype] : ranges) {
    const AnyTensor x = random_uniform({1 << 17}, 11, {low, high}, dtype, device());
    EXPECT_GE(values(min(x))[0], low) << low;
    EXPECT_LT(values(max(x))[0], high) << low;
  }
  // The whole range is there, and the middle is where it should be.
  const AnyTensor wide = random_uniform({1 << 17}, 3, {-3e38, 3e38}, device());
  EXPECT_LT(min(wide).item(), -2.99e38F);
  EXPECT_GT(max(wide).item(), 2.99e38F);
  EXPECT_NEAR(mean(wide * 1e-38).item(), 0, 2);
}

TEST(Create, AnIntervalWithoutNumbersOfTheDtypeIsRefused) {
  const auto message = [](double low, double high, DType dtype) {
    return message_of<DTypeError>(
        [&] { (void)random_uniform({4}, 1, {low, high}, dtype, device()); });
  };
  EXPECT_THAT(message(0, 1e6, DType::f16),
              AllOf(HasSubstr("random_uniform"), HasSubstr("f16"), HasSubstr("1000000")));
  EXPECT_THAT(message(-1e39, 0, DType::f32), HasSubstr("finite"));
  EXPECT_THAT(message(2, 2, DType::f32), HasSubstr("no number"));
  EXPECT_THAT(message(2, 1, DType::f32), HasSubstr("no number"));
  EXPECT_THAT(message(1.0001, 1.0002, DType::f16), HasSubstr("no number"));
  EXPECT_THAT(message(NAN, 1, DType::f32), HasSubstr("finite"));
}

TEST(Create, NormalNumbersHaveMeanDeviationAndTails) {
  const std::vector<float> x = values(random_normal({50000}, 1, {3, 2}, device()));
  double sum = 0;
  double squares = 0;
  int beyond = 0;
  for (const float v : x) {
    ASSERT_TRUE(std::isfinite(v));
    sum += double{v};
    squares += double{v} * double{v};
    beyond += std::abs(v - 3) > 4 ? 1 : 0;
  }
  const double mean = sum / 50000;
  EXPECT_NEAR(mean, 3, 0.04);
  EXPECT_NEAR(std::sqrt(squares / 50000 - mean * mean), 2, 0.03);
  EXPECT_NEAR(beyond / 50000.0, 0.0455, 0.005) << "beyond two deviations";

  // Two that share a counter are as independent as others: no product of powers has a mean.
  double product = 0;
  double of_squares = 0;
  for (std::size_t i = 0; i < x.size(); i += 2) {
    const double a = (double{x[i]} - 3) / 2;
    const double b = (double{x[i + 1]} - 3) / 2;
    product += a * b;
    of_squares += (a * a - 1) * (b * b - 1);
  }
  EXPECT_NEAR(product / 25000, 0, 0.02);
  EXPECT_NEAR(of_squares / 25000, 0, 0.05);
}

TEST(Create, RandomF16AndOddCounts) {
  const AnyTensor h = random_normal({3, 5}, 2, {0, 1}, DType::f16, device());
  EXPECT_EQ(h.dtype(), DType::f16);
  const std::vector<float> f = values(random_normal({3, 5}, 2, device()));
  for (std::size_t i = 0; i < 15; ++i) EXPECT_EQ(values(h)[i], static_cast<float>(float16(f[i])));
  EXPECT_TRUE(values(random_uniform({0}, 1, device())).empty());
  EXPECT_THAT(
      message_of<DTypeError>([] { (void)random_uniform({1}, 1, {0, 1}, DType::i32, device()); }),
      HasSubstr("random"));
}

TEST(Create, ANewSeedOrRangeCompilesNothing) {
  (void)random_uniform({10}, 1, device());
  const auto spent = test::counted([] {
    for (int i = 0; i < 10; ++i)
      (void)random_uniform({10}, static_cast<std::uint64_t>(i), {i, i + 1}, device());
  });
  EXPECT_EQ(spent.compiled, 0U);
}

TEST(Create, TheDefaultDeviceIsTakenWhereNoneIsNamed) {
  const Device there = default_device();
  for (const AnyTensor& x :
       {zeros({2, 2}), ones({2}, DType::f16), full({3}, 7, DType::i32), arange(4),
        arange(3, {.start = 1, .step = 0.5}), random_uniform({4}, 1), random_normal({4}, 1),
        tensor({1.0, 2.0}), tensor({1.F, 2.F}, {2, 1}), tensor(std::vector<bool>{true}, {1}),
        tensor({{1, 2}, {3, 4}})}) {
    EXPECT_TRUE(x.device().same_as(there));
  }
  EXPECT_THAT(values(zeros({2, 2})), ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(ones({2}, DType::f16).spec(), (TensorSpec{{2}, DType::f16}));
  EXPECT_EQ(zeros({0}).shape(), Shape{0});
  EXPECT_EQ(ones({}).shape(), Shape{});
}

TEST(Create, NestedBracesGiveTheShape) {
  EXPECT_THAT(values(tensor({1.5, 2.5}, device())), ElementsAre(1.5F, 2.5F));
  const AnyTensor x = tensor({{1, 2, 3}, {4, 5, 6}}, device());
  EXPECT_EQ(x.spec(), (TensorSpec{{2, 3}, DType::i32}));
  EXPECT_THAT(values(x), ElementsAre(1, 2, 3, 4, 5, 6));
  const AnyTensor y = tensor({{{1.0, 2.0}}, {{3.0, 4.0}}, {{5.0, 6.0}}}, device());
  EXPECT_EQ(y.spec(), (TensorSpec{{3, 1, 2}, DType::f32}));
  EXPECT_THAT(values(y), ElementsAre(1, 2, 3, 4, 5, 6));
  const AnyTensor z = tensor({{{{true}, {false}}}}, device());
  EXPECT_EQ(z.spec(), (TensorSpec{{1, 1, 2, 1}, DType::boolean}));
  EXPECT_THAT(values(z), ElementsAre(1, 0));
  EXPECT_EQ(tensor({{1U}}, device()).dtype(), DType::u32);
  EXPECT_EQ(tensor({{float16(1.F)}}, device()).dtype(), DType::f16);
  EXPECT_EQ(tensor({std::initializer_list<float>{}, {}}, device()).shape(), (Shape{2, 0}));
  EXPECT_THAT(values(tensor({1.0, 2.0}, {2, 1}, device())), ElementsAre(1, 2));
  EXPECT_EQ(tensor(std::initializer_list<float>{}, {0}, device()).shape(), Shape{0});
}

TEST(Create, RaggedBracesAreRefused) {
  EXPECT_THAT(message_of<ShapeError>([] { (void)tensor({{1, 2}, {3}}, device()); }),
              AllOf(HasSubstr("tensor"), HasSubstr("2 and 1")));
  EXPECT_THROW((void)tensor({{{1}, {2}}, {{3}}}, device()), ShapeError);
  EXPECT_THROW((void)tensor({{{1}, {2}}, {{3}, {4, 5}}}, device()), ShapeError);
  EXPECT_THROW((void)tensor({std::initializer_list<int>{}, {1}}, device()), ShapeError);
}

TEST(Create, LikeTakesShapeDtypeAndDevice) {
  const Device training = device().autodiff();
  const AnyTensor x = tensor({{1.F, 2.F}}, training).require_grad();
  const AnyTensor zero = zeros_like(x);
  EXPECT_EQ(zero.spec(), x.spec());
  EXPECT_TRUE(zero.device().has_autodiff());
  EXPECT_FALSE(zero.tracked());
  EXPECT_THAT(values(zero), ElementsAre(0, 0));
  EXPECT_THAT(values(ones_like(transpose(x))), ElementsAre(1, 1));
  const AnyTensor i = tensor({1, 2}, device());
  EXPECT_THAT(full_like(i, -7).to_vector<std::int32_t>(), ElementsAre(-7, -7));
  EXPECT_THROW((void)full_like(i, 0.5), DTypeError);
}

TEST(Create, FilledIntegersStayExactAmongOtherOperations) {
  const AnyTensor i = full({2}, 16777217, DType::i32, device());
  const AnyTensor x = tensor({0, -1}, device());
  EXPECT_THAT((i + x).to_vector<std::int32_t>(), ElementsAre(16777217, 16777216));
  EXPECT_THAT((i - full({2}, 1, DType::i32, device())).to_vector<std::int32_t>(), Each(16777216));
  EXPECT_THAT((i / full({2}, 2, DType::i32, device())).to_vector<std::int32_t>(), Each(8388608));
  EXPECT_THAT((i == 16777217).to_vector<bool>(), Each(true));
  EXPECT_THAT(sum(i).to_vector<std::int32_t>(), ElementsAre(33554434));
  EXPECT_THAT(values(cast(i, DType::f32) - 16777216), Each(0)) << "the nearest f32";
  const AnyTensor u = full({2}, 4294967295.0, DType::u32, device());
  EXPECT_THAT((u - 1).to_vector<std::uint32_t>(), Each(4294967294U));
}

TEST(Create, LargeCountsFoldTheirGrid) {
  const std::int64_t n = 65535LL * 64 + 65;
  EXPECT_EQ(values(slice(arange(n, device()), 0, n - 1))[0], static_cast<float>(n - 1));
  const AnyTensor x = random_uniform({n}, 3, device());
  EXPECT_EQ(values(slice(x, 0, 100, 103)),
            values(slice(random_uniform({200}, 3, device()), 0, 100, 103)));
  EXPECT_NEAR(mean(slice(x, 0, n - 1000)).item(), 0.5, 0.05);
}

TEST(Create, FromRawTakesABufferOfTheDevice) {
  const Client client(device().shared_runtime(), "test");
  const std::vector<float> x{1, 2, 3};
  const AnyTensor t = from_raw(client.create(std::span<const float>(x), {3}), device().autodiff());
  EXPECT_THAT(values(t), ElementsAre(1, 2, 3));
  EXPECT_TRUE(t.require_grad().tracked());
  EXPECT_THAT(message_of<Error>([] { (void)from_raw({}, device()); }), HasSubstr("from_raw"));
  RawTensor nowhere = t.value().raw();
  nowhere.runtime.reset();
  EXPECT_THAT(message_of<Error>([&] { (void)from_raw(nowhere, device()); }),
              HasSubstr("from_raw: the tensor is an empty handle"));
  EXPECT_THAT(message_of<DeviceError>(
                  [&] { (void)from_raw(t.value().raw(), webgpu::device({.f16 = false})); }),
              HasSubstr("from_raw"));
}

TEST(Create, RandomNormalTakesNumbers) {
  EXPECT_THAT(message_of<Error>([] { (void)random_normal({2}, 1, {NAN, 1}, device()); }),
              HasSubstr("random_normal: the mean nan"));
  EXPECT_THAT(message_of<Error>([] { (void)random_normal({2}, 1, {0, NAN}, device()); }),
              HasSubstr("the deviation nan"));
}

// Numbers of several types have no common one: none of them may become a bool.
template <class... T>
concept MakesATensor = requires(T... value) { tensor({value...}, Shape{2}); };
static_assert(MakesATensor<float, float>);
static_assert(MakesATensor<bool, bool>);
static_assert(!MakesATensor<float, double>);
static_assert(!MakesATensor<unsigned, int>);
static_assert(!MakesATensor<bool, int>);

}  // namespace
}  // namespace kiln
