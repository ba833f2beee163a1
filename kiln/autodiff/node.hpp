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
class Checkpoint {
 public:
  Checkpoint() = default;
  /// The tensor. Throws Error if it was not kept.
  [[nodiscard]] AnyTensor get() const;
  [[nodiscard]] bool kept() const { return strong_ || recipe_ != nullptr; }

 private:
  friend class Saver;
  friend struct Recipe;
  Value strong_;
  std::shared_ptr<Recipe> recipe_;
  std::optional<Device> device_;
};

/// Given to a `save` rule to make checkpoints.
class Saver {
 public:
  [[nodiscard]] Checkpoint keep(const AnyTensor& tensor) const;
  /// Keeps the tensor if `wanted`, and otherwise lets it be freed.
  [[nodiscard]] Checkpoint keep_if(Flag wanted, const AnyTensor& tensor) const {
    return wanted ? keep(tensor) : Checkpoint{};
  }
};

/// Where a backward rule puts the gradient of one input. False if nobody wants that gradient.
class GradSlot {
 public:
  explicit GradSlot(bool wanted = false) : wanted_(wanted) {}
  explicit operator bool() const { return wanted_; }
  /// A gradient of exactly the input's shape. Ignored if nobody wants it.
  void set(const AnyTensor& gradient) { put(gradient, false); }
  /// A gradient that is first summed over the dimensions along which the input broadcasts.
  void set_reduced(const AnyTensor& gradient) { put(gradient, true); }

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

/// The slots of an operation of N inputs: `auto& [lhs, rhs] = grads;`.
template <std::size_t N>
struct Grads {
  std::array<GradSlot, N> slots;
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
  int depth = 1;  ///< of recipes one upon the other; bounded, and so is recursion

  Value replay(std::size_t slot);

  std::mutex mutex;
  std::vector<WeakValue> made;  ///< the results, while anybody holds them: nothing is computed
                                ///< again that is still there
};

/// One operation on tracked tensors, or a leaf. Its outputs, and what was computed from them, own
/// it. Immutable once made.
struct Node {
  Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  /// Long chains are taken apart in a loop, not by recursion.
  ~Node();

  struct Edge {
    std::shared_ptr<Node> node;  ///< null where the input is untracked
    std::size_t slot = 0;        ///< which of its outputs
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

/// A node without a rule, where gradients are summed.
std::shared_ptr<Node> make_leaf(const TensorSpec& spec, const Device& device);

/// Puts a node on values that exist already, if an input is tracked: the one path for kernels,
/// fallbacks, elementwise operations and composites with a backward of their own. `proto` says how
/// to compute them again; null where that cannot be.
std::vector<AnyTensor> attach(std::string_view op, std::vector<Value> values, const Device& device,
                              const GradRule& rule, std::span<const AnyTensor> in,
                              std::shared_ptr<const void> attributes, const OpRecord* proto);

/// Runs a record and attaches: what `apply` does with everything that is not a composite.
std::vector<AnyTensor> run(const OpRecord& record, const Device& device,
                           std::span<const TensorSpec> out, const GradRule& rule,
                           std::span<const AnyTensor> in,
                           const std::shared_ptr<const void>& attributes);

/// An elementwise operation: dtype from the body, shape by broadcasting, gradient from the body's
/// adjoint.
AnyTensor apply_elementwise(std::string_view op, const BodyPtr& body, std::vector<double> params,
                            std::span<const AnyTensor> in);

/// The device that the inputs share: with autodiff, and eager, if one of them is. Throws
/// DeviceError that begins with `op` and names the devices where they differ.
Device common_device(std::string_view op, std::span<const std::string_view> names,
                     std::span<const AnyTensor> in);

/// What a tensor's node is, for the stages that build graphs.
struct NodeAccess {
  static const std::shared_ptr<Node>& node(const AnyTensor& tensor) { return tensor.node_; }
  static std::size_t slot(const AnyTensor& tensor) { return tensor.slot_; }
  static AnyTensor make(Value value, const Device& device, std::shared_ptr<Node> node,
                        std::size_t slot);
};

}  // namespace kiln

template <std::size_t N>
struct std::tuple_size<kiln::Grads<N>> : std::integral_constant<std::size_t, N> {};
template <std::size_t I, std::size_t N>
struct std::tuple_element<I, kiln::Grads<N>> {
  using type = kiln::GradSlot;
};
