#include "kiln/scalar/wgsl/cancelling.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "kiln/scalar/opcode_table.hpp"

namespace kiln {
namespace {

using Set = bool (*)(Opcode);

// Casts between floats do nothing if both are computed in f32.
bool is_cast(Opcode op) { return op == Opcode::cast || op == Opcode::cast_back; }
bool is_sum(Opcode op) { return op == Opcode::add || op == Opcode::sub || op == Opcode::neg; }
bool is_product(Opcode op) { return op == Opcode::mul || op == Opcode::div || op == Opcode::neg; }
bool is_root(Opcode op) { return op == Opcode::sqrt || op == Opcode::rsqrt || op == Opcode::pow; }
bool is_power(Opcode op) {
  return op == Opcode::exp || op == Opcode::exp2 || op == Opcode::expm1 || op == Opcode::pow;
}
bool is_log(Opcode op) { return op == Opcode::log || op == Opcode::log2 || op == Opcode::log1p; }
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

/// Node numbers, as bits from the lowest to the highest.
class Numbers {
 public:
  void insert(std::int32_t number) {
    const auto word = static_cast<std::size_t>(number) / bits;
    reach(word, word + 1);
    words_[word - first_] |= std::uint64_t{1} << (static_cast<std::size_t>(number) % bits);
  }
  void insert(const Numbers& others) {
    if (others.words_.empty()) return;
    reach(others.first_, others.end());
    for (std::size_t w = others.first_; w < others.end(); ++w)
      words_[w - first_] |= others.words_[w - others.first_];
  }
  [[nodiscard]] bool meets(const Numbers& other) const {
    const std::size_t end_of_both = std::min(end(), other.end());
    for (std::size_t w = std::max(first_, other.first_); w < end_of_both; ++w) {
      if ((words_[w - first_] & other.words_[w - other.first_]) != 0) return true;
    }
    return false;
  }

 private:
  static constexpr std::size_t bits = 64;

  [[nodiscard]] std::size_t end() const { return first_ + words_.size(); }
  void reach(std::size_t first, std::size_t past) {
    if (words_.empty()) first_ = first;
    if (first < first_) {
      words_.insert(words_.begin(), first_ - first, 0);
      first_ = first;
    }
    if (past > end()) words_.resize(past - first_);
  }

  std::size_t first_ = 0;  ///< word
  std::vector<std::uint64_t> words_;
};

/// What can be reached from a node through opcodes of a set.
struct Parts {
  Numbers nodes;       ///< but for literals
  unsigned kinds = 0;  ///< of all, one bit for each of `of_interest`

  [[nodiscard]] bool any(Set kind) const { return (kinds & bit(kind)) != 0; }
  [[nodiscard]] bool meets(const Parts& other) const { return nodes.meets(other.nodes); }

  static constexpr std::array<Set, 6> of_interest{is_log,      is_power,   is_root,
                                                  is_function, is_inverse, is_constant};
  static unsigned bit(Set kind) {
    const auto at = std::ranges::find(of_interest, kind);
    return 1U << static_cast<unsigned>(at - of_interest.begin());
  }
};

/// Goes through a graph once, operands before what they are operands of.
class Search {
 public:
  explicit Search(const ExprGraph& graph)
      : graph_(graph), nodes_(graph.nodes().size()), last_use_(graph.nodes().size()) {
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      for (const std::int32_t id : operands(graph.nodes()[n])) last_use_[at(id)] = n;
    }
  }

  std::vector<char> run() && {
    std::vector<char> out;
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      const ExprGraph::Node& node = graph_.nodes()[n];
      out.push_back(cancels(node) ? 1 : 0);
      reach(n, node);
      for (const std::int32_t id : operands(node)) {
        if (last_use_[at(id)] == n) nodes_[at(id)] = {};  // they would fill the memory
      }
    }
    return out;
  }

 private:
  struct Reached {
    Parts terms;
    Parts factors;
    unsigned in_sum = 0;  ///< kinds
    unsigned in_product = 0;
    bool square = false;  ///< a product of a node with itself, as below a root
  };

  static std::size_t at(std::int32_t id) { return static_cast<std::size_t>(id); }
  const Reached& operand(const ExprGraph::Node& node, std::size_t i) const {
    return nodes_[at(node.args[i])];
  }

  void reach(std::size_t n, const ExprGraph::Node& node) {
    Reached& own = nodes_[n];
    unsigned kinds = 0;
    for (const Set kind : Parts::of_interest) kinds |= kind(node.op) ? Parts::bit(kind) : 0;
    own.terms.kinds = own.factors.kinds = own.in_sum = own.in_product = kinds;
    if (!is_constant(node.op)) {
      own.terms.nodes.insert(static_cast<std::int32_t>(n));
      own.factors.nodes.insert(static_cast<std::int32_t>(n));
    }
    // Two loads of one input may be of one element.
    if (node.op == Opcode::load) {
      own.terms.nodes.insert(node.args[0]);
      own.factors.nodes.insert(node.args[0]);
    }
    for (const std::int32_t id : operands(node)) {
      const Reached& from = nodes_[at(id)];
      if (in_terms(node.op)) add(own.terms, from.terms);
      if (in_factors(node.op)) add(own.factors, from.factors);
      if (in_sum(node.op)) own.in_sum |= from.in_sum;
      if (in_product(node.op)) own.in_product |= from.in_product;
    }
    if (node.op == Opcode::neg || is_cast(node.op)) {
      own.square = operand(node, 0).square;
    } else if (is_product(node.op)) {
      own.square = operand(node, 0).factors.meets(operand(node, 1).factors);
    }
  }

  static void add(Parts& to, const Parts& from) {
    to.nodes.insert(from.nodes);
    to.kinds |= from.kinds;
  }

  static bool terms_meet(const Reached& a, const Reached& b) {
    return a.terms.meets(b.terms) || (a.terms.any(is_log) && b.terms.any(is_log)) ||
           (a.in_sum & b.in_sum & Parts::bit(is_constant)) != 0;
  }

  static bool factors_meet(Opcode op, const Reached& x, const Reached& y) {
    const Parts& a = x.factors;
    const Parts& b = y.factors;
    if (a.any(is_power) && b.any(is_power)) return true;
    if ((x.in_product & y.in_product & Parts::bit(is_constant)) != 0) return true;
    // x * x * x is the same in any order.
    const bool inverse = op == Opcode::div || a.any(is_inverse) || b.any(is_inverse);
    return inverse && (a.meets(b) || (a.any(is_root) && b.any(is_root)));
  }

  [[nodiscard]] bool cancels(const ExprGraph::Node& node) const {
    switch (node.op) {
      case Opcode::add:
      case Opcode::sub:
      case Opcode::equal:
      case Opcode::less:
      case Opcode::less_equal:
        return terms_meet(operand(node, 0), operand(node, 1));
      case Opcode::mul:
      case Opcode::div:
        return factors_meet(node.op, operand(node, 0), operand(node, 1));
      case Opcode::exp:
      case Opcode::exp2:
      case Opcode::expm1:
      case Opcode::log:
      case Opcode::log2:
      case Opcode::log1p:
      case Opcode::sqrt:
      case Opcode::rsqrt:
        return operand(node, 0).terms.any(is_function) || operand(node, 0).square;
      default:
        return false;
    }
  }

  const ExprGraph& graph_;
  std::vector<Reached> nodes_;
  std::vector<std::size_t> last_use_;
};

}  // namespace

std::vector<char> may_cancel(const ExprGraph& graph) { return Search(graph).run(); }

}  // namespace kiln
