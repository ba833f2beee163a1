#pragma once
/// An operation as check_op sees it: functions over tensors, without the type of its struct of
/// rules.
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kiln/tensor/apply.hpp"

namespace kiln {

/// A function from tensors to tensors.
using TensorFunction = std::function<std::vector<AnyTensor>(std::span<const AnyTensor>)>;

/// What is checked, and against what.
///
///     const CheckedOp op = {.name = "exp2",
///                           .inputs = {"x"},
///                           .run = [](auto in) { return std::vector{pow(full({}, 2), in[0])}; },
///                           .reference = [](auto in) {
///                             return std::vector{exp(in[0] * 0.693147)};
///                           }};
struct CheckedOp {
  std::string name;
  std::vector<std::string> inputs{};
  std::vector<std::string> outputs{};  ///< names for messages; "out" where there are too few
  TensorFunction run{};
  TensorFunction reference{};
  /// The output rule; none if empty.
  std::function<std::vector<TensorSpec>(std::span<const TensorSpec>)> output{};
  bool differentiable = true;
  /// Of an elementwise operation without a rule `reference`: evaluated on the host in double
  /// precision.
  BodyPtr body{};
  std::vector<double> params{};
  /// The same operation with other Params or attributes, and how each differs.
  std::vector<CheckedOp> others{};
  std::string difference{};
};

namespace check {

/// How many inputs an operation has.
template <class Op>
constexpr std::size_t arity() {
  if constexpr (detail::HasBody<Op>) {
    return detail::Signature<&Op::body>::arity;
  } else {
    return detail::Traits<Op>::arity;
  }
}

/// An operation and its reference without their types. A null reference stands for the body.
template <class Op, class Reference>
CheckedOp erase(const Op& op, const Reference& reference) {
  constexpr std::size_t n = arity<Op>();
  static_assert(n > 0, "kiln: check_op needs an operation with inputs");
  CheckedOp checked{.name = std::string(Op::name)};
  if constexpr (detail::HasInputs<Op>) {
    checked.inputs.assign(std::begin(Op::inputs), std::end(Op::inputs));
  } else {
    for (std::size_t i = 0; i < n; ++i) checked.inputs.push_back("x" + std::to_string(i));
  }
  checked.run = [op](std::span<const AnyTensor> in) {
    const auto call = [&](const auto&... t) { return apply(op, t...); };
    return detail::flat<AnyTensor>(detail::spread<n>(in, call));
  };
  if constexpr (detail::HasOutput<Op>) {
    const auto& names = detail::output_names<Op>;
    checked.outputs.assign(names.begin(), names.end());
    checked.output = [op](std::span<const TensorSpec> in) {
      return detail::flat<TensorSpec>(detail::output_of(op, in));
    };
  }
  checked.differentiable = detail::has_gradient_rule<Op> ||
                           detail::selects<Op, Default<Autodiff>> || !detail::has_compute_rule<Op>;
  if constexpr (!std::is_same_v<Reference, std::nullptr_t>) {
    checked.reference = [reference](std::span<const AnyTensor> in) {
      return detail::flat<AnyTensor>(detail::spread<n>(in, reference));
    };
  } else {
    checked.body = detail::body_of(op);
    checked.params = detail::param_values(op);
  }
  return checked;
}

/// An operation and the reference among its rules.
template <class Op>
CheckedOp erase(const Op& op) {
  static_assert(detail::HasReference<Op> || detail::HasBody<Op>,
                "kiln: check_op compares with a rule 'reference' (or 'body'); add it, or pass a "
                "reference: check_op(op, reference, options)");
  if constexpr (detail::HasReference<Op>) {
    return erase(op, [op](const auto&... t) { return op.reference(t...); });
  } else {
    return erase(op, nullptr);
  }
}

/// Another number of the same kind.
inline double varied(double param) { return param == 0 ? 0.5 : param * 1.5; }

/// `op` together with itself at other values of each of its Params, and with `others`.
template <class Op>
CheckedOp erase_with(const Op& op, std::initializer_list<Op> others) {
  CheckedOp checked = erase(op);
  const std::vector<double> values = detail::param_values(op);
  for (std::size_t i = 0; i < values.size(); ++i) {
    Op other = op;
    std::vector<const Param*> params;
    detail::collect_params<Op>(&other, params);
    *const_cast<Param*>(params[i]) = Param{varied(values[i])};  // `other` is our own copy
    checked.others.push_back(erase(other));
    checked.others.back().difference = "Param " + std::to_string(i) + " is another";
  }
  for (const Op& other : others) {
    checked.others.push_back(erase(other));
    checked.others.back().difference =
        "attributes " + std::to_string(checked.others.size() - values.size());
  }
  return checked;
}

}  // namespace check
}  // namespace kiln
