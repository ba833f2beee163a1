#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kiln/dispatch/kernel/op_table.hpp"
#include "kiln/dispatch/reduction/reduction.hpp"
#include "kiln/fusion/value.hpp"
#include "kiln/runtime/device.hpp"
#include "kiln/scalar/expr.hpp"

namespace kiln {

/// An operation of one output element per position, with the values of its Params.
struct ElementwiseCall {
  BodyPtr body;
  std::vector<double> params;
  /// Of an operation that reads its operands at places: none broadcasts to the result.
  bool at_places = false;
  std::vector<double> numbers{};  ///< the params after those: what follows from shapes
};

/// An operation given by its rules: a kernel, several launches, or a view.
struct RuleCall {
  const OpTable* table = nullptr;
  std::shared_ptr<const void> op;
};

/// An operation given by a function that launches kernels. The function must not hold a Value: that
/// would keep work alive that nobody can read.
using LaunchFunction =
    std::function<std::vector<RawTensor>(Client&, std::span<const RawTensor> in)>;
struct LaunchByHand {
  std::string name;
  LaunchFunction function;
};
using LaunchCall = std::shared_ptr<const LaunchByHand>;

/// An operation without its operands. It holds no value and no gradient, and can run again.
struct OpRecord {
  /// It outlives everything: a constant, or from lasting_name. For a LaunchCall it is the call's
  /// own.
  std::string_view name;
  std::variant<ElementwiseCall, Reduction, RuleCall, LaunchCall> call;
};

/// A copy of `name` that lasts as long as the process. Equal names share one. It is for names that
/// follow from constants, such as that of an operation's gradient, because none is ever freed. A
/// name from a caller is kept with its call instead.
std::string_view lasting_name(const std::string& name);

/// Queues `record` on `inputs`, which share `device`. Result i has shape and dtype `out[i]`. On an
/// eager device it runs now, and errors are thrown. A view is neither queued nor run.
std::vector<Value> record(const OpRecord& record, const Device& device,
                          std::span<const Value> inputs, std::span<const TensorSpec> out);

/// `value` summed over the axes along which `to` broadcasts to it. `to` must broadcast to value's
/// shape.
Value sum_to(const Device& device, const Value& value, const Shape& to);

/// The elementwise sum of two values of one spec.
Value add(const Device& device, const Value& a, const Value& b);

/// A value of `spec` whose elements are all `number`.
Value full(const Device& device, const TensorSpec& spec, double number);

}  // namespace kiln
