#include "matmul_bias_relu.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "matmul_bias_relu_wgsl.hpp"
#include "rules.hpp"

namespace example {

static_assert(Extension<MatmulBiasRelu>);  // faults show here, at the definition

TensorSpec matmul_bias_relu_spec(std::string_view op, const TensorSpec& lhs, const TensorSpec& rhs,
                                 const TensorSpec& bias) {
  const auto operands = [&] {
    return fmt::format("(lhs {}, rhs {}, bias {})", to_string(lhs), to_string(rhs),
                       to_string(bias));
  };
  const int ranks[] = {lhs.shape.rank(), rhs.shape.rank()};
  if (ranks[0] >= 2 && ranks[1] >= 2 && ranks[0] != ranks[1]) {
    throw ShapeError(fmt::format("{}: lhs and rhs must have the same rank {}", op, operands()));
  }
  // Refuses a rank below two, contraction dimensions that differ, batch dimensions that do not
  // broadcast, and dtypes that differ or are no floats.
  const TensorSpec out = matmul_spec(op, lhs, rhs);
  if (bias.shape != out.shape) {
    throw ShapeError(
        fmt::format("{}: bias must have the output's shape {}; broadcast_to copies nothing {}", op,
                    to_string(out.shape), operands()));
  }
  if (bias.dtype != out.dtype) {
    throw DTypeError(fmt::format("{}: bias must have the dtype of lhs and rhs {}", op, operands()));
  }
  return out;
}

TensorSpec MatmulBiasRelu::output(const TensorSpec& lhs, const TensorSpec& rhs,
                                  const TensorSpec& bias) {
  return matmul_bias_relu_spec(name, lhs, rhs, bias);
}

std::vector<webgpu::Launch> MatmulBiasRelu::webgpu_kernel(const Operand& lhs, const Operand& rhs,
                                                          const Operand&, const Operand& out) {
  const webgpu::Launch wgsl{
      .source = KernelSource::wgsl(matmul_bias_relu_wgsl),
      .workgroup = {16, 16, 1},
      .params = {{"m", out.dim(-2)}, {"k", lhs.dim(-1)}, {"n", out.dim(-1)}},
      .grid = {ceil_div(out.dim(-1), 16), ceil_div(out.dim(-2), 16), out.batch()},
      .trusted = true,         // it guards itself; check_op's canaries are the licence to say so
      .rounds = lhs.dim(-1)};  // of a thread's loop; refused where the adapter would cut it short
  return {wgsl, spirv_kernel(wgsl, lhs, rhs, out)};  // the second for devices that take SPIR-V
}

void MatmulBiasRelu::cpu_kernel(const cpu::Input& lhs, const cpu::Input& rhs,
                                const cpu::Input& bias, const cpu::Output& out) {
  const std::int64_t m = out.dim(-2);
  const std::int64_t n = out.dim(-1);
  const std::int64_t k = lhs.dim(-1);
  cpu::with_float(out.dtype(), [&](auto element) {
    using T = decltype(element);
    const auto x = lhs.strided<T>();  // where they lie: nothing is copied
    const auto y = rhs.strided<T>();
    const std::span<const T> c = bias.dense<T>();
    const std::span<T> result = out.dense<T>();
    cpu::parallel_for(out.batch() * m, 1, [&](std::int64_t begin, std::int64_t end) {
      std::vector<float> sums(static_cast<std::size_t>(n));
      for (std::int64_t row = begin; row < end; ++row) {
        const auto a = x.matrix(row / m, out.shape());  // broadcasting included
        const auto b = y.matrix(row / m, out.shape());
        std::ranges::fill(sums, 0.0F);  // f32, also for f16 operands
        for (std::int64_t i = 0; i < k; ++i) {
          const auto factor = static_cast<float>(a(row % m, i));
          for (std::int64_t j = 0; j < n; ++j)
            sums[static_cast<std::size_t>(j)] += factor * static_cast<float>(b(i, j));
        }
        for (std::int64_t j = 0; j < n; ++j) {
          const auto at = static_cast<std::size_t>(row * n + j);
          const float value =
              static_cast<float>(T(sums[static_cast<std::size_t>(j)])) + static_cast<float>(c[at]);
          result[at] = T(value <= 0 ? 0 : value);  // a NaN stays one
        }
      }
    });
  });
}

MatmulBiasRelu::Saved MatmulBiasRelu::save(const Saver& saver, const AnyTensor& lhs,
                                           const AnyTensor& rhs, const AnyTensor&,
                                           const AnyTensor& out) {
  return {saver.keep_if(rhs.tracked(), lhs), saver.keep_if(lhs.tracked(), rhs), saver.keep(out)};
}

void MatmulBiasRelu::backward(const Saved& saved, const AnyTensor& grad, Grads<3>& grads) {
  const AnyTensor g = relu_backward(saved.out.get(), grad);
  auto& [lhs, rhs, bias] = grads;
  // Reduced: summed over the batch dimensions along which an operand broadcast.
  if (lhs) lhs.set_reduced(matmul(g, transpose(saved.rhs.get())));
  if (rhs) rhs.set_reduced(matmul(transpose(saved.lhs.get()), g));
  if (bias) bias.set(g);
}

AnyTensor MatmulBiasRelu::reference(const AnyTensor& lhs, const AnyTensor& rhs,
                                    const AnyTensor& bias) {
  return relu(matmul(lhs, rhs) + bias);
}

Tensor<3> matmul_bias_relu(const Tensor<3>& lhs, const Tensor<3>& rhs, const Tensor<3>& bias) {
  return apply(MatmulBiasRelu{}, lhs, rhs, bias);
}

Tensor<3> matmul_bias_relu_reference(const Tensor<3>& lhs, const Tensor<3>& rhs,
                                     const Tensor<3>& bias) {
  return MatmulBiasRelu::reference(lhs, rhs, bias);
}

}  // namespace example
