#include "kiln/dispatch/rows/row_stages.hpp"

#include <algorithm>

#include "kiln/scalar/opcode_table.hpp"

namespace kiln::dispatch {
namespace {

std::size_t at(std::int32_t id) { return static_cast<std::size_t>(id); }

}  // namespace

RowStages::RowStages(const RowsCall& call, std::span<const char> wide, const BodyTypes& types,
                     bool keeps) {
  const ExprGraph& graph = *call.body->graph;
  const auto differs = [&](std::int32_t id) { return per_element[at(id)] != 0; };
  for (const ExprGraph::Node& node : graph.nodes()) {
    const bool own =
        node.op == Opcode::input && at(node.args[0]) < wide.size() && wide[at(node.args[0])] != 0;
    const bool place = node.op == Opcode::coordinate && call.axes[at(node.args[0])];
    per_element.push_back(own || place || std::ranges::any_of(operands(node), differs) ? 1 : 0);
  }
  first_.assign(graph.nodes().size(), -1);
  const std::span<const std::int32_t> roots = call.body->roots;
  for (std::size_t f = 0; f < call.folds.size(); ++f)
    add_stage(graph, roots.subspan(f, 1), types, keeps);
  add_stage(graph, roots.subspan(call.folds.size()), types, keeps);
  count_kept();
}

void RowStages::add_stage(const ExprGraph& graph, std::span<const std::int32_t> roots,
                          const BodyTypes& types, bool keeps) {
  const auto number = static_cast<std::int32_t>(stages.size());
  Stage stage;
  stage.roots.assign(roots.begin(), roots.end());
  std::vector<char> needed(graph.nodes().size());
  for (const std::int32_t root : roots) needed[at(root)] = 1;
  for (std::size_t n = needed.size(); n-- > 0;) {
    const auto id = static_cast<std::int32_t>(n);
    if (needed[n] == 0) continue;
    if (first_[n] >= 0 && types.nodes[n] && (keeps || per_element[n] == 0)) {
      needed[n] = 0;
      if (per_element[n] == 0) continue;
      stage.takes.push_back(id);
      auto& kept = stages[at(first_[n])].keeps;
      if (std::ranges::find(kept, id) == kept.end()) kept.push_back(id);
      continue;
    }
    for (const std::int32_t operand : operands(graph.nodes()[n])) needed[at(operand)] = 1;
  }
  std::ranges::reverse(stage.takes);
  for (std::size_t n = 0; n < needed.size(); ++n) {
    if (needed[n] == 0) continue;
    const auto id = static_cast<std::int32_t>(n);
    first_[n] = number;
    if (per_element[n] == 0) {
      stage.row.push_back(id);
    } else if (graph.nodes()[n].op == Opcode::input) {
      stage.loads.push_back(id);
    } else {
      stage.element.push_back(id);
    }
  }
  stages.push_back(std::move(stage));
}

void RowStages::count_kept() {
  std::vector<std::size_t> last(first_.size());
  for (std::size_t s = 0; s < stages.size(); ++s) {
    for (const std::int32_t id : stages[s].takes) last[at(id)] = s;
  }
  for (std::size_t s = 0; s < stages.size(); ++s) {
    int held = 0;
    for (std::size_t n = 0; n < last.size(); ++n)
      held += first_[n] >= 0 && at(first_[n]) <= s && s < last[n] ? 1 : 0;
    most_kept = std::max(most_kept, held);
  }
}

}  // namespace kiln::dispatch
