#pragma once
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kiln/autodiff/any_tensor.hpp"

namespace kiln {

/// Whether an operation's results are expensive to compute (kept for backward) or cheap (may be
/// computed again).
enum class Bound : std::uint8_t { compute, memory };

struct Recipe;

/// What a `save` rule keeps of a tensor: its value or, if the device's strategy says so, only how
/// to compute it again.
///
///     const Checkpoint kept = Saver().keep(tensor({1.0, 2.0}));
///     kept.kept();   // [true]
///     kept.get();   // [1, 2]
///     Checkpoint().get();   // throws Error
class Checkpoint {
 public:
  Checkpoint() = default;
  /// The tensor, for a `backward` rule. Throws Error if it was not kept.
  [[nodiscard]] AnyTensor get() const;
  /// Whether it was kept.
  [[nodiscard]] bool kept() const { return strong_ || recipe_ != nullptr; }

 private:
  friend class Saver;
  friend struct Recipe;
  Value strong_;
  std::shared_ptr<Recipe> recipe_;
  std::optional<Device> device_;
};

/// Given to a `save` rule to make checkpoints. An operation with a gradient of its own:
///
///     struct Square {
///       static constexpr std::string_view name = "square";
///       using layers = Layers<Autodiff, Default<Cube>, Fusion>;
///       static TensorSpec output(const TensorSpec& x) { return x; }
///       struct Saved {
///         Checkpoint x;
///       };
///       static Saved save(const Saver& saver, const AnyTensor& x, const AnyTensor&) {
///         return {saver.keep(x)};
///       }
///       static void backward(const Saved& saved, const AnyTensor& grad, Grads<1>& grads) {
///         grads[0].set(2 * saved.x.get() * grad);
///       }
///       static AnyTensor reference(const AnyTensor& x) { return x * x; }
///     };
///     const AnyTensor x = tensor({1.0, 3.0}, device.autodiff()).require_grad();
///     sum(apply(Square{}, x)).backward().of(x);   // [2, 6]
class Saver {
 public:
  /// Keeps the tensor until the gradient graph ends.
  [[nodiscard]] Checkpoint keep(const AnyTensor& tensor) const;
  /// Keeps the tensor if `wanted`, and otherwise lets it be freed.
  ///
  ///     const AnyTensor x = zeros({2});
  ///     Saver().keep_if(x.tracked(), x).kept();   // [false]
  [[nodiscard]] Checkpoint keep_if(Flag wanted, const AnyTensor& tensor) const {
    return wanted ? keep(tensor) : Checkpoint{};
  }
};

/// Where a backward rule puts the gradient of one input. False if nobody wants that gradient.
///
///     GradSlot lhs(true);
///     if (lhs) lhs.set(tensor({1.0, 2.0}));
///     lhs.value().has_value();   // [true]
class GradSlot {
 public:
  /// A slot without a gradient.
  explicit GradSlot(bool wanted = false) : wanted_(wanted) {}
  /// Whether the gradient is wanted: if not, a rule need not compute it.
  ///
  ///     bool{GradSlot(true)};   // [true]
  explicit operator bool() const { return wanted_; }
  /// A gradient of exactly the input's shape and dtype: the backward pass throws ShapeError or
  /// DTypeError for another. Ignored if nobody wants it.
  void set(const AnyTensor& gradient) { put(gradient, false); }
  /// A gradient that is first summed over the dimensions along which the input broadcasts.
  ///
  ///     GradSlot bias(true);
  ///     bias.set_reduced(ones({4, 3}));  // of a bias of shape [3]
  ///     bias.reduced();   // [true]
  void set_reduced(const AnyTensor& gradient) { put(gradient, true); }

  /// What was set, and whether by set_reduced.
  [[nodiscard]] const std::optional<AnyTensor>& value() const { return value_; }
  [[nodiscard]] bool reduced() const { return reduced_; }

