#pragma once
#include "kiln/autodiff/any_tensor.hpp"

namespace kiln {

/// (x - mean) / sqrt(variance + epsilon) * weight + bias, mean and (biased) variance over the last
/// axis; weight and bias have its size. Computed in f32, also where the mean is far larger than the
/// deviations, and where their squares are out of f32's range; the sum of a row's differences must
/// be within. Throws ShapeError, or DTypeError unless all have one float dtype.
AnyTensor layer_norm(const AnyTensor& x, const AnyTensor& weight, const AnyTensor& bias,
                     Number epsilon = 1e-5);

}  // namespace kiln
