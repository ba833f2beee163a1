#pragma once
#include <limits>
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
AnyTensor reshape(const AnyTensor& x, std::initializer_list<std::int64_t> shape);
AnyTensor reshape(const AnyTensor& x, const Shape& shape);
/// Axis i of the result is axis `axes[i]` of x. Throws ShapeError unless `axes` has each axis once.
AnyTensor permute(const AnyTensor& x, std::span<const int> axes);
AnyTensor permute(const AnyTensor& x, std::initializer_list<int> axes);
/// The last two axes exchanged. Throws ShapeError below rank 2.
AnyTensor transpose(const AnyTensor& x);
/// Two axes exchanged.
AnyTensor transpose(const AnyTensor& x, int axis_a, int axis_b);
/// Elements begin, begin + step, ... below `end` along `axis`; `end` is cut to the size. Throws
/// ShapeError for a begin outside [0, size], an end below begin, or a step below 1.
AnyTensor slice(const AnyTensor& x, int axis, std::int64_t begin,
                std::int64_t end = std::numeric_limits<std::int64_t>::max(), std::int64_t step = 1);
/// x repeated along axes of size 1 and along new leading axes. Throws ShapeError where x does not
/// broadcast to `shape`.
AnyTensor broadcast_to(const AnyTensor& x, const Shape& shape);
/// An axis of size 1 put in at `axis`, in [-rank - 1, rank].
AnyTensor unsqueeze(const AnyTensor& x, int axis);
/// Tensors of one dtype joined along `axis`; the other sizes must be equal. Throws ShapeError or
/// DTypeError.
AnyTensor concat(std::span<const AnyTensor> tensors, int axis);
AnyTensor concat(std::initializer_list<AnyTensor> tensors, int axis);

}  // namespace kiln
