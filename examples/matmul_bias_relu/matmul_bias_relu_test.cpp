#include "examples/matmul_bias_relu/matmul_bias_relu.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>

#include "examples/matmul_bias_relu/expected.hpp"
#include "examples/matmul_bias_relu/rules.hpp"

namespace example {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

template <class E, class Action>
std::string message_of(Action&& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

// --- What is refused ----------------------------------------------------------------------------

AnyTensor zeros_of(const TensorSpec& spec, const Device& device) {
  // From the host: no kernel is needed, which a device of another language would refuse.
  const auto n = static_cast<std::size_t>(spec.shape.elements());
  if (spec.dtype == DType::f16) return tensor(std::vector<float16>(n), spec.shape, device);
  if (spec.dtype == DType::i32) return tensor(std::vector<std::int32_t>(n), spec.shape, device);
  return tensor(std::vector<float>(n), spec.shape, device);
}

/// What the operation itself says to these operands, which is the same on every route.
template <class E, class Op = MatmulBiasRelu>
std::string refusal(const TensorSpec& lhs, const TensorSpec& rhs, const TensorSpec& bias) {
  std::optional<std::string> said;
  const Device device = default_device();
  for (const Device& route :
       {device.lazy(), device.eager(), device.fallback(), device.lazy().autodiff(),
        // Where the tiled one has no kernel, so that its reference would run.
        webgpu::device({.language = Language::spirv}).fallback(), cpu::device().fallback()}) {
    const std::string message = message_of<E>([&] {
      (void)apply(Op{}, zeros_of(lhs, route), zeros_of(rhs, route), zeros_of(bias, route));
    });
    EXPECT_EQ(message, said.value_or(message)) << to_string(route);
    said = message;
  }
  return *said;
}

TEST(MatmulBiasReluRefuses, ARankBelowTwo) {
  EXPECT_EQ(refusal<ShapeError>({{3}}, {{3, 4}}, {{4}}),
            "matmul_bias_relu: operands must have rank 2 or more (lhs [3], rhs [3, 4])");
}

TEST(MatmulBiasReluRefuses, RanksThatDiffer) {
  EXPECT_EQ(
      refusal<ShapeError>({{2, 3, 4}}, {{4, 5}}, {{2, 3, 5}}),
      "matmul_bias_relu: lhs and rhs must have the same rank (lhs f32 [2, 3, 4], rhs f32 [4, 5], "
      "bias f32 [2, 3, 5])");
}

TEST(MatmulBiasReluRefuses, ContractionDimensionsThatDiffer) {
  EXPECT_EQ(
      refusal<ShapeError>({{2, 64, 128}}, {{2, 100, 32}}, {{2, 64, 32}}),
      "matmul_bias_relu: contraction dimensions must match (lhs [2, 64, 128], rhs [2, 100, 32])");
}

TEST(MatmulBiasReluRefuses, BatchDimensionsThatDoNotBroadcast) {
  EXPECT_EQ(refusal<ShapeError>({{2, 3, 4}}, {{3, 4, 5}}, {{2, 3, 5}}),
            "matmul_bias_relu: batch dimensions must broadcast (lhs [2, 3, 4], rhs [3, 4, 5])");
}

TEST(MatmulBiasReluRefuses, ABiasOfAnotherShapeThanTheOutput) {
  for (const Shape& bias : {Shape{2, 5, 3}, Shape{1, 5}, Shape{1, 1, 5}, Shape{5}}) {
    EXPECT_EQ(refusal<ShapeError>({{2, 3, 4}}, {{1, 4, 5}}, {bias}),
              "matmul_bias_relu: bias must have the output's shape [2, 3, 5]; broadcast_to copies "
              "nothing (lhs f32 [2, 3, 4], rhs f32 [1, 4, 5], bias f32 " +
                  to_string(bias) + ")");
  }
}

TEST(MatmulBiasReluRefuses, MatricesOfTwoDtypes) {
  EXPECT_EQ(refusal<DTypeError>({{3, 4}, DType::f32}, {{4, 5}, DType::f16}, {{3, 5}}),
            "matmul_bias_relu: operands must have one dtype (lhs f32 [3, 4], rhs f16 [4, 5])");
}

TEST(MatmulBiasReluRefuses, ABiasOfAnotherDtype) {
  EXPECT_EQ(
      refusal<DTypeError>({{3, 4}}, {{4, 5}}, {{3, 5}, DType::f16}),
      "matmul_bias_relu: bias must have the dtype of lhs and rhs (lhs f32 [3, 4], rhs f32 [4, 5], "
      "bias f16 [3, 5])");
}

TEST(MatmulBiasReluRefuses, ADtypeThatIsNoFloat) {
  EXPECT_EQ(refusal<DTypeError>({{3, 4}, DType::i32}, {{4, 5}, DType::i32}, {{3, 5}, DType::i32}),
            "matmul_bias_relu: takes f32 or f16 (lhs i32 [3, 4], rhs i32 [4, 5])");
}

TEST(MatmulBiasReluRefuses, ByTheNameOfTheOperationThatWasCalled) {
  EXPECT_EQ((refusal<ShapeError, TiledMatmulBiasRelu>({{2, 3}}, {{4, 5}}, {{2, 5}})),
            "tiled_matmul_bias_relu: contraction dimensions must match (lhs [2, 3], rhs [4, 5])");
}

TEST(MatmulBiasReluRefuses, AtTheCallItself) {
  const Device device = default_device();
  const AnyTensor x = zeros({2, 3, 4}, device);
  const std::string message = message_of<ShapeError>([&] { matmul_bias_relu(x, x, x); });
  EXPECT_EQ(message,
            "matmul_bias_relu: contraction dimensions must match (lhs [2, 3, 4], rhs [2, 3, 4])");
}

// --- Values and gradients, of both kernels ------------------------------------------------------

struct Kernel {
  std::string name;
  Tensor<3> (*run)(const Tensor<3>&, const Tensor<3>&, const Tensor<3>&);
};
void PrintTo(const Kernel& kernel, std::ostream* out) { *out << kernel.name; }

class MatmulBiasReluKernel : public ::testing::TestWithParam<Kernel> {
 protected:
  AnyTensor run(const AnyTensor& lhs, const AnyTensor& rhs, const AnyTensor& bias) const {
    return GetParam().run(lhs, rhs, bias);
  }
  /// Compares a call and its gradients with sums made on the host.
  void expect_right(const Sizes& sizes, DType dtype, bool broadcast_rhs = false) const {
    Problem problem = make_problem(sizes, dtype, device_, true, 7);
    // The host knows of one lhs for the batch only: one rhs is the same product, transposed.
    if (broadcast_rhs) {
      const auto flipped = [](const AnyTensor& t) { return transpose(t.detach()); };
      const AnyTensor lhs = flipped(problem.rhs).require_grad();
      const AnyTensor rhs = flipped(problem.lhs).require_grad();
      const AnyTensor bias = flipped(problem.bias).require_grad();
      const AnyTensor out = run(lhs, rhs, bias);
      const AnyTensor seed = flipped(problem.seed);
      const Gradients g = vjp({&out, 1}, {&seed, 1});
      const AnyTensor want = matmul_bias_relu_reference(lhs, rhs, bias);
      const Gradients h = vjp({&want, 1}, {&seed, 1});
      expect_near(out, want);
      for (const AnyTensor& leaf : {lhs, rhs, bias}) expect_near(g.of(leaf), h.of(leaf));
      return;
    }
    Outcome outcome{run(problem.lhs, problem.rhs, problem.bias), std::nullopt};
    outcome.gradients = vjp({&outcome.out, 1}, {&problem.seed, 1});
    EXPECT_EQ(fault_in(outcome, {.name = GetParam().name}, problem), "");
  }
  static void expect_near(const AnyTensor& got, const AnyTensor& want) {
    ASSERT_EQ(got.spec(), want.spec());
    const auto a = cast(got, DType::f32).to_vector();
    const auto b = cast(want, DType::f32).to_vector();
    const float tolerance = got.dtype() == DType::f16 ? 0.02F : 1e-4F;
    for (std::size_t i = 0; i < a.size(); ++i)
      ASSERT_NEAR(a[i], b[i], tolerance) << "element " << i;
  }

  Device device_ = default_device().autodiff();
};

TEST_P(MatmulBiasReluKernel, ComputesAProductWithBiasAndReLU) {
  const AnyTensor lhs = tensor({1.F, 2.F, 3.F, 4.F}, {1, 2, 2}, device_);
  const AnyTensor rhs = tensor({1.F, 0.F, -1.F, 2.F}, {1, 2, 2}, device_);
  const AnyTensor bias = tensor({0.F, 1.F, 0.F, -3.F}, {1, 2, 2}, device_);
  EXPECT_THAT(run(lhs, rhs, bias).to_vector(), ElementsAre(0, 5, 0, 5));
}

TEST_P(MatmulBiasReluKernel, IsRightWithItsGradientsInF32AndF16) {
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const Sizes& sizes : {Sizes{1, 16, 16, 16}, Sizes{2, 17, 9, 33}, Sizes{3, 1, 5, 1},
                               Sizes{3, 20, 7, 13, true}, Sizes{1, 130, 40, 260}}) {
      expect_right(sizes, dtype);
    }
    expect_right({3, 20, 7, 13, true}, dtype, true);
  }
}

