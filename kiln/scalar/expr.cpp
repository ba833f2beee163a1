#include "kiln/scalar/expr.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <mutex>
#include <unordered_map>

#include "kiln/scalar/opcode_table.hpp"
#include "kiln/support/error.hpp"

namespace kiln {
namespace {

thread_local const detail::KeptForEveryParam* kept_rule = nullptr;

/// Copies the nodes that `roots` need, in order, and gives the new id of every old one.
std::vector<std::int32_t> copy_needed(const ExprGraph& from, std::span<const std::int32_t> roots,
                                      ExprGraph& to) {
  std::vector<char> needed(from.nodes().size());
  for (const std::int32_t root : roots) needed[static_cast<std::size_t>(root)] = 1;
  for (std::size_t i = needed.size(); i-- > 0;) {
    if (needed[i] == 0) continue;
    for (const std::int32_t arg : operands(from.nodes()[i]))
      needed[static_cast<std::size_t>(arg)] = 1;
  }
  std::vector<std::int32_t> moved(needed.size(), -1);
  for (std::size_t i = 0; i < needed.size(); ++i) {
    if (needed[i] == 0) continue;
    ExprGraph::Node node = from.nodes()[i];
    const std::size_t count = operands(node).size();
    for (std::size_t a = 0; a < count; ++a)
      node.args[a] = moved[static_cast<std::size_t>(node.args[a])];
    moved[i] = to.intern(node);
  }
  return moved;
}

std::string spell(const ExprGraph& graph, int inputs, int params,
                  std::span<const std::int32_t> roots) {
  std::string key;
  const auto append = [&](const auto& value) {
    key.append(reinterpret_cast<const char*>(&value),  // NOLINT: the bytes are what is wanted
               sizeof value);
  };
  append(inputs);
  append(params);
  append(graph.nodes().size());
  for (const ExprGraph::Node& node : graph.nodes()) {
    append(node.op);
    append(node.args);
    append(node.value);
    append(node.dtype);
  }
  for (const std::int32_t root : roots) append(root);
  return key;
}

/// All bodies by their key. The table keeps none alive; their users do. Unused entries are removed
/// each time the table has doubled, so it is at most twice as large as what was in use.
class Bodies {
 public:
  BodyPtr intern(std::shared_ptr<const Body> body) {
    const std::lock_guard lock(mutex_);
    if (bodies_.size() >= sweep_at_) {
      std::erase_if(bodies_, [](const auto& entry) { return entry.second.expired(); });
      sweep_at_ = std::max<std::size_t>(2 * bodies_.size(), smallest);
    }
    auto& slot = bodies_[body->key];
    if (auto same = slot.lock()) return same;
    slot = body;
    return body;
  }
  std::size_t size() {
    const std::lock_guard lock(mutex_);
    return bodies_.size();
  }

