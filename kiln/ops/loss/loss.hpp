#pragma once
#include "kiln/autodiff/any_tensor.hpp"

namespace kiln {

/// The mean over N of -log(softmax(logits)[label]), one element. logits is [N, C] in f32 or f16,
/// labels is [N] in i32 or u32. A label outside of [0, C) gives NaN. Differentiable in logits.
/// Throws ShapeError or DTypeError.
///
///     cross_entropy(zeros({1, 2}, device), tensor({1}, {1}, device));   // [0.693147]
AnyTensor cross_entropy(const AnyTensor& logits, const AnyTensor& labels);

/// The mean of (prediction - target)^2 over all elements, one element. Both have one shape and one
/// float dtype. Throws ShapeError or DTypeError.
///
///     mse(tensor({1.F, 2.F}, {2}, device), tensor({1.F, 4.F}, {2}, device));   // [2]
AnyTensor mse(const AnyTensor& prediction, const AnyTensor& target);

}  // namespace kiln
