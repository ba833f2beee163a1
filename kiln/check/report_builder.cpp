#include "kiln/check/report_builder.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

namespace kiln::check {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace

void RowBuilder::note_failure(const std::string& test_case) {
  row_.pass = false;
  if (std::ranges::find(failed_, test_case) == failed_.end()) failed_.push_back(test_case);
}

void RowBuilder::add(const std::string& test_case, const std::string& what, const HostArray& actual,
                     const HostArray& expected, Tolerance tolerance) {
  if (actual.spec.shape != expected.spec.shape) {
    fail(test_case, fmt::format("{} has shape {}, the reference {}", what,
                                to_string(actual.spec.shape), to_string(expected.spec.shape)));
    return;
  }
  const Comparison comparison = compare(actual, expected, tolerance);
  add(test_case, what, actual.spec.shape, comparison, comparison.worst);
}

void RowBuilder::add(const std::string& test_case, const std::string& what, const Shape& shape,
                     const Comparison& comparison, std::int64_t index) {
  row_.compared += comparison.compared;
  anything_ = anything_ || comparison.compared > 0;
  if (!comparison.pass()) note_failure(test_case);
  if (explained_ || index < 0 || comparison.excess <= excess_) return;
  excess_ = comparison.excess;
  row_.max_abs = comparison.max_abs;
  row_.max_rel = comparison.max_rel;
  row_.detail = fmt::format("{}: {}{}: expected {:.7g}, got {:.7g}, allowed {:.1e}", test_case,
                            what, index_text(shape, index), comparison.expected, comparison.actual,
                            comparison.allowed);
}

void RowBuilder::fail(const std::string& test_case, const std::string& why) {
  note_failure(test_case);
  anything_ = true;
  row_.max_abs = infinity;
  row_.max_rel = infinity;
  if (!explained_) row_.detail = fmt::format("{}: {}", test_case, why);
  explained_ = true;
}

CheckRow RowBuilder::finish() const {
  CheckRow row = row_;
  row.name = name_;
  if (!anything_) {
    row.pass = false;
    row.max_abs = infinity;
    row.max_rel = infinity;
    row.detail = "nothing was compared: no case has elements for it";
  } else if (failed_.size() > 1) {
    row.detail += fmt::format("; {} cases fail: {}", failed_.size(), fmt::join(failed_, ", "));
  }
  return row;
}

RowBuilder& ReportBuilder::row(const std::string& name) {
  const std::string full = name + suffix_;
  const auto at = std::ranges::find(rows_, full, &RowBuilder::name);
  return at != rows_.end() ? *at : rows_.emplace_back(full);
}

void ReportBuilder::finish(CheckReport& report) const {
  for (const RowBuilder& row : rows_) report.rows.push_back(row.finish());
}

}  // namespace kiln::check
