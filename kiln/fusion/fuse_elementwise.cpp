#include <algorithm>
#include <array>

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
      if (from == nullptr || from->shape != to->shape || !reads_in_place(consumer, producer))
        continue;
      if (links_.detour(graph_, producer, consumer)) continue;
      if (merge(producer, consumer)) return true;
    }
    return false;
  }

  bool makes(std::int32_t n, std::int32_t value) {
    return std::ranges::find(node(n).out, value) != node(n).out.end();
  }

  /// Whether the consumer reads each result of the producer at the position it writes.
  bool reads_in_place(std::int32_t consumer, std::int32_t producer) {
    return std::ranges::all_of(node(consumer).in, [&](const Use& use) {
      return !makes(producer, use.value) ||
             use.layout == Layout::dense(graph_.spec(use.value).shape);
    });
  }

  bool merge(std::int32_t producer, std::int32_t consumer) {
    const Node& p = node(producer);
    const Node& c = node(consumer);
    BodyBuilder builder(graph_);
    std::vector<std::int32_t> p_in;
    for (const Use& use : p.in) p_in.push_back(builder.input(use));
    const auto p_out =
        builder.add(std::get<Elementwise>(p.work).body, p_in, dtypes_of(graph_, p.out));
    std::vector<std::int32_t> c_in;
    for (const Use& use : c.in) {
      const auto made = std::ranges::find(p.out, use.value);
      c_in.push_back(made == p.out.end() ? builder.input(use)
                                         : p_out[static_cast<std::size_t>(made - p.out.begin())]);
    }
    const auto c_out =
        builder.add(std::get<Elementwise>(c.work).body, c_in, dtypes_of(graph_, c.out));

    Node merged{joined(p.records, c.records), {}, {}, {}};
    std::vector<std::int32_t> roots;
    const std::array inside{producer, consumer};
    const auto keep_needed = [&](const Node& from, const std::vector<std::int32_t>& results) {
      for (std::size_t i = 0; i < from.out.size(); ++i) {
        if (!links_.needed_besides(graph_, from.out[i], inside)) continue;
        merged.out.push_back(from.out[i]);
        roots.push_back(results[i]);
      }
    };
    keep_needed(p, p_out);
    keep_needed(c, c_out);
    BodyBuilder::Built built = builder.finish(roots);
    merged.in = std::move(built.in);
    if (static_cast<int>(merged.in.size() + merged.out.size()) > limits_.buffers ||
        static_cast<int>(built.body.body->graph->nodes().size()) > limits_.nodes) {
      return false;
    }
    merged.work = Elementwise{std::move(built.body), std::get<Elementwise>(c.work).shape};
    links_.unlink(graph_, producer);
    links_.unlink(graph_, consumer);
    node(producer) = {node(producer).records, Elementwise{}, {}, {}};
    node(consumer) = std::move(merged);
    links_.link(graph_, consumer);
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