TEST_P(MatmulBiasReluKernel, GivesTheBiasPastReLUWhereKIsZero) {
  const AnyTensor lhs = zeros({2, 3, 0}, device_).require_grad();
  const AnyTensor rhs = zeros({2, 0, 2}, device_).require_grad();
  const AnyTensor bias = arange(12, device_) - 6;
  const AnyTensor leaf = reshape(bias, {2, 3, 2}).detach().require_grad();
  const AnyTensor out = run(lhs, rhs, leaf);
  EXPECT_THAT(out.to_vector(), ElementsAre(0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5));
  const Gradients g = sum(out).backward();
  EXPECT_THAT(g.of(leaf).to_vector(), ElementsAre(0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1));
  EXPECT_EQ(g.of(lhs).shape(), lhs.shape());
  EXPECT_EQ(g.of(rhs).shape(), rhs.shape());
}

TEST_P(MatmulBiasReluKernel, TakesAnEmptyBatch) {
  const AnyTensor lhs = zeros({1, 3, 4}, device_).require_grad();
  const AnyTensor rhs = zeros({0, 4, 2}, device_).require_grad();
  const AnyTensor bias = zeros({0, 3, 2}, device_).require_grad();
  const AnyTensor out = run(lhs, rhs, bias);
  EXPECT_EQ(out.shape(), (Shape{0, 3, 2}));
  EXPECT_THAT(out.to_vector(), IsEmpty());
  const Gradients g = sum(out).backward();
  EXPECT_THAT(g.of(lhs).to_vector(), Each(0));  // a sum over nothing
  EXPECT_EQ(g.of(rhs).shape(), rhs.shape());
}

