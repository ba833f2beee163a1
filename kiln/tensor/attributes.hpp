#pragma once
/// The fields of a struct of rules: what keys and launches need of them.
#include <memory>
#include <string>
#include <vector>

#include "kiln/dispatch/kernel/op_table.hpp"
#include "kiln/dispatch/kernel_cache.hpp"
#include "kiln/kernel/launch.hpp"
#include "kiln/support/argument.hpp"
#include "kiln/support/fields.hpp"

namespace kiln::detail {

/// Calls `number` with every number of an attribute, `param` with every Param, both in order.
template <class F, class OnNumber, class OnParam>
void walk(const F& field, const OnNumber& number, const OnParam& param) {
  if constexpr (std::is_same_v<F, Param>) {
    param(field);
  } else if constexpr (std::is_same_v<F, Number>) {
    number(double{field});
    number(field.is_whole());
  } else if constexpr (std::is_same_v<F, Integer>) {
    number(std::int64_t{field});
  } else if constexpr (std::is_same_v<F, Flag>) {
    number(bool{field});
  } else if constexpr (std::is_arithmetic_v<F> || std::is_enum_v<F>) {
    static_assert(!std::is_same_v<F, long double>,
                  "kiln: an attribute may not be a long double, whose bytes do not tell its value");
    number(field);
  } else if constexpr (List<F>) {
    number(field.size());
    for (const typename ListOf<F>::Item& item : field) walk(item, number, param);
  } else if constexpr (is_optional<F>) {
    number(field.has_value());
    if (field) walk(*field, number, param);
  } else {
    static_assert(std::is_aggregate_v<F>,
                  "kiln: an attribute must be a number, an enum, a Param, a string, a Shape, a "
                  "std::vector, std::array or std::optional, or an aggregate of those");
    if constexpr (std::is_aggregate_v<F>)
      with_fields(field, [&](const auto&... f) { (walk(f, number, param), ...); });
  }
}

/// Appends the operation and its attributes to a key. Params are left out, since they may change
/// without another plan.
template <class Op>
void append_key(const void* op, std::string& key) {
  static const std::uint64_t operation = dispatch::next_op_number();
  dispatch::append_bytes(key, operation);
  if constexpr (!std::is_empty_v<Op>) {
    walk(
        *static_cast<const Op*>(op),
        [&](const auto& number) { dispatch::append_bytes(key, number); }, [](const Param&) {});
  }
}

template <class Op>
void collect_params(const void* op, std::vector<const Param*>& out) {
  if constexpr (!std::is_empty_v<Op>) {
    walk(
        *static_cast<const Op*>(op), [](const auto&) {},
        [&](const Param& param) { out.push_back(&param); });
  }
}

template <class Op>
std::vector<double> param_values(const Op& op) {
  std::vector<const Param*> params;
  collect_params<Op>(&op, params);
  std::vector<double> values;
  values.reserve(params.size());
  for (const Param* p : params) values.push_back(p->value());
  return values;
}

/// A copy that outlives the call.
template <class Op>
std::shared_ptr<const void> attributes_of(const Op& op) {
  if constexpr (std::is_empty_v<Op>) {
    static const auto& stateless = *new std::shared_ptr<const void>(std::make_shared<const Op>());
    return stateless;
  } else {
    return std::make_shared<const Op>(op);
  }
}

}  // namespace kiln::detail
