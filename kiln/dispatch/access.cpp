#include "kiln/dispatch/access.hpp"

#include <algorithm>

namespace kiln::dispatch {
namespace {

Access4 access_of(const CoalescedView& view, std::size_t operand, std::int64_t offset) {
  const bool by_four = view.width == 4;
  if (view.is_single(operand)) return Access4::single;
  if (view.is_linear(operand))
    return by_four && offset % 4 == 0 ? Access4::linear_quad : Access4::linear;
  const auto strides = view.of(operand);
  if (by_four && strides.back() == 0) return Access4::repeat;
  const auto outer = strides.first(strides.size() - 1);
  const bool aligned =
      offset % 4 == 0 && std::ranges::all_of(outer, [](std::int64_t s) { return s % 4 == 0; });
  return by_four && strides.back() == 1 && aligned ? Access4::quad : Access4::strided;
}

}  // namespace

CoalescedView coalesce(const Shape& shape, std::span<const Layout> operands) {
  CoalescedView view{CoalescedAxes(operands.size())};
  for (int axis = 0; axis < shape.rank(); ++axis) view.push(shape, axis, operands);
  if (view.rank > 0 && view.sizes[view.rank - 1] % 4 == 0) view.width = 4;
  view.offsets.reserve(operands.size());
  view.access.reserve(operands.size());
  for (std::size_t i = 0; i < operands.size(); ++i) {
    view.offsets.push_back(operands[i].offset);
    view.access.push_back(access_of(view, i, operands[i].offset));
  }
  if (std::ranges::none_of(view.access, has_coordinates)) view.rank = 0;
  return view;
}

}  // namespace kiln::dispatch
