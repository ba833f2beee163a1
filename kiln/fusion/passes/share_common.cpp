#include <algorithm>
#include <map>

#include "kiln/dispatch/key.hpp"
#include "kiln/fusion/passes/rewrite.hpp"

namespace kiln::fusion {
namespace {

using dispatch::append_bytes;
using dispatch::append_layout;
using dispatch::append_spec;

/// A key that is equal for nodes that compute the same. Empty for a node that is never merged.
std::string spell(const Graph& graph, const Node& node) {
  std::string key;
  if (const auto* elementwise = std::get_if<Elementwise>(&node.work)) {
    append_bytes(key, elementwise->body.body.get());
    for (const ParamUse& param : elementwise->body.params) {
      append_bytes(key, std::max(param.number, -1));
      append_bytes(key, param.value);
    }
  } else if (const auto* reduce = std::get_if<Reduce>(&node.work)) {
    append_bytes(key, reduce->reduction.combine);
    append_bytes(key, reduce->reduction.axes.to_ulong());
    append_bytes(key, double{reduce->reduction.scale});
  } else {
    key = std::get<Call>(node.work).identity;
    if (key.empty()) return key;
  }
  for (const Use& use : node.in) {
    append_bytes(key, use.value);
    append_layout(key, use.layout);
  }
  for (const std::int32_t value : node.out) append_spec(key, graph.spec(value));
  return key;
}

}  // namespace

Graph share_common(Graph graph) {
  std::vector<std::int32_t> original(graph.values.size());
  for (std::size_t v = 0; v < original.size(); ++v) original[v] = static_cast<std::int32_t>(v);
  std::map<std::string, std::size_t> seen;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    Node& node = graph.nodes[n];
    for (Use& use : node.in) use.value = original[static_cast<std::size_t>(use.value)];
    const std::string key = spell(graph, node);
    if (key.empty()) continue;
    const auto [first, added] = seen.try_emplace(key, n);
    if (added) continue;
    const Node& same = graph.nodes[first->second];
    for (std::size_t i = 0; i < node.out.size(); ++i) {
      original[static_cast<std::size_t>(node.out[i])] = same.out[i];
      graph.copies.emplace_back(node.out[i], same.out[i]);
      auto& held = graph.values[static_cast<std::size_t>(same.out[i])].held;
      held = held || graph.values[static_cast<std::size_t>(node.out[i])].held;
    }
    node.out.clear();
    node.in.clear();
  }
  return settle_order(std::move(graph));
}

}  // namespace kiln::fusion
