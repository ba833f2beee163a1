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

/// `x` with values added where gather would pick: out[..., index[..., i, ...], ...] +=
/// values[..., i, ...] for all i. `index` is as for gather. `values` has its shape, and x's dtype:
/// f32, f16, i32 or u32. Values whose index is outside of x are left out.
///
///     const AnyTensor index = tensor({1, 0, 1}, {3}, device);
///     scatter_add(zeros({2}, device), 0, index, tensor({1.0, 2.0, 3.0}, device));   // [2, 4]
///
/// The result never depends on the order of the additions, and is the same on every runtime. The
/// values of an element are summed first. Integers wrap around. Floats are rounded to multiples of
/// N 2^-61 times the largest value of the element, where N is the number of all values, up to the
/// next power of two; then they are summed exactly. The sum is rounded to f32, for f16 then to f16,
/// and x is added to it. A NaN, or infinities of both signs, give NaN. Results may differ between
/// runtimes where an adapter takes subnormal numbers for 0.
///
/// x may have up to 2^32 - 1 elements, and up to 2^31 - 1 along the axis. On webgpu floats take 16
/// bytes more for each element of x while they are summed.
///
/// Differentiable in x and values; the gradient of values is 0 where the index is outside. Throws
/// ShapeError or DTypeError.
AnyTensor scatter_add(const AnyTensor& x, Integer axis, const AnyTensor& index,
                      const AnyTensor& values);

}  // namespace kiln
