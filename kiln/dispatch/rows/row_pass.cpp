#include "kiln/dispatch/rows/row_pass.hpp"

#include <algorithm>

#include "kiln/kernel/launch.hpp"

namespace kiln::dispatch {
namespace {

// What a thread keeps: registers, and lines of text, which take software adapters long to compile.
// A thread of adjacent rows has an address for each value, too.
constexpr std::uint32_t most_values = 128;
constexpr std::uint32_t most_values_of_adjacent = 64;
constexpr std::uint32_t most_values_in_software = 32;
constexpr std::uint32_t most_expressions = 4096;  // that compilers get, of all steps together
constexpr std::uint32_t most_lanes = 256;
constexpr std::uint32_t usual_workgroup = 64;
constexpr std::uint32_t most_steps_of_round = 4;  // 1 where texts take long to compile
constexpr std::uint32_t adjacent_workgroup = 512;
constexpr std::uint32_t most_adjacent_rows = 32;
constexpr std::uint32_t least_adjacent_rows = 16;  // fewer waste most of each access to memory
constexpr std::uint32_t adjacent_workgroup_in_software = 256;
constexpr std::uint32_t least_adjacent_rows_in_software = 8;  // what its vectors hold
constexpr std::int64_t busy_threads = 1 << 15;                // what a GPU needs to be busy at all
constexpr std::int64_t many_row_elements = 1 << 20;

/// Takes steps of `width` elements, if every operand can be reached so.
bool take_steps(RowPass& pass, int width) {
  if (pass.count() % width != 0) return false;
  pass.reach.clear();
  for (std::size_t i = 0; i < pass.layouts.size(); ++i) {
    const auto reach = reach_of(pass.kept, pass.reduced, i, pass.layouts[i].offset, width);
    if (!reach) return false;
    pass.reach.push_back(*reach);
  }
  pass.width = width;
  return true;
}

/// The least of 1, 2, 3, 4, 6, 8, 12, ... that is enough: rows of many lengths share a kernel.
std::uint32_t rounded_steps(std::uint32_t enough) {
  std::uint32_t power = 1;
  while (power < enough) power *= 2;
  const std::uint32_t less = power / 4 * 3;
  return less >= enough ? less : power;
}

/// How many steps a thread may take at most.
std::uint32_t steps_that_fit(const RowPass& pass, const Limits& limits) {
  const auto kept = static_cast<std::uint32_t>(std::max(pass.stages().most_kept, 1));
  const auto nodes = static_cast<std::uint32_t>(pass.call.body->graph->nodes().size());
  const std::uint32_t values = limits.software_adapter ? most_values_in_software
                               : pass.adjacent         ? most_values_of_adjacent
                                                       : most_values;
  return std::min(values / kept, most_expressions / nodes) / static_cast<std::uint32_t>(pass.width);
}

/// Few threads for a row, so that each has many loads under way. False if a row does not fit.
bool choose_team(RowPass& pass, const Limits& limits) {
  const bool software = limits.software_adapter;
  std::uint32_t workgroup = most_lanes;
  if (pass.adjacent) workgroup = software ? adjacent_workgroup_in_software : adjacent_workgroup;
  workgroup = std::min(workgroup, limits.workgroup_invocations);
  const std::uint32_t least = software ? least_adjacent_rows_in_software : least_adjacent_rows;
  const std::uint32_t most = pass.adjacent ? workgroup / least : workgroup;
  const std::uint32_t fits = steps_that_fit(pass, limits);
  const auto needed = static_cast<std::uint32_t>(pass.count() / pass.width);
  if (fits == 0 || needed > fits * most) return false;
  // At least two, so that what is folded comes out of workgroup memory, and no compiler knows it.
  while (pass.lanes / 2 >= std::max(needed, 2U)) pass.lanes /= 2;
  while (pass.lanes * fits < needed) pass.lanes *= 2;
  const std::int64_t rows = pass.kept.count();
  while (pass.lanes < needed && pass.lanes * 2 <= most && rows * pass.lanes < busy_threads)
    pass.lanes *= 2;
  pass.steps = rounded_steps(static_cast<std::uint32_t>(ceil_div(needed, pass.lanes)));
  pass.exact = pass.steps * pass.lanes == needed;
  if (pass.adjacent) {
    pass.rows = std::min(workgroup / pass.lanes, most_adjacent_rows);
    while (pass.rows / 2 >= rows) pass.rows /= 2;
  } else if (rows * pass.lanes >= busy_threads) {
    pass.rows = std::max(usual_workgroup / pass.lanes, 1U);
  }
  return true;
}

/// Many threads for a row that none of them keeps. False if that is not possible either.
bool choose_loop(RowPass& pass, const Limits& limits) {
  const auto is_norm = [](const Fold& fold) { return fold.combine == Combine::norm; };
  if (pass.adjacent || std::ranges::any_of(pass.call.folds, is_norm)) return false;
  pass.looped = true;
  pass.lanes = std::min(most_lanes, limits.workgroup_invocations);
  pass.steps =
      std::min(steps_that_fit(pass, limits), limits.software_adapter ? 1U : most_steps_of_round);
  if (pass.steps == 0) return false;
  const std::int64_t round = std::int64_t{pass.lanes} * pass.steps * pass.width;
  return limits.loop_rounds == 0 || ceil_div(pass.count(), round) <= limits.loop_rounds;
}

}  // namespace

std::optional<RowPass> row_pass(Runtime& runtime, const RowsCall& call,
                                std::span<const RawTensor> inputs) {
  RowPass pass{.call = call};
  pass.layouts = layouts_of(call, inputs);
  pass.kept = axes_of(call, pass.layouts, false);
  pass.reduced = axes_of(call, pass.layouts, true);
  if (pass.reduced.rank != 1 || pass.count() > (1 << 20)) return std::nullopt;
  pass.adjacent = !lies_in_rows(pass.kept, pass.reduced);
  // Of one reduced axis the coordinate is the number of the element in its row.
  const bool knows_place = (call.body->axes & call.axes.to_ulong()) != 0;
  if (call.body->position || (knows_place && call.axes.count() > 1)) return std::nullopt;
  pass.kept_places = KnownPlaces(*call.body, call.shape, call.axes, false);
  const std::int64_t rows = pass.kept.count();
  if (rows * pass.count() >= many_row_elements && rows * most_lanes < busy_threads)
    return std::nullopt;
  if (pass.adjacent || !take_steps(pass, 4)) take_steps(pass, 1);
  pass.prepared = prepare_stages(runtime, call, inputs);
  if (choose_team(pass, runtime.limits())) return pass;
  pass.prepared = prepare_stages(runtime, call, inputs, false);
  if (!choose_loop(pass, runtime.limits())) return std::nullopt;
  return pass;
}

}  // namespace kiln::dispatch