 private:
  void put(const AnyTensor& gradient, bool reduced) {
    if (!wanted_) return;
    value_ = gradient;
    reduced_ = reduced;
  }
  bool wanted_ = false;
  bool reduced_ = false;
  std::optional<AnyTensor> value_;
};

/// The slots of an operation of N inputs, in their order.
///
///     Grads<2> grads;
///     auto& [lhs, rhs] = grads;
///     &rhs == &grads[1];   // [true]
///     &lhs == &grads.get<0>();   // [true]
template <std::size_t N>
struct Grads {
  std::array<GradSlot, N> slots;
  /// The slot of an input.
  GradSlot& operator[](std::size_t i) { return slots[i]; }
  template <std::size_t I>
  GradSlot& get() {
    return slots[I];
  }
};

/// The rules for the gradient of an operation, their types erased.
struct GradRule {
  Bound bound = Bound::compute;
  std::span<const std::string_view> inputs;
  /// Keeps what backward needs. `in` says by tracked() who will want a gradient.
  std::shared_ptr<void> (*save)(const void* op, const Saver& saver, std::span<const AnyTensor> in,
                                std::span<const AnyTensor> out) = nullptr;
  void (*backward)(const Node& node, std::span<const AnyTensor> grads,
                   std::span<GradSlot> slots) = nullptr;
};

/// How to compute the results of a memory-bound operation again.
struct Recipe {
  OpRecord record;
  std::vector<TensorSpec> out;
  std::vector<Checkpoint> in;
  Device device;
  int depth = 1;  ///< of recipes that build on each other; it bounds the recursion

  /// Result number `slot`: the one that is there still, or computed again.
  Value replay(std::size_t slot);

  std::mutex mutex;
  std::vector<WeakValue> made;  ///< the results while somebody holds them: they are not computed
                                ///< again
};

/// One operation on tracked tensors, or a leaf. It belongs to its outputs and to what was computed
/// from them. It does not change once it is made.
struct Node {
  /// Counts it as alive.
  Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  /// Ends long chains of nodes in a loop, not by recursion.
  ~Node();

  /// An input of the operation.
  struct Edge {
    std::shared_ptr<Node> node;  ///< null if the input is not tracked
    std::size_t slot = 0;        ///< the number of its output
  };

  std::string_view op;
  const GradRule* rule = nullptr;  ///< null for a leaf
  std::vector<Edge> parents;
  std::vector<TensorSpec> in;
  std::vector<TensorSpec> out;
  std::shared_ptr<void> saved;
  std::shared_ptr<const void> attributes;
  std::shared_ptr<Recipe> recipe;
  std::optional<Device> device;
  const std::uint64_t id = ++last_id;

  /// Nodes alive in this process: for tests of who owns what.
  static std::int64_t alive();

 private:
  static std::atomic<std::uint64_t> last_id;
};

/// A node without a rule, in which gradients are summed.
std::shared_ptr<Node> make_leaf(const TensorSpec& spec, const Device& device);

/// Makes tensors of values, with a node if an input is tracked. All operations come through here:
/// kernels, fallbacks, elementwise operations, and composites with a backward rule. `proto` says
/// how to compute the values again; it is null if they cannot be.
std::vector<AnyTensor> attach(std::string_view op, std::vector<Value> values, const Device& device,
                              const GradRule& rule, std::span<const AnyTensor> in,
                              std::shared_ptr<const void> attributes, const OpRecord* proto);

/// Queues a record and attaches its results. `apply` does so with every operation that is no
/// composite.
std::vector<AnyTensor> run(const OpRecord& record, const Device& device,
                           std::span<const TensorSpec> out, const GradRule& rule,
                           std::span<const AnyTensor> in,
                           const std::shared_ptr<const void>& attributes);

/// An elementwise operation: dtype from the body, shape by broadcasting, gradient from the body's
/// adjoint.
AnyTensor apply_elementwise(std::string_view op, const BodyPtr& body, std::vector<double> params,
                            std::span<const AnyTensor> in);

/// The device that the inputs share. It has autodiff, and is eager, if one of the inputs' devices
/// is. Throws DeviceError that begins with `op` and names the devices if they differ.
Device common_device(std::string_view op, std::span<const std::string_view> names,
                     std::span<const AnyTensor> in);

/// A tensor's node, for the stages that build graphs.
struct NodeAccess {
  /// The node of a tensor, and which of the node's outputs it is.
  static const std::shared_ptr<Node>& node(const AnyTensor& tensor) { return tensor.node_; }
  static std::size_t slot(const AnyTensor& tensor) { return tensor.slot_; }
  /// A tensor that is output number `slot` of a node.
  static AnyTensor make(Value value, const Device& device, std::shared_ptr<Node> node,
                        std::size_t slot);
};

}  // namespace kiln

/// For `auto& [lhs, rhs] = grads;`.
template <std::size_t N>
struct std::tuple_size<kiln::Grads<N>> : std::integral_constant<std::size_t, N> {};
template <std::size_t I, std::size_t N>
struct std::tuple_element<I, kiln::Grads<N>> {
  using type = kiln::GradSlot;
};