TEST_P(MatmulBiasReluKernel, KeepsANaN) {
  const AnyTensor lhs = tensor({nan, 1.F, 1.F, 1.F}, {1, 2, 2}, device_);
  const AnyTensor all_ones = ones({1, 2, 2}, device_);
  const AnyTensor bias = tensor({0.F, 0.F, 0.F, nan}, {1, 2, 2}, device_);
  const auto out = run(lhs, all_ones, bias).to_vector();
  EXPECT_TRUE(std::isnan(out[0]) && std::isnan(out[1]) && std::isnan(out[3]));
  EXPECT_EQ(out[2], 2);
}

TEST_P(MatmulBiasReluKernel, LetsNoInfinityPastAGradientOfZero) {
  const float inf = std::numeric_limits<float>::infinity();
  const AnyTensor lhs = tensor({1.F, 2.F, NAN, 1.F}, {1, 2, 2}, device_).require_grad();
  const AnyTensor rhs = tensor({1.F, inf, -9.F, NAN}, {1, 2, 2}, device_).require_grad();
  const AnyTensor bias = tensor({20.F, 1.F, 1.F, 1.F}, {1, 2, 2}, device_).require_grad();
  const AnyTensor out = run(lhs, rhs, bias);  // 3 and NaN, NaN and NaN
  const AnyTensor seed = tensor({2.F, 0.F, 0.F, 0.F}, {1, 2, 2}, device_);
  const Gradients g = vjp({&out, 1}, {&seed, 1});
  EXPECT_THAT(g.of(lhs).to_vector(), ElementsAre(2, -18, 0, 0));
  EXPECT_THAT(g.of(rhs).to_vector(), ElementsAre(2, 0, 4, 0));
  EXPECT_THAT(g.of(bias).to_vector(), ElementsAre(2, 0, 0, 0));
}

TEST_P(MatmulBiasReluKernel, AddsUpGradientsWhereOneTensorIsBothMatrices) {
  const AnyTensor x = random_uniform({2, 5, 5}, 3, {-1, 1}, device_).require_grad();
  const AnyTensor bias = random_uniform({2, 5, 5}, 4, {-1, 1}, device_).require_grad();
  const AnyTensor out = run(x, x, bias);
  const AnyTensor want = matmul_bias_relu_reference(x, x, bias);
  expect_near(out, want);
  const Gradients g = sum(out).backward();
  const Gradients h = sum(want).backward();
  expect_near(g.of(x), h.of(x));
  expect_near(g.of(bias), h.of(bias));
}

