#pragma once
#include <cstdint>
#include <memory>
#include <type_traits>

#include "kiln/support/argument.hpp"

namespace kiln::cpu {

namespace detail {
using RangeFunction = void (*)(const void* f, std::int64_t begin, std::int64_t end);
void parallel(std::int64_t count, std::int64_t grain, RangeFunction call, const void* f);
}  // namespace detail

/// Calls f(begin, end) for ranges that together are [0, count), on several threads; comes back when
/// all are done. A range has at least `grain` numbers, but for the last: choose it so that one
/// takes some 10 microseconds or more. Up to `grain` numbers run on the calling thread. What f
/// throws is thrown here. May be called from within f.
///
///     cpu::parallel_for(rows, 16, [&](std::int64_t begin, std::int64_t end) { ... });
template <class F>
void parallel_for(Integer count, Integer grain, const F& f) {
  static_assert(std::is_invocable_v<const F&, std::int64_t, std::int64_t>,
                "kiln: parallel_for calls f(begin, end), two std::int64_t");
  const auto call = [](const void* self, std::int64_t begin, std::int64_t end) {
    (*static_cast<const F*>(self))(begin, end);
  };
  detail::parallel(count, grain, call, std::addressof(f));
}

/// Calls f(i) once for each i in [0, count), on several threads; comes back when all are done. For
/// work of some microseconds or more each, such as a row of a result.
///
///     cpu::parallel_for(rows, [&](std::int64_t row) { ... });
template <class F>
void parallel_for(Integer count, const F& f) {
  static_assert(std::is_invocable_v<const F&, std::int64_t>,
                "kiln: parallel_for without a grain calls f(i), one std::int64_t");
  parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) f(i);
  });
}

/// How many threads work at once at most.
int threads();

}  // namespace kiln::cpu
