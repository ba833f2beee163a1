#include "kiln/dispatch/host/places.hpp"

#include <algorithm>
#include <numeric>

namespace kiln::dispatch::host {
namespace {

/// How many elements in dense order have one coordinate along `axis`, before it changes.
std::int64_t run_length(const Shape& shape, int axis) {
  std::int64_t length = 1;
  for (int inner = axis + 1; inner < shape.rank(); ++inner) length *= shape[inner];
  return length;
}

}  // namespace

void fill_place(const Shape& shape, int axis, std::int64_t first, std::size_t n,
                std::uint32_t* to) {
  if (axis < 0) return std::iota(to, to + n, static_cast<std::uint32_t>(first));
  const std::int64_t length = run_length(shape, axis);
  const auto size = static_cast<std::uint32_t>(shape[axis]);
  auto coordinate = static_cast<std::uint32_t>(first / length % shape[axis]);
  std::int64_t left = length - first % length;
  for (std::size_t done = 0; length == 1 && done < n;) {  // along the last axis they count
    const std::size_t count = std::min<std::size_t>(n - done, size - coordinate);
    std::iota(to + done, to + done + count, coordinate);
    done += count;
    coordinate = 0;
  }
  for (std::size_t done = 0; length > 1 && done < n;) {
    const std::size_t count = std::min(n - done, static_cast<std::size_t>(left));
    std::fill_n(to + done, count, coordinate);
    done += count;
    left = length;
    coordinate = coordinate + 1 == size ? 0 : coordinate + 1;
  }
}

TileArg place_tile(const Shape& shape, int axis, std::int64_t first, std::size_t n,
                   std::uint32_t* buffer) {
  const bool uniform =
      axis >= 0 &&
      first % run_length(shape, axis) + static_cast<std::int64_t>(n) <= run_length(shape, axis);
  fill_place(shape, axis, first, uniform ? 1 : n, buffer);
  return {buffer, uniform};
}

}  // namespace kiln::dispatch::host
