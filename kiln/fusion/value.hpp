#pragma once
#include <memory>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "kiln/dispatch/op_table.hpp"
#include "kiln/dispatch/raw_tensor.hpp"
#include "kiln/dispatch/reduction.hpp"
#include "kiln/scalar/expr.hpp"

namespace kiln {

/// A value: its shape and dtype are known, its elements may be on their way. Immutable and cheap to
/// copy.
class Value {
 public:
  Value() = default;
  explicit Value(RawTensor raw)
      : state_(std::make_shared<const State>(State{raw.spec(), std::move(raw)})) {}

  [[nodiscard]] const TensorSpec& spec() const { return state_->spec; }
  [[nodiscard]] const Shape& shape() const { return state_->spec.shape; }
  [[nodiscard]] DType dtype() const { return state_->spec.dtype; }
  [[nodiscard]] const std::shared_ptr<Runtime>& runtime() const { return state_->raw.runtime; }
  /// Where its elements are, or will be once queued work is done.
  [[nodiscard]] const RawTensor& raw() const { return state_->raw; }
  explicit operator bool() const { return state_ != nullptr; }

 private:
  friend class WeakValue;
  struct State {
    TensorSpec spec;
    RawTensor raw;
  };
  explicit Value(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

/// Does not keep the value; gives it back while somebody else does.
class WeakValue {
 public:
  WeakValue() = default;
  explicit WeakValue(const Value& value) : state_(value.state_) {}
  [[nodiscard]] Value lock() const { return Value(state_.lock()); }

 private:
  std::weak_ptr<const Value::State> state_;
};

/// An operation of one output element per position, with the values of its Params.
struct ElementwiseCall {
  BodyPtr body;
  std::vector<double> params;
};

/// An operation given by its rules: a kernel, several launches, or a view.
struct RuleCall {
  const OpTable* table = nullptr;
  std::shared_ptr<const void> op;
};

/// What is computed, without from what: it holds no value and no gradient, and can be run again.
struct OpRecord {
  std::string_view name;
  std::variant<ElementwiseCall, Reduction, RuleCall> call;
};

/// Runs `record` on `inputs`, which share `runtime`; result i has shape and dtype `out[i]`.
std::vector<Value> record(const OpRecord& record, const std::shared_ptr<Runtime>& runtime,
                          std::span<const Value> inputs, std::span<const TensorSpec> out);

/// `value` summed over the axes along which `to` broadcasts to it. `to` must broadcast to value's
/// shape.
Value sum_to(const Value& value, const Shape& to);

/// The elementwise sum of two values of one spec.
Value add(const Value& a, const Value& b);

/// A value of `spec` whose elements are all `number`.
Value full(const std::shared_ptr<Runtime>& runtime, const TensorSpec& spec, double number);

}  // namespace kiln
