#pragma once
/// The types of rules: those that a user's rules have, and those that they must have.
#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "kiln/autodiff/node.hpp"
#include "kiln/dispatch/host/cpu_kernel.hpp"
#include "kiln/dispatch/kernel/client.hpp"
#include "kiln/kernel/launch.hpp"
#include "kiln/scalar/element.hpp"

namespace kiln {
class Stream;
}  // namespace kiln

namespace kiln::detail {

/// The plain function type of a pointer to a static or const member function.
template <class F>
struct SignatureOf {
  using Type = F;
  static constexpr bool callable = false;
};
template <class R, class... A>
struct SignatureOf<R (*)(A...)> {
  using Type = R(A...);
  using Result = R;
  static constexpr std::size_t arity = sizeof...(A);
  static constexpr bool callable = true;
};
template <class R, class... A>
struct SignatureOf<R (*)(A...) noexcept> : SignatureOf<R (*)(A...)> {};
template <class C, class R, class... A>
struct SignatureOf<R (C::*)(A...) const> : SignatureOf<R (*)(A...)> {};
template <class C, class R, class... A>
struct SignatureOf<R (C::*)(A...) const noexcept> : SignatureOf<R (*)(A...)> {};

template <auto Rule>
using Signature = SignatureOf<decltype(Rule)>;

/// `Leaf` or R<Leaf>, and the same aggregate of other leaves.
template <class Leaf, class T>
struct Structured {
  static constexpr bool is_result = false;
};
template <class Leaf>
struct Structured<Leaf, Leaf> {
  static constexpr bool is_result = true;
  template <class Other>
  using Of = Other;
};
template <class Leaf, template <class> class R>
struct Structured<Leaf, R<Leaf>> {
  static constexpr bool is_result = std::is_aggregate_v<R<Leaf>>;  // no std::vector
  template <class Other>
  using Of = R<Other>;
};

template <class T, std::size_t>
using Repeat = T;

/// What the rule `body` with N inputs must be.
template <class Indices>
struct ExpectedBody;
template <std::size_t... I>
struct ExpectedBody<std::index_sequence<I...>> {
  using Type = Expr(Repeat<Expr, I>...);
};

/// What each rule of an operation with N inputs and results shaped like `Spec` must be.
template <class Spec, class Indices>
struct Expected;
template <class Spec, std::size_t... I>
struct Expected<Spec, std::index_sequence<I...>> {
  template <class Leaf>
  using Result = typename Structured<TensorSpec, Spec>::template Of<Leaf>;

