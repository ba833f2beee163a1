#pragma once
#include <span>
#include <unordered_map>

#include "kiln/autodiff/any_tensor.hpp"

namespace kiln {

/// The gradients that one backward pass found, by leaf. Holds no graph: what was saved goes with
/// the loss.
class Gradients {
 public:
  /// The gradient of a leaf: its shape and dtype, untracked. Throws UnsupportedError for a tensor
  /// that was not marked, that is no leaf, or that the loss does not depend on.
  [[nodiscard]] AnyTensor of(const AnyTensor& leaf) const;
  /// Whether the loss depends on the leaf.
  [[nodiscard]] bool contains(const AnyTensor& leaf) const;

 private:
  friend Gradients vjp(std::span<const AnyTensor>, std::span<const AnyTensor>);
  std::unordered_map<std::uint64_t, AnyTensor> by_node_;
};

/// Gradients of sum(outs[0] * seeds[0]) + sum(outs[1] * seeds[1]) + ...: the primitive beneath
/// backward(). Seeds have the shape, dtype and device of their outputs: else ShapeError, DTypeError
/// or DeviceError. So have the gradients that a rule sets, those of its inputs.
Gradients vjp(std::span<const AnyTensor> outs, std::span<const AnyTensor> seeds);

}  // namespace kiln
