#pragma once
/// Walking the fields of a user's aggregate, so that keys and results need no code of the user's.
#include <cstddef>
#include <type_traits>
#include <utility>

namespace kiln::detail {

struct AnyField {
  template <class T>
  operator T() const;  // NOLINT(google-explicit-constructor): stands for a field of any type
};

template <class T, std::size_t... I>
concept BracedBy = requires { T{(void(I), AnyField{})...}; };

template <class T, std::size_t N>
inline constexpr bool takes_fields = []<std::size_t... I>(std::index_sequence<I...>) {
  return BracedBy<T, I...>;
}(std::make_index_sequence<N>{});

inline constexpr std::size_t max_fields = 8;

/// How many fields an aggregate has, up to max_fields.
template <class T, std::size_t N = max_fields>
constexpr std::size_t field_count() {
  if constexpr (N == 0 || takes_fields<T, N>) {
    return N;
  } else {
    return field_count<T, N - 1>();
  }
}

/// Calls f with references to all fields of an aggregate.
template <class T, class F>
constexpr decltype(auto) with_fields(T& t, F&& f) {
  using Plain = std::remove_const_t<T>;
  constexpr std::size_t n = field_count<Plain>();
  static_assert(!takes_fields<Plain, max_fields + 1>,
                "kiln: an aggregate may have at most eight fields");
  if constexpr (n == 0) {
    return f();
  } else if constexpr (n == 1) {
    auto& [a] = t;
    return f(a);
  } else if constexpr (n == 2) {
    auto& [a, b] = t;
    return f(a, b);
  } else if constexpr (n == 3) {
    auto& [a, b, c] = t;
    return f(a, b, c);
  } else if constexpr (n == 4) {
    auto& [a, b, c, d] = t;
    return f(a, b, c, d);
  } else if constexpr (n == 5) {
    auto& [a, b, c, d, e] = t;
    return f(a, b, c, d, e);
  } else if constexpr (n == 6) {
    auto& [a, b, c, d, e, g] = t;
    return f(a, b, c, d, e, g);
  } else if constexpr (n == 7) {
    auto& [a, b, c, d, e, g, h] = t;
    return f(a, b, c, d, e, g, h);
  } else {
    auto& [a, b, c, d, e, g, h, i] = t;
    return f(a, b, c, d, e, g, h, i);
  }
}

}  // namespace kiln::detail