TEST_P(MatmulBiasReluKernel, ReadsStridedOperands) {
  const AnyTensor lhs = transpose(random_uniform({2, 7, 5}, 5, {-1, 1}, device_));
  const AnyTensor rhs = slice(random_uniform({2, 7, 9}, 6, {-1, 1}, device_), 2, 1, 9, 2);
  const AnyTensor bias = broadcast_to(random_uniform({4}, 7, {-1, 1}, device_), {2, 5, 4});
  expect_near(run(lhs, rhs, bias), matmul_bias_relu_reference(lhs, rhs, bias));
  const AnyTensor columns = broadcast_to(random_uniform({5, 1}, 8, {-1, 1}, device_), {2, 5, 4});
  expect_near(run(lhs, rhs, columns), matmul_bias_relu_reference(lhs, rhs, columns));
}

// --- What is kept -------------------------------------------------------------------------------

std::uint64_t bytes_in_use(const Device& device) {
  return device.runtime().counters().bytes_in_use;
}

/// Bytes that stay taken once the operands are gone and only the result is left.
std::uint64_t kept(const Kernel& kernel, const Device& device, bool lhs, bool rhs, bool bias) {
  const std::uint64_t before = bytes_in_use(device);
  std::uint64_t seed = 0;  // of equal tensors one alone would be made
  const auto operand = [&](bool tracked) {
    const AnyTensor x = random_uniform({1, 64, 64}, ++seed, device);
    return tracked ? x.require_grad() : x;
  };
  AnyTensor out;
  {
    const AnyTensor a = operand(lhs);
    const AnyTensor b = operand(rhs);
    out = kernel.run(a, b, operand(bias));
  }
  device.synchronize();
  return bytes_in_use(device) - before;
}

constexpr std::uint64_t matrix = std::uint64_t{64} * 64 * 4;

TEST_P(MatmulBiasReluKernel, WithOnlyTheBiasTrackedFreesBothMatrices) {
  // The leaf's node holds no values: what is left is the result.
  EXPECT_EQ(kept(GetParam(), device_, false, false, true), matrix);
}

TEST_P(MatmulBiasReluKernel, KeepsEachMatrixForTheOther) {
  EXPECT_EQ(kept(GetParam(), device_, true, false, false), 2 * matrix);
  EXPECT_EQ(kept(GetParam(), device_, false, true, false), 2 * matrix);
  EXPECT_EQ(kept(GetParam(), device_, true, true, true), 3 * matrix);
}

TEST_P(MatmulBiasReluKernel, KeepsNothingWithoutGradients) {
  EXPECT_EQ(kept(GetParam(), device_.plain(), false, false, false), matrix);
  EXPECT_EQ(kept(GetParam(), device_, false, false, false), matrix);
  const AnyTensor x = zeros({1, 2, 2}, device_.plain());
  EXPECT_FALSE(run(x, x, x).tracked());
}

INSTANTIATE_TEST_SUITE_P(Kernels, MatmulBiasReluKernel,
                         ::testing::Values(Kernel{"custom", matmul_bias_relu},
                                           Kernel{"tiled", tiled_matmul_bias_relu}),
                         [](const auto& param) { return param.param.name; });

// --- The program's own check of results ---------------------------------------------------------

TEST(FaultIn, NoticesAResultOfOtherInputsAndAWrongElement) {
  const Device device = default_device();
  const Candidate custom = candidates().front();
  for (const bool tracked : {false, true}) {
    const Problem problem = make_problem({2, 33, 20, 47}, DType::f32, device, tracked, 1);
    const Problem other = make_problem({2, 33, 20, 47}, DType::f32, device, tracked, 2);
    const Outcome right = call(custom, problem);
    EXPECT_EQ(fault_in(right, custom, problem), "");
    EXPECT_NE(fault_in(call(custom, other), custom, problem), "");
    std::vector<float> values = right.out.to_vector();
    values.back() += 0.01F;
    const Outcome wrong{tensor(values, right.out.shape(), device), right.gradients};
    EXPECT_NE(fault_in(wrong, custom, problem), "");
  }
}

}  // namespace
}  // namespace example
