#pragma once
/// Turns a struct of rules into constant tables of function pointers, so that nothing below is a
/// template.
#include <mutex>
#include <unordered_map>

#include "kiln/tensor/attributes.hpp"
#include "kiln/tensor/extension.hpp"
#include "kiln/tensor/result.hpp"

namespace kiln::detail {

template <class Op>
std::vector<webgpu::Launch> erased_kernel(const void* op, std::span<const Operand> in,
                                          std::span<const Operand> out, const Limits& limits) {
  // The answer is kept for all values of the Params. So an output rule that runs here may not read
  // them.
  const KeptForEveryParam kept(Op::name, "webgpu_kernel");
  const Op& self = *static_cast<const Op*>(op);
  const auto result = result_of<Op>(op, in, out);
  auto launches = spread<Traits<Op>::arity>(in, [&](const auto&... x) {
    return in_rule(Op::name, "webgpu_kernel", [&] {
      if constexpr (requires { self.webgpu_kernel(x..., result, limits); }) {
        return self.webgpu_kernel(x..., result, limits);
      } else {
        return self.webgpu_kernel(x..., result);
      }
    });
  });
  if constexpr (std::is_same_v<decltype(launches), webgpu::Launch>) {
    return {std::move(launches)};
  } else {
    return launches;
  }
}

template <class Op>
std::vector<RawTensor> erased_forward(const void* op, Client& client, std::span<const RawTensor> in,
                                      std::span<const TensorSpec> out) {
  const Op& self = *static_cast<const Op*>(op);
  const auto spec = result_of<Op>(op, in, out);
  const auto result = spread<Traits<Op>::arity>(in, [&](const auto&... x) {
    return in_rule(Op::name, "webgpu_forward",
                   [&] { return self.webgpu_forward(client, x..., spec); });
  });
  compare_plain<RawTensor>({Op::name, {}, "webgpu_forward"}, spec, result);
  return flat<RawTensor>(result);
}

template <class Op>
void erased_cpu_kernel(const void* op, std::span<const cpu::Input> in,
                       std::span<const cpu::Output> out) {
  const Op& self = *static_cast<const Op*>(op);
  const auto result = result_of<Op>(op, in, out);
  spread<Traits<Op>::arity>(in, [&](const auto&... x) {
    in_rule(Op::name, "cpu_kernel", [&] { self.cpu_kernel(x..., result); });
  });
}

template <class Op>
std::optional<Layout> erased_view(const void* op, const Layout& in) {
  return in_rule(Op::name, "view", [&] { return static_cast<const Op*>(op)->view(in); });
}

template <class Op>
std::shared_ptr<void> erased_save(const void* op, const Saver& saver, std::span<const AnyTensor> in,
                                  std::span<const AnyTensor> out) {
  const Op& self = self_of<Op>(op);
  const auto results = result_of<Op>(op, in, out);
  return spread<Traits<Op>::arity>(in, [&](const auto&... t) {
    return in_rule(Op::name, "save", [&] {
      return std::make_shared<typename Op::Saved>(self.save(saver, t..., results));
    });
  });
}

template <class Op>
void erased_backward(const Node& node, std::span<const AnyTensor> grads,
                     std::span<GradSlot> slots) {
  const Op& self = self_of<Op>(node.attributes.get());
  const auto& saved = *static_cast<const typename Op::Saved*>(node.saved.get());
  Grads<Traits<Op>::arity> wanted;
  std::copy(slots.begin(), slots.end(), wanted.slots.begin());
  const auto grad =
      result_of<Op>(node.attributes.get(), std::span<const TensorSpec>(node.in), grads);
  const bool on_webgpu = node.device->runtime().name() == "webgpu";
  if constexpr (HasWebgpuBackward<Op>) {
    if (on_webgpu)
      in_rule(Op::name, "webgpu_backward", [&] { self.webgpu_backward(saved, grad, wanted); });
  }
  if constexpr (HasBackward<Op>) {
    if (!HasWebgpuBackward<Op> || !on_webgpu)
      in_rule(Op::name, "backward", [&] { self.backward(saved, grad, wanted); });
  } else if (!on_webgpu) {
    refuse_backward(node);
  }
  std::move(wanted.slots.begin(), wanted.slots.end(), slots.begin());
}

/// For Default<Autodiff>: keeps the inputs. The backward pass runs the reference on them again, and
/// differentiates it.
template <class Op>
std::shared_ptr<void> save_inputs(const void*, const Saver& saver, std::span<const AnyTensor> in,
                                  std::span<const AnyTensor>) {
  auto kept = std::make_shared<std::vector<Checkpoint>>();
  for (const AnyTensor& t : in) kept->push_back(saver.keep(t));
  return kept;
}

template <class Op>
void backward_by_reference(const Node& node, std::span<const AnyTensor> grads,
                           std::span<GradSlot> slots) {
  const Op& self = self_of<Op>(node.attributes.get());
  std::vector<AnyTensor> in;
  for (const Checkpoint& c : *static_cast<const std::vector<Checkpoint>*>(node.saved.get())) {
    const AnyTensor x = c.get().to(node.device->autodiff());
    in.push_back(slots[in.size()] ? x.require_grad() : x);
  }
  const auto out = reference_of(self, std::span<const AnyTensor>(in));
  set_from_reference(flat<AnyTensor>(out), grads, in, slots);
}

template <class Op>
constexpr auto make_names() {
  if constexpr (HasInputs<Op>) {
    std::array<std::string_view, std::size(Op::inputs)> names;
    for (std::size_t i = 0; i < names.size(); ++i) names[i] = Op::inputs[i];
    return names;
  } else {
    return std::array<std::string_view, 0>{};
  }
}
template <class Op>
inline constexpr auto input_names = make_names<Op>();

/// "out0", "out1", ...
template <std::size_t I>
inline constexpr auto numbered_output = [] {
  std::array<char, 16> text{'o', 'u', 't'};
  std::size_t size = 3;
  std::size_t unit = 1;
  while (I / unit >= 10) unit *= 10;
  for (; unit > 0; unit /= 10) text[size++] = static_cast<char>('0' + I / unit % 10);
  return std::pair(text, size);
}();

template <class Op>
constexpr auto make_output_names() {
  if constexpr (HasOutputs<Op>) {
    std::array<std::string_view, std::size(Op::outputs)> names;
    for (std::size_t i = 0; i < names.size(); ++i) names[i] = Op::outputs[i];
    return names;
  } else if constexpr (Traits<Op>::one_result) {
    return std::array<std::string_view, 1>{"out"};
  } else {
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return std::array{
          std::string_view(numbered_output<I>.first.data(), numbered_output<I>.second)...};
    }(std::make_index_sequence<tensors_of<Op>>{});
  }
}
template <class Op>
inline constexpr auto output_names = make_output_names<Op>();

