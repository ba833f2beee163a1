#include "kiln/fusion/plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_set>

#include "kiln/fusion/passes/rewrite.hpp"
#include "kiln/support/overload.hpp"

namespace kiln::fusion {
namespace {

std::string name_of(const Node& node, const std::vector<std::string>& names) {
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

/// Kernels know buffers, and no indices.
void read_by_loads(Node& node) {
  const auto after = [&](NodeEpilogue& epilogue) {
    if (epilogue.body.body != nullptr)
      epilogue.body = with_loads(epilogue.body, std::span(node.in).subspan(epilogue.first), 1);
  };
  std::visit(Overload{
                 [&](Elementwise& work) { work.body = with_loads(work.body, node.in); },
                 [&](Reduce& work) {
                   if (work.before.body != nullptr) work.before = with_loads(work.before, node.in);
                   after(work.epilogue);
                 },
                 [&](Call& work) { after(work.epilogue); },
                 [](Rows&) {},
             },
             node.work);
}

/// Adds up the memory that belongs to a plan.
class Counting {
 public:
  [[nodiscard]] std::size_t total() const { return bytes_; }

  template <class T>
  void add(const std::vector<T>& list) {
    bytes_ += list.capacity() * sizeof(T);
  }
  void add(const std::string& text) { bytes_ += text.capacity(); }

  void add(const Graph& graph) {
    add(graph.values);
    add(graph.nodes);
    add(graph.copies);
    for (const Node& node : graph.nodes) {
      add(node.records);
      add(node.in);
      add(node.out);
      std::visit([&](const auto& work) { add(work); }, node.work);
    }
  }

 private:
  void add(const Elementwise& work) { add(work.body); }
  void add(const Reduce& work) {
    add(work.before);
    add(work.epilogue.body);
  }
  void add(const Call& work) {
    add(work.identity);
    add(work.results);
    add(work.takes.loads);
    add(work.producers);
    for (const NodeProducer& producer : work.producers) add(producer.body);
    add(work.epilogue.body);
  }
  void add(const Rows& work) {
    add(work.body);
    add(work.folds);
  }
  void add(const BoundBody& bound) {
    add(bound.params);
    if (bound.body == nullptr || !bodies_.insert(bound.body.get()).second) return;
    constexpr std::size_t entry =
        sizeof(ExprGraph::Node) + 4 * sizeof(void*);  // an entry of its index
    add(bound.body->key);
    add(bound.body->key);  // the table of bodies has it, too
    bytes_ += sizeof(Body) + bound.body->graph->nodes().size() * (sizeof(ExprGraph::Node) + entry);
  }

  std::size_t bytes_ = 0;
  std::unordered_set<const Body*> bodies_;
};

}  // namespace

std::size_t bytes_of(const Plan& plan) {
  Counting bytes;
  bytes.add(plan.source);
  bytes.add(plan.original);
  bytes.add(plan.graph);
  bytes.add(plan.ops);
  bytes.add(plan.names);
  for (const std::string& name : plan.names) bytes.add(name);
  bytes.add(plan.last_read);
  for (const auto& values : plan.last_read) bytes.add(values);
  return sizeof(Plan) + bytes.total();
}

bool Plan::lasts() const {
  return std::ranges::all_of(source.nodes, [](const Node& node) {
    const auto* call = std::get_if<Call>(&node.work);
    return call == nullptr || call->fault == nullptr || is_lasting(call->fault);
  });
}

PlanPtr PlanCache::find(std::string_view form) {
  const auto at = by_form_.find(form);
  if (at == by_form_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, at->second);
  return at->second->plan;
}

PlanPtr PlanCache::add(std::string form, PlanPtr plan) {
  if (PlanPtr known = find(form)) return known;
  const std::size_t bytes = sizeof(Entry) + form.capacity() + bytes_of(*plan);
  entries_.push_front({std::move(form), std::move(plan), bytes});
  by_form_.emplace(entries_.front().form, entries_.begin());
  bytes_ += bytes;
  while (bytes_ > most_bytes_ && entries_.size() > 1) {
    bytes_ -= entries_.back().bytes;
    by_form_.erase(entries_.back().form);
    entries_.pop_back();
  }
  return entries_.front().plan;
}

PlanPtr make_plan(Graph source, std::vector<std::string> names, const FusionLimits& limits) {
  auto plan = std::make_shared<Plan>();
  plan->ops = std::move(names);
  plan->source = std::move(source);
  Graph graph = share_common(plan->source);
  for (std::size_t v = 0; v < graph.values.size(); ++v)
    plan->original.push_back(static_cast<std::int32_t>(v));
  for (const auto& [copy, original] : graph.copies) plan->original[at(copy)] = original;
  graph = fuse_elementwise(std::move(graph), limits, When::before_loads);
  graph = fuse_into_stores(std::move(graph), limits, When::before_loads);
  graph = fuse_into_loads(std::move(graph), limits);
  graph = fuse_into_stores(std::move(graph), limits, When::after_loads);
  graph = fuse_elementwise(std::move(graph), limits, When::after_loads);
  graph = fuse_rows(std::move(graph), limits);
  for (Node& node : graph.nodes) read_by_loads(node);
  for (const Node& node : graph.nodes) plan->names.push_back(name_of(node, plan->ops));
  plan->last_read = last_reads(graph);
  plan->graph = std::move(graph);
  return plan;
}

}  // namespace kiln::fusion
