#pragma once
#include "kiln/autodiff/any_tensor.hpp"

namespace kiln {

/// (x - mean) / sqrt(variance + epsilon) * weight + bias, mean and (biased) variance over the last
/// axis; weight and bias have its size. Throws ShapeError.
AnyTensor layer_norm(const AnyTensor& x, const AnyTensor& weight, const AnyTensor& bias,
                     double epsilon = 1e-5);

}  // namespace kiln
