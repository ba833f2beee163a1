#pragma once
/// The fields of a struct of rules: what keys and launches need of them.
#include <memory>
#include <string>
#include <vector>

#include "kiln/dispatch/kernel_cache.hpp"
#include "kiln/kernel/launch.hpp"
#include "kiln/support/fields.hpp"

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

/// A copy that outlives the call.
template <class Op>
std::shared_ptr<const void> attributes_of(const Op& op) {
  if constexpr (std::is_empty_v<Op>) {
    static const auto stateless = std::make_shared<const Op>();
    return stateless;
  } else {
    return std::make_shared<const Op>(op);
  }
}

}  // namespace kiln::detail
