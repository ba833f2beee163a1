// Snippets of the README, compiled and run.
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <regex>
#include <string>

#include "kiln/kiln.hpp"

namespace {

using namespace kiln;

// One function over scalars is an operation: kernel, gradient, broadcasting and dtypes follow from
// it.
struct Mish {
  static constexpr std::string_view name = "mish";
  static Expr body(Expr x) { return x * tanh(softplus(x)); }
};
AnyTensor mish(const AnyTensor& x) { return apply(Mish{}, x); }

TEST(Readme, SeveralDevices) {
  const Device host = cpu::device();
  const AnyTensor x = random_normal({4, 4}, 1, host);
  const AnyTensor y = matmul(x, transpose(x)).to(default_device());
  EXPECT_EQ(y.shape(), (Shape{4, 4}));
}

TEST(Readme, AnElementwiseOperationIsOneFunction) {
  const Device device = webgpu::device();
  const AnyTensor x = tensor({-1.F, 0.F, 2.F, 89.F}, {4}, device.autodiff()).require_grad();
  const std::vector<float> y = mish(x).to_vector();
  EXPECT_NEAR(y[0], -1 * std::tanh(std::log1p(std::exp(-1.0))), 1e-6);
  EXPECT_EQ(y[1], 0);
  EXPECT_NEAR(y[2], 2 * std::tanh(std::log1p(std::exp(2.0))), 1e-6);
  EXPECT_EQ(y[3], 89);
  EXPECT_NEAR(sum(mish(x)).backward().of(x).to_vector()[3], 1, 1e-6);
}

TEST(Readme, GradientsComeFromMarkedLeaves) {
  const Device device = default_device().autodiff();  // or webgpu::device(), cpu::device()
  const AnyTensor x = random_normal({8, 4}, 1, device);
  const AnyTensor w = random_normal({4, 3}, 2, device).require_grad();

  const AnyTensor loss = mean(gelu(matmul(x, w)));
  const Gradients gradients = loss.backward();
  const AnyTensor step = w.detach() - 0.1 * gradients.of(w);  // still on the device
  const std::vector<float> values = step.to_vector();         // waits for it
  ASSERT_EQ(values.size(), 12U);
  EXPECT_NE(values, w.to_vector());
}

TEST(Readme, OperationsAreQueuedAndFuse) {
  const Device device = webgpu::device().lazy();
  const AnyTensor a = random_normal({64, 32}, 1, device);
  const AnyTensor b = random_normal({32, 48}, 2, device);
  const AnyTensor c = random_normal({48}, 3, device);
  device.flush();

  const AnyTensor y = relu(matmul(a, b) + c);
  const DrainReport ran = inspect(device);  // runs what is queued
  std::cout << to_table(ran);               // kernel  1  14528  12288  matmul + add + relu
  EXPECT_EQ(ran.launches, 1U);
  const std::string table = std::regex_replace(to_table(ran), std::regex("  +"), "  ");
  EXPECT_NE(table.find("kernel  1  14528  12288  matmul + add + relu"), std::string::npos) << table;
  EXPECT_EQ(y.shape(), (Shape{64, 48}));
}

}  // namespace
