#pragma once
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/dispatch/rows/row_pass.hpp"
#include "kiln/dispatch/wgsl/rows/team_folds.hpp"

namespace kiln::dispatch::wgsl {

/// The text of fold s. The thread's items are `sS_Q_LANE.item`, one for each lane of each step q;
/// inQ says whether step q is within the row.
class FoldText {
 public:
  FoldText(const RowPass& pass, std::size_t s, TeamFolds& team)
      : pass_(pass), fold_(pass.call.folds[s]), s_(s), team_(team) {}

  /// Declares what a thread has combined.
  [[nodiscard]] std::string start() const;
  /// Combines the thread's items of all steps.
  [[nodiscard]] std::string add_items() const;
  /// Declares `v`SLOT, the value, rounded as if it had been stored. All threads of the workgroup
  /// must reach it. `helpers` gets the functions that the text calls; see wgsl_helpers.
  std::string finish(std::size_t slot, std::set<std::string>& helpers);

 private:
  [[nodiscard]] bool by_bits() const;
  [[nodiscard]] Combining combining() const;
  [[nodiscard]] std::vector<std::string> items(std::uint32_t q) const;
  [[nodiscard]] std::string start(std::string_view name) const;
  [[nodiscard]] std::string add_items(std::string_view name, std::string_view square) const;
  std::string folded(std::string_view name);
  std::string extreme_of_floats();
  std::string norm(std::string& value);

  const RowPass& pass_;
  const Fold& fold_;
  std::size_t s_;
  TeamFolds& team_;
};

}  // namespace kiln::dispatch::wgsl
