// What algebra may cancel, against a model that looks at every pair of operands anew.
#include "kiln/scalar/wgsl/cancelling.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <set>

#include "kiln/scalar/opcode_table.hpp"

namespace kiln {
namespace {

using Ops = std::set<Opcode>;

/// The nodes that are reached from `from` through `through`, itself included.
std::set<std::int32_t> reached(const ExprGraph& graph, std::int32_t from, const Ops& through) {
  std::set<std::int32_t> found;
  const std::function<void(std::int32_t)> visit = [&](std::int32_t id) {
    if (!found.insert(id).second || !through.contains(graph.node(id).op)) return;
    for (const std::int32_t operand : operands(graph.node(id))) visit(operand);
  };
  visit(from);
  return found;
}

class Model {
 public:
  explicit Model(const ExprGraph& graph) : graph_(graph) {}

  bool may_cancel(const ExprGraph::Node& node) const {
    if (Ops{Opcode::add, Opcode::sub, Opcode::equal, Opcode::less, Opcode::less_equal}.contains(
            node.op)) {
      return meet(node, in_terms_) || both(node, in_terms_, {Opcode::log}) ||
             both(node, in_sum_, {Opcode::constant});
    }
    if (node.op == Opcode::mul || node.op == Opcode::div) {
      if (both(node, in_factors_, powers_) || both(node, in_product_, {Opcode::constant}))
        return true;
      Ops inverse = roots_;
      inverse.insert(Opcode::div);
      return (node.op == Opcode::div || any(node.args[0], in_factors_, inverse) ||
              any(node.args[1], in_factors_, inverse)) &&
             (meet(node, in_factors_) || both(node, in_factors_, roots_));
    }
    if (Ops{Opcode::exp, Opcode::log, Opcode::sqrt, Opcode::rsqrt}.contains(node.op))
      return any(node.args[0], in_terms_, functions_) || square(node.args[0]);
    return false;
  }

 private:
  bool any(std::int32_t from, const Ops& through, const Ops& what) const {
    for (const std::int32_t id : reached(graph_, from, through)) {
      if (what.contains(graph_.node(id).op)) return true;
    }
    return false;
  }
  bool both(const ExprGraph::Node& node, const Ops& through, const Ops& what) const {
    return any(node.args[0], through, what) && any(node.args[1], through, what);
  }
  bool meet(const ExprGraph::Node& node, const Ops& through) const {
    const auto b = reached(graph_, node.args[1], through);
    for (const std::int32_t id : reached(graph_, node.args[0], through)) {
      if (b.contains(id) && graph_.node(id).op != Opcode::constant) return true;
    }
    return false;
  }
  bool square(std::int32_t id) const {
    const ExprGraph::Node& node = graph_.node(id);
    if (Ops{Opcode::neg, Opcode::cast, Opcode::cast_back}.contains(node.op))
      return square(node.args[0]);
    return (node.op == Opcode::mul || node.op == Opcode::div) && meet(node, in_factors_);
  }

  const Ops in_sum_{Opcode::add, Opcode::sub, Opcode::neg, Opcode::cast, Opcode::cast_back};
  const Ops in_product_{Opcode::mul, Opcode::div, Opcode::neg, Opcode::cast, Opcode::cast_back};
  const Ops in_terms_{Opcode::add, Opcode::sub,  Opcode::mul,      Opcode::div,
                      Opcode::neg, Opcode::cast, Opcode::cast_back};
  const Ops in_factors_{Opcode::mul,       Opcode::div, Opcode::neg,  Opcode::cast,
                        Opcode::cast_back, Opcode::abs, Opcode::sqrt, Opcode::rsqrt};
  const Ops roots_{Opcode::sqrt, Opcode::rsqrt, Opcode::pow};
  const Ops powers_{Opcode::exp, Opcode::pow};
  const Ops functions_{Opcode::sqrt, Opcode::rsqrt, Opcode::pow, Opcode::exp, Opcode::log};
  const ExprGraph& graph_;
};

/// `steps` operations on what is there already, mostly the latest.
ExprGraph random_graph(std::uint32_t seed, int steps) {
  std::mt19937 random(seed);
  const auto below = [&](std::size_t n) { return static_cast<std::int32_t>(random() % n); };
  ExprGraph graph;
  for (int i = 0; i < 3; ++i) (void)graph.input(i);
  (void)graph.intern({.op = Opcode::constant, .value = 2});
  (void)graph.intern({.op = Opcode::constant, .value = 3});
  constexpr std::array unary{Opcode::neg, Opcode::abs,  Opcode::sqrt, Opcode::rsqrt, Opcode::exp,
                             Opcode::log, Opcode::tanh, Opcode::cast, Opcode::erf};
  constexpr std::array binary{Opcode::add, Opcode::sub,  Opcode::mul, Opcode::div,
                              Opcode::pow, Opcode::less, Opcode::max};
  for (int i = 0; i < steps; ++i) {
    const std::size_t size = graph.nodes().size();
    const auto any = [&] {
      const std::size_t recent = random() % 2 == 0 ? 4 : size;
      return static_cast<std::int32_t>(size) - 1 - below(std::min(recent, size));
    };
    if (random() % 3 == 0) {
      (void)graph.intern({.op = unary[random() % unary.size()], .args = {any(), -1, -1}});
    } else {
      (void)graph.intern({.op = binary[random() % binary.size()], .args = {any(), any(), -1}});
    }
  }
  return graph;
}

TEST(MayCancel, IsWhatALookAtEveryOperationSays) {
  int cancelling = 0;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    const ExprGraph graph = random_graph(seed, seed < 50 ? 25 : 200);
    const Model model(graph);
    const std::vector<char> got = may_cancel(graph);
    ASSERT_EQ(got.size(), graph.nodes().size());
    for (std::size_t n = 0; n < got.size(); ++n) {
      EXPECT_EQ(got[n] != 0, model.may_cancel(graph.nodes()[n]))
          << "seed " << seed << " node " << n;
      cancelling += got[n];
    }
  }
  EXPECT_GT(cancelling, 100);
}

/// Terms that lie far apart in a long body.
TEST(MayCancel, FindsWhatALongChainHasInCommon) {
  for (const bool common : {false, true}) {
    ExprGraph graph;
    const Expr x = graph.input(0);
    Expr sum = x + graph.input(1);
    for (int i = 2; i < 2000; ++i) sum = sum + graph.input(i);
    const Expr difference = sum - (common ? x : graph.input(2000));
    const auto id = static_cast<std::size_t>(graph.place(difference));
    EXPECT_EQ(may_cancel(graph)[id] != 0, common);
  }
}

}  // namespace
}  // namespace kiln
