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
      .trusted = true,         // it guards every access itself, which check_op tests
      .rounds = lhs.dim(-1)};  // of a thread's loop; refused if the adapter would cut it short
  return {wgsl, spirv_kernel(wgsl, lhs, rhs, out)};  // the second for devices that take SPIR-V
}

void MatmulBiasRelu::cpu_kernel(const cpu::Input& lhs, const cpu::Input& rhs,
                                const cpu::Input& bias, const cpu::Output& out) {
  const auto x = lhs.floats();  // f16 is converted, here and on the way out
  const auto y = rhs.floats();
  const auto z = bias.floats();
  const auto result = out.floats();
  const std::int64_t rows = out.dim(-2);
  cpu::parallel_for(out.batch() * rows, [&](std::int64_t index) {
    const std::int64_t row = index % rows;
    const auto a = x.matrix(index / rows, out.shape());  // broadcasting included
    const auto b = y.matrix(index / rows, out.shape());
    const auto c = z.matrix(index / rows, out.shape());
    const auto d = result.matrix(index / rows, out.shape());
    for (std::int64_t j = 0; j < out.dim(-1); ++j) d(row, j) = 0;
    for (std::int64_t i = 0; i < lhs.dim(-1); ++i) {
      for (std::int64_t j = 0; j < out.dim(-1); ++j) d(row, j) += a(row, i) * b(i, j);
    }
    for (std::int64_t j = 0; j < out.dim(-1); ++j) {
      const float sum = d(row, j) + c(row, j);
      d(row, j) = sum <= 0 ? 0 : sum;  // a NaN stays one
    }
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
  // set_reduced sums over the batch dimensions along which an operand broadcast. GradientIn says
  // which factor is the gradient: where that is 0, the product is 0, even if the other is infinite
  // or NaN.
  if (lhs) lhs.set_reduced(matmul(g, transpose(saved.rhs.get()), GradientIn::lhs));
  if (rhs) rhs.set_reduced(matmul(transpose(saved.lhs.get()), g, GradientIn::rhs));
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
