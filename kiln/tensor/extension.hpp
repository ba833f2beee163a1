#pragma once
/// What a struct of rules must look like, and how it says so when it does not.
#include <concepts>
#include <string_view>

#include "kiln/support/fields.hpp"
#include "kiln/tensor/layers.hpp"
#include "kiln/tensor/signature.hpp"

namespace kiln {
namespace detail {

template <class Op>
concept HasName = requires {
  { Op::name } -> std::convertible_to<std::string_view>;
};
template <class Op>
concept HasInputs = requires { std::size(Op::inputs); };
template <class Op>
concept HasOutputs = requires { std::size(Op::outputs); };
template <class Op>
concept HasLayers = requires { typename Op::layers; };
template <class Op>
concept HasBody = requires { &Op::body; };
template <class Op>
concept HasOutput = requires { &Op::output; };
template <class Op>
concept HasKernel = requires { &Op::webgpu_kernel; };
template <class Op>
concept HasForward = requires { &Op::webgpu_forward; };
template <class Op>
concept HasReduction = requires { &Op::reduction; };
template <class Op>
concept HasView = requires { &Op::view; };
template <class Op>
concept HasSaved = requires { typename Op::Saved; };
template <class Op>
concept HasSave = requires { &Op::save; };
template <class Op>
concept HasBackward = requires { &Op::backward; };
template <class Op>
concept HasWebgpuBackward = requires { &Op::webgpu_backward; };
template <class Op>
concept HasReference = requires { &Op::reference; };

template <class Op>
inline constexpr bool has_compute_rule =
    HasKernel<Op> || HasForward<Op> || HasReduction<Op> || HasView<Op>;
template <class Op>
inline constexpr bool has_gradient_rule = HasBackward<Op> || HasWebgpuBackward<Op>;

template <class Op, class Layer>
inline constexpr bool selects = false;
template <class Op, class Layer>
  requires HasLayers<Op>
inline constexpr bool selects<Op, Layer> = []<class... L>(Layers<L...>) {
  return (std::is_same_v<L, Layer> || ...);
}(typename Op::layers{});

/// What `output` returns; where there is none the result is one tensor.
template <class Op>
struct SpecOf {
  using Type = TensorSpec;
};
template <HasOutput Op>
struct SpecOf<Op> {
  using Type = typename Signature<&Op::output>::Result;
};

/// Inputs, results and required rule types, all derived from `output` (from `reference` where there
/// is none).
template <class Op>
struct Traits {
  static constexpr std::size_t count() {
    if constexpr (HasOutput<Op>) {
      return Signature<&Op::output>::arity;
    } else {
      return Signature<&Op::reference>::arity;
    }
  }
  static constexpr std::size_t arity = count();
  using Spec = typename SpecOf<Op>::Type;
  using Indices = std::make_index_sequence<arity>;
  using Required = Expected<Spec, Indices>;
  template <class Leaf>
  using Result = typename Structured<Spec>::template Of<Leaf>;
};

template <class T>
inline constexpr bool holds_tensor =
    std::is_base_of_v<AnyTensor, T> || std::is_same_v<T, Value> || std::is_same_v<T, RawTensor>;

template <class Saved>
constexpr bool saved_is_plain() {
  static_assert(std::is_aggregate_v<Saved>,
                "kiln: struct Saved must be an aggregate of checkpoints and plain data");
  const auto plain = []<class... F>(F&...) {
    return std::bool_constant<!(holds_tensor<F> || ...)>{};
  };
  return decltype(with_fields(std::declval<Saved&>(), plain))::value;
}

template <HasBody Op>
constexpr bool body_is_right() {
  using F = Signature<&Op::body>;
  if constexpr (F::callable) {
    using Required = typename ExpectedBody<std::make_index_sequence<F::arity>>::Type;
    return RuleBody<Op, typename F::Type, Required>::ok;
  } else {
    return RuleBody<Op, typename F::Type, Expr(Expr)>::ok;
  }
}

/// `output` first: everything else is derived from it, so one fault makes one error.
template <class Op>
constexpr bool output_is_right() {
  if constexpr (HasOutput<Op>) {
    using F = Signature<&Op::output>;
    static_assert(F::callable, "kiln: rule 'output' must be a static or a const member function");
    if constexpr (F::callable) {
      constexpr bool result = Structured<typename F::Result>::is_result;
      static_assert(result,
                    "kiln: rule 'output' must return TensorSpec, or an aggregate template "
                    "R<TensorSpec> of specs and plain values");
      if constexpr (result) {
        using T = Traits<Op>;
        return RuleOutput<Op, typename F::Type, typename T::Required::Output>::ok;
      }
    }
    return false;
  } else {
    constexpr bool reference = HasReference<Op>;
    static_assert(reference,
                  "kiln: the operation has neither 'body' nor 'output' nor 'reference': nothing "
                  "says what it computes");
    return reference;
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
    constexpr bool one = T::arity == 1 && std::is_same_v<typename T::Spec, TensorSpec>;
    static_assert(one,
                  "kiln: the rules 'reduction' and 'view' make one tensor of one; 'output' must "
                  "be: TensorSpec output(const TensorSpec&)");
    ok = ok && one;
  }
  return ok;
}

/// Every rule that is there has the right type, whichever layers are listed.
template <class Op>
constexpr bool rules_are_right() {
  if constexpr (HasBody<Op>) {
    return body_is_right<Op>();
  } else if constexpr (output_is_right<Op>()) {
    using T = Traits<Op>;
    using Required = typename T::Required;
    bool ok = true;
    if constexpr (has_compute_rule<Op>) {
      constexpr bool output = HasOutput<Op>;
      static_assert(output,
                    "kiln: a kernel needs the rule 'output', which says what is allocated for it");
    }
    if constexpr (HasKernel<Op> && HasOutput<Op>) {
      constexpr bool named = HasInputs<Op>;
      static_assert(named,
                    "kiln: rule 'webgpu_kernel' needs the operands' names; add: static constexpr "
                    "std::array inputs = {\"lhs\", ...};");
      ok = ok && RuleKernel<Op, typename Signature<&Op::webgpu_kernel>::Type, Required>::ok;
    }
    if constexpr (HasInputs<Op>) {
      constexpr bool counted = std::size(Op::inputs) == T::arity;
      static_assert(counted, "kiln: 'inputs' must name as many operands as rule 'output' takes");
      ok = ok && counted;
    }
    if constexpr (HasForward<Op>) {
      ok = ok && RuleForward<Op, typename Signature<&Op::webgpu_forward>::Type,
                             typename Required::Forward>::ok;
    }
    if constexpr (HasReference<Op> && HasOutput<Op>) {
      ok = ok && RuleReference<Op, typename Signature<&Op::reference>::Type,
                               typename Required::Reference>::ok;
    }
    return ok && one_tensor_rules_are_right<Op>() && gradient_is_right<Op>();
  } else {
    return false;
  }
}

/// Every listed layer has its rule, and every rule its layer.
template <class Op>
constexpr bool layers_are_right() {
  if constexpr (HasBody<Op>) {  // a body is a rule for every layer
    static_assert(!HasOutput<Op> && !has_compute_rule<Op> && !has_gradient_rule<Op>,
                  "kiln: rule 'body' says shape, kernel and gradient already; remove the rules "
                  "'output', 'webgpu_kernel', 'backward' and the like, or the rule 'body'");
    return true;
  }
  constexpr bool autodiff = selects<Op, Autodiff>;
  constexpr bool cube = selects<Op, Cube>;
  constexpr bool fusion = selects<Op, Fusion>;
  constexpr bool by_default =
      selects<Op, Default<Autodiff>> || selects<Op, Default<Cube>> || selects<Op, Default<Fusion>>;
  static_assert(HasLayers<Op> || HasBody<Op>,
                "kiln: the operation selects no layers; add: using layers = Layers<Autodiff, Cube, "
                "Fusion>; or their Default<...>");
  static_assert(!autodiff || has_gradient_rule<Op>,
                "kiln: layer Autodiff is listed, but there is no rule 'backward' (or it is "
                "overloaded); add it, or list "
                "Default<Autodiff> to differentiate the reference");
  static_assert(!cube || has_compute_rule<Op>,
                "kiln: layer Cube is listed, but there is no rule 'webgpu_kernel', "
                "'webgpu_forward', 'reduction' or 'view' (or it is "
                "overloaded); add it, or list Default<Cube> to run the reference");
  static_assert(!fusion || HasOutput<Op>,
                "kiln: layer Fusion is listed, but there is no rule 'output' (or it is "
                "overloaded); add: static TensorSpec "
                "output(const TensorSpec&, ... one per input)");
  static_assert(autodiff || !has_gradient_rule<Op> || HasBody<Op>,
                "kiln: there is a rule 'backward', but layer Autodiff is not listed; list it, or "
                "remove the rule");
  static_assert(cube || !has_compute_rule<Op> || HasBody<Op>,
                "kiln: there is a rule 'webgpu_kernel', 'webgpu_forward', 'reduction' or 'view', "
                "but layer Cube is not listed; list it, "
                "or remove the rule");
  static_assert(fusion || !HasOutput<Op> || HasBody<Op>,
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
  return named && layers_are_right<Op>() && rules_are_right<Op>();
}

}  // namespace detail

/// Whether a struct of rules is a complete operation. `static_assert(Extension<MyOp>);` beside its
/// definition shows faults there, each with the rule, what it is and what it must be. A variable,
/// not a concept: a concept would only say "false".
template <class Op>
inline constexpr bool Extension =  // NOLINT(readability-identifier-naming): reads as a concept
    detail::well_formed<Op>();

}  // namespace kiln
