#pragma once
#include <string_view>

#include "kiln/autodiff/any_tensor.hpp"
#include "kiln/dispatch/cpu_kernel.hpp"
#include "kiln/kernel/launch.hpp"

namespace kiln {

/// The matrix product over the last two axes: [..., M, K] times [..., K, N] gives [..., M, N]; the
/// axes before broadcast. Transposed and sliced operands are read in place. f32, or f16 with sums
/// in f32.
///
///     matmul(x, transpose(w));   // copies nothing
///
/// Throws ShapeError or DTypeError with both shapes. K = 0 gives zeros.
AnyTensor matmul(const AnyTensor& lhs, const AnyTensor& rhs);

/// The output rule of a matrix product, for operations that contain one: what `matmul` throws, with
/// the name `op`.
TensorSpec matmul_spec(std::string_view op, const TensorSpec& lhs, const TensorSpec& rhs);

namespace webgpu {

/// The library's matrix product as a launch of any operation whose operands are called lhs, rhs and
/// out. An epilogue makes it a fused one:
///
///     Launch launch = tiled_matmul(lhs, rhs, out, limits);
///     launch.store = epilogue([](Expr value, Expr bias) { return relu(value + bias); }, {"bias"});
Launch tiled_matmul(const Operand& lhs, const Operand& rhs, const Operand& out,
                    const Limits& limits);

}  // namespace webgpu

namespace cpu {

/// The library's matrix product on the host, for a `cpu_kernel` rule: the operands have shapes that
/// matmul_spec takes. Every part of the result is committed.
void matmul(const Input& lhs, const Input& rhs, const Output& out);

}  // namespace cpu
}  // namespace kiln
