#pragma once
#include <span>

#include "kiln/autodiff/any_tensor.hpp"

namespace kiln {

/// The axes an operation takes: one, several, or (given none) all. Negative axes count from the
/// end.
class AxisList {
 public:
  AxisList() = default;
  AxisList(int axis)
      : axes_{axis}, all_(false) {}  // NOLINT(google-explicit-constructor): sum(x, 1)
  AxisList(std::initializer_list<int> axes) : axes_(axes), all_(false) {}  // sum(x, {0, 2})
  [[nodiscard]] Axes of(std::string_view op, const Shape& shape) const;

 private:
  std::vector<int> axes_;
  bool all_ = true;
};

// Reductions. `keepdim` leaves a size of 1 where an axis was. Throw ShapeError for an axis out of
// range or named twice.

/// Sums of f16 are made in f32. The sum of nothing is 0. Takes f32, f16, i32 and u32.
AnyTensor sum(const AnyTensor& x, const AxisList& axes = {}, bool keepdim = false);
/// f32 and f16. The mean of nothing is NaN.
AnyTensor mean(const AnyTensor& x, const AxisList& axes = {}, bool keepdim = false);
/// NaN if there is one. Equal extremes share the gradient. Throws ShapeError where there is nothing
/// to choose from.
AnyTensor max(const AnyTensor& x, const AxisList& axes = {}, bool keepdim = false);
AnyTensor min(const AnyTensor& x, const AxisList& axes = {}, bool keepdim = false);
/// The index, as i32, of the first largest element along `axis`; a NaN counts as the largest. Has
/// no gradient.
AnyTensor argmax(const AnyTensor& x, int axis, bool keepdim = false);
/// The index, as i32, of the first smallest element along `axis`; a NaN counts as the smallest. Has
/// no gradient.
AnyTensor argmin(const AnyTensor& x, int axis, bool keepdim = false);

}  // namespace kiln
