#include "kiln/support/layout.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "kiln/support/error.hpp"

namespace kiln {
namespace {

std::size_t at(int axis) { return static_cast<std::size_t>(axis); }

}  // namespace

Layout Layout::dense(const Shape& shape) {
  Layout layout{.shape = shape};
  if (shape.elements() == 0) return layout;  // strides mean nothing, and a product could overflow
  std::int64_t step = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    layout.strides[at(axis)] = step;
    step *= shape[axis];
  }
  return layout;
}

bool Layout::is_dense() const {
  if (shape.elements() == 0) return true;
  std::int64_t step = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    if (shape[axis] != 1 && strides[at(axis)] != step) return false;
    step *= shape[axis];
  }
  return true;
}

std::optional<std::int64_t> Layout::reach() const {
  if (std::ranges::find(shape, 0) != shape.end()) return 0;
  std::int64_t end = 0;
  if (offset < 0 || __builtin_add_overflow(offset, 1, &end)) return std::nullopt;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == 1) continue;
    std::int64_t steps = 0;
    const std::int64_t stride = strides[at(axis)];
    if (stride < 0 || __builtin_mul_overflow(shape[axis] - 1, stride, &steps) ||
        __builtin_add_overflow(end, steps, &end)) {
      return std::nullopt;
    }
  }
  return end;
}

Layout Layout::broadcast_to(const Shape& to) const {
  if (broadcast("broadcast_to", shape, to) != to) {
    throw ShapeError(
        fmt::format("broadcast_to: {} does not broadcast to {}", to_string(shape), to_string(to)));
  }
  Layout out{.shape = to, .offset = offset};
  const int lead = to.rank() - shape.rank();
  for (int axis = 0; axis < shape.rank(); ++axis) {
    out.strides[at(axis + lead)] = shape[axis] == 1 ? 0 : strides[at(axis)];
  }
  return out;
}

std::optional<Layout> Layout::reshape(const Shape& to) const {
  if (shape.elements() != to.elements()) {
    throw ShapeError(fmt::format("reshape: {} has {} elements, {} has {}", to_string(shape),
                                 shape.elements(), to_string(to), to.elements()));
  }
  Layout out = dense(to);
  out.offset = offset;
  if (is_dense() || to.elements() == 0) return out;
  // Old and new axes are taken in groups whose sizes have equal products. Within a group the old
  // axes must lie dense.
  int from_end = shape.rank();
  int to_end = to.rank();
  while (from_end > 0 || to_end > 0) {
    std::int64_t from_product = 1;
    std::int64_t to_product = 1;
    int from_begin = from_end;
    int to_begin = to_end;
    do {
      if (from_product <= to_product && from_begin > 0) {
        from_product *= shape[--from_begin];
      } else if (to_begin > 0) {
        to_product *= to[--to_begin];
      } else {
        from_product *= shape[--from_begin];
      }
    } while (from_product != to_product);
    std::int64_t step = 0;
    std::optional<std::int64_t> expected;
    for (int axis = from_end - 1; axis >= from_begin; --axis) {
      if (shape[axis] == 1) continue;
      const std::int64_t stride = strides[at(axis)];
      if (!expected) {
        step = stride;
      } else if (stride != *expected) {
        return std::nullopt;
      }
      expected = stride * shape[axis];
    }
    for (int axis = to_end - 1; axis >= to_begin; --axis) {
      out.strides[at(axis)] = step;
      step *= to[axis];
    }
    from_end = from_begin;
    to_end = to_begin;
  }
  return out;
}

std::string to_string(const Layout& layout) {
  const auto strides = std::span(layout.strides).first(layout.shape.size());
  return fmt::format("{} (strides [{}], offset {})", to_string(layout.shape),
                     fmt::join(strides, ", "), layout.offset);
}

}  // namespace kiln
