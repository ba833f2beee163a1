#pragma once
/// What the fusing passes share.
#include <array>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kiln/fusion/passes/graph.hpp"
#include "kiln/scalar/compose.hpp"

namespace kiln::fusion {

/// How a view of a dense tensor walks over its coordinates: from `start`, each axis of the view
/// along `axes[i]` of the tensor; -1 where it stays.
struct Walk {
  std::array<std::int64_t, max_rank> start{};
  std::array<int, max_rank> axes{};
};
/// Nothing if there are no elements, or if the view has another order.
std::optional<Walk> walk_of(const Shape& inner, const Layout& view);

/// The layout that reads `inner` as `view` reads a dense tensor of inner's shape. Nothing if
/// strides cannot express it.
std::optional<Layout> seen_through(const Layout& inner, const Layout& view);

/// Whether `use` reads all elements of its value in the order of storage. The shape may differ.
bool reads_in_order(const Graph& graph, const Use& use);

/// Whether `reader` reads in order everything that it reads from `maker`.
bool reads_in_order(const Graph& graph, const Node& reader, const Node& maker);

/// The producer and the readers of each value of a graph.
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
  /// Whether anything besides these nodes needs `value`.
  [[nodiscard]] bool needed_besides(const Graph& graph, std::int32_t value,
                                    std::span<const std::int32_t> readers) const;
  /// Whether a path leads from `from` to its reader `to` through a third node. Also true if so much
  /// depends on `from` that the search would take too long.
  [[nodiscard]] bool detour(const Graph& graph, std::int32_t from, std::int32_t to);

  /// Call these before and after a change of a node.
  void unlink(const Graph& graph, std::int32_t node);
  void link(const Graph& graph, std::int32_t node);
  /// Call this when two nodes were merged into one of them, `kept`; detour() must have allowed it.
  void joined(std::int32_t from, std::int32_t to, std::int32_t kept);

 private:
  void spread();

  std::vector<std::int32_t> producers_;
  std::vector<std::vector<std::int32_t>> consumers_;  ///< ascending
  // An order of the nodes, producers before consumers. A path between two nodes leads only through
  // nodes that lie between them.
  std::vector<std::int64_t> places_;
  std::map<std::int64_t, std::int32_t> by_place_;
  // The nodes that the last detour() met.
  std::vector<std::int32_t> between_;
  std::vector<std::uint32_t> seen_;
  std::uint32_t stamp_ = 0;
};

/// Makes one body of several. Equal uses become one input, equal scalars of one dtype one param.
class BodyBuilder {
 public:
  explicit BodyBuilder(const Graph& graph) : graph_(graph) {}

  /// The input that reads `use`.
  std::int32_t input(const Use& use);
  /// The same under another shape with as many elements. Nothing if that needs a copy.
  std::optional<std::int32_t> input(const Use& use, const Shape& shape);
  /// The element of `use`, which is indexed, at `index`, a node: an input that is read in place if
  /// strides over `shape` can say where the elements are.
  std::int32_t element(const Use& use, std::int32_t index, const Shape& shape);
  /// A number that follows from shapes, as an i32.
  std::int32_t number(std::int64_t value);
  /// The coordinates in a tensor of shape `inner` of the element that `view` has at coordinates
  /// `outer`. Nothing if they are not walked one by one.
  std::optional<std::vector<std::int32_t>> coordinates_through(const Shape& inner,
                                                               const Layout& view,
                                                               std::span<const std::int32_t> outer);
  /// The coordinates of the result itself.
  std::vector<std::int32_t> own_coordinates(const Shape& shape);
  /// The coordinates of an index.
  [[nodiscard]] std::vector<std::int32_t> coordinates(std::int32_t index) const;
  /// An input of dtype `dtype` that reads nothing: slot 0 of an epilogue. It must come first.
  std::int32_t value(DType dtype);
  /// The next of the inputs that read nothing and come after all others: the values of folds.
  std::int32_t fold_value(DType dtype);
  /// Copies a body in. Its input i becomes `in[i]`. Its results have the dtypes `out`.
  std::vector<std::int32_t> add(const BoundBody& body, std::span<const std::int32_t> in,
                                std::span<const DType> out, const Places& places = {});

