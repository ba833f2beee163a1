#pragma once
/// Queued work as the passes see it. Values are numbers, layouts are relative to a dense buffer or
/// to a given one, run-time scalars are numbers of a list. Nothing belongs to one drain, so a plan
/// serves every drain of the same form.
#include <cstdint>
#include <exception>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "kiln/dispatch/kernel/fusable.hpp"
#include "kiln/dispatch/kernel/op_table.hpp"
#include "kiln/dispatch/reduction/reduction.hpp"
#include "kiln/dispatch/rows/rows.hpp"
#include "kiln/scalar/expr.hpp"
#include "kiln/support/layout.hpp"

namespace kiln::fusion {

/// A number as an index.
inline std::size_t at(std::int32_t number) { return static_cast<std::size_t>(number); }

/// A value, read through a layout.
struct Use {
  std::int32_t value = -1;
  Layout layout;
  bool indexed = false;  ///< at computed places: the layout has the operand's own shape
  bool operator==(const Use&) const = default;
};

/// A run-time scalar of a body: its number in the drain's list, and the dtype it is used in. A
/// negative number means that the plan knows the value, which follows from shapes.
struct ParamUse {
  std::int32_t number = -1;
  DType dtype = DType::f32;
  double value = 0;  ///< where the plan knows it
  bool operator==(const ParamUse&) const = default;
};

/// A body and the scalars of its slots.
struct BoundBody {
  BodyPtr body;
  std::vector<ParamUse> params;
};

/// Computes every root over `shape`. There is one input for each slot, of that shape unless it is
/// indexed.
struct Elementwise {
  BoundBody body;
  Shape shape;
};

/// The epilogue of a reduction or a kernel. Slot 0 of its body is the value that would have been
/// stored. The other slots are the node's uses from `first` on. Each root is an output of the node.
struct NodeEpilogue {
  BoundBody body;
  std::size_t first = 0;
};

/// Reduces what `before` computes over `shape` from the node's first uses. If `before` is null, it
/// reduces the first use itself.
struct Reduce {
  Reduction reduction;
  BoundBody before;
  Shape shape;
  DType dtype = DType::f32;  ///< of the elements reduced
  TensorSpec result;         ///< before `epilogue`
  NodeEpilogue epilogue;
};

/// What the loads of a kernel's operand compute, from `count` of the node's uses, the first of
/// which is number `first`.
struct NodeProducer {
  std::size_t operand = 0;
  BoundBody body;
  std::size_t first = 0;
  std::size_t count = 0;
};

/// An operation's own kernel or launches: record `record` of the drain. The node's uses are the
/// operands without a producer, then what the producers read, then what the epilogue reads.
struct Call {
  std::int32_t record = -1;
  std::string identity;             ///< equal for equal calls; empty if each must run
  std::vector<TensorSpec> results;  ///< before `epilogue`
  dispatch::Fusable takes;
  std::vector<NodeProducer> producers;  ///< by operand
  NodeEpilogue epilogue;
  std::exception_ptr fault;  ///< why nothing is fused with it: it could not be planned
};

/// Reductions and elementwise work over the same rows, as in dispatch::RowsCall. The body's inputs
/// are the node's uses, all of `shape`, then the values of the folds.
struct Rows {
  BoundBody body;
  Shape shape;
  Axes axes;
  std::vector<dispatch::Fold> folds;
};

/// One launch, or what an operation launches by itself.
struct Node {
  std::vector<std::int32_t> records;  ///< those that it computes, in order
  std::variant<Elementwise, Reduce, Call, Rows> work;
  std::vector<Use> in;
  std::vector<std::int32_t> out;
};

/// What is known of a value.
struct ValueInfo {
  TensorSpec spec;
  bool given = false;  ///< it exists before the drain
  bool held = false;   ///< somebody may read it after the drain
};

/// Values and the nodes that make them.
struct Graph {
  std::vector<ValueInfo> values;
  std::vector<Node> nodes;  ///< producers before consumers
  /// Values that are copies of others, by equal computation: (copy, original).
  std::vector<std::pair<std::int32_t, std::int32_t>> copies;

  /// Shape and dtype of a value.
  [[nodiscard]] const TensorSpec& spec(std::int32_t value) const {
    return values[static_cast<std::size_t>(value)].spec;
  }
};

/// Bytes of the distinct elements that `use` reads, each counted once.
std::uint64_t bytes_reached(const Graph& graph, const Use& use);

/// What limits a launch.
struct FusionLimits {
  int buffers = 8;  ///< storage buffers a kernel can bind
  int nodes = 128;  ///< expressions of one body: longer kernels take long to compile, and spill
  int params = 32;  ///< run-time scalars of one body: each takes a word of the launch's metadata
  Runtime* runtime = nullptr;  ///< says which rows it computes in one launch; null: none
};

/// Merges equal nodes.
Graph share_common(Graph graph);
/// When a pass runs. Before loads it leaves alone what would be stored besides its producer's
/// result and may be computed in the loads of its readers instead. What they do not take it fuses
/// later.
enum class When : std::uint8_t { before_loads, after_loads };
/// Fuses elementwise producers into elementwise consumers that read them in place. Chains and trees
/// become one launch, which may have several results.
Graph fuse_elementwise(Graph graph, const FusionLimits& limits, When when);
/// Fuses elementwise consumers into the store of the reduction or kernel before them.
Graph fuse_into_stores(Graph graph, const FusionLimits& limits, When when);
/// Computes elementwise producers again inside each launch that reads them, if that moves no more
/// bytes than storing them: elementwise ones, reductions, and kernels that read through loads.
Graph fuse_into_loads(Graph graph, const FusionLimits& limits);
/// Makes one launch of reductions and elementwise work that read the same rows.
Graph fuse_rows(Graph graph, const FusionLimits& limits);

}  // namespace kiln::fusion
