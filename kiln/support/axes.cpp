#include "kiln/support/axes.hpp"

#include <fmt/format.h>

#include "kiln/support/error.hpp"

namespace kiln {

Axes::Axes(std::initializer_list<Integer> axes) {
  for (const std::int64_t axis : axes) {
    if (axis < 0 || axis >= max_rank) {
      throw ShapeError(
          fmt::format("axes: a set of axes has numbers from 0 to {}, got {}", max_rank - 1, axis));
    }
    set(static_cast<std::size_t>(axis));
  }
}

Axes Axes::of_bits(std::uint32_t bits) {
  Axes axes;
  for (std::size_t axis = 0; axis < axes.size(); ++axis) axes[axis] = (bits >> axis & 1U) != 0;
  return axes;
}

Axes AxisList::of(std::string_view op, const Shape& shape) const {
  Axes mask;
  if (all_) {
    for (int axis = 0; axis < shape.rank(); ++axis) mask.set(static_cast<std::size_t>(axis));
    return mask;
  }
  for (const std::int64_t axis : axes_) {
    const auto at = static_cast<std::size_t>(normalize_axis(op, axis, shape));
    if (mask[at])
      throw ShapeError(fmt::format("{}: axis {} is named twice ({})", op, axis, to_string(shape)));
    mask.set(at);
  }
  return mask;
}

}  // namespace kiln
