#pragma once
/// Which rules a struct has, and what follows from them.
#include <concepts>
#include <string_view>

#include "kiln/tensor/layers.hpp"
#include "kiln/tensor/signature.hpp"

namespace kiln::detail {

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
concept HasElement = requires { &Op::element; };
template <class Op>
concept HasOutput = requires { &Op::output; };
template <class Op>
concept HasKernel = requires { &Op::webgpu_kernel; };
template <class Op>
concept HasForward = requires { &Op::webgpu_forward; };
template <class Op>
concept HasCpuKernel = requires { &Op::cpu_kernel; };
template <class Op>
concept HasFuse = requires { &Op::fuse; };
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
inline constexpr bool has_compute_rule = HasKernel<Op> || HasForward<Op> || HasCpuKernel<Op> ||
                                         HasReduction<Op> || HasView<Op> || HasElement<Op>;
/// Whether it runs only on the runtimes for which it has kernels.
template <class Op>
inline constexpr bool is_kernel_op = HasKernel<Op> || HasForward<Op> || HasCpuKernel<Op>;
/// How many rules give the result that `output` describes, each by itself. Kernels for several
/// runtimes are one way.
template <class Op>
inline constexpr int ways_to_compute =
    int{HasFuse<Op>} + int{HasReduction<Op>} + int{HasView<Op>} + int{HasElement<Op>} +
    int{HasForward<Op>} + int{HasKernel<Op> || (HasCpuKernel<Op> && !HasForward<Op>)};
template <class Op>
inline constexpr bool has_gradient_rule = HasBackward<Op> || HasWebgpuBackward<Op>;

template <class Op, class Layer>
inline constexpr bool selects = false;
template <class Op, class Layer>
  requires HasLayers<Op>
inline constexpr bool selects<Op, Layer> = []<class... L>(Layers<L...>) {
  return (std::is_same_v<L, Layer> || ...);
}(typename Op::layers{});

/// An operation whose shapes depend on values: it runs at once, when it is applied.
template <class Op>
inline constexpr bool is_direct = HasForward<Op> && !HasOutput<Op> && !HasFuse<Op>;

/// The rule that says how many inputs there are and how the result is structured. It has `Extra`
/// parameters that are no inputs.
template <class Rule, class LeafType, std::size_t Extra>
struct Origin {
  using Result = typename Rule::Result;
  using Leaf = LeafType;
  static constexpr std::size_t arity = Rule::arity - Extra;
};

template <class Op>
constexpr auto origin_of() {
  if constexpr (HasOutput<Op>) {
    return Origin<Signature<&Op::output>, TensorSpec, 0>{};
  } else if constexpr (HasFuse<Op>) {
    return Origin<Signature<&Op::fuse>, AnyTensor, 1>{};
  } else if constexpr (HasForward<Op>) {
    return Origin<Signature<&Op::webgpu_forward>, RawTensor, 1>{};
  } else {
    return Origin<Signature<&Op::reference>, AnyTensor, 0>{};
  }
}

/// Inputs, results and the types that rules must have. All are derived from `output`, or from the
/// rule that computes if there is no `output`.
template <class Op>
struct Traits {
  using From = decltype(origin_of<Op>());
  static constexpr std::size_t arity = From::arity;
  template <class Leaf>
  using Result = typename Structured<typename From::Leaf, typename From::Result>::template Of<Leaf>;
  using Spec = Result<TensorSpec>;
  static constexpr bool one_result = std::is_same_v<Spec, TensorSpec>;
  using Required = Expected<Spec, std::make_index_sequence<arity>>;
};

}  // namespace kiln::detail
