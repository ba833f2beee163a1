// The operation on a device that takes SPIR-V: its second kernel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "examples/matmul_bias_relu/matmul_bias_relu.hpp"
#include "examples/matmul_bias_relu/rules.hpp"

namespace example {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

class SpirvDevice : public ::testing::Test {
 protected:
  template <class E, class Action>
  static std::string message_of(Action&& action) {
    try {
      action();
    } catch (const E& error) {
      return error.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return {};
  }

  Device wgsl_ = webgpu::device();
  Device spirv_ = webgpu::device({.language = Language::spirv});
};

TEST_F(SpirvDevice, ComputesWhatTheWgslKernelComputes) {
  const auto expect_equal = [&](std::int64_t batch, std::int64_t m, std::int64_t k,
                                std::int64_t n) {
    const AnyTensor lhs = random_uniform({batch, m, k}, 1, {-1, 1}, wgsl_);
    const AnyTensor rhs = random_uniform({batch, k, n}, 2, {-1, 1}, wgsl_);
    const AnyTensor bias = random_uniform({batch, m, n}, 3, {-1, 1}, wgsl_);
    const auto want = matmul_bias_relu(lhs, rhs, bias).to_vector();
    const auto there = [&](const AnyTensor& t) { return tensor(t.to_vector(), t.shape(), spirv_); };
    const auto got = matmul_bias_relu(there(lhs), there(rhs), there(bias)).to_vector();
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], want[i], 1e-4F) << "element " << i;
  };
  expect_equal(1, 16, 16, 16);
  expect_equal(2, 17, 9, 33);
  expect_equal(3, 1, 5, 1);
  expect_equal(1, 130, 40, 260);
  expect_equal(2, 3, 0, 2);
  expect_equal(0, 3, 4, 2);
}

TEST_F(SpirvDevice, KeepsANaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const AnyTensor lhs = tensor({nan, 1.F, 1.F, 1.F}, {1, 2, 2}, spirv_);
  const AnyTensor ones = tensor({1.F, 1.F, 1.F, 1.F}, {1, 2, 2}, spirv_);
  const AnyTensor bias = tensor({0.F, 0.F, -5.F, nan}, {1, 2, 2}, spirv_);
  const auto out = matmul_bias_relu(lhs, ones, bias).to_vector();
  EXPECT_TRUE(std::isnan(out[0]) && std::isnan(out[1]) && std::isnan(out[3]));
  EXPECT_EQ(out[2], 0);
}

TEST_F(SpirvDevice, SaysWhyItsKernelDeclines) {
  const AnyTensor one = tensor({1.F}, {1, 1, 1}, spirv_);
  const AnyTensor two = tensor({1.F, 2.F}, {2, 1, 1}, spirv_);
  EXPECT_EQ(message_of<KernelError>([&] { return matmul_bias_relu(one, two, two).to_vector(); }),
            "matmul_bias_relu: every kernel declines:\n  the SPIR-V kernel does not broadcast "
            "batches");
  const std::vector<float16> half{float16(1.F)};
  const AnyTensor x = tensor(half, {1, 1, 1}, spirv_);
  EXPECT_EQ(message_of<KernelError>([&] { return matmul_bias_relu(x, x, x).to_vector<float16>(); }),
            "matmul_bias_relu: every kernel declines:\n  the SPIR-V kernel is for f32");
}

TEST_F(SpirvDevice, RefusesAnOperationInWgslAlone) {
  const AnyTensor x = tensor({1.F}, {1, 1, 1}, spirv_);
  EXPECT_EQ(
      message_of<UnsupportedError>([&] { return tiled_matmul_bias_relu(x, x, x).to_vector(); }),
      "tiled_matmul_bias_relu: it has no kernel for this device: webgpu: " + spirv_.adapter() +
          " takes kernels in SPIR-V, the operation offers WGSL and C++. Give it a kernel in "
          "SPIR-V, or let the device fall back to its reference: device.fallback(true)");
}

TEST_F(SpirvDevice, RefusesGeneratedKernelsAndKeepsTheRest) {
  const AnyTensor x = tensor({1.F, 2.F, 3.F, 4.F}, {1, 2, 2}, spirv_);
  const auto refusal = [&](auto&& action) { return message_of<UnsupportedError>(action); };
  const std::string text =
      ": its kernel is written in WGSL; this device (webgpu: " + spirv_.adapter() +
      ") takes kernels in SPIR-V alone";
  EXPECT_EQ(refusal([&] { return (x + x).to_vector(); }), "add" + text);
  EXPECT_THAT(refusal([&] { return sum(x).to_vector(); }), StartsWith("sum" + text));
  std::optional<AnyTensor> product;
  EXPECT_EQ(refusal([&] {
              product = matmul_bias_relu(x, x, x);
              return (*product * 2).to_vector();  // does not go into its store
            }),
            "mul" + text);
  EXPECT_THAT(product->to_vector(), ElementsAre(8, 12, 18, 26));
}

}  // namespace
}  // namespace example
