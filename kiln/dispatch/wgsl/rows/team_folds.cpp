#include "kiln/dispatch/wgsl/rows/team_folds.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kiln::dispatch::wgsl {

std::string Combining::operator()(std::string_view a, std::string_view b) const {
  return with == "+" ? fmt::format("({} + {})", a, b) : fmt::format("{}({}, {})", with, a, b);
}

/// Where the number of a lane is. Adjacent threads have adjacent places.
std::string TeamFolds::place(std::string_view lane) const {
  return pass_.adjacent ? fmt::format("({}) * {}u + team", lane, pass_.rows)
                        : fmt::format("team * {}u + {}", pass_.lanes, lane);
}

std::string TeamFolds::call(const Combining& combine, std::string_view item) {
  // Two functions in a row use two rooms, so that none writes what another thread still reads.
  const std::string room = fmt::format("room{}", count_ % 2);
  const bool in_two = pass_.lanes > 16;
  const std::uint32_t first = in_two ? pass_.lanes / 8 : pass_.lanes;
  const auto of = [&](std::string_view lane) {
    return fmt::format("bitcast<{}>({}[{}])", combine.type, room, place(lane));
  };
  std::string text = fmt::format(
      "fn team_fold{0}(item: {1}, lane: u32, team: u32) -> {1} {{\n"
      "  {2}[{3}] = bitcast<u32>(item);\n  workgroupBarrier();\n",
      count_, combine.type, room, place("lane"));
  if (in_two) {
    std::string part = of("lane");
    for (std::uint32_t i = 1; i < 8; ++i)
      part = combine(part, of(fmt::format("lane + {}u", i * first)));
    text +=
        fmt::format("  if (lane < {}u) {{ {}[{}] = bitcast<u32>({}); }}\n  workgroupBarrier();\n",
                    first, room, place("lane"), part);
  }
  text += fmt::format("  var all = {};\n", of("0u"));
  for (std::uint32_t i = 1; i < first; ++i)
    text += fmt::format("  all = {};\n", combine("all", of(fmt::format("{}u", i))));
  functions_ += text + "  return all;\n}\n";
  return fmt::format("team_fold{}({}, lane, team)", count_++, item);
}

std::string TeamFolds::declarations() const {
  std::string rooms;
  for (std::uint32_t room = 0; room < std::min(count_, 2U); ++room)
    rooms += fmt::format("var<workgroup> room{}: array<u32, {}>;\n", room, pass_.workgroup());
  return rooms + functions_;
}

}  // namespace kiln::dispatch::wgsl
