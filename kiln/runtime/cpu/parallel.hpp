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

/// How many threads work at once at most.
int threads();

}  // namespace kiln::cpu
