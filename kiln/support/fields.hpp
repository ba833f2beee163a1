#pragma once
/// Walking the fields of a user's aggregate, so that keys and results need no code of the user's.
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "kiln/support/shape.hpp"

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

inline constexpr std::size_t max_fields = 16;

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
                "kiln: an aggregate may have at most sixteen fields");
  static_assert(n > 0 || std::is_empty_v<Plain>,
                "kiln: the fields of this aggregate cannot be told apart, as where one is a "
                "reference; hold values");
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
  } else if constexpr (n == 8) {
    auto& [a, b, c, d, e, g, h, i] = t;
    return f(a, b, c, d, e, g, h, i);
  } else if constexpr (n == 9) {
    auto& [a, b, c, d, e, g, h, i, j] = t;
    return f(a, b, c, d, e, g, h, i, j);
  } else if constexpr (n == 10) {
    auto& [a, b, c, d, e, g, h, i, j, k] = t;
    return f(a, b, c, d, e, g, h, i, j, k);
  } else if constexpr (n == 11) {
    auto& [a, b, c, d, e, g, h, i, j, k, l] = t;
    return f(a, b, c, d, e, g, h, i, j, k, l);
  } else if constexpr (n == 12) {
    auto& [a, b, c, d, e, g, h, i, j, k, l, m] = t;
    return f(a, b, c, d, e, g, h, i, j, k, l, m);
  } else if constexpr (n == 13) {
    auto& [a, b, c, d, e, g, h, i, j, k, l, m, r] = t;
    return f(a, b, c, d, e, g, h, i, j, k, l, m, r);
  } else if constexpr (n == 14) {
    auto& [a, b, c, d, e, g, h, i, j, k, l, m, r, o] = t;
    return f(a, b, c, d, e, g, h, i, j, k, l, m, r, o);
  } else if constexpr (n == 15) {
    auto& [a, b, c, d, e, g, h, i, j, k, l, m, r, o, p] = t;
    return f(a, b, c, d, e, g, h, i, j, k, l, m, r, o, p);
  } else {
    auto& [a, b, c, d, e, g, h, i, j, k, l, m, r, o, p, q] = t;
    return f(a, b, c, d, e, g, h, i, j, k, l, m, r, o, p, q);
  }
}

/// What a list of values holds. A list is one of those named here: another class may have more to
/// it than what its iterators show.
template <class T>
struct ListOf {};
template <class T, class A>
struct ListOf<std::vector<T, A>> {
  using Item = T;
};
template <class T, std::size_t N>
struct ListOf<std::array<T, N>> {
  using Item = T;
};
template <class T, class Traits, class A>
struct ListOf<std::basic_string<T, Traits, A>> {
  using Item = T;
};
template <class T, class Traits>
struct ListOf<std::basic_string_view<T, Traits>> {
  using Item = T;
};
template <>
struct ListOf<Shape> {
  using Item = std::int64_t;
};
template <class T>
concept List = requires { typename ListOf<T>::Item; };

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

}  // namespace kiln::detail
