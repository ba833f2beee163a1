#pragma once
/// Turns a struct of rules into constant tables of function pointers: everything below is no
/// template.
#include <mutex>
#include <unordered_map>

#include "kiln/dispatch/kernel_cache.hpp"
#include "kiln/tensor/extension.hpp"
#include "kiln/tensor/support.hpp"

namespace kiln::detail {

/// Spells an attribute. A Param is left out: it may change without another plan.
template <class F>
void append_attribute(std::string& key, const F& field) {
  if constexpr (std::is_same_v<F, Param>) {
  } else if constexpr (std::is_arithmetic_v<F> || std::is_enum_v<F>) {
    dispatch::append_bytes(key, field);
  } else if constexpr (requires {
                         field.begin();
                         field.end();
                         field.size();
                       }) {
    dispatch::append_bytes(key, field.size());
    for (const auto& item : field) append_attribute(key, item);
  } else {
    static_assert(std::is_aggregate_v<F>,
                  "kiln: an attribute must be a number, an enum, a string, a Shape, a range, or an "
                  "aggregate of those");
    with_fields(field, [&](const auto&... f) { (append_attribute(key, f), ...); });
  }
}

template <class Op>
void append_key(const void* op, std::string& key) {
  if constexpr (!std::is_empty_v<Op>) append_attribute(key, *static_cast<const Op*>(op));
}

template <class Op>
void collect_params(const void* op, std::vector<const Param*>& out) {
  if constexpr (!std::is_empty_v<Op>) {
    with_fields(*static_cast<const Op*>(op), [&](const auto&... f) {
      const auto add = [&](const auto& field) {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(field)>, Param>)
          out.push_back(&field);
      };
      (add(f), ...);
    });
  }
}

template <class Op>
std::vector<double> param_values(const Op& op) {
  std::vector<const Param*> params;
  collect_params<Op>(&op, params);
  std::vector<double> values;
  values.reserve(params.size());
  for (const Param* p : params) values.push_back(p->value);
  return values;
}

/// Calls f with the N elements of `in`.
template <std::size_t N, class T, class F>
decltype(auto) spread(std::span<const T> in, F f) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) -> decltype(auto) {
    return f(in[I]...);
  }(std::make_index_sequence<N>{});
}

/// Walks a result aggregate beside the specs it is made from: tensors through `leaf`, plain values
/// copied.
template <class Spec, class Out, class Leaf>
void fill(const Spec& spec, Out& out, const Leaf& leaf) {
  if constexpr (std::is_same_v<Spec, TensorSpec>) {
    leaf(spec, out);
  } else if constexpr (Structured<Spec>::is_result) {
    with_fields(spec, [&](const auto&... s) {
      with_fields(out, [&](auto&... o) { (fill(s, o, leaf), ...); });
    });
  } else {
    out = spec;
  }
}

template <class Op, class Leaf>
typename Traits<Op>::template Result<Leaf> structure(const typename Traits<Op>::Spec& spec,
                                                     std::span<const Leaf> leaves) {
  typename Traits<Op>::template Result<Leaf> out;
  std::size_t next = 0;
  fill(spec, out, [&](const TensorSpec&, Leaf& leaf) { leaf = leaves[next++]; });
  return out;
}

/// The tensors of a result, in order. `spec` says which fields are tensors.
template <class Spec, class Out, class Leaf>
void flatten(const Spec& spec, const Out& out, std::vector<Leaf>& leaves) {
  if constexpr (std::is_same_v<Spec, TensorSpec>) {
    leaves.push_back(out);
  } else if constexpr (Structured<Spec>::is_result) {
    with_fields(spec, [&](const auto&... s) {
      with_fields(out, [&](const auto&... o) { (flatten(s, o, leaves), ...); });
    });
  }
}

template <class Op>
typename Traits<Op>::Spec output_of(const Op& op, std::span<const TensorSpec> in) {
  return spread<Traits<Op>::arity>(in, [&](const auto&... s) { return op.output(s...); });
}

template <class Op>
std::vector<TensorSpec> specs_of(std::span<const AnyTensor> in) {
  std::vector<TensorSpec> specs;
  for (const AnyTensor& t : in) specs.push_back(t.spec());
  return specs;
}

/// Of tensors, structured as the rules of Op want them.
template <class Op>
typename Traits<Op>::template Result<AnyTensor> structure_outputs(const Op& op,
                                                                  std::span<const TensorSpec> in,
                                                                  std::span<const AnyTensor> out) {
  if constexpr (std::is_same_v<typename Traits<Op>::Spec, TensorSpec>) {
    return out[0];
  } else {
    return structure<Op>(output_of(op, in), out);
  }
}

template <class Op>
std::vector<webgpu::Launch> erased_kernel(const void* op, std::span<const Operand> in,
                                          std::span<const Operand> out, const Limits& limits) {
  const Op& self = *static_cast<const Op*>(op);
  std::vector<TensorSpec> specs;
  for (const Operand& t : in) specs.push_back(t.spec());
  typename Traits<Op>::template Result<Operand> result;
  if constexpr (std::is_same_v<typename Traits<Op>::Spec, TensorSpec>) {
    result = out[0];
  } else {
    result = structure<Op>(output_of(self, specs), out);
  }
  auto launches = spread<Traits<Op>::arity>(in, [&](const auto&... x) {
    if constexpr (requires { self.webgpu_kernel(x..., result, limits); }) {
      return self.webgpu_kernel(x..., result, limits);
    } else {
      return self.webgpu_kernel(x..., result);
    }
  });
  if constexpr (std::is_same_v<decltype(launches), webgpu::Launch>) {
    return {std::move(launches)};
  } else {
    return launches;
  }
}