  /// The body of these results. Inputs that none of them needs are dropped, but for those that read
  /// nothing.
  struct Built {
    BoundBody body;
    std::vector<Use> in;
  };
  [[nodiscard]] Built finish(std::span<const std::int32_t> roots) const;
  /// How many expressions it has so far.
  [[nodiscard]] int size() const { return composer_.size(); }

 private:
  [[nodiscard]] DType dtype_of(std::int32_t node) const;
  [[nodiscard]] std::optional<Layout> strided(const Layout& layout, std::int32_t index,
                                              const Shape& shape) const;

  const Graph& graph_;
  Composer composer_;
  bool has_value_ = false;
  int fold_values_ = 0;
  std::vector<Use> uses_;
  std::vector<ParamUse> params_;
  std::vector<std::pair<std::int32_t, DType>> dtypes_;  ///< of nodes handed out
};

/// An elementwise consumer appended to what its producer computes. `made[i]` is the node of the
/// producer's result i, over `shape`.
struct Joined {
  std::vector<std::int32_t> out;    ///< values that somebody besides the two needs
  std::vector<std::int32_t> roots;  ///< their nodes
};
/// Appends it. Nothing if an input of the consumer would need a copy to have that shape.
std::optional<Joined> join(const Graph& graph, const Links& links, BodyBuilder& builder,
                           std::int32_t producer, std::span<const std::int32_t> made,
                           std::int32_t consumer, const Shape& shape);

/// The call that computes a node of rows, without the values of its params if `params` is empty.
dispatch::RowsCall rows_call(const Graph& graph, const Node& node, const Rows& work,
                             std::string_view op, std::vector<double> params);

/// The dtypes of values.
std::vector<DType> dtypes_of(const Graph& graph, std::span<const std::int32_t> values);

/// The records of both, in order, each once.
std::vector<std::int32_t> joined(const std::vector<std::int32_t>& a,
                                 const std::vector<std::int32_t>& b);

/// Whether one launch may bind everything that `producer` and `consumer` read and write. This is a
/// quick test before their bodies are merged.
bool may_bind(const Graph& graph, const Links& links, const FusionLimits& limits,
              std::int32_t producer, std::int32_t consumer);

/// Whether one launch may have `body`.
bool within(const FusionLimits& limits, const BoundBody& body);
/// Whether `node` may bind its operands, too.
bool within(const FusionLimits& limits, const Node& node, const BoundBody& body);

/// Reads in place what an elementwise node reads at places that strides can express, if a launch
/// may bind `buffers`. Drops inputs and params that nothing needs.
void read_in_place(const Graph& graph, Node& node, int buffers);
/// The body with its indexed reads as loads from buffers, `uses` being those of its inputs. `lead`:
/// how many inputs come before them.
BoundBody with_loads(const BoundBody& body, std::span<const Use> uses, int lead = 0);

/// Drops nodes whose results nobody needs, and sorts the others: producers before consumers,
/// otherwise by their last records.
Graph settle_order(Graph graph);

/// What a pass works on.
struct Pass {
  Pass(Graph from, const FusionLimits& within) : graph(std::move(from)), limits(within) {}

  Node& node(std::int32_t n) { return graph.nodes[at(n)]; }
  Graph settled() && { return settle_order(std::move(graph)); }
  /// Whether `consumer` reads of `producer` what is stored anyway, and nobody reads its own results
  /// but launches that may compute them in their loads.
  [[nodiscard]] bool left_to_loads(std::int32_t producer, std::int32_t consumer) const;

  Graph graph;
  const FusionLimits& limits;
  Links links{graph};
};

}  // namespace kiln::fusion
