#include "kiln/fusion/passes/rewrite.hpp"

namespace kiln::fusion {
namespace {

class IntoElementwise : Pass {
 public:
  IntoElementwise(Graph from, const FusionLimits& within, When when)
      : Pass(std::move(from), within), when_(when) {}

  Graph run() && {
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      while (absorb_one(static_cast<std::int32_t>(n))) {
      }
    }
    return std::move(*this).settled();
  }

 private:
  /// Fuses one producer into `consumer`, if there is one that may be fused.
  bool absorb_one(std::int32_t consumer) {
    const auto* to = std::get_if<Elementwise>(&node(consumer).work);
    if (to == nullptr) return false;
    for (const Use& use : node(consumer).in) {
      const std::int32_t producer = links.producer(use.value);
      if (producer < 0) continue;
      const auto* from = std::get_if<Elementwise>(&node(producer).work);
      if (from == nullptr || !reads_in_order(graph, node(consumer), node(producer)) ||
          from->shape.elements() != to->shape.elements() ||
          !may_bind(graph, links, limits, producer, consumer) ||
          (when_ == When::before_loads && left_to_loads(producer, consumer)) ||
          links.detour(graph, producer, consumer))
        continue;
      if (merge(producer, consumer)) return true;
    }
    return false;
  }

  bool merge(std::int32_t producer, std::int32_t consumer) {
    const Node& p = node(producer);
    const Node& c = node(consumer);
    const auto& from = std::get<Elementwise>(p.work);
    // What knows the places of its elements keeps its shape.
    const bool kept = from.body.body->knows_place();
    const Shape shape = kept ? from.shape : std::get<Elementwise>(c.work).shape;
    BodyBuilder builder(graph);
    std::vector<std::int32_t> p_in;
    for (const Use& use : p.in) {
      const auto in = builder.input(use, shape);
      if (!in) return false;
      p_in.push_back(*in);
    }
    const auto p_out = builder.add(from.body, p_in, dtypes_of(graph, p.out));
    auto both = join(graph, links, builder, producer, p_out, consumer, shape);
    if (!both) return false;
    BodyBuilder::Built built = builder.finish(both->roots);
    Node merged{joined(p.records, c.records), {}, {}, std::move(both->out)};
    merged.in = std::move(built.in);
    if (!within(limits, merged, built.body)) return false;
    merged.work = Elementwise{std::move(built.body), shape};
    links.unlink(graph, producer);
    links.unlink(graph, consumer);
    node(producer) = {node(producer).records, Elementwise{}, {}, {}};
    node(consumer) = std::move(merged);
    links.link(graph, consumer);
    links.joined(producer, consumer, consumer);
    return true;
  }

  When when_;
};

}  // namespace

Graph fuse_elementwise(Graph graph, const FusionLimits& limits, When when) {
  return IntoElementwise(std::move(graph), limits, when).run();
}

}  // namespace kiln::fusion
