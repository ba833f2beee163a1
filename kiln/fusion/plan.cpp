#include "kiln/fusion/plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln::fusion {
namespace {

std::string name_of(const Node& node, const std::vector<std::string_view>& names) {
  constexpr std::size_t most = 6;
  std::vector<std::string_view> parts;
  for (const std::int32_t record : node.records) parts.push_back(names[at(record)]);
  if (parts.size() <= most) return fmt::format("{}", fmt::join(parts, "+"));
  return fmt::format("{}+{} more+{}", fmt::join(parts.begin(), parts.begin() + most - 1, "+"),
                     parts.size() - most, parts.back());
}

std::vector<std::vector<std::int32_t>> last_reads(const Graph& graph) {
  std::vector<std::size_t> last(graph.values.size(), graph.nodes.size());
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const Use& use : graph.nodes[n].in) last[at(use.value)] = n;
    for (const std::int32_t value : graph.nodes[n].out) last[at(value)] = n;
  }
  std::vector<std::vector<std::int32_t>> out(graph.nodes.size());
  for (std::size_t v = 0; v < last.size(); ++v) {
    if (last[v] < out.size()) out[last[v]].push_back(static_cast<std::int32_t>(v));
  }
  return out;
}

}  // namespace

PlanPtr make_plan(Graph source, std::vector<std::string_view> names, const FusionLimits& limits) {
  auto plan = std::make_shared<Plan>();
  plan->ops = std::move(names);
  plan->source = std::move(source);
  Graph graph = share_common(plan->source);
  for (std::size_t v = 0; v < graph.values.size(); ++v)
    plan->original.push_back(static_cast<std::int32_t>(v));
  for (const auto& [copy, original] : graph.copies) plan->original[at(copy)] = original;
  graph = fuse_elementwise(std::move(graph), limits);
  graph = fuse_into_stores(std::move(graph), limits);
  graph = fuse_into_loads(std::move(graph), limits);
  graph = fuse_elementwise(std::move(graph), limits);
  for (const Node& node : graph.nodes) plan->names.push_back(name_of(node, plan->ops));
  plan->last_read = last_reads(graph);
  plan->graph = std::move(graph);
  return plan;
}

}  // namespace kiln::fusion
