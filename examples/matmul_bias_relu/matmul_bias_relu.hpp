#pragma once
/// What callers see: ordinary functions over tensors.
#include "kiln/autodiff/any_tensor.hpp"

namespace example {

/// relu(lhs * rhs + bias) in one kernel: lhs [B, M, K], rhs [B, K, N], either B may be 1 and
/// broadcasts, bias and result [B, M, N]. f32, or f16 with sums in f32.
///
///     Tensor<3> y = matmul_bias_relu(x, w, broadcast_to(b, {batch, m, n}));
///
/// Differentiable in all three. Throws ShapeError, DTypeError or DeviceError.
kiln::Tensor<3> matmul_bias_relu(const kiln::Tensor<3>& lhs, const kiln::Tensor<3>& rhs,
                                 const kiln::Tensor<3>& bias);

/// The same by the library's own tiled matrix product, with bias and ReLU at its end.
kiln::Tensor<3> tiled_matmul_bias_relu(const kiln::Tensor<3>& lhs, const kiln::Tensor<3>& rhs,
                                       const kiln::Tensor<3>& bias);

/// The same in plain operations: what both are checked against.
kiln::Tensor<3> matmul_bias_relu_reference(const kiln::Tensor<3>& lhs, const kiln::Tensor<3>& rhs,
                                           const kiln::Tensor<3>& bias);

}  // namespace example