template <class Op>
std::vector<RawTensor> erased_forward(const void* op, webgpu::Client& client,
                                      std::span<const RawTensor> in, std::span<const TensorSpec>) {
  const Op& self = *static_cast<const Op*>(op);
  std::vector<TensorSpec> specs;
  for (const RawTensor& t : in) specs.push_back(t.spec());
  const auto spec = output_of(self, specs);
  const auto result = spread<Traits<Op>::arity>(
      in, [&](const auto&... x) { return self.webgpu_forward(client, x..., spec); });
  std::vector<RawTensor> leaves;
  flatten(spec, result, leaves);
  return leaves;
}

template <class Op>
std::optional<Layout> erased_view(const void* op, const Layout& in) {
  return static_cast<const Op*>(op)->view(in);
}

template <class Op>
std::shared_ptr<void> erased_save(const void* op, const Saver& saver, std::span<const AnyTensor> in,
                                  std::span<const AnyTensor> out) {
  const Op& self = *static_cast<const Op*>(op);
  const auto all = structure_outputs<Op>(self, specs_of<Op>(in), out);
  return spread<Traits<Op>::arity>(in, [&](const auto&... t) {
    return std::make_shared<typename Op::Saved>(self.save(saver, t..., all));
  });
}

template <class Op>
void erased_backward(const Node& node, std::span<const AnyTensor> grads,
                     std::span<GradSlot> slots) {
  const Op& self = *static_cast<const Op*>(node.attributes.get());
  const auto& saved = *static_cast<const typename Op::Saved*>(node.saved.get());
  Grads<Traits<Op>::arity> all;
  std::copy(slots.begin(), slots.end(), all.slots.begin());
  const auto grad = structure_outputs<Op>(self, node.in, grads);
  const bool on_webgpu = node.device->runtime().name() == "webgpu";
  if constexpr (HasWebgpuBackward<Op>) {
    if (on_webgpu) self.webgpu_backward(saved, grad, all);
  }
  if constexpr (HasBackward<Op>) {
    if (!HasWebgpuBackward<Op> || !on_webgpu) self.backward(saved, grad, all);
  } else if (!on_webgpu) {
    refuse_backward(node);
  }
  std::move(all.slots.begin(), all.slots.end(), slots.begin());
}

/// Default<Autodiff>: the reference, run again on the kept inputs, is differentiated.
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
  const Op& self = *static_cast<const Op*>(node.attributes.get());
  std::vector<AnyTensor> in;
  for (const Checkpoint& c : *static_cast<const std::vector<Checkpoint>*>(node.saved.get())) {
    const AnyTensor x = c.get().to(node.device->autodiff());
    in.push_back(slots[in.size()] ? x.require_grad() : x);
  }
  const auto out = spread<Traits<Op>::arity>(
      std::span<const AnyTensor>(in), [&](const auto&... t) { return self.reference(t...); });
  std::vector<AnyTensor> leaves;
  if constexpr (std::is_same_v<typename Traits<Op>::Spec, TensorSpec>) {
    leaves.push_back(out);
  } else {
    flatten(output_of(self, node.in), out, leaves);
  }
  set_from_reference(leaves, grads, in, slots);
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

inline constexpr std::array<std::string_view, 8> numbered_outputs{"out0", "out1", "out2", "out3",
                                                                  "out4", "out5", "out6", "out7"};
inline constexpr std::array<std::string_view, 1> one_output{"out"};

template <class Op>
constexpr auto make_output_names() {
  if constexpr (HasOutputs<Op>) {
    std::array<std::string_view, std::size(Op::outputs)> names;
    for (std::size_t i = 0; i < names.size(); ++i) names[i] = Op::outputs[i];
    return names;
  } else if constexpr (std::is_same_v<typename Traits<Op>::Spec, TensorSpec>) {
    return one_output;
  } else {
    return numbered_outputs;
  }
}
template <class Op>
inline constexpr auto output_names = make_output_names<Op>();

template <class Op>
constexpr OpTable make_table() {
  OpTable table{.name = Op::name,
                .inputs = input_names<Op>,
                .outputs = output_names<Op>,
                .append_key = append_key<Op>,
                .params = collect_params<Op>};
  if constexpr (HasView<Op>) table.view = erased_view<Op>;
  if constexpr (HasKernel<Op>) table.webgpu_kernel = erased_kernel<Op>;
  if constexpr (HasForward<Op>) table.webgpu_forward = erased_forward<Op>;
  return table;
}

template <class Op>
constexpr GradRule make_rule() {
  GradRule rule{.inputs = input_names<Op>};
  if constexpr (requires { Op::bound; }) rule.bound = Op::bound;
  if constexpr (has_gradient_rule<Op>) {
    rule.save = erased_save<Op>;
    rule.backward = erased_backward<Op>;
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

/// The body of an elementwise operation: built once for each set of attributes.
template <class Op>
BodyPtr body_of(const Op& op) {
  const auto build = [&] {
    std::vector<const Param*> params;
    collect_params<Op>(&op, params);
    const int count = static_cast<int>(params.size());
    ExprGraph graph(std::move(params));
    constexpr std::size_t n = Signature<&Op::body>::arity;
    const std::int32_t root = [&]<std::size_t... I>(std::index_sequence<I...>) {
      const std::array<Expr, n> in{graph.input(static_cast<int>(I))...};
      return graph.place(op.body(in[I]...));
    }(std::make_index_sequence<n>{});
    return make_body(graph, static_cast<int>(n), count, std::array{root});
  };
  std::string key;
  append_key<Op>(&op, key);
  static std::mutex mutex;
  static std::unordered_map<std::string, BodyPtr> known;
  const std::lock_guard lock(mutex);
  BodyPtr& slot = known[key];
  if (slot == nullptr) slot = build();
  return slot;
}

}  // namespace kiln::detail
