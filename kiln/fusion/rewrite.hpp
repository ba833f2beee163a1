#pragma once
/// What the fusing passes share.
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "kiln/fusion/graph.hpp"
#include "kiln/scalar/compose.hpp"

namespace kiln::fusion {

/// The elements of `inner` that are seen where a dense tensor of inner's shape is read through
/// `view`; nothing where no strides say so.
std::optional<Layout> seen_through(const Layout& inner, const Layout& view);

/// Whether `use` reads its value element by element in the order it is stored in, be it under
/// another shape.
bool reads_in_order(const Graph& graph, const Use& use);

/// Whether all that `reader` reads of what `maker` makes, it reads in order.
bool reads_in_order(const Graph& graph, const Node& reader, const Node& maker);

/// Who makes and who reads each value of a graph.
class Links {
 public:
  explicit Links(const Graph& graph);

  /// The node that makes `value`, or -1 for a given one.
  [[nodiscard]] std::int32_t producer(std::int32_t value) const {
    return producers_[static_cast<std::size_t>(value)];
  }
  /// The nodes that read `value`, each once, in order.
  [[nodiscard]] const std::vector<std::int32_t>& consumers(std::int32_t value) const {
    return consumers_[static_cast<std::size_t>(value)];
  }
  /// Whether somebody needs `value` besides these nodes.
  [[nodiscard]] bool needed_besides(const Graph& graph, std::int32_t value,
                                    std::span<const std::int32_t> readers) const;
  /// Whether a path leads from `from` to its reader `to` by way of a third node, or so much hangs
  /// on `from` that it takes too long to tell.
  [[nodiscard]] bool detour(const Graph& graph, std::int32_t from, std::int32_t to);

  /// Before and after a node of the graph is changed.
  void unlink(const Graph& graph, std::int32_t node);
  void link(const Graph& graph, std::int32_t node);
  /// When two nodes became one of them, `kept`, after detour() said that they may.
  void joined(std::int32_t from, std::int32_t to, std::int32_t kept);

 private:
  void spread();

  std::vector<std::int32_t> producers_;
  std::vector<std::vector<std::int32_t>> consumers_;  ///< ascending
  // An order of the nodes, producers before consumers: what lies between two of them is all that a
  // path can lead through.
  std::vector<std::int64_t> places_;
  std::map<std::int64_t, std::int32_t> by_place_;
  // What the last detour() met on its way.
  std::vector<std::int32_t> between_;
  std::vector<std::uint32_t> seen_;
  std::uint32_t stamp_ = 0;
};

/// Makes one body of several. Equal uses are one input, equal scalars of one dtype one param.
class BodyBuilder {
 public:
  explicit BodyBuilder(const Graph& graph) : graph_(graph) {}

  /// The input that reads `use`.
  std::int32_t input(const Use& use);
  /// The same under another shape of as many elements; nothing where that takes a copy.
  std::optional<std::int32_t> input(const Use& use, const Shape& shape);
  /// An input of dtype `dtype` that is no use: slot 0 of an epilogue. Must come first.
  std::int32_t value(DType dtype);
  /// Copies a body in: `in[i]` is what its input i becomes; results have the dtypes `out`.
  std::vector<std::int32_t> add(const BoundBody& body, std::span<const std::int32_t> in,
                                std::span<const DType> out);

  /// The body of these results. Inputs that none of them needs are dropped.
  struct Built {
    BoundBody body;
    std::vector<Use> in;
  };
  [[nodiscard]] Built finish(std::span<const std::int32_t> roots) const;
  /// Expressions so far.
  [[nodiscard]] int size() const { return composer_.size(); }

 private:
  [[nodiscard]] DType dtype_of(std::int32_t node) const;
  std::int32_t slot_of(const ParamUse& param);

  const Graph& graph_;
  Composer composer_;
  bool has_value_ = false;
  std::vector<Use> uses_;
  std::vector<ParamUse> params_;
  std::vector<std::pair<std::int32_t, DType>> dtypes_;  ///< of nodes handed out
};

/// An elementwise consumer put behind what its producer computes: `made[i]` is the node of the
/// producer's result i, over `shape`.
struct Joined {
  std::vector<std::int32_t> out;    ///< values that somebody besides the two needs
  std::vector<std::int32_t> roots;  ///< their nodes
};
/// Nothing where an input of the consumer cannot be seen under that shape without a copy.
std::optional<Joined> join(const Graph& graph, const Links& links, BodyBuilder& builder,
                           std::int32_t producer, std::span<const std::int32_t> made,
                           std::int32_t consumer, const Shape& shape);

/// The dtypes of values.
std::vector<DType> dtypes_of(const Graph& graph, std::span<const std::int32_t> values);

/// The records of both, in order, each once.
std::vector<std::int32_t> joined(const std::vector<std::int32_t>& a,
                                 const std::vector<std::int32_t>& b);

/// Whether one launch may bind what `producer` and `consumer` read and give: a quick answer, before
/// their bodies are made one.
bool may_bind(const Graph& graph, const Links& links, const FusionLimits& limits,
              std::int32_t producer, std::int32_t consumer);

/// Whether one launch may have `body`.
bool within(const FusionLimits& limits, const BoundBody& body);
/// Whether `node` may bind its operands besides.
bool within(const FusionLimits& limits, const Node& node, const BoundBody& body);

/// Drops nodes whose results nobody needs, and puts producers before consumers again, else in the
/// order of their last records.
Graph settle_order(Graph graph);

/// What a pass works on.
struct Pass {
  Pass(Graph from, const FusionLimits& within) : graph(std::move(from)), limits(within) {}

  Node& node(std::int32_t n) { return graph.nodes[at(n)]; }
  Graph settled() && { return settle_order(std::move(graph)); }

  Graph graph;
  const FusionLimits& limits;
  Links links{graph};
};

}  // namespace kiln::fusion
