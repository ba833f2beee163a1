#include "kiln/autodiff/gradients.hpp"

#include <fmt/format.h>

#include <unordered_set>

#include "kiln/autodiff/node.hpp"
#include "kiln/support/error.hpp"

namespace kiln {
namespace {

/// Every node that the outputs depend on, operands before their users.
std::vector<Node*> in_order(std::span<const AnyTensor> outs) {
  std::vector<Node*> order;
  std::unordered_set<Node*> seen;
  std::vector<std::pair<Node*, std::size_t>> stack;
  for (const AnyTensor& out : outs) {
    Node* root = NodeAccess::node(out).get();
    if (root == nullptr || !seen.insert(root).second) continue;
    stack.emplace_back(root, 0);
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      if (next == node->parents.size()) {
        order.push_back(node);
        stack.pop_back();
        continue;
      }
      Node* parent = node->parents[next++].node.get();
      if (parent != nullptr && seen.insert(parent).second) stack.emplace_back(parent, 0);
    }
  }
  return order;
}

/// The gradients that have reached each node so far, in this backward pass alone. Nodes do not
/// change, so several threads may run backward over one graph.
class Arrived {
 public:
  void add(const std::shared_ptr<Node>& node, std::size_t slot, const Value& gradient) {
    auto& slots = by_node_[node.get()];
    slots.resize(std::max<std::size_t>(node->out.size(), 1));
    slots[slot] = slots[slot] ? kiln::add(*node->device, slots[slot], gradient) : gradient;
  }

  std::vector<Value> take(Node* node) {
    const auto at = by_node_.find(node);
    if (at == by_node_.end()) return {};
    std::vector<Value> slots = std::move(at->second);
    by_node_.erase(at);
    return slots;
  }

 private:
  std::unordered_map<Node*, std::vector<Value>> by_node_;
};

/// The gradient that a rule set for one input, checked, and summed to the input's shape.
Value settled(const Node& node, std::size_t i, const GradSlot& slot) {
  const auto& names = node.rule->inputs;
  const std::string where =
      fmt::format("{}: backward: gradient of input '{}'", node.op,
                  i < names.size() ? std::string(names[i]) : std::to_string(i));
  if (!slot.value()) throw Error(where + " was not set");
  const Device& on = slot.value()->device();
  if (!on.same_as(*node.device)) {
    throw DeviceError(
        fmt::format("{} is on another device ({}) than the input ({}); move it with to(device)",
                    where, to_string(on), to_string(*node.device)));
  }
  const Value& g = slot.value()->value();
  const TensorSpec& wanted = node.in[i];
  if (g.dtype() != wanted.dtype) {
    throw DTypeError(fmt::format("{} is {}, but the input is {}", where, to_string(g.spec()),
                                 to_string(wanted)));
  }
  if (g.shape() == wanted.shape) return g;
  if (!slot.reduced()) {
    throw ShapeError(fmt::format(
        "{} has shape {}, but the input has {}; set_reduced() sums over broadcast dimensions",
        where, to_string(g.shape()), to_string(wanted.shape)));
  }
  bool broadcasts = g.shape().rank() >= wanted.shape.rank();
  for (int axis = -1; broadcasts && axis >= -wanted.shape.rank(); --axis) {
    broadcasts = wanted.shape[axis] == g.shape()[axis] || wanted.shape[axis] == 1;
  }
  if (!broadcasts) {
    throw ShapeError(fmt::format("{} has shape {}, to which the input's {} does not broadcast",
                                 where, to_string(g.shape()), to_string(wanted.shape)));
  }
  return sum_to(*node.device, g, wanted.shape);
}

/// Runs one node's rule, and adds the gradients of its inputs to their nodes.
void propagate(Node& node, std::span<const Value> gradients, Arrived& arrived) {
  std::vector<AnyTensor> grads;
  for (std::size_t i = 0; i < node.out.size(); ++i) {
    // The gradient of an output that nobody used is zero.
    grads.emplace_back(gradients[i] ? gradients[i] : full(*node.device, node.out[i], 0),
                       *node.device);
  }
  std::vector<GradSlot> slots;
  for (const Node::Edge& parent : node.parents) slots.emplace_back(parent.node != nullptr);
  node.rule->backward(node, grads, slots);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i])
      arrived.add(node.parents[i].node, node.parents[i].slot, settled(node, i, slots[i]));
  }
}

}  // namespace

Gradients vjp(std::span<const AnyTensor> outs, std::span<const AnyTensor> seeds) {
  if (outs.size() != seeds.size()) {
    throw ShapeError(fmt::format("vjp: takes one seed for each output, got {} outputs and {} seeds",
                                 outs.size(), seeds.size()));
  }
  Arrived arrived;
  for (std::size_t i = 0; i < outs.size(); ++i) {
    if (!seeds[i].device().same_as(outs[i].device())) {
      throw DeviceError(fmt::format(
          "vjp: seed {} is on another device ({}) than its output ({}); move it with to(device)", i,
          to_string(seeds[i].device()), to_string(outs[i].device())));
    }
    if (seeds[i].shape() != outs[i].shape()) {
      throw ShapeError(fmt::format("vjp: seed {} must have its output's shape ({}, {})", i,
                                   to_string(seeds[i].shape()), to_string(outs[i].shape())));
    }
    if (seeds[i].dtype() != outs[i].dtype()) {
      throw DTypeError(fmt::format("vjp: seed {} must have its output's dtype ({}, {})", i,
                                   to_string(seeds[i].dtype()), to_string(outs[i].dtype())));
    }
    if (outs[i].tracked())
      arrived.add(NodeAccess::node(outs[i]), NodeAccess::slot(outs[i]), seeds[i].value());
  }
  Gradients result;
  const std::vector<Node*> order = in_order(outs);
  for (std::size_t k = order.size(); k-- > 0;) {
    Node& node = *order[k];
    const std::vector<Value> gradients = arrived.take(&node);
    if (gradients.empty()) continue;
    if (node.rule == nullptr) {
      result.by_node_.emplace(node.id, AnyTensor(gradients[0], node.device->plain()));
    } else {
      propagate(node, gradients, arrived);
    }
  }
  return result;
}

AnyTensor Gradients::of(const AnyTensor& leaf) const {
  const auto& node = NodeAccess::node(leaf);
  if (node == nullptr) {
    throw UnsupportedError(fmt::format(
        "gradients: the tensor {} was not marked; call require_grad() on it before the forward "
        "pass, and ask with the marked tensor",
        to_string(leaf.spec())));
  }
  if (node->rule != nullptr) {
    throw UnsupportedError(fmt::format(
        "gradients: the tensor {} is the result of '{}'; gradients are kept for marked leaves only",
        to_string(leaf.spec()), node->op));
  }
  const auto at = by_node_.find(node->id);
  if (at == by_node_.end()) {
    throw UnsupportedError(fmt::format("gradients: the loss does not depend on the tensor {}",
                                       to_string(leaf.spec())));
  }
  return at->second;
}

bool Gradients::contains(const AnyTensor& leaf) const {
  const auto& node = NodeAccess::node(leaf);
  return node != nullptr && by_node_.contains(node->id);
}

}  // namespace kiln
