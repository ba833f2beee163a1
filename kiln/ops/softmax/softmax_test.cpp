#include "kiln/ops/softmax/softmax.hpp"

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
using ::testing::HasSubstr;

/// Softmax of rows of `size`.
std::vector<double> rows(const std::vector<float>& x, std::size_t size, bool logarithm) {
  std::vector<double> out;
  for (std::size_t begin = 0; begin < x.size(); begin += size) {
    const double top = *std::max_element(x.begin() + static_cast<std::ptrdiff_t>(begin),
                                         x.begin() + static_cast<std::ptrdiff_t>(begin + size));
    double sum = 0;
    for (std::size_t i = 0; i < size; ++i) sum += std::exp(double{x[begin + i]} - top);
    for (std::size_t i = 0; i < size; ++i) {
      const double moved = double{x[begin + i]} - top;
      out.push_back(logarithm ? moved - std::log(sum) : std::exp(moved) / sum);
    }
  }
  return out;
}

TEST(Softmax, ValuesAlongTheLastAxisAndOthers) {
  for (const DType dtype : {DType::f32, DType::f16}) {
    const AnyTensor x = make_wave({3, 2, 5}, 0, dtype) * 4;
    const double tolerance = 2 * test::tolerance_of(dtype);
    expect_near(values(softmax(x)), rows(values(x), 5, false), tolerance);
    expect_near(values(log_softmax(x)), rows(values(x), 5, true), tolerance);
    const AnyTensor turned = transpose(x, 0, 2);
    expect_near(values(transpose(softmax(turned, 0), 0, 2)), rows(values(x), 5, false), tolerance);
    expect_near(values(transpose(log_softmax(turned, -3), 0, 2)), rows(values(x), 5, true),
                tolerance);
    EXPECT_EQ(softmax(x).spec(), x.spec());
  }
}

TEST(Softmax, LargeValuesOverflowNowhere) {
  const std::vector<float> x{1000, 999, -1000, 1e30F, -1e30F, 0, -88, -89, -1000};
  expect_near(values(softmax(make(x, {3, 3}))), rows(x, 3, false), 1e-6);
  expect_near(values(log_softmax(make(x, {3, 3}))), rows(x, 3, true), 1e-6);
  const std::vector<float> half{60000, 59968, -60000, 12, 11, 0};
  expect_near(values(softmax(make(half, {2, 3}, DType::f16))), rows(half, 3, false), 2e-3);
}

TEST(Softmax, OfManyF16ClassesIsSummedInF32) {
  const std::int64_t n = 65600;
  const AnyTensor x = make(std::vector<float>(static_cast<std::size_t>(n), 0), {1, n}, DType::f16);
  const auto part = static_cast<float>(float16(1.0F / 65600));
  const auto logarithm = static_cast<float>(float16(-std::log(65600.0F)));
  EXPECT_EQ(values(softmax(x))[7], part);
  EXPECT_EQ(values(log_softmax(x))[7], logarithm);
  const auto g = test::gradients_of([](const auto& in) { return softmax(in[0]); }, {x}, 1.0F);
  expect_near({values(g[0])[7]}, {0}, 1e-6);
}

TEST(Softmax, IsOneLaunchInEveryDtype) {
  for (const DType dtype : {DType::f32, DType::f16}) {
    const AnyTensor x = make_wave({64, 256}, 0, dtype);
    if (default_device().is_eager()) continue;
    EXPECT_EQ(test::counted([&] { return softmax(x); }).launches, 1U);
    EXPECT_EQ(test::counted([&] { return log_softmax(x * 2); }).launches, 1U);
  }
}

// A row without a number gives NaN, and no gradient where none comes in.
TEST(Softmax, AGradientOfZeroStaysZero) {
  const float inf = std::numeric_limits<float>::infinity();
  const AnyTensor x = make<float>({-inf, -inf, inf, 1, NAN, 2}, {3, 2});
  for (const auto& f : {test::Function([](const auto& in) { return softmax(in[0]); }),
                        test::Function([](const auto& in) { return log_softmax(in[0]); })}) {
    for (const float v : values(test::gradients_of(f, {x}, 0.0F)[0])) EXPECT_EQ(v, 0);
  }
}

TEST(Softmax, MinusInfinityMasksAndNaNSpreadsWithinItsRow) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> masked = values(softmax(make<float>({1, -inf, 1}, {3})));
  expect_near(masked, {0.5, 0, 0.5}, 1e-6);
  const std::vector<float> out = values(softmax(make<float>({1, NAN, 1, 1}, {2, 2})));
  expect_near(out, {NAN, NAN, 0.5, 0.5}, 1e-6);
}

TEST(Softmax, OfNothingAndOfOne) {
  EXPECT_EQ(softmax(make<float>({}, {2, 0})).shape(), (Shape{2, 0}));
  EXPECT_EQ(softmax(make<float>({}, {0, 2})).shape(), (Shape{0, 2}));
  expect_near(values(softmax(make<float>({5, -3}, {2, 1}))), {1, 1}, 0);
}

TEST(Softmax, GradientsAgreeWithDifferences) {
  for (const int axis : {0, 1, -1}) {
    const AnyTensor x = make_wave({3, 4});
    test::expect_gradients("softmax", [=](const auto& in) { return softmax(in[0], axis); }, {x});
    test::expect_gradients("log_softmax", [=](const auto& in) { return log_softmax(in[0], axis); },
                           {x});
  }
  test::expect_gradients("of a view", [](const auto& in) { return softmax(transpose(in[0])); },
                         {make_wave({3, 4})});
}

TEST(Softmax, GradientsOfLargeValuesAreFinite) {
  const AnyTensor x = make<float>({1000, 0, -1000, 89, 88, -89}, {2, 3});
  for (const auto& f : {test::Function([](const auto& in) { return softmax(in[0]); }),
                        test::Function([](const auto& in) { return log_softmax(in[0]); })}) {
    for (const float g : values(test::gradients_of(f, {x})[0])) EXPECT_TRUE(std::isfinite(g));
  }
}

TEST(Softmax, RefusesIntegersAndAxesOutOfRange) {
  EXPECT_THAT(message_of<DTypeError>([] { (void)softmax(make<std::int32_t>({1}, {1})); }),
              AllOf(HasSubstr("softmax"), HasSubstr("i32")));
  EXPECT_THAT(message_of<ShapeError>([] { (void)log_softmax(make_wave({2}), 1); }),
              HasSubstr("log_softmax"));
  EXPECT_THROW((void)softmax(make<float>({1}, {})), ShapeError);
}

}  // namespace
}  // namespace kiln
