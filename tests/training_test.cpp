// From a leaf to a trained network: the stages together.
#include <thread>

#include "kiln/dispatch/test_support.hpp"
#include "kiln/kiln.hpp"

namespace kiln {
namespace {

using test::device;
using test::expect_near;
using ::testing::Each;
using ::testing::ElementsAre;

struct Network {
  std::vector<AnyTensor> p;

  /// The same for training and inference.
  static AnyTensor run(const std::vector<AnyTensor>& p, const AnyTensor& x) {
    const AnyTensor hidden = layer_norm(relu(matmul(x, p[0]) + p[1]), p[2], p[3]);
    return matmul(hidden, p[4]) + p[5];
  }
};

std::vector<AnyTensor> parameters(const Device& on) {
  const std::vector<AnyTensor> start{random_normal({2, 16}, 1, on),
                                     zeros({16}, on),
                                     ones({16}, on),
                                     zeros({16}, on),
                                     random_normal({16, 3}, 2, {0, 0.25}, on),
                                     zeros({3}, on)};
  std::vector<AnyTensor> marked;
  for (const AnyTensor& t : start) marked.push_back(t.require_grad());
  return marked;
}

/// Points of three classes: left of -0.4, right of 0.4, between.
AnyTensor points(const Device& on) { return random_uniform({96, 2}, 3, {-1, 1}, on); }
AnyTensor classes(const AnyTensor& x) {
  const AnyTensor first = slice(x.detach(), 1, 0, 1);
  const AnyTensor right = cast(greater(first, 0.4), DType::i32);
  const AnyTensor left = cast(less(first, -0.4), DType::i32);
  return reshape(right + left * 2, {-1});
}

float accuracy(const AnyTensor& logits, const AnyTensor& labels) {
  return mean(cast(equal(argmax(logits, 1), labels), DType::f32)).item();
}

TEST(Training, ASmallNetworkLearnsAndRunsPlainAfterwards) {
  const Device training = device().autodiff();
  const AnyTensor x = points(training);
  const AnyTensor labels = classes(x);
  std::vector<AnyTensor> p = parameters(training);
  Adam adam({.learning_rate = 0.02});
  const float before = cross_entropy(Network::run(p, x), labels).item();
  for (int i = 0; i < 60; ++i)
    p = adam.step(p, cross_entropy(Network::run(p, x), labels).backward());
  EXPECT_LT(cross_entropy(Network::run(p, x), labels).item(), before * 0.4F);
  EXPECT_GT(accuracy(Network::run(p, x), labels), 0.9F);

  std::vector<AnyTensor> plain;
  for (const AnyTensor& t : p) plain.push_back(t.to(device()));
  const AnyTensor logits = Network::run(plain, x.to(device()));
  EXPECT_FALSE(logits.tracked());
  EXPECT_EQ(logits.to_vector(), Network::run(p, x).to_vector());
}

std::vector<std::vector<float>> gradients(const Device& on) {
  const std::vector<AnyTensor> p = parameters(on);
  const AnyTensor x = points(on);
  const Gradients g = cross_entropy(Network::run(p, x), classes(x)).backward();
  std::vector<std::vector<float>> out;
  for (const AnyTensor& t : p) out.push_back(g.of(t).to_vector());
  return out;
}

TEST(Training, BothCheckpointingStrategiesGiveEqualGradients) {
  EXPECT_EQ(gradients(device().autodiff(Checkpointing::balanced)),
            gradients(device().autodiff(Checkpointing::keep)));
}

TEST(Training, GradientsRepeatBitForBit) {
  const auto first = gradients(device().autodiff());
  EXPECT_EQ(gradients(device().autodiff()), first);
}

TEST(Training, BackwardInAnotherThreadMeanwhile) {
  const auto expected = gradients(device().autodiff());
  std::vector<std::vector<std::vector<float>>> found(3);
  std::vector<std::thread> threads;
  for (auto& mine : found) threads.emplace_back([&mine] { mine = gradients(device().autodiff()); });
  for (std::thread& t : threads) t.join();
  EXPECT_THAT(found, Each(expected));
}

TEST(Training, AStepCompilesNothingAfterTheFirst) {
  const Device training = device().autodiff();
  const AnyTensor x = points(training);
  const AnyTensor labels = classes(x);
  std::vector<AnyTensor> p = parameters(training);
  Adam adam;
  const auto step = [&] { p = adam.step(p, cross_entropy(Network::run(p, x), labels).backward()); };
  for (int i = 0; i < 2; ++i) step();
  const auto bytes = test::counters().bytes_in_use;
  const auto spent = test::counted([&] {
    for (int i = 0; i < 5; ++i) step();
  });
  EXPECT_EQ(spent.compiled, 0U);
  EXPECT_EQ(test::counters().bytes_in_use, bytes) << "nor does it keep anything";
}

TEST(Training, TheBiasGradientIsSummedOverTheBatch) {
  const Device training = device().autodiff();
  const AnyTensor bias = tensor({1.0F, -1.0F}, {1, 2}, training).require_grad();
  const AnyTensor x = ones({3, 2}, training);
  EXPECT_THAT(sum(relu(x + bias)).backward().of(bias).to_vector(), ElementsAre(3, 0));
}

TEST(Training, APartTimesTheWhole) {
  const Device training = device().autodiff();
  const AnyTensor x = tensor({3.0F, 4.0F, 5.0F}, {3}, training).require_grad();
  // d/dx of sum(x[0] * x) = x[0] + [sum(x), 0, 0]
  EXPECT_THAT(sum(slice(x, 0, 0, 1) * x).backward().of(x).to_vector(), ElementsAre(15, 3, 3));
  // A copy and a later operation: gradients add.
  const AnyTensor copy = reshape(transpose(reshape(x, {1, 3})), {3});
  EXPECT_THAT(sum(copy * x + x).backward().of(x).to_vector(), ElementsAre(7, 9, 11));
}

TEST(Training, ANaNInTheDataReachesLossAndGradients) {
  const Device training = device().autodiff();
  const AnyTensor w = random_normal({4, 3}, 1, training).require_grad();
  const AnyTensor x = tensor({1.0F, NAN, 1.0F, 1.0F}, {1, 4}, training);
  const AnyTensor loss = sum(relu(matmul(x, w)));
  EXPECT_TRUE(std::isnan(loss.item()));
  const std::vector<float> g = loss.backward().of(w).to_vector();
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(g[3 + i]));
}

TEST(Training, InF16) {
  const Device training = device().autodiff();
  std::vector<AnyTensor> w{random_normal({4, 1}, 1, {0, 1}, DType::f16, training).require_grad()};
  const AnyTensor x = random_normal({32, 4}, 2, {0, 1}, DType::f16, training);
  const AnyTensor y = matmul(x, full({4, 1}, 0.5, DType::f16, training));
  const auto loss = [&] { return mse(cast(matmul(x, w[0]), DType::f32), cast(y, DType::f32)); };
  for (int i = 0; i < 100; ++i) w = sgd_step(w, loss().backward(), 0.2);
  EXPECT_EQ(w[0].dtype(), DType::f16);
  EXPECT_LT(loss().item(), 1e-3F);
}

}  // namespace
}  // namespace kiln
