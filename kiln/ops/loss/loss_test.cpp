#include "kiln/ops/loss/loss.hpp"

#include "kiln/ops/elementwise/elementwise.hpp"
#include "kiln/ops/test_support.hpp"

namespace kiln {
namespace {

using test::make;
using test::make_wave;
using test::message_of;
using test::values;
using ::testing::AllOf;
using ::testing::HasSubstr;

AnyTensor labels(const std::vector<std::int32_t>& at) {
  return make(at, {static_cast<std::int64_t>(at.size())});
}

TEST(Loss, CrossEntropyByHand) {
  // -log(e^2 / (e^1 + e^2 + e^3)) = 1.407606, and log(3) where all are alike.
  const AnyTensor logits = make<float>({1, 2, 3, 5, 5, 5}, {2, 3});
  const AnyTensor loss = cross_entropy(logits, labels({1, 0}));
  EXPECT_EQ(loss.shape(), Shape{});
  EXPECT_NEAR(loss.item(), (1.4076059644 + std::log(3.0)) / 2, 1e-6);
  EXPECT_NEAR(cross_entropy(logits, make<std::uint32_t>({1, 0}, {2})).item(),
              (1.4076059644 + std::log(3.0)) / 2, 1e-6);
  const AnyTensor half = make({1, 2, 3, 5, 5, 5}, {2, 3}, DType::f16);
  EXPECT_NEAR(values(cross_entropy(half, labels({1, 0})))[0], (1.4076059644 + std::log(3.0)) / 2,
              2e-3);
}

TEST(Loss, CrossEntropyOfLargeLogits) {
  const AnyTensor logits = make<float>({1000, 0, -1000, 0}, {2, 2});
  EXPECT_NEAR(cross_entropy(logits, labels({0, 0})).item(), 500, 1e-3);
  EXPECT_NEAR(cross_entropy(logits, labels({0, 1})).item(), 0, 1e-6);
}

TEST(Loss, TheGradientOfCrossEntropyIsSoftmaxLessOne) {
  const AnyTensor logits =
      make<float>({1, 2, 3, 5, 5, 5}, {2, 3}, test::device().autodiff()).require_grad();
  const AnyTensor g = cross_entropy(logits, labels({1, 0})).backward().of(logits);
  const double e = std::exp(1) + std::exp(2) + std::exp(3);
  test::expect_near(values(g),
                    {std::exp(1) / e / 2, (std::exp(2) / e - 1) / 2, std::exp(3) / e / 2, -1.0 / 3,
                     1.0 / 6, 1.0 / 6},
                    1e-6);
  test::expect_gradients("cross_entropy",
                         [](const auto& in) { return cross_entropy(in[0], labels({2, 0, 1})); },
                         {make_wave({3, 4})});
}

TEST(Loss, ALabelOutsideGivesNaN) {
  const AnyTensor logits = make_wave({2, 3});
  EXPECT_TRUE(std::isnan(cross_entropy(logits, labels({0, 3})).item()));
  EXPECT_TRUE(std::isnan(cross_entropy(logits, labels({-1, 0})).item()));
}

TEST(Loss, MeanSquaredError) {
  EXPECT_NEAR(mse(make<float>({1, 2, 3}, {3}), make<float>({2, 2, 5}, {3})).item(), 5.0 / 3, 1e-6);
  test::expect_gradients("mse", [](const auto& in) { return mse(in[0], in[1]); },
                         {make_wave({2, 3}), make_wave({2, 3}, 1)});
  EXPECT_TRUE(std::isnan(mse(make<float>({}, {0}), make<float>({}, {0})).item()));
}

TEST(Loss, OfF16ComputesInF32) {
  const std::vector<float> x{300, 0, 0, 0, 0, 0, 0, 0};
  const AnyTensor zero = make(std::vector<float>(8, 0), {8}, DType::f16);
  EXPECT_EQ(values(mse(make(x, {8}, DType::f16), zero))[0], 11248) << "11250 as f16";
  const std::int64_t n = 65600;
  const AnyTensor logits =
      make(std::vector<float>(static_cast<std::size_t>(n), 0), {1, n}, DType::f16);
  const auto expected = static_cast<float>(float16(std::log(65600.0F)));
  EXPECT_EQ(values(cross_entropy(logits, labels({70})))[0], expected);
  const auto g = test::gradients_of(
      [](const auto& in) { return cross_entropy(in[0], labels({70})); }, {logits}, 1.0F);
  EXPECT_EQ(g[0].dtype(), DType::f16);
  EXPECT_EQ(values(g[0])[70], -1);
  EXPECT_EQ(values(g[0])[71], static_cast<float>(float16(1.0F / 65600)));
}

TEST(Loss, AGradientOfZeroStaysZero) {
  const AnyTensor logits = make<float>({NAN, 1, INFINITY, 2}, {2, 2});
  const auto f = [](const auto& in) { return cross_entropy(in[0], labels({0, 9})); };
  for (const float v : values(test::gradients_of(f, {logits}, 0.0F)[0])) EXPECT_EQ(v, 0);
  const auto squares = [](const auto& in) { return mse(in[0], in[0] * 0.5); };
  for (const float v : values(test::gradients_of(squares, {logits}, 0.0F)[0])) EXPECT_EQ(v, 0);
}

TEST(Loss, SaysWhichShapesItTakes) {
  EXPECT_THAT(message_of<ShapeError>([] { (void)cross_entropy(make_wave({2, 3}), labels({0})); }),
              AllOf(HasSubstr("cross_entropy"), HasSubstr("[2, 3]"), HasSubstr("[1]")));
  EXPECT_THROW((void)cross_entropy(make_wave({2}), labels({0, 1})), ShapeError);
  EXPECT_THROW((void)cross_entropy(make_wave({2, 3}), make_wave({2})), DTypeError);
  EXPECT_THAT(message_of<ShapeError>([] { (void)mse(make_wave({2, 3}), make_wave({3})); }),
              AllOf(HasSubstr("mse"), HasSubstr("[2, 3]"), HasSubstr("[3]")));
}

}  // namespace
}  // namespace kiln
