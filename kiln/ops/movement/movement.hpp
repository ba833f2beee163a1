#pragma once
#include <optional>
#include <span>

#include "kiln/autodiff/any_tensor.hpp"

namespace kiln {

/// @file
/// Views: the same elements in another arrangement. Nothing is copied, except by `concat`, `stack`,
/// and a reshape that strides cannot express. They take every dtype, and are differentiable where
/// it is a float. Negative axes count from the end.

/// The same elements, in order, under another shape. One size may be -1 and follows from the
/// others. Throws ShapeError unless the number of elements stays the same.
///
///     reshape(zeros({2, 8, 32}), {-1, 64}).shape();   // [8, 64]
AnyTensor reshape(const AnyTensor& x, std::initializer_list<Integer> shape);
AnyTensor reshape(const AnyTensor& x, const Shape& shape);
/// The axes in another order: axis i of the result is axis `axes[i]` of x. Throws ShapeError unless
/// `axes` has each axis once.
///
///     permute(zeros({2, 3, 4}), {2, 0, 1}).shape();   // [4, 2, 3]
AnyTensor permute(const AnyTensor& x, std::span<const int> axes);
AnyTensor permute(const AnyTensor& x, std::initializer_list<Integer> axes);
/// The last two axes exchanged. Throws ShapeError below rank 2.
///
///     transpose(tensor({{1, 2}, {3, 4}}));   // [1, 3, 2, 4]
AnyTensor transpose(const AnyTensor& x);
/// Two axes exchanged. Throws ShapeError for an axis out of range.
///
///     transpose(zeros({2, 3, 4}), 0, 2).shape();   // [4, 3, 2]
AnyTensor transpose(const AnyTensor& x, Integer axis_a, Integer axis_b);
/// Elements begin, begin + step, ... below `end` along `axis`. A negative begin or end counts from
/// the axis's end, as in NumPy. Without an end, or with one beyond the size, the slice goes to the
/// end.
///
///     slice(tensor({1, 2, 3, 4}), 0, 1, 3);   // [2, 3]
///     slice(tensor({1, 2, 3, 4}), 0, -2);   // [3, 4]
///
/// Throws ShapeError for a begin outside [-size, size], an end before begin, or a step below 1.
AnyTensor slice(const AnyTensor& x, Integer axis, Integer begin,
                std::optional<Integer> end = std::nullopt, Integer step = 1);
/// x repeated along axes of size 1 and along new leading axes, without a copy. Throws ShapeError if
/// x does not broadcast to `shape`.
///
///     broadcast_to(tensor({1, 2}), {2, 2});   // [1, 2, 1, 2]
AnyTensor broadcast_to(const AnyTensor& x, const Shape& shape);
/// x with a new axis of size 1 at `axis`, in [-rank - 1, rank] (ShapeError).
///
///     unsqueeze(zeros({2, 3}), 1).shape();   // [2, 1, 3]
AnyTensor unsqueeze(const AnyTensor& x, Integer axis);
/// x without axes of size 1: the named ones, or all. Throws ShapeError if a named one has another
/// size.
///
///     squeeze(zeros({1, 3, 1})).shape();   // [3]
///     squeeze(zeros({1, 3, 1}), -1).shape();   // [1, 3]
AnyTensor squeeze(const AnyTensor& x, const AxisList& axes = {});
/// Tensors of one dtype joined along `axis`. Their other sizes must be equal. Throws ShapeError or
/// DTypeError.
///
///     concat({tensor({1, 2}), tensor({3})}, 0);   // [1, 2, 3]
AnyTensor concat(std::span<const AnyTensor> tensors, Integer axis);
AnyTensor concat(std::initializer_list<AnyTensor> tensors, Integer axis);
/// Tensors of one shape and dtype joined along a new axis at `axis`, in [-rank - 1, rank]. Throws
/// ShapeError or DTypeError.
///
///     stack({tensor({1, 2}), tensor({3, 4})});   // [1, 2, 3, 4]
///     stack({tensor({1, 2}), tensor({3, 4})}, -1);   // [1, 3, 2, 4]
AnyTensor stack(std::span<const AnyTensor> tensors, Integer axis = 0);
AnyTensor stack(std::initializer_list<AnyTensor> tensors, Integer axis = 0);

}  // namespace kiln