 private:
  static constexpr std::size_t smallest = 256;
  std::mutex mutex_;
  std::unordered_map<std::string, std::weak_ptr<const Body>> bodies_;
  std::size_t sweep_at_ = smallest;
};

Bodies& bodies() {
  static Bodies& all = *new Bodies;  // never destroyed: bodies are made even while statics end
  return all;
}

}  // namespace

detail::KeptForEveryParam::KeptForEveryParam(std::string_view op, std::string_view rule)
    : op_(op), rule_(rule), outer_(kept_rule) {
  kept_rule = this;
}
detail::KeptForEveryParam::~KeptForEveryParam() { kept_rule = outer_; }
std::string_view detail::KeptForEveryParam::op() {
  return kept_rule == nullptr ? "body" : kept_rule->op_;
}

double Param::value() const {
  if (kept_rule == nullptr) return value_;
  throw Error(fmt::format(
      "{}: rule '{}' reads the value of a Param, but what the rule gives is kept for every value; "
      "use the Param itself, or make the number a field of type double, which is part of the key",
      kept_rule->op_, kept_rule->rule_));
}

std::size_t bodies_interned() { return bodies().size(); }

std::size_t ExprGraph::Hash::operator()(const Node& node) const {
  std::uint64_t hash = std::bit_cast<std::uint64_t>(node.value);
  const auto mix = [&](std::uint64_t more) {
    hash = (hash ^ more) * 0x9e37'79b9'7f4a'7c15U;  // 2^64 over the golden ratio spreads the bits
    hash ^= hash >> 32U;
  };
  mix(static_cast<std::uint64_t>(node.op) << 8U | static_cast<std::uint64_t>(node.dtype));
  for (const std::int32_t arg : node.args) mix(static_cast<std::uint32_t>(arg));
  return hash;
}

std::int32_t ExprGraph::intern(Node node) {
  if (const std::int32_t same = simplified(node); same >= 0) return same;
  const auto [at, added] = ids_.try_emplace(node, static_cast<std::int32_t>(nodes_.size()));
  if (added) nodes_.push_back(node);
  return at->second;
}

bool ExprGraph::is_constant(std::int32_t id, double value) const {
  // One that has a dtype gives it to the other operand, so it stays.
  const Node& n = node(id);
  return n.op == Opcode::constant && n.dtype == DType::f32 && n.value == value &&
         !std::signbit(n.value);
}

std::int32_t ExprGraph::simplified(const Node& node) const {
  // Only identities that hold for every input, including NaN, infinities and negative zero.
  if (node.op == Opcode::mul && is_constant(node.args[0], 1)) return node.args[1];
  if ((node.op == Opcode::mul || node.op == Opcode::div) && is_constant(node.args[1], 1))
    return node.args[0];
  if (node.op == Opcode::sub && is_constant(node.args[1], 0)) return node.args[0];
  return -1;
}

std::int32_t ExprGraph::place(const Expr& expr) {
  if (expr.graph_ == this) return expr.id_;
  const std::string_view op = detail::KeptForEveryParam::op();
  if (expr.graph_ != nullptr)
    throw Error(fmt::format("{}: an expression of another operation was used", op));
  if (expr.param_ == nullptr) return intern({.op = Opcode::constant, .value = expr.value_});
  const auto at = std::ranges::find(params_, expr.param_);
  if (at == params_.end()) {
    throw Error(fmt::format(
        "{}: a Param must be a field of the operation, and be used in place, not copied", op));
  }
  return intern(
      {.op = Opcode::param, .args = {static_cast<std::int32_t>(at - params_.begin()), -1, -1}});
}

Expr ExprGraph::input(int slot) {
  return expr(intern({.op = Opcode::input, .args = {slot, -1, -1}}));
}
Expr ExprGraph::expr(std::int32_t id) { return {this, id}; }

Expr detail::make_expr(Opcode op, std::span<const Expr> args, DType dtype) {
  ExprGraph* graph = nullptr;
  for (const Expr& arg : args) {
    if (arg.in_graph()) graph = arg.graph();
  }
  if (graph == nullptr) {
    throw Error(fmt::format("{}: an expression needs at least one input of the operation",
                            KeptForEveryParam::op()));
  }
  ExprGraph::Node node{.op = op, .dtype = dtype};
  for (std::size_t i = 0; i < args.size(); ++i) node.args[i] = graph->place(args[i]);
  return graph->expr(graph->intern(node));
}

Expr asinh(const Expr& x) {
  const Expr a = abs(x);
  // x^2 is lost beside 1 below the first bound, and 1 beside x^2 above the second.
  const Expr middle = log1p(a + a * a / (1 + sqrt(1 + a * a)));
  const Expr size = select(a < 1e4, middle, log(a) + 0.69314718055994531);
  return select(a < 1e-4, x, select(x < 0, -size, size));
}

Expr acosh(const Expr& x) {
  const Expr above = x - 1;
  const Expr near = log1p(above + sqrt(above) * sqrt(x + 1));
  return select(x < 1e4, near, log(x) + 0.69314718055994531);
}

Expr atanh(const Expr& x) { return 0.5 * (log1p(x) - log1p(-x)); }

Expr cast(const Expr& x, DType to) { return detail::make_expr(Opcode::cast, std::array{x}, to); }

bool Body::uses(std::size_t root, int slot) const {
  std::vector<char> needed(graph->nodes().size());
  needed[static_cast<std::size_t>(roots[root])] = 1;
  for (std::size_t i = needed.size(); i-- > 0;) {
    if (needed[i] == 0) continue;
    const ExprGraph::Node& node = graph->nodes()[i];
    if (node.op == Opcode::input && node.args[0] == slot) return true;
    for (const std::int32_t arg : operands(node)) needed[static_cast<std::size_t>(arg)] = 1;
  }
  return false;
}

bool Body::has_index() const { return std::ranges::find(indexed, true) != indexed.end(); }

BodyPtr make_body(const ExprGraph& graph, int inputs, int params,
                  std::span<const std::int32_t> roots) {
  auto body = std::make_shared<Body>();
  auto pruned = std::make_shared<ExprGraph>();
  const auto moved = copy_needed(graph, roots, *pruned);
  for (const std::int32_t root : roots)
    body->roots.push_back(moved[static_cast<std::size_t>(root)]);
  body->inputs = inputs;
  body->params = params;
  body->key = spell(*pruned, inputs, params, body->roots);
  body->indexed.resize(static_cast<std::size_t>(inputs));
  for (const ExprGraph::Node& node : pruned->nodes()) {
    if (node.op == Opcode::coordinate) body->axes |= 1U << static_cast<unsigned>(node.args[0]);
    if (node.op == Opcode::position) body->position = true;
    if (node.op == Opcode::element || node.op == Opcode::load)
      body->indexed[static_cast<std::size_t>(pruned->node(node.args[0]).args[0])] = true;
  }
  body->graph = std::move(pruned);

  return bodies().intern(std::move(body));
}

BodyPtr adjoint(const Body& body) {
  if (body.roots.size() != 1) throw Error("adjoint: takes a function of one result");
  ExprGraph graph = *body.graph;
  const std::int32_t root = body.roots[0];
  // The gradient that has come to each node so far; none if nothing has.
  std::vector<Expr> flows(static_cast<std::size_t>(root) + 1, Expr::none());
  flows.back() = graph.input(body.inputs + 1);
  std::vector<std::int32_t> roots(static_cast<std::size_t>(body.inputs), -1);
  for (std::int32_t id = root; id >= 0; --id) {
    const Expr gradient = flows[static_cast<std::size_t>(id)];
    if (!gradient.in_graph()) continue;
    const ExprGraph::Node node = graph.node(id);
    if (node.op == Opcode::input) roots[static_cast<std::size_t>(node.args[0])] = gradient.id();
    if (node.op == Opcode::cast && !is_float(node.dtype)) continue;  // an integer has no gradient
    const auto args = operands(node);
    std::array<Expr, 3> in{Expr::none(), Expr::none(), Expr::none()};
    for (std::size_t i = 0; i < args.size(); ++i) in[i] = graph.expr(args[i]);
    // The result is an input of the adjoint: to read it is cheaper than to compute it again.
    const Expr self = id == root ? graph.input(body.inputs) : graph.expr(id);
    std::array<Expr, 3> out{Expr::none(), Expr::none(), Expr::none()};
    row(node.op).adjoint(in, self, gradient, out);
    for (std::size_t i = 0; i < args.size(); ++i) {
      if (!out[i].in_graph()) continue;
      Expr& sum = flows[static_cast<std::size_t>(args[i])];
      sum = sum.in_graph() ? sum + out[i] : out[i];
    }
  }
  for (std::int32_t& id : roots) {
    if (id < 0) id = graph.intern({.op = Opcode::constant, .value = 0});
  }
  return make_body(graph, body.inputs + 2, body.params, roots);
}

double evaluate(const Body& body, std::size_t root, std::span<const double> inputs,
                std::span<const double> params) {
  std::vector<double> values(body.graph->nodes().size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const ExprGraph::Node& node = body.graph->nodes()[i];
    const auto slot = static_cast<std::size_t>(std::max(node.args[0], 0));
    switch (node.op) {
      case Opcode::input:
        values[i] = inputs[slot];
        break;
      case Opcode::param:
        values[i] = params[slot];
        break;
      case Opcode::constant:
        values[i] = node.value;
        break;
      default: {
        std::array<double, 3> args{};
        const auto ids = operands(node);
        for (std::size_t a = 0; a < ids.size(); ++a)
          args[a] = values[static_cast<std::size_t>(ids[a])];
        values[i] = row(node.op).evaluate(args, node.dtype);
      }
    }
  }
  return values[static_cast<std::size_t>(body.roots[root])];
}

}  // namespace kiln