/// The bodies kept for each type of operation: attributes that never repeat must not fill the
/// memory.
inline constexpr std::size_t most_known_bodies = 512;

/// What `build` makes: once for each key. There is one table for each type of operation.
template <class Op, class Build>
auto known_body(std::string key, const Build& build) {
  using Made = decltype(build());
  static std::mutex mutex;
  static auto& known = *new std::unordered_map<std::string, Made>;
  {
    const std::lock_guard lock(mutex);
    if (const auto at = known.find(key); at != known.end()) return at->second;
  }
  Made made = build();  // outside of the lock: it calls the operation's own code
  const std::lock_guard lock(mutex);
  if (known.size() >= most_known_bodies) known.clear();
  return known.try_emplace(std::move(key), std::move(made)).first->second;
}

/// The body of an elementwise operation: built once for each set of attributes.
template <class Op>
BodyPtr body_of(const Op& op) {
  std::string key;
  append_key<Op>(&op, key);
  return known_body<Op>(std::move(key), [&] {
    const KeptForEveryParam kept(Op::name, "body");
    std::vector<const Param*> params;
    collect_params<Op>(&op, params);
    const int count = static_cast<int>(params.size());
    ExprGraph graph(std::move(params));
    constexpr std::size_t n = Signature<&Op::body>::arity;
    const std::int32_t root = [&]<std::size_t... I>(std::index_sequence<I...>) {
      const std::array<Expr, n> in{graph.input(static_cast<int>(I))...};
      return graph.place(in_rule(Op::name, "body", [&] { return op.body(in[I]...); }));
    }(std::make_index_sequence<n>{});
    return make_body(graph, static_cast<int>(n), count, std::array{root});
  });
}

