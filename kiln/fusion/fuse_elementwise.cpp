#include "kiln/fusion/rewrite.hpp"

namespace kiln::fusion {
namespace {

class Pass {
 public:
  Pass(Graph graph, const FusionLimits& limits)
      : graph_(std::move(graph)), limits_(limits), links_(graph_) {}

  Graph run() && {
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      while (absorb_one(static_cast<std::int32_t>(n))) {
      }
    }
    return settle_order(std::move(graph_));
  }

 private:
  Node& node(std::int32_t n) { return graph_.nodes[static_cast<std::size_t>(n)]; }

  /// Takes one producer into `consumer`, if there is one that may be.
  bool absorb_one(std::int32_t consumer) {
    const auto* to = std::get_if<Elementwise>(&node(consumer).work);
    if (to == nullptr) return false;
    for (const Use& use : node(consumer).in) {
      const std::int32_t producer = links_.producer(use.value);
      if (producer < 0) continue;
      const auto* from = std::get_if<Elementwise>(&node(producer).work);
      if (from == nullptr || !reads_in_order(graph_, node(consumer), node(producer)) ||
          from->shape.elements() != to->shape.elements() ||
          !may_bind(graph_, links_, limits_, producer, consumer) ||
          links_.detour(graph_, producer, consumer))
        continue;
      if (merge(producer, consumer)) return true;
    }
    return false;
  }

  bool merge(std::int32_t producer, std::int32_t consumer) {
    const Node& p = node(producer);
    const Node& c = node(consumer);
    const Shape& shape = std::get<Elementwise>(c.work).shape;
    BodyBuilder builder(graph_);
    std::vector<std::int32_t> p_in;
    for (const Use& use : p.in) {
      const auto in = builder.input(use, shape);
      if (!in) return false;
      p_in.push_back(*in);
    }
    const auto p_out =
        builder.add(std::get<Elementwise>(p.work).body, p_in, dtypes_of(graph_, p.out));
    auto both = join(graph_, links_, builder, producer, p_out, consumer, shape);
    if (!both) return false;
    BodyBuilder::Built built = builder.finish(both->roots);
    Node merged{joined(p.records, c.records), {}, {}, std::move(both->out)};
    merged.in = std::move(built.in);
    if (!within(limits_, merged, built.body)) return false;
    merged.work = Elementwise{std::move(built.body), shape};
    links_.unlink(graph_, producer);
    links_.unlink(graph_, consumer);
    node(producer) = {node(producer).records, Elementwise{}, {}, {}};
    node(consumer) = std::move(merged);
    links_.link(graph_, consumer);
    links_.joined(producer, consumer, consumer);
    return true;
  }

  Graph graph_;
  const FusionLimits& limits_;
  Links links_;
};

}  // namespace

Graph fuse_elementwise(Graph graph, const FusionLimits& limits) {
  return Pass(std::move(graph), limits).run();
}

}  // namespace kiln::fusion
