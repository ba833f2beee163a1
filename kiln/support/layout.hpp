#pragma once
#include <array>
#include <cstdint>
#include <optional>

#include "kiln/support/shape.hpp"

namespace kiln {

/// Steps between adjacent elements along each axis, in elements; 0 along a broadcast axis.
using Strides = std::array<std::int64_t, max_rank>;

/// Where the elements of a tensor lie in its buffer: shape, strides and offset, all in elements.
struct Layout {
  Shape shape;
  Strides strides{};
  std::int64_t offset = 0;

  /// Dense, last axis fastest, from the start of the buffer. Throws ShapeError past 2^63 elements.
  static Layout dense(const Shape& shape);
  /// Whether the elements lie dense and in order (from `offset`, whatever it is). Axes of size 1 do
  /// not count.
  [[nodiscard]] bool is_dense() const;
  /// `axis` in [-rank, rank); throws ShapeError outside.
  [[nodiscard]] std::int64_t stride(Integer axis) const {
    return strides[static_cast<std::size_t>(normalize_axis("stride", axis, shape))];
  }
  bool operator==(const Layout&) const = default;
  /// How many elements a buffer must have: one past the furthest, 0 where there are none. Nothing
  /// where the offset or a step is negative, or 64 bits cannot count them.
  [[nodiscard]] std::optional<std::int64_t> reach() const;

  /// The same elements seen with broadcast axes (stride 0). `to` must be a shape that this one
  /// broadcasts to.
  [[nodiscard]] Layout broadcast_to(const Shape& to) const;
  /// The same elements under another shape, or nothing where that takes a copy. Throws ShapeError
  /// if `to` has another number of elements.
  [[nodiscard]] std::optional<Layout> reshape(const Shape& to) const;
};

/// "[2, 3] (strides [3, 1], offset 0)".
std::string to_string(const Layout& layout);

}  // namespace kiln
