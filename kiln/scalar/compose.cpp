#include "kiln/scalar/compose.hpp"

#include "kiln/scalar/infer.hpp"
#include "kiln/scalar/opcode_table.hpp"

namespace kiln {

std::vector<std::int32_t> Composer::add(std::string_view op, const Body& body,
                                        std::span<const std::int32_t> inputs,
                                        std::span<const DType> dtypes, std::span<const int> params,
                                        std::span<const DType> out) {
  const BodyTypes types = infer(op, body, dtypes, out[0]);
  std::vector<std::int32_t> moved;
  moved.reserve(body.graph->nodes().size());
  for (ExprGraph::Node node : body.graph->nodes()) {
    const auto slot = static_cast<std::size_t>(node.args[0]);
    if (node.op == Opcode::input) {
      moved.push_back(inputs[slot]);
      continue;
    }
    if (node.op == Opcode::param) {
      node.args[0] = params[slot];
    } else {
      const std::size_t count = operands(node).size();
      for (std::size_t a = 0; a < count; ++a)
        node.args[a] = moved[static_cast<std::size_t>(node.args[a])];
    }
    moved.push_back(graph_.intern(node));
  }
  std::vector<std::int32_t> results;
  for (std::size_t r = 0; r < body.roots.size(); ++r) {
    const auto root = static_cast<std::size_t>(body.roots[r]);
    const bool is_input = body.graph->nodes()[root].op == Opcode::input;
    const bool exact = types.nodes[root] == out[r] && (out[r] != DType::f16 || is_input);
    results.push_back(
        exact
            ? moved[root]
            : graph_.intern({.op = Opcode::cast, .args = {moved[root], -1, -1}, .dtype = out[r]}));
  }
  return results;
}

}  // namespace kiln
