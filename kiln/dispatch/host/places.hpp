#pragma once
/// The places of elements in tiles, for bodies that know them.
#include <cstddef>
#include <cstdint>

#include "kiln/scalar/host/tile_kernels.hpp"
#include "kiln/support/shape.hpp"

namespace kiln::dispatch::host {

/// Writes the coordinates along `axis` of the elements [first, first + n) of a dense tensor. Axis
/// -1 stands for their positions.
void fill_place(const Shape& shape, int axis, std::int64_t first, std::size_t n, std::uint32_t* to);

/// The same as an argument of a tape. `buffer` has room for n.
TileArg place_tile(const Shape& shape, int axis, std::int64_t first, std::size_t n,
                   std::uint32_t* buffer);

}  // namespace kiln::dispatch::host
