#pragma once
#include "kiln/autodiff/any_tensor.hpp"
#include "kiln/support/axes.hpp"

namespace kiln {

// Reductions. `keepdim` leaves a size of 1 where an axis was. Throw ShapeError for an axis out of
// range or named twice.

/// Sums of f16 are made in f32. The sum of nothing is 0. Takes f32, f16, i32 and u32.
AnyTensor sum(const AnyTensor& x, const AxisList& axes = {}, Flag keepdim = false);
/// f32 and f16. The mean of nothing is NaN.
AnyTensor mean(const AnyTensor& x, const AxisList& axes = {}, Flag keepdim = false);
/// NaN if there is one. Equal extremes share the gradient. Throws ShapeError where there is nothing
/// to choose from.
AnyTensor max(const AnyTensor& x, const AxisList& axes = {}, Flag keepdim = false);
AnyTensor min(const AnyTensor& x, const AxisList& axes = {}, Flag keepdim = false);
/// The index, as i32, of the first largest element along `axis`; a NaN counts as the largest. Has
/// no gradient.
AnyTensor argmax(const AnyTensor& x, Integer axis, Flag keepdim = false);
/// The index, as i32, of the first smallest element along `axis`; a NaN counts as the smallest. Has
/// no gradient.
AnyTensor argmin(const AnyTensor& x, Integer axis, Flag keepdim = false);

}  // namespace kiln
