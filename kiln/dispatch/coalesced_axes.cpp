#include "kiln/dispatch/coalesced_axes.hpp"

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

}  // namespace kiln::dispatch
