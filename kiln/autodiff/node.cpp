#include "kiln/autodiff/node.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kiln/support/error.hpp"

namespace kiln {
namespace {

std::atomic<std::int64_t> nodes_alive{0};

/// Recipes build on recipes. Every 16th result of such a chain is kept, which bounds how much is
/// computed again.
constexpr int anchor_every = 16;

void no_gradient(const Node& node, std::span<const AnyTensor>, std::span<GradSlot>) {
  throw UnsupportedError(
      fmt::format("{0}: has no gradient: it has neither a backward rule nor Default<Autodiff>; "
                  "detach() its inputs, or add a rule to {0}",
                  node.op));
}

std::shared_ptr<Recipe> make_recipe(const OpRecord& proto, std::span<const AnyTensor> in,
                                    const Node& node, std::span<const Value> values,
                                    const Device& device) {
  // NOLINTNEXTLINE(modernize-make-shared): an aggregate with a mutex
  auto recipe = std::shared_ptr<Recipe>(new Recipe{
      .record = proto, .out = node.out, .in = {}, .device = device, .mutex = {}, .made = {}});
  int depth = 0;
  for (const AnyTensor& t : in) {
    recipe->in.push_back(Saver{}.keep(t));
    const auto& parent = NodeAccess::node(t);
    if (parent != nullptr && parent->recipe != nullptr)
      depth = std::max(depth, parent->recipe->depth);
  }
  recipe->depth = depth + 1;
  if (recipe->depth > anchor_every) return nullptr;
  for (const Value& v : values) recipe->made.emplace_back(v);
  return recipe;
}

}  // namespace

std::atomic<std::uint64_t> Node::last_id{0};

std::int64_t Node::alive() { return nodes_alive; }

Node::Node() { ++nodes_alive; }

Node::~Node() {
  thread_local std::vector<std::shared_ptr<Node>>* pending = nullptr;
  --nodes_alive;
  const auto hand_over = [this](std::vector<std::shared_ptr<Node>>& to) {
    for (Edge& edge : parents) {
      if (edge.node != nullptr) to.push_back(std::move(edge.node));
    }
  };
  if (pending != nullptr) {
    hand_over(*pending);
    return;
  }
  std::vector<std::shared_ptr<Node>> mine;
  pending = &mine;
  hand_over(mine);
  while (!mine.empty()) {
    const std::shared_ptr<Node> next = std::move(mine.back());
    mine.pop_back();
  }
  pending = nullptr;
}

AnyTensor NodeAccess::make(Value value, const Device& device, std::shared_ptr<Node> node,
                           std::size_t slot) {
  AnyTensor t(std::move(value), device);
  t.node_ = std::move(node);
  t.slot_ = slot;
  return t;
}

Checkpoint Saver::keep(const AnyTensor& tensor) const {
  Checkpoint c;
  c.device_ = tensor.device();
  const auto& node = NodeAccess::node(tensor);
  if (node != nullptr && node->recipe != nullptr) {
    c.recipe_ = node->recipe;
  } else {
    c.strong_ = tensor.value();
  }
  return c;
}

AnyTensor Checkpoint::get() const {
  if (strong_) return {strong_, *device_};
  if (recipe_ != nullptr) return {recipe_->replay(0), *device_};
  throw Error(
      "checkpoint: this tensor was not kept; keep it in the save rule if the backward rule needs "
      "it");
}

Value Recipe::replay(std::size_t slot) {
  const std::lock_guard lock(mutex);
  if (Value still_there = made[slot].lock()) return still_there;
  std::vector<Value> inputs;
  for (const Checkpoint& c : in) inputs.push_back(c.get().value());
  const std::vector<Value> values = kiln::record(record, device, inputs, out);
  for (std::size_t i = 0; i < values.size(); ++i) made[i] = WeakValue(values[i]);
  return values[slot];
}

std::shared_ptr<Node> make_leaf(const TensorSpec& spec, const Device& device) {
  auto node = std::make_shared<Node>();
  node->op = "leaf";
  node->out = {spec};
  node->device = device.plain();
  return node;
}

std::vector<AnyTensor> attach(std::string_view op, std::vector<Value> values, const Device& device,
                              const GradRule& rule, std::span<const AnyTensor> in,
                              std::shared_ptr<const void> attributes, const OpRecord* proto) {
  std::vector<AnyTensor> out;
  out.reserve(values.size());
  const auto differentiable = [](const Value& v) { return is_float(v.dtype()); };
  const bool tracked =
      std::ranges::any_of(in, &AnyTensor::tracked) && std::ranges::any_of(values, differentiable);
  if (!tracked) {
    for (Value& v : values) out.emplace_back(std::move(v), device);
    return out;
  }
  static const GradRule unsupported{.backward = no_gradient};
  auto node = std::make_shared<Node>();
  node->op = op;
  node->rule = rule.backward != nullptr ? &rule : &unsupported;
  node->attributes = std::move(attributes);
  node->device = device.plain();  // what a backward rule computes is in no gradient graph
  for (const AnyTensor& t : in) {
    node->parents.push_back({NodeAccess::node(t), NodeAccess::slot(t)});
    node->in.push_back(t.spec());
  }
  for (const Value& v : values) node->out.push_back(v.spec());
  const bool replayable = rule.bound == Bound::memory && proto != nullptr && values.size() == 1;
  if (replayable && device.checkpointing() == Checkpointing::balanced) {
    node->recipe = make_recipe(*proto, in, *node, values, device.plain());
  }
  if (rule.backward != nullptr && rule.save != nullptr) {
    // save() gets the results without their node: a node that owned its own output would never end.
    // If they can be computed again, they get a node that has only the recipe.
    std::shared_ptr<Node> shell;
    if (node->recipe != nullptr) {
      shell = std::make_shared<Node>();
      shell->recipe = node->recipe;
    }
    std::vector<AnyTensor> seen;
    for (std::size_t i = 0; i < values.size(); ++i)
      seen.push_back(NodeAccess::make(values[i], device.plain(), shell, i));
    node->saved = rule.save(node->attributes.get(), Saver{}, in, seen);
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    out.push_back(differentiable(values[i])
                      ? NodeAccess::make(std::move(values[i]), device, node, i)
                      : AnyTensor(std::move(values[i]), device));
  }
  return out;
}

std::vector<AnyTensor> run(const OpRecord& record, const Device& device,
                           std::span<const TensorSpec> out, const GradRule& rule,
                           std::span<const AnyTensor> in,
                           const std::shared_ptr<const void>& attributes) {
  std::vector<Value> inputs;
  inputs.reserve(in.size());
  for (const AnyTensor& t : in) inputs.push_back(t.value());
  return attach(record.name, kiln::record(record, device, inputs, out), device, rule, in,
                attributes, &record);
}

Device common_device(std::string_view op, std::span<const std::string_view> names,
                     std::span<const AnyTensor> in) {
  if (in.empty()) throw DeviceError(fmt::format("{}: takes no tensors, so it needs a device", op));
  const Device* common = &in[0].device();
  bool eager = common->is_eager();
  bool fallback = common->allows_fallback();
  for (std::size_t i = 1; i < in.size(); ++i) {
    const Device& device = in[i].device();
    if (!device.same_as(*common)) {
      const auto name = [&](std::size_t k) {
        return k < names.size() ? std::string(names[k]) : fmt::format("input {}", k);
      };
      throw DeviceError(fmt::format(
          "{}: operands must share a device ({} is on {}, {} on {}); move one with to(device)", op,
          name(0), to_string(in[0].device()), name(i), to_string(device)));
    }
    if (device.has_autodiff() && !common->has_autodiff()) common = &device;
    eager = eager || device.is_eager();
    fallback = fallback || device.allows_fallback();
  }
  Device found = eager && !common->is_eager() ? common->eager() : *common;
  return fallback && !found.allows_fallback() ? found.fallback() : found;
}

}  // namespace kiln
