#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/fusion/graph.hpp"

namespace kiln::fusion {

/// How work of one form is done.
struct Plan {
  Graph source;                        ///< a node a record
  std::vector<std::int32_t> original;  ///< of each value: the one that is computed in its place
  Graph graph;                         ///< a node a block, in order
  std::vector<std::string_view> ops;   ///< the name of each record
  std::vector<std::string> names;      ///< of each block, for messages and labels
  std::vector<std::vector<std::int32_t>> last_read;  ///< values that no block after this one reads
};
using PlanPtr = std::shared_ptr<const Plan>;

/// All passes, one after the other. `names` are those of the records.
PlanPtr make_plan(Graph source, std::vector<std::string_view> names, const FusionLimits& limits);

}  // namespace kiln::fusion
