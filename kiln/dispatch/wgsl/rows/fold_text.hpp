#pragma once
#include <set>
#include <string>

#include "kiln/dispatch/rows/row_pass.hpp"
#include "kiln/dispatch/wgsl/rows/team_folds.hpp"

namespace kiln::dispatch::wgsl {

/// Declares `v`SLOT, the value of fold s, rounded as if it had been stored. The thread's items are
/// `sS_Q_LANE.item`, one for each lane of each step q; iQ says whether step q is within the row.
/// `helpers` gets the functions that the text calls; see wgsl_helpers.
std::string fold_text(const RowPass& pass, std::size_t s, std::size_t slot, TeamFolds& team,
                      std::set<std::string>& helpers);

}  // namespace kiln::dispatch::wgsl
