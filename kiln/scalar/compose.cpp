#include "kiln/scalar/compose.hpp"

#include "kiln/scalar/infer.hpp"
#include "kiln/scalar/opcode_table.hpp"

namespace kiln {

namespace {

/// Copies all nodes, and gives the new id of each.
std::vector<std::int32_t> copy_nodes(const ExprGraph& from, ExprGraph& to,
                                     std::span<const std::int32_t> inputs,
                                     std::span<const int> params, const Places& places) {
  std::vector<std::int32_t> moved;
  moved.reserve(from.nodes().size());
  for (ExprGraph::Node node : from.nodes()) {
    const auto slot = static_cast<std::size_t>(node.args[0]);
    if (node.op == Opcode::input) {
      moved.push_back(inputs[slot]);
      continue;
    }
    if (node.op == Opcode::coordinate && !places.coordinates.empty()) {
      moved.push_back(places.coordinates[slot]);
      continue;
    }
    if (node.op == Opcode::element && places.element) {
      const std::int32_t index =
          node.args[1] < 0 ? -1 : moved[static_cast<std::size_t>(node.args[1])];
      const std::int32_t made = places.element(from.node(node.args[0]).args[0], index);
      if (made >= 0) {
        moved.push_back(made);
        continue;
      }
    }
    if (node.op == Opcode::param) {
      node.args[0] = params[slot];
    } else {
      const std::size_t count = operands(node).size();
      for (std::size_t a = 0; a < count; ++a)
        node.args[a] = moved[static_cast<std::size_t>(node.args[a])];
    }
    moved.push_back(to.intern(node));
  }
  return moved;
}

}  // namespace

std::vector<std::int32_t> Composer::copy(const Body& body, std::span<const std::int32_t> inputs,
                                         std::span<const int> params, const Places& places) {
  const auto moved = copy_nodes(*body.graph, graph_, inputs, params, places);
  std::vector<std::int32_t> results;
  results.reserve(body.roots.size());
  for (const std::int32_t root : body.roots)
    results.push_back(moved[static_cast<std::size_t>(root)]);
  return results;
}

std::vector<std::int32_t> Composer::add(std::string_view op, const Body& body,
                                        std::span<const std::int32_t> inputs,
                                        std::span<const DType> dtypes, std::span<const int> params,
                                        std::span<const DType> out, const Places& places) {
  const BodyTypes types = infer(op, body, dtypes, out[0]);
  std::vector<std::int32_t> results = copy(body, inputs, params, places);
  for (std::size_t r = 0; r < results.size(); ++r) {
    const auto root = static_cast<std::size_t>(body.roots[r]);
    const bool is_input = body.graph->nodes()[root].op == Opcode::input;
    const bool exact = types.nodes[root] == out[r] && (out[r] != DType::f16 || is_input);
    if (exact) continue;
    // A literal or param has no dtype of its own. A cast would take it for an f32, which does not
    // have every integer.
    const ExprGraph::Node made = graph_.node(results[r]);
    const bool whole = out[r] == DType::i32 || out[r] == DType::u32;
    if (whole && made.op == Opcode::param && !types.nodes[root]) {
      results[r] = graph_.intern({.op = Opcode::param, .args = made.args, .dtype = out[r]});
      continue;
    }
    results[r] = graph_.intern({.op = Opcode::cast, .args = {results[r], -1, -1}, .dtype = out[r]});
  }
  return results;
}

}  // namespace kiln
