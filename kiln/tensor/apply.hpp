#pragma once
#include "kiln/tensor/erase.hpp"

namespace kiln {
namespace detail {

template <class Op>
std::shared_ptr<const void> attributes_of(const Op& op) {
  if constexpr (std::is_empty_v<Op>) {
    static const auto stateless = std::make_shared<const Op>();
    return stateless;
  } else {
    return std::make_shared<const Op>(op);
  }
}

/// Runs the rules of an operation that is neither elementwise nor a plain composite.
template <class Op>
typename Traits<Op>::template Result<AnyTensor> apply_rules(const Op& op, const Device& device,
                                                            std::span<const AnyTensor> in) {
  using Spec = typename Traits<Op>::Spec;
  const Spec spec = output_of(op, specs_of<Op>(in));
  std::vector<TensorSpec> specs;
  flatten(spec, spec, specs);
  const std::shared_ptr<const void> attributes = attributes_of(op);
  std::vector<AnyTensor> out;
  if constexpr (HasReduction<Op>) {
    out = run({Op::name, op.reduction(in[0].spec())}, device, specs, rule_of<Op>, in, attributes);
  } else if constexpr (has_compute_rule<Op>) {
    out = run({Op::name, RuleCall{&table_of<Op>, attributes}}, device, specs, rule_of<Op>, in,
              attributes);
  } else {
    // A composite with an output rule: its values come from the reference, its gradient perhaps
    // from a rule of its own.
    std::vector<AnyTensor> inner;
    for (const AnyTensor& t : in) inner.push_back(has_gradient_rule<Op> ? t.detach() : t);
    const auto result = spread<Traits<Op>::arity>(
        std::span<const AnyTensor>(inner), [&](const auto&... t) { return op.reference(t...); });
    flatten(spec, result, out);
    check_results(Op::name, output_names<Op>, specs, out);
    if constexpr (has_gradient_rule<Op>)
      out = attach_to(Op::name, out, device, rule_of<Op>, in, attributes);
  }
  if constexpr (std::is_same_v<Spec, TensorSpec>) {
    return out[0];
  } else {
    return structure<Op>(spec, std::span<const AnyTensor>(out));
  }
}

}  // namespace detail

/// Runs an operation: the one way in for built-in operations and a user's alike. Its output rule
/// runs now, on this thread, so a wrong shape throws at the line that wrote it. Gives AnyTensor, or
/// the operation's own aggregate of them.
///
///     AnyTensor silu(const AnyTensor& x) { return apply(Silu{}, x); }
///
/// Throws DeviceError for operands on different devices, and what the rules throw.
template <class Op, class... T>
auto apply(const Op& op, const T&... tensors) {
  static_assert((std::is_base_of_v<AnyTensor, T> && ...),
                "kiln: apply takes an operation and its tensors");
  static_assert(sizeof...(T) > 0,
                "kiln: an operation without inputs is applied to a device: apply(op, device)");
  static_assert(detail::well_formed<Op>());
  if constexpr (detail::HasBody<Op>) {
    static_assert(sizeof...(T) == detail::Signature<&Op::body>::arity,
                  "kiln: apply got another number of tensors than 'body' takes");
    const std::array<AnyTensor, sizeof...(T)> in{tensors...};
    return run_elementwise(Op::name, detail::body_of(op), detail::param_values(op), in);
  } else {
    static_assert(sizeof...(T) == detail::Traits<Op>::arity,
                  "kiln: apply got another number of tensors than the rules take");
    const std::array<AnyTensor, sizeof...(T)> in{tensors...};
    const Device device = common_device(Op::name, detail::input_names<Op>, in);
    if constexpr (detail::HasOutput<Op>) {
      return detail::apply_rules(op, device, in);
    } else if constexpr (detail::has_gradient_rule<Op>) {
      const AnyTensor bare = op.reference(tensors.detach()...);
      return detail::attach_to(Op::name, {&bare, 1}, device, detail::rule_of<Op>, in,
                               detail::attributes_of(op))
          .front();
    } else {
      return op.reference(tensors...);
    }
  }
}

/// The same for an operation without inputs, such as one that makes random numbers.
template <class Op>
auto apply(const Op& op, const Device& device) {
  static_assert(detail::well_formed<Op>());
  static_assert(detail::Traits<Op>::arity == 0,
                "kiln: this operation takes tensors: apply(op, tensors...)");
  return detail::apply_rules(op, device, {});
}

}  // namespace kiln
