#include "kiln/check/report.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kiln {

bool CheckReport::passed() const {
  return !rows.empty() && std::ranges::all_of(rows, &CheckRow::pass);
}

std::string CheckReport::table() const {
  std::size_t width = op.size();
  for (const CheckRow& row : rows) width = std::max(width, row.name.size());
  std::string text =
      fmt::format("{:{}}  result  elements    max abs    max rel  worst\n", op, width);
  for (const CheckRow& row : rows) {
    text +=
        fmt::format("{:{}}  {:6}  {:8}  {:9.2e}  {:9.2e}  {}\n", row.name, width,
                    row.pass ? "ok" : "FAILED", row.compared, row.max_abs, row.max_rel, row.detail);
  }
  for (const std::string& note : notes) text += fmt::format("note: {}\n", note);
  const auto failed = std::ranges::count(rows, false, &CheckRow::pass);
  return text + (failed == 0 ? fmt::format("all {} checks pass\n", rows.size())
                             : fmt::format("{} of {} checks FAILED\n", failed, rows.size()));
}

}  // namespace kiln
