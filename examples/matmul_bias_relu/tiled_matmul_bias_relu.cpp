// The production form has no WGSL: it is the library's tiled matrix product with an epilogue of our
// own.
#include "matmul_bias_relu.hpp"
#include "rules.hpp"

namespace example {

static_assert(Extension<TiledMatmulBiasRelu>);

TensorSpec TiledMatmulBiasRelu::output(const TensorSpec& lhs, const TensorSpec& rhs,
                                       const TensorSpec& bias) {
  return matmul_bias_relu_spec(name, lhs, rhs, bias);
}

namespace {

/// One definition for every runtime.
Epilogue bias_relu() {
  return epilogue([](Expr value, Expr bias) { return relu(value + bias); }, {"bias"});
}

}  // namespace

webgpu::Launch TiledMatmulBiasRelu::webgpu_kernel(const Operand& lhs, const Operand& rhs,
                                                  const Operand&, const Operand& out,
                                                  const Limits& limits) {
  webgpu::Launch launch = webgpu::tiled_matmul(lhs, rhs, out, limits);
  launch.store = bias_relu();
  return launch;
}

void TiledMatmulBiasRelu::cpu_kernel(const cpu::Input& lhs, const cpu::Input& rhs,
                                     const cpu::Input& bias, const cpu::Output& out) {
  cpu::matmul(lhs, rhs, out, bias_relu(), {&bias, 1});
}

Tensor<3> tiled_matmul_bias_relu(const Tensor<3>& lhs, const Tensor<3>& rhs,
                                 const Tensor<3>& bias) {
  return apply(TiledMatmulBiasRelu{}, lhs, rhs, bias);
}

}  // namespace example
