#pragma once
#include <optional>
#include <span>

#include "kiln/autodiff/any_tensor.hpp"

namespace kiln {

// Other views of the same elements. Nothing is copied, but for a reshape that strides cannot
// express.

/// The same elements, in order, under another shape; one size may be -1 and follows from the rest.
///
///     reshape(x, {-1, 64});   // [2, 8, 32] gives [8, 64]
///
/// Throws ShapeError unless the number of elements stays.
AnyTensor reshape(const AnyTensor& x, std::initializer_list<Integer> shape);
AnyTensor reshape(const AnyTensor& x, const Shape& shape);
/// Axis i of the result is axis `axes[i]` of x. Throws ShapeError unless `axes` has each axis once.
AnyTensor permute(const AnyTensor& x, std::span<const int> axes);
AnyTensor permute(const AnyTensor& x, std::initializer_list<Integer> axes);
/// The last two axes exchanged. Throws ShapeError below rank 2.
AnyTensor transpose(const AnyTensor& x);
/// Two axes exchanged.
AnyTensor transpose(const AnyTensor& x, Integer axis_a, Integer axis_b);
/// Elements begin, begin + step, ... below `end` along `axis`. A negative begin or end counts from
/// the axis's end, as in NumPy; without an end, or with one beyond the size, all that follow.
///
///     slice(x, 0, 1, 3);   // rows 1 and 2
///     slice(x, -1, -2);    // the last two columns
///
/// Throws ShapeError for a begin outside [-size, size], an end before begin, or a step below 1.
AnyTensor slice(const AnyTensor& x, Integer axis, Integer begin,
                std::optional<Integer> end = std::nullopt, Integer step = 1);
/// x repeated along axes of size 1 and along new leading axes. Throws ShapeError where x does not
/// broadcast to `shape`.
AnyTensor broadcast_to(const AnyTensor& x, const Shape& shape);
/// An axis of size 1 put in at `axis`, in [-rank - 1, rank].
AnyTensor unsqueeze(const AnyTensor& x, Integer axis);
/// x without axes of size 1: those named, or all of them. Throws ShapeError where one named has
/// another size.
///
///     squeeze(x)        // [1, 3, 1] gives [3]
///     squeeze(x, -1)    // [1, 3, 1] gives [1, 3]
AnyTensor squeeze(const AnyTensor& x, const AxisList& axes = {});
/// Tensors of one dtype joined along `axis`; the other sizes must be equal. Throws ShapeError or
/// DTypeError.
AnyTensor concat(std::span<const AnyTensor> tensors, Integer axis);
AnyTensor concat(std::initializer_list<AnyTensor> tensors, Integer axis);
/// Tensors of one shape and dtype joined along a new axis at `axis`, in [-rank - 1, rank]. Throws
/// ShapeError or DTypeError.
///
///     stack({x, y})       // twice [3] gives [2, 3]
///     stack({x, y}, -1)   // twice [3] gives [3, 2]
AnyTensor stack(std::span<const AnyTensor> tensors, Integer axis = 0);
AnyTensor stack(std::initializer_list<AnyTensor> tensors, Integer axis = 0);

}  // namespace kiln
