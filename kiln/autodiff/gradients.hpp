#pragma once
#include <span>
#include <unordered_map>

#include "kiln/autodiff/any_tensor.hpp"

namespace kiln {

/// The gradients of one backward pass, by leaf. It holds no graph: saved tensors are freed with the
/// loss.
///
///     const AnyTensor x = tensor({1.0, 2.0}, device.autodiff()).require_grad();
///     const Gradients gradients = sum(x * x).backward();
///     gradients.of(x);   // [2, 4]
///     gradients.contains(tensor({1.0, 2.0}));   // [false]
class Gradients {
 public:
  /// The gradient of a leaf, of the leaf's shape and dtype, untracked. Throws UnsupportedError for
  /// a tensor that was not marked, is not a leaf, or does not affect the loss.
  [[nodiscard]] AnyTensor of(const AnyTensor& leaf) const;
  /// Whether the loss depends on the leaf.
  [[nodiscard]] bool contains(const AnyTensor& leaf) const;

 private:
  friend Gradients vjp(std::span<const AnyTensor>, std::span<const AnyTensor>);
  std::unordered_map<std::uint64_t, AnyTensor> by_node_;
};

/// The gradients of sum(outs[0] * seeds[0]) + sum(outs[1] * seeds[1]) + ..., which backward() is
/// made of. Seeds have the shape, dtype and device of their outputs, and gradients that a rule sets
/// have those of its inputs. Throws ShapeError, DTypeError or DeviceError otherwise.
///
///     const AnyTensor x = tensor({1.0, 2.0}, device.autodiff()).require_grad();
///     const AnyTensor y = x * x;
///     const AnyTensor seed = tensor({1.0, 10.0});
///     vjp({&y, 1}, {&seed, 1}).of(x);   // [2, 40]
Gradients vjp(std::span<const AnyTensor> outs, std::span<const AnyTensor> seeds);

}  // namespace kiln
