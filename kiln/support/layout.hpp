#pragma once
#include <array>
#include <cstdint>
#include <optional>

#include "kiln/support/shape.hpp"

namespace kiln {

/// Steps between neighbours along each axis, in elements; 0 along a broadcast axis.
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
  [[nodiscard]] std::int64_t stride(int axis) const {
    return strides[static_cast<std::size_t>(normalize_axis("stride", axis, shape))];
  }
  bool operator==(const Layout&) const = default;

  /// The same elements seen with broadcast axes (stride 0). `to` must be a shape that this one
  /// broadcasts to.
  [[nodiscard]] Layout broadcast_to(const Shape& to) const;
  /// The same elements under another shape, or nothing where that takes a copy. Throws ShapeError
  /// if `to` has another number of elements.
  [[nodiscard]] std::optional<Layout> reshape(const Shape& to) const;
};

}  // namespace kiln
