#pragma once
#include <cstdint>
#include <string_view>

#include "kiln/autodiff/any_tensor.hpp"
#include "kiln/dispatch/host/cpu_kernel.hpp"
#include "kiln/kernel/launch.hpp"

namespace kiln {

/// Which operand of a matrix product is an incoming gradient, as in a `backward` rule. Where an
/// element of it is exactly 0 its terms are 0, even if the other factor is infinite or NaN.
enum class GradientIn : std::uint8_t { neither, lhs, rhs };

/// The matrix product over the last two axes: [..., M, K] times [..., K, N] gives [..., M, N]. The
/// axes before them broadcast. Transposed and sliced operands are read in place. f32, or f16 with
/// sums in f32. K = 0 gives zeros.
///
///     const AnyTensor x = tensor({1.F, 2.F, 3.F, 4.F}, {2, 2}, device);
///     matmul(x, transpose(x));   // [5, 11, 11, 25]
///     const AnyTensor infinite = full({2, 2}, INFINITY, device);
///     const AnyTensor grad = zeros({2, 2}, device);
///     matmul(grad, infinite, GradientIn::lhs);   // [0, 0, 0, 0]
///
/// Throws ShapeError or DTypeError with both shapes.
AnyTensor matmul(const AnyTensor& lhs, const AnyTensor& rhs,
                 GradientIn gradient = GradientIn::neither);

/// The output rule of a matrix product, for operations that contain one. It throws what `matmul`
/// throws, with the name `op`.
///
///     matmul_spec("my_op", {{2, 3}, DType::f32}, {{3, 4}, DType::f32}).shape;   // [2, 4]
TensorSpec matmul_spec(std::string_view op, const TensorSpec& lhs, const TensorSpec& rhs);

namespace webgpu {

/// The library's matrix product as a launch, for any operation whose operands are called lhs, rhs
/// and out. With an epilogue it is a fused operation:
///
///     struct MatmulBias {
///       static constexpr std::string_view name = "matmul_bias";
///       static constexpr std::array inputs = {"lhs", "rhs", "bias"};
///       using layers = Layers<Cube, Fusion>;
///       static TensorSpec output(const TensorSpec& lhs, const TensorSpec& rhs, const TensorSpec&)
///       {
///         return matmul_spec(name, lhs, rhs);
///       }
///       static webgpu::Launch webgpu_kernel(const Operand& lhs, const Operand& rhs, const
///       Operand&,
///                                           const Operand& out, const Limits& limits) {
///         webgpu::Launch launch = webgpu::tiled_matmul(lhs, rhs, out, limits);
///         launch.store = epilogue([](Expr value, Expr bias) { return value + bias; }, {"bias"});
///         return launch;
///       }
///     };
///     const AnyTensor x = tensor({{1.0, 2.0}, {3.0, 4.0}}, webgpu::device());
///     apply(MatmulBias{}, x, x, x);   // [8, 12, 18, 26]
Launch tiled_matmul(const Operand& lhs, const Operand& rhs, const Operand& out,
                    const Limits& limits, GradientIn gradient = GradientIn::neither);

}  // namespace webgpu

namespace cpu {

/// The library's matrix product on the host, for a `cpu_kernel` rule whose operands have shapes
/// that matmul_spec takes. With an epilogue it is a fused operation of `inputs`, which broadcast to
/// the result:
///
///     struct MatmulBias {
///       static constexpr std::string_view name = "matmul_bias";
///       static constexpr std::array inputs = {"lhs", "rhs", "bias"};
///       using layers = Layers<Cube, Fusion>;
///       static TensorSpec output(const TensorSpec& lhs, const TensorSpec& rhs, const TensorSpec&)
///       {
///         return matmul_spec(name, lhs, rhs);
///       }
///       static void cpu_kernel(const cpu::Input& lhs, const cpu::Input& rhs, const cpu::Input&
///       bias,
///                              const cpu::Output& out) {
///         const auto end = [](Expr value, Expr b) { return value + b; };
///         cpu::matmul(lhs, rhs, out, epilogue(end, {"bias"}), {&bias, 1});
///       }
///     };
///     const AnyTensor x = tensor({{1.0, 2.0}, {3.0, 4.0}}, cpu::device());
///     apply(MatmulBias{}, x, x, x);   // [8, 12, 18, 26]
void matmul(const Input& lhs, const Input& rhs, const Output& out, const Epilogue& epilogue = {},
            std::span<const Input> inputs = {}, GradientIn gradient = GradientIn::neither);

}  // namespace cpu
}  // namespace kiln
