#pragma once
/// The rules of both operations. They differ in their kernel alone.
#include "kiln/kiln.hpp"

namespace example {

using namespace kiln;  // NOLINT(google-build-using-namespace): rules read best without prefixes

struct MatmulBiasRelu {
  static constexpr std::string_view name = "matmul_bias_relu";
  static constexpr std::array inputs = {"lhs", "rhs", "bias"};
  using layers = Layers<Autodiff, Cube, Fusion>;

  // Fusion: shape and dtype of the result, and what is refused.
  static TensorSpec output(const TensorSpec& lhs, const TensorSpec& rhs, const TensorSpec& bias);

  // Cube: which source, which numbers, which grid. Two languages to choose from.
  static std::vector<webgpu::Launch> webgpu_kernel(const Operand& lhs, const Operand& rhs,
                                                   const Operand& bias, const Operand& out);
  // Cube, on the host: a function over the operands' elements.
  static void cpu_kernel(const cpu::Input& lhs, const cpu::Input& rhs, const cpu::Input& bias,
                         const cpu::Output& out);

  // Autodiff: what to keep, and the gradients from it.
  static constexpr Bound bound = Bound::compute;
  struct Saved {
    Checkpoint lhs;
    Checkpoint rhs;
    Checkpoint out;
  };
  static Saved save(const Saver& saver, const AnyTensor& lhs, const AnyTensor& rhs,
                    const AnyTensor& bias, const AnyTensor& out);
  static void backward(const Saved& saved, const AnyTensor& grad, Grads<3>& grads);

  // The definition, in ordinary operations: what the rest is checked against.
  static AnyTensor reference(const AnyTensor& lhs, const AnyTensor& rhs, const AnyTensor& bias);
};

/// The same launch with the kernel for devices that take SPIR-V, where that one can.
webgpu::Launch spirv_kernel(webgpu::Launch wgsl, const Operand& lhs, const Operand& rhs,
                            const Operand& out);

/// Takes every rule over, and brings another kernel.
struct TiledMatmulBiasRelu : MatmulBiasRelu {
  static constexpr std::string_view name = "tiled_matmul_bias_relu";
  static TensorSpec output(const TensorSpec& lhs, const TensorSpec& rhs, const TensorSpec& bias);
  static webgpu::Launch webgpu_kernel(const Operand& lhs, const Operand& rhs, const Operand& bias,
                                      const Operand& out, const Limits& limits);
  static void cpu_kernel(const cpu::Input& lhs, const cpu::Input& rhs, const cpu::Input& bias,
                         const cpu::Output& out);
};

/// The output rule of both, with the name that its messages begin with.
TensorSpec matmul_bias_relu_spec(std::string_view op, const TensorSpec& lhs, const TensorSpec& rhs,
                                 const TensorSpec& bias);

}  // namespace example
