#pragma once
/// Results of several tensors and plain values: taken apart, put together, and compared.
#include "kiln/support/fields.hpp"
#include "kiln/support/rule_error.hpp"
#include "kiln/tensor/apply_parts.hpp"
#include "kiln/tensor/traits.hpp"

namespace kiln::detail {

/// Calls f with the N elements of `in`.
template <std::size_t N, class T, class F>
decltype(auto) spread(std::span<const T> in, F f) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) -> decltype(auto) {
    return f(in[I]...);
  }(std::make_index_sequence<N>{});
}

/// How many tensors a result of `Leaf` has.
template <class Leaf, class Out>
constexpr std::size_t leaf_count() {
  if constexpr (std::is_same_v<Out, Leaf>) {
    return 1;
  } else if constexpr (Structured<Leaf, Out>::is_result) {
    const auto count = []<class... F>(F&...) {
      return std::integral_constant<std::size_t,
                                    (leaf_count<Leaf, std::remove_cv_t<F>>() + ... + 0)>{};
    };
    return decltype(with_fields(std::declval<Out&>(), count))::value;
  } else {
    return 0;
  }
}
template <class Op>
inline constexpr std::size_t tensors_of = leaf_count<TensorSpec, typename Traits<Op>::Spec>();

/// Walks a result of `Leaf` beside the same result of other leaves: leaves through `leaf`, plain
/// values copied.
template <class Leaf, class From, class Out, class F>
void fill(const From& from, Out& out, const F& leaf) {
  if constexpr (std::is_same_v<Out, Leaf>) {
    leaf(from, out);
  } else if constexpr (Structured<Leaf, Out>::is_result) {
    with_fields(from, [&](const auto&... f) {
      with_fields(out, [&](auto&... o) { (fill<Leaf>(f, o, leaf), ...); });
    });
  } else {
    out = from;
  }
}

/// The result of Op whose tensors are `leaves` and whose plain values are those of `from`.
template <class Op, class From, class Leaf>
typename Traits<Op>::template Result<Leaf> structure(const From& from,
                                                     std::span<const Leaf> leaves) {
  typename Traits<Op>::template Result<Leaf> out;
  std::size_t next = 0;
  fill<Leaf>(from, out, [&](const auto&, Leaf& leaf) { leaf = leaves[next++]; });
  return out;
}

template <class Leaf, class Out>
void flatten(const Out& out, std::vector<Leaf>& leaves) {
  if constexpr (std::is_same_v<Out, Leaf>) {
    leaves.push_back(out);
  } else if constexpr (Structured<Leaf, Out>::is_result) {
    with_fields(out, [&](const auto&... o) { (flatten(o, leaves), ...); });
  }
}

/// The tensors of a result, in order.
template <class Leaf, class Out>
std::vector<Leaf> flat(const Out& out) {
  std::vector<Leaf> leaves;
  flatten(out, leaves);
  return leaves;
}

template <class T>
std::vector<TensorSpec> specs_of(std::span<const T> in) {
  std::vector<TensorSpec> specs;
  specs.reserve(in.size());
  for (const T& t : in) specs.push_back(t.spec());
  return specs;
}
inline std::span<const TensorSpec> specs_of(std::span<const TensorSpec> in) { return in; }

template <class Op>
typename Traits<Op>::Spec output_of(const Op& op, std::span<const TensorSpec> in) {
  return spread<Traits<Op>::arity>(in, [&](const auto&... s) {
    return in_rule(Op::name, "output", [&] { return op.output(s...); });
  });
}

/// The reference's result for `in`.
template <class Op>
typename Traits<Op>::template Result<AnyTensor> reference_of(const Op& op,
                                                             std::span<const AnyTensor> in) {
  return spread<Traits<Op>::arity>(in, [&](const auto&... t) {
    return in_rule(Op::name, "reference", [&] { return op.reference(t...); });
  });
}

/// What a node keeps of an operation without an output rule. No rule can give its plain values
/// again.
template <class Op>
struct Applied {
  Op op;
  typename Traits<Op>::Spec spec;
};

template <class Op, class Given>
std::shared_ptr<const void> applied(const Op& op, const Given& given) {
  auto kept = std::make_shared<Applied<Op>>(Applied<Op>{op, {}});
  fill<TensorSpec>(given, kept->spec,
                   [](const auto& tensor, TensorSpec& spec) { spec = tensor.spec(); });
  return kept;
}

/// The struct of rules, from what a node keeps.
template <class Op>
const Op& self_of(const void* kept) {
  if constexpr (HasOutput<Op>) {
    return *static_cast<const Op*>(kept);
  } else {
    return static_cast<const Applied<Op>*>(kept)->op;
  }
}

/// The result of Op whose tensors are `leaves`. `kept` is what self_of takes. The output rule is
/// asked only if the result has plain values.
template <class Op, class In, class Leaf>
typename Traits<Op>::template Result<Leaf> result_of(const void* kept, std::span<const In> in,
                                                     std::span<const Leaf> leaves) {
  if constexpr (Traits<Op>::one_result) {
    return leaves[0];
  } else if constexpr (HasOutput<Op>) {
    return structure<Op>(output_of(self_of<Op>(kept), specs_of(in)), leaves);
  } else {
    return structure<Op>(static_cast<const Applied<Op>*>(kept)->spec, leaves);
  }
}

/// A plain value as text; empty if it has none.
template <class T>
std::string spelled(const T& value) {
  constexpr bool own = std::is_class_v<T> || std::is_enum_v<T>;
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_integral_v<T>) {
    return std::to_string(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    return spelled_number(static_cast<double>(value));
  } else if constexpr (std::is_convertible_v<T, std::string_view>) {
    return "'" + std::string(std::string_view(value)) + "'";
  } else if constexpr (own && requires { std::string(to_string(value)); }) {
    return std::string(to_string(value));
  } else if constexpr (std::is_enum_v<T>) {
    return std::to_string(static_cast<std::underlying_type_t<T>>(value));
  } else {
    return {};
  }
}

/// Equal by ==, or both NaN.
template <class T>
bool same_plain(const T& a, const T& b) {
  if constexpr (std::is_floating_point_v<T>) {
    return a == b || (a != a && b != b);
  } else {
    return a == b;
  }
}

/// Throws Error if a plain value of `given`, a result of `Leaf`, differs from what the output rule
/// said. Tensors are compared elsewhere.
template <class Leaf, class Said, class Given>
void compare_plain(const dispatch::MadeBy& by, const Said& said, const Given& given,
                   const std::string& field = {}) {
  if constexpr (std::is_same_v<Given, Leaf>) {
  } else if constexpr (Structured<Leaf, Given>::is_result || !std::equality_comparable<Given>) {
    static_assert(std::is_aggregate_v<Given>,
                  "kiln: a plain value of a structured result needs an operator==");
    int next = 0;
    const auto name = [&] { return (field.empty() ? "" : field + ".") + std::to_string(next++); };
    with_fields(said, [&](const auto&... s) {
      with_fields(given, [&](const auto&... g) { (compare_plain<Leaf>(by, s, g, name()), ...); });
    });
  } else {
    if (!same_plain(said, given)) refuse_plain(by, field, spelled(said), spelled(given));
  }
}

}  // namespace kiln::detail
