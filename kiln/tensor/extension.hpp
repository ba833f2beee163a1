#pragma once
/// What a struct of rules must look like, and how it says so when it does not.
#include <algorithm>
#include <string_view>

#include "kiln/kernel/wgsl_name.hpp"
#include "kiln/support/fields.hpp"
#include "kiln/tensor/result.hpp"
#include "kiln/tensor/traits.hpp"

namespace kiln {
namespace detail {

template <class T>
inline constexpr bool is_tensor =
    std::is_base_of_v<AnyTensor, T> || std::is_same_v<T, Value> || std::is_same_v<T, RawTensor>;

template <class T>
constexpr bool holds_tensor();

/// Whether an argument of a template, such as a container or a pointer, holds a tensor.
template <class T>
inline constexpr bool is_made_of_tensors = false;
template <template <class...> class C, class... T>
inline constexpr bool is_made_of_tensors<C<T...>> = (holds_tensor<T>() || ...);

/// Whether a value holds a tensor, at any depth.
template <class T>
constexpr bool holds_tensor() {
  if constexpr (is_tensor<T>) {
    return true;
  } else if constexpr (!std::is_class_v<T> || std::is_trivially_copyable_v<T>) {
    return false;
  } else if constexpr (List<T>) {
    return holds_tensor<typename ListOf<T>::Item>();
  } else if constexpr (std::is_aggregate_v<T> && !std::is_empty_v<T>) {
    const auto any = []<class... F>(F&...) {
      return std::bool_constant<(holds_tensor<std::remove_cv_t<F>>() || ...)>{};
    };
    return decltype(with_fields(std::declval<T&>(), any))::value;
  } else {
    return is_made_of_tensors<T>;
  }
}

template <class Saved>
constexpr bool saved_is_plain() {
  static_assert(std::is_aggregate_v<Saved>,
                "kiln: struct Saved must be an aggregate of checkpoints and plain data");
  return !holds_tensor<Saved>();
}

/// A body serves every layer. No other rule may stand beside it.
template <HasBody Op>
constexpr bool body_is_right() {
  static_assert(!HasOutput<Op> && !has_compute_rule<Op> && !has_gradient_rule<Op>,
                "kiln: rule 'body' says shape, kernel and gradient already; remove the rules "
                "'output', 'webgpu_kernel', 'backward' and the like, or the rule 'body'");
  using F = Signature<&Op::body>;
  if constexpr (F::callable) {
    using Required = typename ExpectedBody<std::make_index_sequence<F::arity>>::Type;
    return RuleBody<Op, typename F::Type, Required>::ok;
  } else {
    return RuleBody<Op, typename F::Type, Expr(Expr)>::ok;
  }
}

template <HasOutput Op>
constexpr bool output_is_right() {
  using F = Signature<&Op::output>;
  static_assert(F::callable, "kiln: rule 'output' must be a static or a const member function");
  if constexpr (F::callable) {
    constexpr bool result = Structured<TensorSpec, typename F::Result>::is_result;
    static_assert(result,
                  "kiln: rule 'output' must return TensorSpec, or an aggregate template "
                  "R<TensorSpec> of specs and plain values");
    if constexpr (result) {
      return RuleOutput<Op, typename F::Type, typename Traits<Op>::Required::Output>::ok;
    } else {
      return false;
    }
  } else {
    return false;
  }
}

template <HasForward Op>
constexpr bool direct_forward_is_right() {
  using F = Signature<&Op::webgpu_forward>;
  if constexpr (!F::callable) {
    return RuleDirectForward<Op, typename F::Type, RawTensor(Client&)>::ok;
  } else if constexpr (F::arity == 0 || !Structured<RawTensor, typename F::Result>::is_result) {
    return RuleDirectForward<Op, typename F::Type, RawTensor(Client&)>::ok;
  } else {
    return RuleDirectForward<Op, typename F::Type,
                             typename Traits<Op>::Required::DirectForward>::ok;
  }
}

template <HasFuse Op>
constexpr bool fuse_is_right() {
  using F = Signature<&Op::fuse>;
  if constexpr (HasOutput<Op>) {
    return RuleFuse<Op, typename F::Type, typename Traits<Op>::Required::Fuse>::ok;
  } else if constexpr (!F::callable) {
    return RuleFuse<Op, typename F::Type, AnyTensor(Stream&)>::ok;
  } else if constexpr (F::arity == 0 || !Structured<AnyTensor, typename F::Result>::is_result) {
    return RuleFuse<Op, typename F::Type, AnyTensor(Stream&)>::ok;
  } else {
    return RuleFuse<Op, typename F::Type, typename Traits<Op>::Required::Fuse>::ok;
  }
}

template <HasReference Op>
constexpr bool reference_is_right() {
  using F = Signature<&Op::reference>;
  constexpr bool derived = HasOutput<Op> || HasFuse<Op> || HasForward<Op>;
  if constexpr (derived) {
    return RuleReference<Op, typename F::Type, typename Traits<Op>::Required::Reference>::ok;
  } else if constexpr (!F::callable) {
    return RuleReference<Op, typename F::Type, AnyTensor(const AnyTensor&)>::ok;
  } else if constexpr (!Structured<AnyTensor, typename F::Result>::is_result) {
    return RuleReference<Op, typename F::Type, AnyTensor(const AnyTensor&)>::ok;
  } else {
    return RuleReference<Op, typename F::Type, typename Traits<Op>::Required::Reference>::ok;
  }
}

/// The rule from which all others are derived is checked first, so that one fault makes one error.
template <class Op>
constexpr bool origin_is_right() {
  if constexpr (HasOutput<Op>) {
    return output_is_right<Op>();
  } else if constexpr (HasFuse<Op>) {
    return fuse_is_right<Op>();
  } else if constexpr (HasForward<Op>) {
    return direct_forward_is_right<Op>();
  } else {
    constexpr bool reference = HasReference<Op>;
    static_assert(reference,
                  "kiln: the operation has neither 'body' nor 'output' nor 'reference': nothing "
                  "says what it computes");
    if constexpr (reference) {
      return reference_is_right<Op>();
    } else {
      return false;
    }
  }
}

template <class Op>
constexpr bool gradient_is_right() {
  using Required = typename Traits<Op>::Required;
  bool ok = true;
  if constexpr (has_gradient_rule<Op>) {
    constexpr bool pair = HasSaved<Op> && HasSave<Op>;
    static_assert(pair,
                  "kiln: rule 'backward' needs a struct Saved and a rule 'save' that fills it");
    if constexpr (pair) {
      using Saved = typename Op::Saved;
      using Backward = typename Required::template Backward<Saved>;
      ok = ok && RuleSave<Op, typename Signature<&Op::save>::Type,
                          typename Required::template Save<Saved>>::ok;
      if constexpr (HasBackward<Op>)
        ok = ok && RuleBackward<Op, typename Signature<&Op::backward>::Type, Backward>::ok;
      if constexpr (HasWebgpuBackward<Op>) {
        ok = ok && RuleBackward<Op, typename Signature<&Op::webgpu_backward>::Type, Backward>::ok;
      }
      constexpr bool plain = saved_is_plain<Saved>();
      static_assert(plain,
                    "kiln: struct Saved may not hold a tensor (it would own the node that owns "
                    "it); hold a Checkpoint from "
                    "saver.keep(tensor)");
      ok = ok && plain;
    }
  }
  return ok;
}

/// The rules that work on one tensor and give one.
template <class Op>
constexpr bool one_tensor_rules_are_right() {
  using T = Traits<Op>;
  using Required = typename T::Required;
  bool ok = true;
  if constexpr (HasReduction<Op>) {
    ok = RuleReduction<Op, typename Signature<&Op::reduction>::Type,
                       typename Required::Reduction>::ok;
  }
  if constexpr (HasView<Op>)
    ok = ok && RuleView<Op, typename Signature<&Op::view>::Type, typename Required::View>::ok;
  if constexpr (HasReduction<Op> || HasView<Op>) {
    constexpr bool one = T::arity == 1 && T::one_result;
    static_assert(one,
                  "kiln: the rules 'reduction' and 'view' make one tensor of one; 'output' must "
                  "be: TensorSpec output(const TensorSpec&)");
    ok = ok && one;
  }
  return ok;
}

/// The rules that compute the result which `output` describes.
template <class Op>
constexpr bool compute_is_right() {
  using Required = typename Traits<Op>::Required;
  bool ok = true;
  if constexpr (HasOutput<Op>) {
    constexpr bool computed = has_compute_rule<Op> || HasFuse<Op> || HasReference<Op>;
    static_assert(computed,
                  "kiln: there is a rule 'output', but nothing computes it; add a kernel and layer "
                  "Cube, or a rule 'reference' and Default<Cube>");
    constexpr bool once = ways_to_compute<Op> <= 1;
    static_assert(once,
                  "kiln: two rules compute the result, and only one of them would run: keep one of "
                  "'fuse', 'reduction', 'view', 'element', and kernels; of kernels for WebGPU keep "
                  "'webgpu_kernel' or 'webgpu_forward'");
    ok = computed && once;
  } else {
    constexpr bool allocated = is_direct<Op> || !has_compute_rule<Op>;
    static_assert(
        allocated,
        "kiln: a kernel needs the rule 'output', which says what is allocated for it, and so "
        "does a rule 'element'");
    ok = allocated;
  }
  if constexpr (HasKernel<Op> && HasOutput<Op>) {
    constexpr bool named = HasInputs<Op>;
    static_assert(named,
                  "kiln: rule 'webgpu_kernel' needs the operands' names; add: static constexpr "
                  "std::array inputs = {\"lhs\", ...};");
    ok = ok && RuleKernel<Op, typename Signature<&Op::webgpu_kernel>::Type, Required>::ok;
  }
  if constexpr (HasCpuKernel<Op> && HasOutput<Op>) {
    constexpr bool named = HasInputs<Op>;
    static_assert(named,
                  "kiln: rule 'cpu_kernel' needs the operands' names; add: static constexpr "
                  "std::array inputs = {\"lhs\", ...};");
    ok = ok && RuleCpuKernel<Op, typename Signature<&Op::cpu_kernel>::Type,
                             typename Required::CpuKernel>::ok;
  }
  if constexpr (HasForward<Op> && HasOutput<Op>) {
    ok = ok && RuleForward<Op, typename Signature<&Op::webgpu_forward>::Type,
                           typename Required::Forward>::ok;
  }
  if constexpr (HasElement<Op> && HasOutput<Op>) {
    constexpr bool one = Traits<Op>::one_result;
    static_assert(one, "kiln: rule 'element' makes one tensor; 'output' must return TensorSpec");
    ok = ok && one &&
         RuleElement<Op, typename Signature<&Op::element>::Type, typename Required::Element>::ok;
  }
  return ok && one_tensor_rules_are_right<Op>();
}

/// Text as a template's argument: the compiler's message shows it.
template <std::size_t N>
struct Text {
  char text[N] = {};
  [[nodiscard]] constexpr std::string_view view() const { return {text, N - 1}; }
};

template <class Op, Text name>
struct OperandName {
  static constexpr bool ok = why_no_operand_name(name.view()).empty();
  static_assert(ok,
                "kiln: an operand of a 'webgpu_kernel' must have a name that can stand in WGSL: an "
                "identifier, no keyword or reserved word, nothing that kiln or WGSL declares "
                "(params, Elem, Acc, store_..., kiln_..., f32, select)");
};

template <const auto& names, std::size_t I>
constexpr auto name_text() {
  constexpr std::string_view name = names[I];
  Text<name.size() + 1> out;
  std::ranges::copy(name, out.text);
  return out;
}

template <class Op, const auto& names>
constexpr bool names_are_right() {
  return []<std::size_t... I>(std::index_sequence<I...>) {
    return (OperandName<Op, name_text<names, I>()>::ok && ...);
  }(std::make_index_sequence<std::size(names)>{});
}

/// Every rule has the right type, whichever layers are listed.
template <class Op>
constexpr bool rules_are_right() {
  if constexpr (origin_is_right<Op>()) {
    bool ok = compute_is_right<Op>();
    if constexpr (HasInputs<Op>) {
      constexpr bool counted = std::size(Op::inputs) == Traits<Op>::arity;
      static_assert(counted,
                    "kiln: 'inputs' must name as many operands as rule 'output' takes (or the "
                    "rule that computes, where there is no 'output')");
      ok = ok && counted;
    }
    if constexpr (HasOutputs<Op>) {
      constexpr bool counted = std::size(Op::outputs) == tensors_of<Op>;
      static_assert(counted,
                    "kiln: 'outputs' must name as many tensors as the operation's result has; "
                    "leave it out for out0, out1, ...");
      ok = ok && counted;
    }
    if constexpr (HasKernel<Op> && HasInputs<Op>) ok = ok && names_are_right<Op, Op::inputs>();
    if constexpr (HasKernel<Op> && HasOutputs<Op>) ok = ok && names_are_right<Op, Op::outputs>();
    if constexpr (HasFuse<Op>) ok = ok && fuse_is_right<Op>();
    if constexpr (HasReference<Op>) ok = ok && reference_is_right<Op>();
    return ok && gradient_is_right<Op>();
  } else {
    return false;
  }
}

/// Every listed layer has its rule, and every rule its layer.
template <class Op>
constexpr bool layers_are_right() {
  constexpr bool autodiff = selects<Op, Autodiff>;
  constexpr bool cube = selects<Op, Cube>;
  constexpr bool fusion = selects<Op, Fusion>;
  constexpr bool derived = HasElement<Op> && !HasReference<Op>;  // the gradient, from the rule
  constexpr bool by_default = (selects<Op, Default<Autodiff>> && !derived) ||
                              selects<Op, Default<Cube>> || selects<Op, Default<Fusion>>;
  static_assert(HasLayers<Op>,
                "kiln: the operation selects no layers; add: using layers = Layers<Autodiff, Cube, "
                "Fusion>; or their Default<...>");
  static_assert(!autodiff || has_gradient_rule<Op>,
                "kiln: layer Autodiff is listed, but there is no rule 'backward' (or it is "
                "overloaded); add it, or list "
                "Default<Autodiff> to differentiate the reference");
  static_assert(!cube || has_compute_rule<Op>,
                "kiln: layer Cube is listed, but there is no rule 'webgpu_kernel', "
                "'webgpu_forward', 'cpu_kernel', 'reduction', 'view' or 'element' (or it is "
                "overloaded); add it, or list Default<Cube> to run the reference");
  static_assert(
      !fusion || HasOutput<Op> || HasFuse<Op>,
      "kiln: layer Fusion is listed, but there is neither a rule 'output' nor 'fuse' (or it is "
      "overloaded); add: static TensorSpec "
      "output(const TensorSpec&, ... one per input); or, where the shape depends on "
      "values, leave Fusion out: 'webgpu_forward' then runs at once");
  static_assert(fusion || !HasFuse<Op>,
                "kiln: there is a rule 'fuse', but layer Fusion is not listed; list it, or remove "
                "the rule");
  static_assert(!is_direct<Op> || !selects<Op, Default<Fusion>>,
                "kiln: Default<Fusion> is listed, but 'webgpu_forward' without a rule 'output' "
                "runs at once; add 'output', or remove Default<Fusion>");
  static_assert(autodiff || !has_gradient_rule<Op>,
                "kiln: there is a rule 'backward', but layer Autodiff is not listed; list it, or "
                "remove the rule");
  static_assert(
      cube || !has_compute_rule<Op>,
      "kiln: there is a rule 'webgpu_kernel', 'webgpu_forward', 'cpu_kernel', 'reduction', 'view' "
      "or 'element', "
      "but layer Cube is not listed; list it, "
      "or remove the rule");
  static_assert(fusion || !HasOutput<Op>,
                "kiln: there is a rule 'output', but layer Fusion is not listed; list it, or "
                "remove the rule");
  static_assert(!by_default || HasReference<Op>,
                "kiln: Default<...> is listed, but there is no rule 'reference'");
  return true;
}

template <class Op>
constexpr bool well_formed() {
  constexpr bool named = HasName<Op>;
  static_assert(
      named,
      "kiln: the operation has no name; add: static constexpr std::string_view name = \"...\";");
  if constexpr (HasBody<Op>) {
    return named && body_is_right<Op>();
  } else {
    return named && layers_are_right<Op>() && rules_are_right<Op>();
  }
}

}  // namespace detail

/// Whether a struct of rules is a complete operation. Write `static_assert(Extension<MyOp>);` after
/// its definition: a fault shows there, with the rule, what it is and what it must be. This is a
/// variable because a concept would only say "false".
template <class Op>
inline constexpr bool Extension =  // NOLINT(readability-identifier-naming): reads as a concept
    detail::well_formed<Op>();

}  // namespace kiln