template <class Op>
struct ElementGradientsOf {};

/// What the rule `element` gives, and its key: it runs once for each set of attributes and specs.
template <HasElement Op>
std::pair<ElementBody, std::string> element_body(const Op& op, const TensorSpec& out,
                                                 const std::vector<TensorSpec>& in) {
  std::string key;
  append_key<Op>(&op, key);
  dispatch::append_spec(key, out);
  for (const TensorSpec& spec : in) dispatch::append_spec(key, spec);
  ElementBody made = known_body<Op>(key, [&] {
    const KeptForEveryParam kept(Op::name, "element");
    std::vector<const Param*> params;
    collect_params<Op>(&op, params);
    ElementRule rule(Op::name, std::move(params), out, in, input_names<Op>);
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      const At at = rule.at();
      const std::array<Elements, sizeof...(I)> x{rule.operand(I)...};
      return rule.finish(in_rule(Op::name, "element", [&] { return op.element(at, x[I]...); }));
    }(std::make_index_sequence<Traits<Op>::arity>{});
  });
  return {std::move(made), std::move(key)};
}

/// What the queue calls for an operation with a rule `element`.
template <HasElement Op>
ElementwiseCall element_call(const Op& op, const TensorSpec& out,
                             const std::vector<TensorSpec>& in) {
  return call_of(Op::name, element_body(op, out, in).first, param_values(op), in, out);
}

/// For Default<Autodiff> without a reference: the gradients of all tracked operands, derived from
/// the rule `element`.
template <HasElement Op>
std::shared_ptr<void> save_element(const void* op, const Saver& saver,
                                   std::span<const AnyTensor> in, std::span<const AnyTensor> out) {
  const Op& self = self_of<Op>(op);
  const std::vector<TensorSpec> specs = specs_of(in);
  auto [forward, key] = element_body(self, out[0].spec(), specs);
  const std::vector<double> params = param_values(self);
  for (const AnyTensor& t : in) key += t.tracked() ? '+' : '-';
  return save_for_element(known_body<ElementGradientsOf<Op>>(
                              std::move(key),
                              [&, &body = forward] {
                                std::vector<ElementGradient> all(in.size());
                                for (std::size_t i = 0; i < in.size(); ++i) {
                                  if (in[i].tracked())
                                    all[i] = element_gradient(Op::name, input_names<Op>[i], body,
                                                              static_cast<int>(params.size()),
                                                              specs, out[0].spec(), i);
                                }
                                return all;
                              }),
                          params, saver, in);
}

template <class Op>
constexpr OpTable make_table() {
  OpTable table{.name = Op::name,
                .inputs = input_names<Op>,
                .outputs = output_names<Op>,
                .append_key = append_key<Op>,
                .params = collect_params<Op>};
  if constexpr (HasView<Op>) table.view = erased_view<Op>;
  if constexpr (HasKernel<Op>) table.webgpu_kernel = erased_kernel<Op>;
  if constexpr (HasCpuKernel<Op>) table.cpu_kernel = erased_cpu_kernel<Op>;
  if constexpr (HasForward<Op> && HasOutput<Op>) table.webgpu_forward = erased_forward<Op>;
  return table;
}

template <class Op>
constexpr GradRule make_rule() {
  GradRule rule{.inputs = input_names<Op>};
  if constexpr (requires { Op::bound; }) rule.bound = Op::bound;
  if constexpr (has_gradient_rule<Op>) {
    rule.save = erased_save<Op>;
    rule.backward = erased_backward<Op>;
  } else if constexpr (HasElement<Op> && !HasReference<Op> && selects<Op, Default<Autodiff>>) {
    rule.save = save_element<Op>;
    rule.backward = backward_of_element;
  } else if constexpr (selects<Op, Default<Autodiff>>) {
    rule.save = save_inputs<Op>;
    rule.backward = backward_by_reference<Op>;
  }
  return rule;
}

// Constant-initialised: there is no registration and no order.
template <class Op>
inline constexpr OpTable table_of = make_table<Op>();
template <class Op>
inline constexpr GradRule rule_of = make_rule<Op>();

}  // namespace kiln::detail
