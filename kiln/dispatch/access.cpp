#include "kiln/dispatch/access.hpp"

#include <algorithm>

namespace kiln::dispatch {
namespace {

std::size_t last_axis(const CoalescedView& c) { return static_cast<std::size_t>(c.rank) - 1; }

/// Joins neighbouring axes along which every operand steps evenly; drops those of size 1.
void join_axes(CoalescedView& c, const Shape& shape, std::span<const Layout> operands) {
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == 1) continue;
    const auto joins = [&](std::size_t i) {
      return c.strides[i][last_axis(c)] == operands[i].stride(axis) * shape[axis];
    };
    bool all_join = c.rank > 0;
    for (std::size_t i = 0; all_join && i < operands.size(); ++i) all_join = joins(i);
    if (!all_join) ++c.rank;
    std::int64_t& size = c.sizes[last_axis(c)];
    size = all_join ? size * shape[axis] : shape[axis];
    for (std::size_t i = 0; i < operands.size(); ++i) {
      c.strides[i][last_axis(c)] = operands[i].stride(axis);
    }
  }
}

bool is_linear(const CoalescedView& c, const Strides& strides) {
  std::int64_t step = 1;
  for (auto axis = static_cast<std::size_t>(c.rank); axis-- > 0;) {
    if (strides[axis] != step) return false;
    step *= c.sizes[axis];
  }
  return true;
}

Access4 access_of(const CoalescedView& c, const Strides& strides, std::int64_t offset) {
  const auto used = std::span(strides).first(static_cast<std::size_t>(c.rank));
  if (std::ranges::all_of(used, [](std::int64_t s) { return s == 0; })) return Access4::single;
  const bool by_four = c.width == 4;
  if (is_linear(c, strides))
    return by_four && offset % 4 == 0 ? Access4::linear_quad : Access4::linear;
  if (by_four && used.back() == 0) return Access4::repeat;
  const auto outer = used.first(used.size() - 1);
  const bool aligned =
      offset % 4 == 0 && std::ranges::all_of(outer, [](std::int64_t s) { return s % 4 == 0; });
  return by_four && used.back() == 1 && aligned ? Access4::quad : Access4::strided;
}

}  // namespace

CoalescedView coalesce(const Shape& shape, std::span<const Layout> operands) {
  CoalescedView c;
  c.strides.resize(operands.size());
  c.offsets.reserve(operands.size());
  c.access.reserve(operands.size());
  join_axes(c, shape, operands);
  if (c.rank > 0 && c.sizes[last_axis(c)] % 4 == 0) c.width = 4;
  bool coordinates = false;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    c.offsets.push_back(operands[i].offset);
    c.access.push_back(access_of(c, c.strides[i], operands[i].offset));
    const Access4 access = c.access.back();
    coordinates = coordinates || access == Access4::strided || access == Access4::repeat ||
                  access == Access4::quad;
  }
  if (!coordinates) c.rank = 0;
  return c;
}

}  // namespace kiln::dispatch
