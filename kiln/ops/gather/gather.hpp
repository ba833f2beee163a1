#pragma once
#include "kiln/autodiff/any_tensor.hpp"

namespace kiln {

/// Elements of `x` picked along `axis`: out[..., i, ...] = x[..., index[..., i, ...], ...]. The
/// result has index's shape and x's dtype. `index` is i32 or u32 and has x's rank; along the other
/// axes it has at most x's sizes. An index outside of x gives NaN for floats and 0 for integers,
/// and no gradient.
///
///     const AnyTensor x = tensor({1.F, 2.F, 3.F, 4.F}, {2, 2}, device);
///     gather(x, 1, unsqueeze(tensor({1, 0}, {2}, device), 1));   // [2, 3]
///
/// Differentiable in x: an element that is picked several times gets the sum of the gradients.
/// Throws ShapeError or DTypeError.
AnyTensor gather(const AnyTensor& x, Integer axis, const AnyTensor& index);

}  // namespace kiln
