#pragma once
#include "kiln/autodiff/any_tensor.hpp"

namespace kiln {

/// exp(x) / sum(exp(x)) along `axis`, of x's shape. f32, or f16 (computed in f32). The largest
/// element is subtracted first, so that nothing overflows. Throws ShapeError for an axis out of
/// range, DTypeError for other dtypes.
///
///     softmax(tensor({0.F, 0.F, 1.F, 3.F}, {2, 2}, device));   // [0.5, 0.5, 0.119203, 0.880797]
AnyTensor softmax(const AnyTensor& x, Integer axis = -1);
/// log(softmax(x)) along `axis`, more precise than taking the logarithm afterwards: it is finite
/// where softmax would be 0. Otherwise as `softmax`.
///
///     log_softmax(tensor({0.F, 200.F}, {2}, device));   // [-200, 0]
AnyTensor log_softmax(const AnyTensor& x, Integer axis = -1);

}  // namespace kiln
