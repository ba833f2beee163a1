#include "kiln/dispatch/host/row_walk.hpp"

#include <algorithm>

#include "kiln/dispatch/host/tiles.hpp"
#include "kiln/dispatch/reduction/reduction_pass.hpp"
#include "kiln/kernel/launch.hpp"

namespace kiln::dispatch::host {
namespace {

/// Whether the elements of a row of that operand lie further apart than the rows do.
bool lies_across(const CoalescedAxes& kept, const CoalescedAxes& reduced, std::size_t operand) {
  return kept.rank > 0 && reduced.rank > 0 &&
         steps_lie_across(kept.of(operand).back(), reduced.of(operand).back());
}

}  // namespace

std::optional<RowWalk> row_walk(const RowsCall& call, std::span<const RawTensor> inputs) {
  constexpr std::int64_t nearest = 4 * tile_size;  // elements that stay in the nearest cache
  constexpr std::int64_t short_row = 256;
  constexpr std::int64_t most_across = 512;  // lines that stay in the cache until the next row
  constexpr std::int64_t enough_groups = 16;
  constexpr std::int64_t work = 1 << 16;  // elements that one thread may compute alone
  const std::vector<Layout> layouts = layouts_of(call, inputs);
  const CoalescedAxes kept = axes_of(call, layouts, false);
  const CoalescedAxes reduced = axes_of(call, layouts, true);
  if (!lies_in_rows(kept, reduced)) return std::nullopt;
  RowWalk walk{.count = reduced.count(), .rows = kept.count()};
  // Elementwise work by itself goes through such operands in blocks; here each element would be
  // another line of the cache.
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    if (walk.count >= most_across && lies_across(kept, reduced, i)) return std::nullopt;
  }
  if (walk.count < short_row) walk.tile_rows = std::min(tile_size / walk.count, walk.rows);
  const std::int64_t tiles =  // a tile has room for one number of each row
      std::min(nearest / (walk.count * walk.tile_rows), tile_size / walk.tile_rows);
  walk.group = std::min(std::max<std::int64_t>(tiles, 1) * walk.tile_rows, walk.rows);
  const bool enough =
      ceil_div(walk.rows, walk.group) >= enough_groups || walk.rows * walk.count <= work;
  return enough ? std::optional(walk) : std::nullopt;
}

}  // namespace kiln::dispatch::host
