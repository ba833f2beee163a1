#pragma once
#include "kiln/autodiff/any_tensor.hpp"

namespace kiln {

/// Elements of `x` picked along `axis`: out[..., i, ...] = x[..., index[..., i, ...], ...]. `index`
/// (i32 or u32) has x's rank, and along the other axes at most x's sizes. An index outside of x
/// gives NaN for floats and 0 for integers, and no gradient.
///
///     gather(log_probabilities, 1, unsqueeze(labels, 1));   // [N, C] and [N] give [N, 1]
///
/// Differentiable in x; an element picked several times gets the sum. Throws ShapeError or
/// DTypeError.
AnyTensor gather(const AnyTensor& x, Integer axis, const AnyTensor& index);

}  // namespace kiln