  using Output = Spec(Repeat<const TensorSpec&, I>...);
  using Reference = Result<AnyTensor>(Repeat<const AnyTensor&, I>...);
  using Fuse = Result<AnyTensor>(Stream&, Repeat<const AnyTensor&, I>...);
  using Element = Expr(const At&, Repeat<const Elements&, I>...);
  using Reduction = kiln::Reduction(const TensorSpec&);
  using View = std::optional<Layout>(const Layout&);
  template <class Launches>
  using Kernel = Launches(Repeat<const Operand&, I>..., const Result<Operand>&);
  template <class Launches>
  using KernelWithLimits = Launches(Repeat<const Operand&, I>..., const Result<Operand>&,
                                    const Limits&);
  using CpuKernel = void(Repeat<const cpu::Input&, I>..., const Result<cpu::Output>&);
  using Forward = Result<RawTensor>(Client&, Repeat<const RawTensor&, I>..., const Spec&);
  using DirectForward = Result<RawTensor>(Client&, Repeat<const RawTensor&, I>...);
  template <class Saved>
  using Save = Saved(const Saver&, Repeat<const AnyTensor&, I>..., const Result<AnyTensor>&);
  template <class Saved>
  using Backward = void(const Saved&, const Result<AnyTensor>&, Grads<sizeof...(I)>&);
};

// Each rule has a struct of its own, so that its name and both types are part of the compiler's
// message.
template <class Op, class Yours, class Required>
struct RuleBody {
  static constexpr bool ok = std::is_same_v<Yours, Required> && !std::is_same_v<Yours, Expr()>;
  static_assert(ok,
                "kiln: rule 'body' has the wrong type; it must be: Expr body(Expr, ... one per "
                "input, at least one), static or const");
};
template <class Op, class Yours, class Required>
struct RuleElement {
  static constexpr bool ok = std::is_same_v<Yours, Required>;
  static_assert(
      ok,
      "kiln: rule 'element' has the wrong type; it must be: Expr element(const At&, const "
      "Elements&, ... one per input of 'output'), static or const");
};
template <class Op, class Yours, class Required>
struct RuleOutput {
  static constexpr bool ok = std::is_same_v<Yours, Required>;
  static_assert(ok,
                "kiln: rule 'output' has the wrong type; it must be: TensorSpec output(const "
                "TensorSpec&, ... one per input)");
};
template <class Op, class Yours, class Required>
struct RuleReference {
  static constexpr bool ok = std::is_same_v<Yours, Required>;
  static_assert(
      ok,
      "kiln: rule 'reference' has the wrong type; it must be: AnyTensor (or R<AnyTensor>) "
      "reference(const AnyTensor&, ... one per input of 'output')");
};
template <class Op, class Yours, class Required>
struct RuleKernel {
  static constexpr bool ok =
      std::is_same_v<Yours, typename Required::template Kernel<webgpu::Launch>> ||
      std::is_same_v<Yours, typename Required::template KernelWithLimits<webgpu::Launch>> ||
      std::is_same_v<Yours, typename Required::template Kernel<std::vector<webgpu::Launch>>> ||
      std::is_same_v<Yours,
                     typename Required::template KernelWithLimits<std::vector<webgpu::Launch>>>;
  static_assert(ok,
                "kiln: rule 'webgpu_kernel' has the wrong type; it must be: webgpu::Launch (or "
                "std::vector of it) "
                "webgpu_kernel(const Operand&, ... one per input of 'output', const Operand& out "
                "[, const webgpu::Limits&])");
};
template <class Op, class Yours, class Required>
struct RuleCpuKernel {
  static constexpr bool ok = std::is_same_v<Yours, Required>;
  static_assert(ok,
                "kiln: rule 'cpu_kernel' has the wrong type; it must be: void cpu_kernel(const "
                "cpu::Input&, ... one per input of 'output', const cpu::Output& out)");
};
template <class Op, class Yours, class Required>
struct RuleForward {
  static constexpr bool ok = std::is_same_v<Yours, Required>;
  static_assert(ok,
                "kiln: rule 'webgpu_forward' has the wrong type; it must be: RawTensor "
                "webgpu_forward(Client&, const "
                "RawTensor&, ... one per input of 'output', const TensorSpec& out)");
};
template <class Op, class Yours, class Required>
struct RuleDirectForward {
  static constexpr bool ok = std::is_same_v<Yours, Required>;
  static_assert(ok,
                "kiln: rule 'webgpu_forward' has the wrong type; without a rule 'output' it must "
                "be: RawTensor (or R<RawTensor>) webgpu_forward(Client&, const RawTensor&, "
                "... one per input)");
};
template <class Op, class Yours, class Required>
struct RuleFuse {
  static constexpr bool ok = std::is_same_v<Yours, Required>;
  static_assert(ok,
                "kiln: rule 'fuse' has the wrong type; it must be: AnyTensor (or R<AnyTensor>) "
                "fuse(Stream&, const AnyTensor&, ... one per input)");
};
template <class Op, class Yours, class Required>
struct RuleReduction {
  static constexpr bool ok = std::is_same_v<Yours, Required>;
  static_assert(ok,
                "kiln: rule 'reduction' has the wrong type; it must be: Reduction reduction(const "
                "TensorSpec&), static or const");
};
template <class Op, class Yours, class Required>
struct RuleView {
  static constexpr bool ok = std::is_same_v<Yours, Required>;
  static_assert(ok,
                "kiln: rule 'view' has the wrong type; it must be: std::optional<Layout> "
                "view(const Layout&), static or const");
};
template <class Op, class Yours, class Required>
struct RuleSave {
  static constexpr bool ok = std::is_same_v<Yours, Required>;
  static_assert(ok,
                "kiln: rule 'save' has the wrong type; it must be: Saved save(const Saver&, const "
                "AnyTensor&, ... one per input of "
                "'output', const AnyTensor& out)");
};
template <class Op, class Yours, class Required>
struct RuleBackward {
  static constexpr bool ok = std::is_same_v<Yours, Required>;
  static_assert(ok,
                "kiln: rule 'backward' has the wrong type; it must be: void backward(const Saved&, "
                "const AnyTensor& grad, "
                "Grads<N>&), where N is the number of inputs of 'output'");
};

}  // namespace kiln::detail
