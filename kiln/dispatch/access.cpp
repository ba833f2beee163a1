#include "kiln/dispatch/access.hpp"

#include <algorithm>
#include <bit>

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

CoalescedView coalesce(const Shape& shape, std::span<const Layout> operands, bool by_four) {
  CoalescedView view{CoalescedAxes(operands.size())};
  for (int axis = 0; axis < shape.rank(); ++axis) view.push(shape, axis, operands);
  if (by_four && view.rank > 0 && view.sizes[view.rank - 1] % 4 == 0) view.width = 4;
  view.offsets.reserve(operands.size());
  view.access.reserve(operands.size());
  for (std::size_t i = 0; i < operands.size(); ++i) {
    view.offsets.push_back(operands[i].offset);
    view.access.push_back(access_of(view, i, operands[i].offset));
  }
  if (std::ranges::none_of(view.access, has_coordinates)) view.rank = 0;
  return view;
}

Layout seen_by(const Body& body, std::size_t slot, const Layout& layout, const Shape& shape) {
  return body.indexed[slot] ? Layout{.shape = shape} : layout.broadcast_to(shape);
}

Layout seen_by(const BodyPtr& body, std::size_t slot, const Layout& layout, const Shape& shape) {
  return body == nullptr ? layout.broadcast_to(shape) : seen_by(*body, slot, layout, shape);
}

KnownPlaces::KnownPlaces(const Body& body, const Shape& shape)
    : KnownPlaces(body, shape, {}, false) {
  position = body.position;
}

KnownPlaces::KnownPlaces(const Body& body, const Shape& shape, const Axes& among, bool taken) {
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (among[static_cast<std::size_t>(axis)] != taken) continue;
    used |= (body.axes >> static_cast<unsigned>(axis) & 1U) << axes.rank;
    body_axis[axes.rank] = axis;
    axes.sizes[axes.rank++] = shape[axis];
  }
  outermost = used == 0 ? axes.rank : static_cast<std::size_t>(std::countr_zero(used));
}

bool KnownPlaces::by_four() const {
  return used == 0 || (axes.rank > 0 && axes.sizes[axes.rank - 1] % 4 == 0);
}

}  // namespace kiln::dispatch
