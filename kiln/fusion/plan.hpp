#pragma once
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kiln/fusion/faults.hpp"
#include "kiln/fusion/passes/graph.hpp"

namespace kiln::fusion {

/// How work of one form runs.
struct Plan {
  Graph source;                        ///< one node for each record
  std::vector<std::int32_t> original;  ///< of each value: the one that is computed in its place
  Graph graph;                         ///< one node for each block, in order
  std::vector<std::string> ops;        ///< the name of each record
  std::vector<std::string> names;      ///< of each block, for messages and labels
  std::vector<std::vector<std::int32_t>> last_read;  ///< values that no block after this one reads
  mutable BlockFaults faults;                        ///< learned while it runs

  /// Whether it would be made so again: no operation stays alone for want of memory or a device.
  [[nodiscard]] bool lasts() const;
};
using PlanPtr = std::shared_ptr<const Plan>;

/// The memory that the plan takes, with the bodies that fusing made.
std::size_t bytes_of(const Plan& plan);

/// Plans by the form of the work. It keeps those used last, up to `most_bytes`, and always the very
/// last one.
class PlanCache {
 public:
  /// An empty cache.
  explicit PlanCache(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  /// The plan for `form`; null if there is none.
  PlanPtr find(std::string_view form);
  /// Adds the plan of a form unless the form has one by now. Gives the plan that the form has then.
  PlanPtr add(std::string form, PlanPtr plan);

  /// The bytes of the plans and their forms, and how many plans there are.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::string form;
    PlanPtr plan;
    std::size_t bytes = 0;
  };
  std::size_t most_bytes_;
  std::size_t bytes_ = 0;
  std::list<Entry> entries_;  ///< the one used last is first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> by_form_;
};

/// Runs all passes, one after the other. `names` are those of the records.
PlanPtr make_plan(Graph source, std::vector<std::string> names, const FusionLimits& limits);

}  // namespace kiln::fusion
