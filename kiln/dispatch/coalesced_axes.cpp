#include "kiln/dispatch/coalesced_axes.hpp"

#include <algorithm>

namespace kiln::dispatch {

void CoalescedAxes::push(const Shape& shape, int axis, std::span<const Layout> operands) {
  const std::int64_t size = shape[axis];
  if (size == 1) return;
  bool joins = rank > 0;
  for (std::size_t i = 0; joins && i < operands.size(); ++i)
    joins = strides[i][rank - 1] == operands[i].stride(axis) * size;
  if (!joins) ++rank;
  std::int64_t& joined = sizes[rank - 1];
  joined = joins ? joined * size : size;
  for (std::size_t i = 0; i < operands.size(); ++i) strides[i][rank - 1] = operands[i].stride(axis);
}

std::int64_t CoalescedAxes::count() const {
  std::int64_t n = 1;
  for (std::size_t axis = 0; axis < rank; ++axis) n *= sizes[axis];
  return n;
}

bool CoalescedAxes::is_single(std::size_t operand) const {
  return std::ranges::all_of(of(operand), [](std::int64_t stride) { return stride == 0; });
}

bool CoalescedAxes::is_linear(std::size_t operand) const {
  std::int64_t step = 1;
  for (std::size_t axis = rank; axis-- > 0;) {
    if (strides[operand][axis] != step) return false;
    step *= sizes[axis];
  }
  return true;
}

}  // namespace kiln::dispatch
