// The tensor itself: handles, ranks, reading, printing, moving.
#include <sstream>

#include "kiln/autodiff/test_support.hpp"
#include "kiln/tensor/apply.hpp"
#include "kiln/tensor/print.hpp"

namespace kiln {
namespace {

using test::device;
using test::make;
using test::make_wave;
using test::message_of;
using test::values;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Twice {
  static constexpr std::string_view name = "twice";
  static Expr body(Expr x) { return x * 2; }
};

TEST(Tensor, KnowsItsShapeDtypeAndDevice) {
  const AnyTensor x = make_wave({2, 3, 4});
  EXPECT_EQ(x.shape(), (Shape{2, 3, 4}));
  EXPECT_EQ(x.rank(), 3);
  EXPECT_EQ(x.dim(-1), 4);
  EXPECT_EQ(x.dtype(), DType::f32);
  EXPECT_TRUE(x.device().same_as(device()));
  EXPECT_FALSE(x.tracked());
  EXPECT_THROW((void)x.dim(3), ShapeError);
}

Tensor<2> doubled(const Tensor<2>& x) { return apply(Twice{}, x); }

TEST(Tensor, CrossesToARankAndBackByPlainConversion) {
  const AnyTensor x = make<float>({1, 2}, {1, 2});
  const Tensor<2> y = doubled(x);
  EXPECT_THAT(values(y), ElementsAre(2, 4));
  const AnyTensor back = y;
  EXPECT_EQ(back.shape(), (Shape{1, 2}));
}

TEST(Tensor, AWrongRankNamesTheLineAndTheShape) {
  const AnyTensor x = make_wave({2, 3});
  EXPECT_THAT(message_of<ShapeError>([&] { const Tensor<3> y = x; }),
              AllOf(HasSubstr("tensor_test.cpp:"), HasSubstr("rank 3"), HasSubstr("[2, 3]")));
  EXPECT_THROW((void)doubled(make_wave({2})), ShapeError);
}

TEST(Tensor, KeepsItsGradientAcrossRanks) {
  const AnyTensor x = make<float>({3}, {1}, device().autodiff()).require_grad();
  const Tensor<1> y = apply(Twice{}, Tensor<1>(x));
  EXPECT_THAT(values(y.backward().of(x)), ElementsAre(2));
}

TEST(Tensor, AnEmptyHandleIsAnErrorNotACrash) {
  const AnyTensor nothing;
  EXPECT_THAT(message_of<Error>([&] { (void)nothing.shape(); }), HasSubstr("empty handle"));
  EXPECT_THROW((void)nothing.device(), Error);
  EXPECT_THROW((void)nothing.to_vector(), Error);
  EXPECT_THROW((void)nothing.detach(), Error);
  EXPECT_THROW((void)nothing.require_grad(), Error);
  EXPECT_THROW((void)nothing.to(device()), Error);
  EXPECT_THROW((void)nothing.backward(), Error);
  EXPECT_THROW((void)apply(Twice{}, nothing), Error);
  EXPECT_THROW((void)to_string(nothing), Error);
  EXPECT_FALSE(nothing.tracked());
}

TEST(Tensor, ReadsEveryDtypeAndRefusesAnother) {
  EXPECT_THAT(make<float>({1.5F}, {1}).to_vector<float>(), ElementsAre(1.5F));
  EXPECT_THAT(make<std::int32_t>({-7}, {1}).to_vector<std::int32_t>(), ElementsAre(-7));
  EXPECT_THAT(make<std::uint32_t>({4000000000U}, {1}).to_vector<std::uint32_t>(),
              ElementsAre(4000000000U));
  EXPECT_THAT(make({1, 2, 3}, {3}, DType::f16).to_vector<float16>(), ElementsAre(1, 2, 3));
  EXPECT_THAT(message_of<DTypeError>([] { (void)make<std::int32_t>({1}, {1}).to_vector(); }),
              AllOf(HasSubstr("f32"), HasSubstr("i32 [1]"), HasSubstr("cast")));
  EXPECT_TRUE(make<float>({}, {0}).to_vector().empty());
}

TEST(Tensor, ItemTakesExactlyOneElement) {
  EXPECT_EQ(make<float>({7}, {}).item(), 7);
  EXPECT_EQ(make<float>({7}, {1, 1, 1}).item(), 7);
  EXPECT_EQ(make<std::int32_t>({-3}, {1}).item<std::int32_t>(), -3);
  EXPECT_THAT(message_of<ShapeError>([] { (void)make_wave({2}).item(); }),
              AllOf(HasSubstr("item"), HasSubstr("[2]")));
  EXPECT_THROW((void)make<float>({}, {0}).item(), ShapeError);
  EXPECT_THROW((void)make<float>({1}, {1}).item<std::int32_t>(), DTypeError);
}

TEST(Tensor, AReadingHoldsTheValuesOfNow) {
  std::vector<Reading<float>> readings;
  AnyTensor x = make<float>({1, 2}, {2});
  for (int i = 0; i < 10; ++i) {
    readings.push_back(x.read());
    x = apply(Twice{}, x);
  }
  for (std::size_t i = 0; i < readings.size(); ++i) {
    const auto by = std::ldexp(1.0F, static_cast<int>(i));
    EXPECT_THAT(readings[i].get(), ElementsAre(by, 2 * by));
  }
  EXPECT_THROW((void)readings[0].get(), std::future_error);
}

TEST(Tensor, AReadingOutlivesItsTensor) {
  Reading<float> reading = make<float>({1, 2, 3}, {3}).read();
  for (int i = 0; i < 20; ++i) (void)make_wave({3}, i);
  EXPECT_THAT(reading.get(), ElementsAre(1, 2, 3));
}

TEST(Tensor, PrintsValuesDtypeShapeAndDevice) {
  const std::string where = " on " + to_string(device());
  EXPECT_EQ(to_string(make<float>({1, 2.5F, -3, 4}, {2, 2})),
            "[[1, 2.5],\n [-3, 4]] f32 [2, 2]" + where);
  EXPECT_EQ(to_string(make<std::int32_t>({7}, {})), "7 i32 []" + where);
  EXPECT_EQ(to_string(make({0.5F, NAN}, {2}, DType::f16)), "[0.5, nan] f16 [2]" + where);
  EXPECT_EQ(to_string(make<float>({}, {0})), "[] f32 [0]" + where);
  EXPECT_EQ(to_string(make<float>({}, {2, 0})), "[[],\n []] f32 [2, 0]" + where);
  RawTensor raw = make<std::uint32_t>({1, 0}, {2}).value().raw();
  raw.dtype = DType::boolean;
  EXPECT_EQ(to_string(AnyTensor(Value(raw), device())), "[true, false] bool [2]" + where);
  std::ostringstream out;
  out << make<float>({1}, {1});
  EXPECT_EQ(out.str(), "[1] f32 [1]" + where);
}

TEST(Tensor, PrintsTheEndsOfLongAxes) {
  std::vector<float> x;
  for (int i = 0; i < 64; ++i) x.push_back(static_cast<float>(i));
  EXPECT_THAT(to_string(make(x, {64})), StartsWith("[0, 1, 2, ..., 61, 62, 63] f32 [64]"));
  EXPECT_THAT(to_string(make(x, {8, 8})),
              StartsWith("[[0, 1, 2, ..., 5, 6, 7],\n [8, 9, 10, ..., 13, 14, 15],\n [16, 17, 18, "
                         "..., 21, 22, 23],\n ...,\n [40, "));
  EXPECT_THAT(to_string(make(std::vector<float>(7, 1), {7})),
              StartsWith("[1, 1, 1, 1, 1, 1, 1] f32"));
}

TEST(Tensor, MovesToAnotherDeviceAndBack) {
  const Device other = webgpu::device({.f16 = false});
  const AnyTensor x = make_wave({2, 3});
  const AnyTensor there = x.to(other);
  EXPECT_TRUE(there.device().same_as(other));
  EXPECT_FALSE(there.device().same_as(device()));
  EXPECT_EQ(values(apply(Twice{}, there)), values(apply(Twice{}, x)));
  EXPECT_EQ(values(there.to(device())), values(x));
  EXPECT_EQ(test::counted([&] { return x.to(device()); }).launches, 0U);
  EXPECT_TRUE(make<float>({}, {0}).to(other).to_vector().empty());
}

TEST(Tensor, MovesAViewAsItsElements) {
  RawTensor raw = make<float>({0, 1, 2, 3, 4, 5}, {6}).value().raw();
  raw.layout = {.shape = {2, 2}, .strides = {1, 2}, .offset = 1};
  const AnyTensor x(Value(raw), device());
  EXPECT_THAT(values(x), ElementsAre(1, 3, 2, 4));
  EXPECT_THAT(values(x.to(webgpu::device({.f16 = false}))), ElementsAre(1, 3, 2, 4));
}

struct Add {
  static constexpr std::string_view name = "add";
  static Expr body(Expr a, Expr b) { return a + b; }
};

TEST(Tensor, OperandsOfTwoDevicesAreRefusedBeforeTheirShapes) {
  const Device other = webgpu::device({.f16 = false});
  EXPECT_THAT(message_of<DeviceError>([&] {
                (void)apply(Add{}, make_wave({2}), make_wave({3}, 0, DType::f32, other));
              }),
              AllOf(HasSubstr("add"), HasSubstr("share a device"), HasSubstr("to(device)")));
}

TEST(Tensor, AutodiffOfOneOperandIsAutodiffOfTheResult) {
  const AnyTensor plain = make_wave({2});
  const AnyTensor tracked = make_wave({2}, 1, DType::f32, device().autodiff()).require_grad();
  EXPECT_TRUE(apply(Add{}, plain, tracked).tracked());
  EXPECT_TRUE(apply(Add{}, plain, tracked).device().has_autodiff());
  EXPECT_FALSE(apply(Add{}, plain, plain).device().has_autodiff());
}

/// Another function for each `bits`.
struct Mixed {
  static constexpr std::string_view name = "mixed";
  int bits;
  [[nodiscard]] Expr body(Expr x) const {
    Expr y = x;
    for (int i = 0; i < 12; ++i) y = (bits >> i & 1) != 0 ? y * x : y + x;
    return y;
  }
};

TEST(Tensor, FunctionsOfAttributesThatNeverRepeatAreNotKept) {
  const AnyTensor x = make<float>({1}, {1});
  EXPECT_THAT(values(apply(Mixed{1}, x)), ElementsAre(12));
  for (int bits = 0; bits < 4096; ++bits) (void)detail::body_of(Mixed{bits});
  EXPECT_LT(bodies_interned(), 2048U);
  EXPECT_THAT(values(apply(Mixed{1}, x)), ElementsAre(12));
}

TEST(Tensor, CopiesShareTheirElements) {
  const std::uint64_t before = test::counters().bytes_in_use;
  const AnyTensor x = make_wave({1 << 16});
  const std::uint64_t one = test::counters().bytes_in_use - before;
  const AnyTensor y = x;  // NOLINT(performance-unnecessary-copy-initialization): that is the test
  const AnyTensor z = x.detach();
  EXPECT_EQ(test::counters().bytes_in_use - before, one);
  EXPECT_EQ(values(y), values(z));
}

}  // namespace
}  // namespace kiln
