#include <algorithm>
#include <functional>

#include "kiln/fusion/passes/rewrite.hpp"

namespace kiln::fusion {
namespace {

/// A node whose store may take an elementwise consumer.
struct Store {
  std::vector<TensorSpec> results;  ///< before the epilogue
  NodeEpilogue* epilogue = nullptr;
  int buffers = 0;  ///< that it binds without its epilogue and its results
};

class IntoStores : Pass {
 public:
  IntoStores(Graph from, const FusionLimits& within, When when)
      : Pass(std::move(from), within), when_(when) {}

  Graph run() && {
    bool changed = true;
    while (changed) {
      changed = false;
      for (std::size_t n = 0; n < graph.nodes.size(); ++n)
        changed = give_away(static_cast<std::int32_t>(n)) || changed;
    }
    return std::move(*this).settled();
  }

 private:
  std::optional<Store> store_of(std::int32_t n) {
    if (auto* reduce = std::get_if<Reduce>(&node(n).work)) {
      return Store{{reduce->result}, &reduce->epilogue, static_cast<int>(inputs_before(n))};
    }
    auto* call = std::get_if<Call>(&node(n).work);
    if (call == nullptr || !call->takes.store) return std::nullopt;
    return Store{call->results, &call->epilogue,
                 call->takes.scratch + static_cast<int>(inputs_before(n))};
  }

  /// How many of the node's uses do not belong to the epilogue.
  std::size_t inputs_before(std::int32_t n) {
    const auto* reduce = std::get_if<Reduce>(&node(n).work);
    const NodeEpilogue& epilogue =
        reduce != nullptr ? reduce->epilogue : std::get<Call>(node(n).work).epilogue;
    return epilogue.body.body == nullptr ? node(n).in.size() : epilogue.first;
  }

  /// Puts the elementwise node `consumer` into the store of a node that it reads, if one takes it.
  bool give_away(std::int32_t consumer) {
    const auto* work = std::get_if<Elementwise>(&node(consumer).work);
    if (work == nullptr || node(consumer).out.empty()) return false;
    // The last producer first: when it stores, the results of the others are there.
    std::vector<std::int32_t> producers;
    for (const Use& use : node(consumer).in) {
      if (const std::int32_t p = links.producer(use.value); p >= 0) producers.push_back(p);
    }
    std::ranges::sort(producers, std::greater<>());
    return std::ranges::any_of(producers, [&](std::int32_t producer) {
      const auto store = store_of(producer);
      return store && store->results[0].shape.elements() == work->shape.elements() &&
             reads_in_order(graph, node(consumer), node(producer)) &&
             !(when_ == When::before_loads && left_to_loads(producer, consumer)) &&
             !links.detour(graph, producer, consumer) && merge(producer, *store, consumer);
    });
  }

  bool merge(std::int32_t producer, const Store& store, std::int32_t consumer) {
    const Node& p = node(producer);
    const Node& c = node(consumer);
    const std::size_t first = inputs_before(producer);
    BodyBuilder builder(graph);
    std::vector<std::int32_t> p_out{builder.value(store.results[0].dtype)};
    if (store.epilogue->body.body != nullptr) {
      std::vector<std::int32_t> in = p_out;
      for (std::size_t i = first; i < p.in.size(); ++i) in.push_back(builder.input(p.in[i]));
      p_out = builder.add(store.epilogue->body, in, dtypes_of(graph, p.out));
    }
    auto both = join(graph, links, builder, producer, p_out, consumer, store.results[0].shape);
    if (!both) return false;
    BodyBuilder::Built built = builder.finish(both->roots);
    if (store.buffers + static_cast<int>(built.in.size() + both->out.size()) > limits.buffers ||
        !within(limits, built.body)) {
      return false;
    }
    links.unlink(graph, producer);
    links.unlink(graph, consumer);
    Node& merged = node(producer);
    merged.records = joined(p.records, c.records);
    merged.in.resize(first);
    merged.in.insert(merged.in.end(), built.in.begin(), built.in.end());
    merged.out = std::move(both->out);
    *store.epilogue = {std::move(built.body), first};
    node(consumer) = {node(consumer).records, Elementwise{}, {}, {}};
    links.link(graph, producer);
    links.joined(producer, consumer, producer);
    return true;
  }

  When when_;
};

}  // namespace

Graph fuse_into_stores(Graph graph, const FusionLimits& limits, When when) {
  return IntoStores(std::move(graph), limits, when).run();
}

}  // namespace kiln::fusion
