#pragma once
#include <array>
#include <cstdint>
#include <optional>

#include "kiln/support/shape.hpp"

namespace kiln {

/// Steps between adjacent elements along each axis, in elements; 0 along a broadcast axis.
using Strides = std::array<std::int64_t, max_rank>;

/// Where the elements of a tensor lie in its buffer: shape, strides and offset, all in elements.
///
///     const Layout rows = Layout::dense({2, 3});
///     rows.stride(0);   // [3]
///     const Layout columns = {.shape = {3, 2}, .strides = {1, 3}};
///     columns.is_dense();   // [false]
struct Layout {
  Shape shape;
  Strides strides{};
  std::int64_t offset = 0;

  /// Dense, last axis fastest, from the start of the buffer. Throws ShapeError past 2^63 elements.
  static Layout dense(const Shape& shape);
  /// Whether the elements lie dense and in order (from `offset`, whatever it is). Axes of size 1 do
  /// not count.
  [[nodiscard]] bool is_dense() const;
  /// The step along `axis`, in elements. Throws ShapeError for an axis outside of [-rank, rank).
  [[nodiscard]] std::int64_t stride(Integer axis) const {
    return strides[static_cast<std::size_t>(normalize_axis("stride", axis, shape))];
  }
  bool operator==(const Layout&) const = default;
  /// How many elements a buffer must have: one past the furthest, 0 where there are none. Nothing
  /// where the offset or a step is negative, or 64 bits cannot count them.
  ///
  ///     Layout{.shape = {2}, .strides = {5}, .offset = 1}.reach() == 7;   // [true]
  [[nodiscard]] std::optional<std::int64_t> reach() const;

  /// The same elements seen with broadcast axes (stride 0). `to` must be a shape that this one
  /// broadcasts to.
  ///
  ///     Layout::dense({3}).broadcast_to({2, 3}).stride(0);   // [0]
  [[nodiscard]] Layout broadcast_to(const Shape& to) const;
  /// The same elements under another shape, or nothing where that takes a copy. Throws ShapeError
  /// if `to` has another number of elements.
  ///
  ///     Layout::dense({2, 3}).reshape({6}) == Layout::dense({6});   // [true]
  [[nodiscard]] std::optional<Layout> reshape(const Shape& to) const;
};

/// The layout as text.
///
///     to_string(Layout::dense({2, 3}));   // "[2, 3] (strides [3, 1], offset 0)"
std::string to_string(const Layout& layout);

}  // namespace kiln
