#pragma once
#include "kiln/autodiff/any_tensor.hpp"
#include "kiln/support/axes.hpp"

namespace kiln {

/// @file
/// Reductions. `axes` is one axis, several in braces, or none, which means all. `keepdim` leaves a
/// size of 1 where an axis was. All throw ShapeError for an axis that is out of range or named
/// twice, and DTypeError for a dtype that they do not take. Results repeat exactly.

/// The sum along `axes`: f32, f16 (summed in f32), i32 and u32 (where it wraps). Of nothing it is
/// 0.
///
///     sum(tensor({1.F, 2.F, 3.F, 4.F}, {2, 2}, device), 1);   // [3, 7]
///     sum(tensor({1.F, 2.F, 3.F, 4.F}, {2, 2}, device), {0, 1}, true).shape();   // [1, 1]
AnyTensor sum(const AnyTensor& x, const AxisList& axes = {}, Flag keepdim = false);
/// The mean along `axes`: f32, and f16 (summed in f32). Of nothing it is NaN.
///
///     mean(tensor({1.F, 2.F, 3.F, 4.F}, {2, 2}, device), 0);   // [2, 3]
AnyTensor mean(const AnyTensor& x, const AxisList& axes = {}, Flag keepdim = false);
/// The largest element along `axes`: f32, f16, i32 and u32. NaN if there is one. Equal extremes
/// share the gradient equally. Throws ShapeError if there is nothing to choose from.
///
///     max(tensor({1.F, 5.F, 3.F, 4.F}, {2, 2}, device), 1);   // [5, 4]
AnyTensor max(const AnyTensor& x, const AxisList& axes = {}, Flag keepdim = false);
/// The smallest element along `axes`; otherwise as `max`.
///
///     min(tensor({1.F, 5.F, 3.F, 4.F}, {2, 2}, device));   // [1]
AnyTensor min(const AnyTensor& x, const AxisList& axes = {}, Flag keepdim = false);
/// The index, as i32, of the largest element along `axis`; the first one of several. A NaN counts
/// as the largest. f32, f16, i32 and u32. It has no gradient. Throws ShapeError as `max` does.
///
///     argmax(tensor({1.F, 5.F, 3.F, 4.F}, {2, 2}, device), 1);   // [1, 1]
AnyTensor argmax(const AnyTensor& x, Integer axis, Flag keepdim = false);
/// The index, as i32, of the smallest element along `axis`; the first one of several. A NaN counts
/// as the smallest. Otherwise as `argmax`.
///
///     argmin(tensor({1.F, 5.F, 3.F, 4.F}, {2, 2}, device), 1);   // [0, 0]
AnyTensor argmin(const AnyTensor& x, Integer axis, Flag keepdim = false);

}  // namespace kiln
