#include "kiln/optim/optim.hpp"

#include "kiln/autodiff/node.hpp"
#include "kiln/ops/compare/compare.hpp"
#include "kiln/ops/elementwise/elementwise.hpp"
#include "kiln/ops/loss/loss.hpp"
#include "kiln/ops/matmul/matmul.hpp"
#include "kiln/ops/reduce/reduce.hpp"
#include "kiln/ops/test_support.hpp"

namespace kiln {
namespace {

using test::expect_near;
using test::make;
using test::make_wave;
using test::message_of;
using test::values;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

AnyTensor parameter(const std::vector<float>& x) {
  return make(x, {static_cast<std::int64_t>(x.size())}, test::device().autodiff()).require_grad();
}

AnyTensor loss_of(const AnyTensor& w) { return sum(w * w * w) / 3; }  // gradient w^2

TEST(Adam, FollowsTheTrajectoryOfThePaper) {
  std::vector<AnyTensor> w{parameter({1, -2, 0.5F})};
  std::vector<double> x{1, -2, 0.5};
  std::vector<double> mean(3, 0);
  std::vector<double> square(3, 0);
  Adam adam({.learning_rate = 0.1, .beta1 = 0.8, .beta2 = 0.9, .epsilon = 1e-6});
  for (int t = 1; t <= 10; ++t) {
    w = adam.step(w, loss_of(w[0]).backward());
    for (std::size_t i = 0; i < 3; ++i) {
      const double g = x[i] * x[i];
      mean[i] = 0.8 * mean[i] + 0.2 * g;
      square[i] = 0.9 * square[i] + 0.1 * g * g;
      x[i] -= 0.1 * (mean[i] / (1 - std::pow(0.8, t))) /
              (std::sqrt(square[i] / (1 - std::pow(0.9, t))) + 1e-6);
    }
    expect_near(values(w[0]), x, 1e-5, "step " + std::to_string(t));
  }
  EXPECT_EQ(adam.steps(), 10);
}

TEST(Adam, TheFirstStepIsTheLearningRateLarge) {
  Adam adam({.learning_rate = 0.01});
  const std::vector<AnyTensor> w{parameter({5, -0.001F})};
  const auto after =
      adam.step(w, sum(w[0] * make<float>({1000, -1e-3F}, {2}, test::device())).backward());
  expect_near(values(after[0]), {5 - 0.01, -0.001 + 0.01}, 1e-5);
}

TEST(Adam, ChangingStepsAndRatesCompilesNothing) {
  std::vector<AnyTensor> w{parameter({1, 2})};
  Adam adam;
  // The first step begins from zeros, which are a part of its launches.
  for (int i = 0; i < 3; ++i) {
    w = adam.step(w, loss_of(w[0]).backward());
    test::device().flush();
  }
  const auto spent = test::counted([&] {
    for (int i = 0; i < 5; ++i) {
      adam.set_learning_rate(0.1 / (i + 1));
      w = adam.step(w, loss_of(w[0]).backward());
      test::device().flush();
    }
  });
  EXPECT_EQ(spent.compiled, 0U);
}

TEST(Adam, StepsDoNotGrowTheGraph) {
  std::vector<AnyTensor> w{parameter({1, 2})};
  Adam adam;
  w = adam.step(w, loss_of(w[0]).backward());
  const std::int64_t nodes = Node::alive();
  const std::uint64_t bytes = test::counters().bytes_in_use;
  for (int i = 0; i < 20; ++i) w = adam.step(w, loss_of(w[0]).backward());
  EXPECT_EQ(Node::alive(), nodes);
  EXPECT_EQ(test::counters().bytes_in_use, bytes);
}

TEST(Adam, AParameterTheLossDoesNotUseStaysAsItIs) {
  Adam adam({.learning_rate = 0.1});
  const std::vector<AnyTensor> w{parameter({1}), parameter({2})};
  const auto after = adam.step(w, sum(w[0]).backward());
  expect_near(values(after[0]), {0.9}, 1e-5);
  EXPECT_THAT(values(after[1]), ElementsAre(2));
  EXPECT_TRUE(after[0].tracked());
  EXPECT_TRUE(after[1].tracked());
}

TEST(Adam, RefusesOtherParametersThanAtTheFirstStep) {
  Adam adam;
  const std::vector<AnyTensor> w{parameter({1, 2})};
  (void)adam.step(w, loss_of(w[0]).backward());
  const std::vector<AnyTensor> more{parameter({1, 2}), parameter({1})};
  EXPECT_THAT(message_of<ShapeError>([&] { (void)adam.step(more, loss_of(more[0]).backward()); }),
              AllOf(HasSubstr("adam"), HasSubstr("1 parameters"), HasSubstr("2")));
  const std::vector<AnyTensor> other{parameter({1, 2, 3})};
  EXPECT_THAT(message_of<ShapeError>([&] { (void)adam.step(other, loss_of(other[0]).backward()); }),
              AllOf(HasSubstr("[2]"), HasSubstr("[3]")));
}

TEST(Adam, ZeroGradientsMoveNothing) {
  Adam adam;
  const std::vector<AnyTensor> w{parameter({1, 2})};
  EXPECT_THAT(values(adam.step(w, sum(w[0] * 0.0).backward())[0]), ElementsAre(1, 2));
}

AnyTensor half_parameter(const std::vector<float>& x) {
  return make(x, {static_cast<std::int64_t>(x.size())}, DType::f16, test::device().autodiff())
      .require_grad();
}

TEST(Adam, OfF16IsThatOfF32Rounded) {
  const AnyTensor slope = make({0.01F, 0, -1e-4F, 300}, {4}, DType::f16);
  std::vector<AnyTensor> half{half_parameter({1, 2, -3, 0.5F})};
  std::vector<AnyTensor> single{parameter({1, 2, -3, 0.5F})};
  Adam of_half;
  Adam of_single;
  for (int t = 0; t < 20; ++t) {
    half = of_half.step(half, sum(half[0] * slope).backward());
    single = of_single.step(single, sum(single[0] * cast(slope, DType::f32)).backward());
    EXPECT_EQ(half[0].dtype(), DType::f16);
    std::vector<double> rounded;
    for (const float v : values(single[0])) rounded.push_back(double{float16(v)});
    expect_near(values(half[0]), rounded, 1e-3, "step " + std::to_string(t));
  }
  EXPECT_EQ(values(half[0])[1], 2) << "a gradient of zero moves nothing";
}

TEST(Adam, StepsTooSmallForF16AddUpInTheMasterCopy) {
  std::vector<AnyTensor> w{half_parameter({1})};
  Adam adam({.learning_rate = 1e-4});  // f16 has 0.9995 next to 1
  for (int t = 0; t < 50; ++t) w = adam.step(w, sum(w[0]).backward());
  expect_near(values(w[0]), {double{float16(0.995F)}}, 0);
  // Another parameter than the last step gave takes the place of the copy.
  w = adam.step({half_parameter({3})}, sum(w[0] * 0.0).backward());
  EXPECT_EQ(values(w[0])[0], 3);
}

TEST(Sgd, ComputesInF32) {
  std::vector<AnyTensor> w{half_parameter({1})};
  // 1e-4 * 1e-5 is no number of f16; 1e5 times it is.
  w = sgd_step(w, sum(w[0] * 1e-4).backward(), 1e4);
  expect_near(values(w[0]), {0}, 1e-3);
}

TEST(Sgd, StepsAgainstTheGradient) {
  std::vector<AnyTensor> w{parameter({1, -2}), parameter({3})};
  w = sgd_step(w, loss_of(w[0]).backward(), 0.1);
  expect_near(values(w[0]), {0.9, -2.4}, 1e-6);
  EXPECT_THAT(values(w[1]), ElementsAre(3));
  EXPECT_TRUE(w[0].tracked());
  EXPECT_TRUE(w[0].device().has_autodiff());
}

TEST(Optim, ASmallRegressionTrains) {
  const Device device = test::device().autodiff();
  const AnyTensor x = make_wave({64, 3}, 0, DType::f32, device);
  const AnyTensor truth = make<float>({2, -1, 0.5F}, {3, 1}, device);
  const AnyTensor y = matmul(x, truth) + 0.25;
  const auto model = [&](const std::vector<AnyTensor>& p) { return matmul(x, p[0]) + p[1]; };
  std::vector<AnyTensor> p{make<float>({0, 0, 0}, {3, 1}, device).require_grad(), parameter({0})};
  Adam adam({.learning_rate = 0.05});
  const float before = mse(model(p), y).item();
  for (int i = 0; i < 300; ++i) p = adam.step(p, mse(model(p), y).backward());
  EXPECT_LT(mse(model(p), y).item(), before * 1e-3F);
  expect_near(values(p[0]), {2, -1, 0.5}, 0.05);
  expect_near(values(p[1]), {0.25}, 0.05);
}

}  // namespace
}  // namespace kiln
