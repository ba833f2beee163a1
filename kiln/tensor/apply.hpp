#pragma once
#include "kiln/tensor/erase.hpp"

namespace kiln {
namespace detail {

/// The reference's result outside of any gradient graph. The operation's gradient rule is attached
/// to it later.
template <class Op>
typename Traits<Op>::template Result<AnyTensor> detached_reference(const Op& op,
                                                                   std::span<const AnyTensor> in) {
  std::vector<AnyTensor> detached;
  for (const AnyTensor& t : in) detached.push_back(t.detach());
  return reference_of(op, std::span<const AnyTensor>(detached));
}

/// Calls the rule `fuse`, which queues the operation itself.
template <HasFuse Op>
typename Traits<Op>::template Result<AnyTensor> fused(const Op& op, const Device& device,
                                                      std::span<const AnyTensor> in) {
  return spread<Traits<Op>::arity>(in, [&](const auto&... t) {
    return in_rule(Op::name, "fuse", [&] { return op.fuse(stream_of(device), t.detach()...); });
  });
}

/// Runs the reference in place of the operation's kernel. The result has the operation's own
/// gradient.
template <HasOutput Op>
std::vector<AnyTensor> run_reference(const Op& op, const typename Traits<Op>::Spec& spec,
                                     std::span<const TensorSpec> specs, const Device& device,
                                     std::span<const AnyTensor> in,
                                     const std::shared_ptr<const void>& attributes) {
  if constexpr (HasReference<Op>) {
    const auto result = detached_reference(op, in);
    const std::vector<AnyTensor> out = flat<AnyTensor>(result);
    constexpr dispatch::MadeBy by{Op::name, output_names<Op>, "the reference"};
    check_results(by, specs, out);
    compare_plain<AnyTensor>(by, spec, result);
    return attach_to(Op::name, out, device, rule_of<Op>, in, attributes);
  } else {
    refuse_fallback(table_of<Op>, &op, device, in, specs);
  }
}

/// Runs the rules of an operation whose result `output` describes.
template <HasOutput Op>
typename Traits<Op>::template Result<AnyTensor> apply_rules(const Op& op, const Device& device,
                                                            std::span<const AnyTensor> in) {
  const typename Traits<Op>::Spec spec = output_of(op, specs_of(in));
  const std::vector<TensorSpec> specs = flat<TensorSpec>(spec);
  const std::shared_ptr<const void> attributes = attributes_of(op);
  std::vector<AnyTensor> out;
  if constexpr (HasFuse<Op>) {
    const auto result = fused(op, device, in);
    out = flat<AnyTensor>(result);
    constexpr dispatch::MadeBy by{Op::name, output_names<Op>, "fuse"};
    check_results(by, specs, out);
    compare_plain<AnyTensor>(by, spec, result);
    out = attach_to(Op::name, out, device, rule_of<Op>, in, attributes);
  } else if constexpr (HasReduction<Op>) {
    const Reduction reduction =
        in_rule(Op::name, "reduction", [&] { return op.reduction(in[0].spec()); });
    out = run({Op::name, reduction}, device, specs, rule_of<Op>, in, attributes);
  } else if constexpr (HasElement<Op>) {
    out = run({Op::name, element_call(op, spec, specs_of(in))}, device, specs, rule_of<Op>, in,
              attributes);
  } else if constexpr (is_kernel_op<Op>) {
    const bool own = runs_itself(table_of<Op>, &op, device, in, specs);
    out = own ? run({Op::name, RuleCall{&table_of<Op>, attributes}}, device, specs, rule_of<Op>, in,
                    attributes)
              : run_reference(op, spec, specs, device, in, attributes);
  } else if constexpr (has_compute_rule<Op>) {
    out = run({Op::name, RuleCall{&table_of<Op>, attributes}}, device, specs, rule_of<Op>, in,
              attributes);
  } else {
    // A composite with an output rule. Its values come from the reference. Its gradient may come
    // from a rule of its own.
    const auto result = [&] {
      if constexpr (has_gradient_rule<Op>) {
        return detached_reference(op, in);
      } else {
        return reference_of(op, in);
      }
    }();
    out = flat<AnyTensor>(result);
    constexpr dispatch::MadeBy by{Op::name, output_names<Op>, "the reference"};
    check_results(by, specs, out);
    compare_plain<AnyTensor>(by, spec, result);
    if constexpr (has_gradient_rule<Op>)
      out = attach_to(Op::name, out, device, rule_of<Op>, in, attributes);
  }
  return structure<Op>(spec, std::span<const AnyTensor>(out));
}

/// Runs an operation without an output rule: shapes and dtypes are those of its results. They get
/// the operation's gradient rule.
template <class Op>
typename Traits<Op>::template Result<AnyTensor> apply_now(const Op& op, const Device& device,
                                                          std::span<const AnyTensor> in) {
  std::vector<AnyTensor> out;
  if constexpr (is_direct<Op>) {
    if (!runs_itself(Op::name, device)) {
      if constexpr (HasReference<Op>) {
        const auto given = detached_reference(op, in);
        out = attach_to(Op::name, flat<AnyTensor>(given), device, rule_of<Op>, in,
                        applied(op, given));
        return structure<Op>(given, std::span<const AnyTensor>(out));
      } else {
        refuse_fallback(Op::name, device);
      }
    }
    Client client(device.shared_runtime(), Op::name);
    std::vector<RawTensor> raw;
    for (const AnyTensor& t : in) raw.push_back(t.value().raw());
    const auto given =
        spread<Traits<Op>::arity>(std::span<const RawTensor>(raw), [&](const auto&... x) {
          return in_rule(Op::name, "webgpu_forward",
                         [&] { return op.webgpu_forward(client, x...); });
        });
    out = attach_direct(Op::name, output_names<Op>, flat<RawTensor>(given), device, rule_of<Op>, in,
                        applied(op, given));
    return structure<Op>(given, std::span<const AnyTensor>(out));
  } else {
    const auto given = [&] {
      if constexpr (HasFuse<Op>) {
        return fused(op, device, in);
      } else {
        return detached_reference(op, in);
      }
    }();
    out = attach_to(Op::name, flat<AnyTensor>(given), device, rule_of<Op>, in, applied(op, given));
    return structure<Op>(given, std::span<const AnyTensor>(out));
  }
}

}  // namespace detail

/// Calls an operation, built-in or yours. Its `output` rule runs now, on this thread, so a wrong
/// shape throws at the line that wrote it. Returns an AnyTensor, or the operation's own aggregate
/// of tensors.
///
///     struct Mish {
///       static constexpr std::string_view name = "mish";
///       static Expr body(Expr x) { return x * tanh(softplus(x)); }
///     };
///     AnyTensor mish(const AnyTensor& x) { return apply(Mish{}, x); }
///     mish(tensor({-1.0, 2.0}));   // [-0.303402, 1.94396]
///
/// Throws DeviceError for operands on different devices, and whatever the rules throw.
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
    return apply_elementwise(Op::name, detail::body_of(op), detail::param_values(op), in);
  } else {
    static_assert(sizeof...(T) == detail::Traits<Op>::arity,
                  "kiln: apply got another number of tensors than the rules take");
    const std::array<AnyTensor, sizeof...(T)> in{tensors...};
    const Device device = common_device(Op::name, detail::input_names<Op>, in);
    if constexpr (detail::HasOutput<Op>) {
      return detail::apply_rules(op, device, in);
    } else if constexpr (detail::is_direct<Op> || detail::HasFuse<Op> ||
                         detail::has_gradient_rule<Op>) {
      return detail::apply_now(op, device, in);
    } else {
      return detail::reference_of(op, std::span<const AnyTensor>(in));
    }
  }
}

/// The same for an operation without inputs, such as one that makes random numbers.
///
///     struct Answer {
///       static constexpr std::string_view name = "answer";
///       static constexpr std::array<std::string_view, 0> inputs{};
///       using layers = Layers<Cube, Fusion>;
///       static TensorSpec output() { return {{1}, DType::f32}; }
///       static void cpu_kernel(const cpu::Output& out) { out.dense<float>()[0] = 42; }
///     };
///     apply(Answer{}, cpu::device());   // [42]
template <class Op>
auto apply(const Op& op, const Device& device) {
  static_assert(detail::well_formed<Op>());
  static_assert(detail::Traits<Op>::arity == 0,
                "kiln: this operation takes tensors: apply(op, tensors...)");
  if constexpr (detail::HasOutput<Op>) {
    return detail::apply_rules(op, device, {});
  } else {
    return detail::apply_now(op, device, {});
  }
}

}  // namespace kiln
