#pragma once
#include "kiln/autodiff/any_tensor.hpp"

namespace kiln {

/// The mean over N of -log softmax(logits)[label]: logits [N, C] (f32 or f16), labels [N] (i32 or
/// u32). Gives one element. A label outside [0, C) gives NaN. Throws ShapeError or DTypeError.
AnyTensor cross_entropy(const AnyTensor& logits, const AnyTensor& labels);

/// The mean of (prediction - target)^2 over all elements; both have one shape. Gives one element.
/// Throws ShapeError or DTypeError.
AnyTensor mse(const AnyTensor& prediction, const AnyTensor& target);

}  // namespace kiln
