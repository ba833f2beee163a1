#include "kiln/scalar/wgsl/cancelling.hpp"

#include <algorithm>
#include <vector>

#include "kiln/scalar/opcode_table.hpp"

namespace kiln {
namespace {

using Set = bool (*)(Opcode);

// Casts between floats do nothing if both are computed in f32.
bool is_cast(Opcode op) { return op == Opcode::cast || op == Opcode::cast_back; }
bool is_sum(Opcode op) { return op == Opcode::add || op == Opcode::sub || op == Opcode::neg; }
bool is_product(Opcode op) { return op == Opcode::mul || op == Opcode::div || op == Opcode::neg; }
bool is_root(Opcode op) { return op == Opcode::sqrt || op == Opcode::rsqrt || op == Opcode::pow; }
bool is_power(Opcode op) { return op == Opcode::exp || op == Opcode::pow; }
bool is_log(Opcode op) { return op == Opcode::log; }
bool is_function(Opcode op) { return is_root(op) || is_power(op) || is_log(op); }
bool is_inverse(Opcode op) { return op == Opcode::div || is_root(op); }
bool is_constant(Opcode op) { return op == Opcode::constant; }

// The opcodes by which algebra takes an expression apart: a sum into terms and their factors, a
// product into factors and what is below a root.
bool in_terms(Opcode op) { return is_sum(op) || is_product(op) || is_cast(op); }
bool in_factors(Opcode op) {
  return is_product(op) || is_cast(op) || op == Opcode::abs || op == Opcode::sqrt ||
         op == Opcode::rsqrt;
}
bool in_sum(Opcode op) { return is_sum(op) || is_cast(op); }
bool in_product(Opcode op) { return is_product(op) || is_cast(op); }

/// The nodes that can be reached from a node through opcodes of a set.
class Parts {
 public:
  Parts(const ExprGraph& graph, std::int32_t from, Set through)
      : graph_(graph), seen_(static_cast<std::size_t>(from) + 1) {
    std::vector<std::int32_t> open{from};
    while (!open.empty()) {
      const std::int32_t id = open.back();
      open.pop_back();
      if (has(id)) continue;
      seen_[static_cast<std::size_t>(id)] = 1;
      found_.push_back(id);
      const ExprGraph::Node& node = graph.node(id);
      if (!through(node.op)) continue;
      for (const std::int32_t operand : operands(node)) open.push_back(operand);
    }
  }

  [[nodiscard]] bool has(std::int32_t id) const {
    const auto at = static_cast<std::size_t>(id);
    return at < seen_.size() && seen_[at] != 0;
  }
  [[nodiscard]] bool any(Set of) const {
    return std::ranges::any_of(found_, [&](std::int32_t id) { return of(graph_.node(id).op); });
  }
  /// Literals do not count.
  [[nodiscard]] bool meets(const Parts& other) const {
    return std::ranges::any_of(
        found_, [&](std::int32_t id) { return other.has(id) && !is_constant(graph_.node(id).op); });
  }

 private:
  const ExprGraph& graph_;
  std::vector<char> seen_;
  std::vector<std::int32_t> found_;
};

bool both_have_literals(const ExprGraph& graph, const ExprGraph::Node& node, Set through) {
  const Parts b(graph, node.args[1], through);
  return b.any(is_constant) && Parts(graph, node.args[0], through).any(is_constant);
}

bool terms_meet(const ExprGraph& graph, const ExprGraph::Node& node) {
  const Parts b(graph, node.args[1], in_terms);
  const Parts a(graph, node.args[0], in_terms);
  return a.meets(b) || (a.any(is_log) && b.any(is_log)) || both_have_literals(graph, node, in_sum);
}

bool factors_meet(const ExprGraph& graph, const ExprGraph::Node& node) {
  const Parts b(graph, node.args[1], in_factors);
  const Parts a(graph, node.args[0], in_factors);
  if (a.any(is_power) && b.any(is_power)) return true;
  if (both_have_literals(graph, node, in_product)) return true;
  // x * x * x is the same in any order.
  const bool inverse = node.op == Opcode::div || a.any(is_inverse) || b.any(is_inverse);
  return inverse && (a.meets(b) || (a.any(is_root) && b.any(is_root)));
}

/// A product of a node with itself, as below a root.
bool is_square(const ExprGraph& graph, std::int32_t id) {
  const ExprGraph::Node& node = graph.node(id);
  if (node.op == Opcode::neg || is_cast(node.op)) return is_square(graph, node.args[0]);
  if (!is_product(node.op)) return false;
  return Parts(graph, node.args[0], in_factors).meets(Parts(graph, node.args[1], in_factors));
}

}  // namespace

bool may_cancel(const ExprGraph& graph, const ExprGraph::Node& node) {
  switch (node.op) {
    case Opcode::add:
    case Opcode::sub:
    case Opcode::equal:
    case Opcode::less:
    case Opcode::less_equal:
      return terms_meet(graph, node);
    case Opcode::mul:
    case Opcode::div:
      return factors_meet(graph, node);
    case Opcode::exp:
    case Opcode::log:
    case Opcode::sqrt:
    case Opcode::rsqrt:
      return Parts(graph, node.args[0], in_terms).any(is_function) ||
             is_square(graph, node.args[0]);
    default:
      return false;
  }
}

}  // namespace kiln
