#pragma once
#include "kiln/autodiff/any_tensor.hpp"

namespace kiln {

/// (x - mean) / sqrt(variance + epsilon) * weight + bias, with mean and biased variance over the
/// last axis (Ba, Kiros and Hinton, "Layer normalization", 2016). x is [..., N]; weight and bias
/// are [N]. All have one float dtype; f16 is computed in f32. It is precise for a mean that is far
/// larger than the deviations, and for squares out of f32's range, as long as the sum of a row's
/// differences is within it. Throws ShapeError or DTypeError.
///
///     const AnyTensor x = tensor({1.F, 3.F}, {1, 2}, device);
///     layer_norm(x, ones({2}, device), zeros({2}, device), 0);   // [-1, 1]
AnyTensor layer_norm(const AnyTensor& x, const AnyTensor& weight, const AnyTensor& bias,
                     Number epsilon = 1e-5);

}  // namespace kiln
