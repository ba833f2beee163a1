#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "kiln/dispatch/rows/rows.hpp"
#include "kiln/scalar/infer.hpp"

namespace kiln::dispatch {

/// The body of a RowsCall as stages, one for each fold and one for the results. A stage computes
/// what it needs and no stage before it has left.
struct RowStages {
  struct Stage {
    std::vector<std::int32_t> row;      ///< nodes computed once a row, in order
    std::vector<std::int32_t> element;  ///< nodes computed for each element, in order
    std::vector<std::int32_t> loads;    ///< inputs that are read element by element
    std::vector<std::int32_t> takes;    ///< nodes of which earlier stages kept each element
    std::vector<std::int32_t> keeps;    ///< nodes of which each element is kept for later stages
    std::vector<std::int32_t> roots;
  };
  std::vector<Stage> stages;
  std::vector<char> per_element;  ///< of each node, whether it differs within a row
  int most_kept = 0;              ///< of an element's values, how many are held at once

  RowStages() = default;
  /// `wide`: of each operand, whether it differs within a row. A node of the body without a dtype
  /// in `types` is computed again wherever it is used. If no elements are kept, each stage loads
  /// and computes its own.
  RowStages(const RowsCall& call, std::span<const char> wide, const BodyTypes& types,
            bool keeps = true);

 private:
  void add_stage(const ExprGraph& graph, std::span<const std::int32_t> roots,
                 const BodyTypes& types, bool keeps);
  void count_kept();
  std::vector<std::int32_t> first_;  ///< of each node: the stage that computes it
};

}  // namespace kiln::dispatch
