#pragma once
/// The parts of applying an operation that need no template.
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/autodiff/node.hpp"
#include "kiln/dispatch/kernel/check_results.hpp"
#include "kiln/scalar/element_gradient.hpp"

namespace kiln {
class Stream;
}  // namespace kiln

namespace kiln::detail {

/// Throws UnsupportedError: the operation's backward rule is for another runtime than the node's.
[[noreturn]] void refuse_backward(const Node& node);

/// Whether the operation has a kernel for the device. False if it has none and the device allows
/// the reference instead. Throws UnsupportedError that names both if it does not.
bool runs_itself(const OpTable& table, const void* op, const Device& device,
                 std::span<const AnyTensor> in, std::span<const TensorSpec> out);
/// The same for an operation without a table, whose `webgpu_forward` is called by its type.
bool runs_itself(std::string_view op, const Device& device);
/// Throws UnsupportedError: the device allows the reference, but there is none.
[[noreturn]] void refuse_fallback(const OpTable& table, const void* op, const Device& device,
                                  std::span<const AnyTensor> in, std::span<const TensorSpec> out);
[[noreturn]] void refuse_fallback(std::string_view op, const Device& device);

/// The queue's call of what a rule `element` gave, with the values of the operation's Params.
/// Throws DTypeError that begins with `op` unless it has the result's dtype, or for a Param's value
/// that the dtype it is used in does not have.
ElementwiseCall call_of(std::string_view op, const ElementBody& made, std::vector<double> params,
                        std::span<const TensorSpec> in, const TensorSpec& out);

/// What a derived gradient of a rule `element` keeps.
struct ElementSaved {
  std::vector<ElementGradient> gradients;  ///< of each operand; empty bodies are zeros
  std::vector<double> params;
  std::vector<Checkpoint> in;
};
/// Keeps the operands that the gradients of tracked ones read.
std::shared_ptr<void> save_for_element(std::vector<ElementGradient> gradients,
                                       std::vector<double> params, const Saver& saver,
                                       std::span<const AnyTensor> in);
/// Computes them.
void backward_of_element(const Node& node, std::span<const AnyTensor> grads,
                         std::span<GradSlot> slots);

/// Differentiates `outs`, computed from the leaves `in`, with `grads`, and sets every wanted slot.
void set_from_reference(std::span<const AnyTensor> outs, std::span<const AnyTensor> grads,
                        std::span<const AnyTensor> in, std::span<GradSlot> slots);

/// Throws ShapeError or DTypeError if a result differs from what the output rule said.
void check_results(const dispatch::MadeBy& by, std::span<const TensorSpec> promised,
                   std::span<const AnyTensor> results);

/// Throws Error: field number `field` of a structured result differs from what the output rule
/// said. `said` or `given` is empty if the value has no text.
[[noreturn]] void refuse_plain(const dispatch::MadeBy& by, const std::string& field,
                               const std::string& said, const std::string& given);

std::string spelled_number(double value);

/// The results of a `webgpu_forward` without an output rule, with a node if an input is tracked.
/// Throws KernelError or DeviceError for a result that is no tensor of `device`.
std::vector<AnyTensor> attach_direct(std::string_view op, std::span<const std::string_view> names,
                                     std::span<const RawTensor> results, const Device& device,
                                     const GradRule& rule, std::span<const AnyTensor> in,
                                     std::shared_ptr<const void> attributes);

/// The queue of `device`.
Stream& stream_of(const Device& device);

/// Puts a node on results that exist already.
std::vector<AnyTensor> attach_to(std::string_view op, std::span<const AnyTensor> results,
                                 const Device& device, const GradRule& rule,
                                 std::span<const AnyTensor> in,
                                 std::shared_ptr<const void> attributes);

}  // namespace kiln::detail
