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
/// all are done. Each range except the last has at least `grain` numbers. Choose `grain` so that a
/// range takes some 10 microseconds or more. Up to `grain` numbers run on the calling thread. What
/// f throws is thrown here. f may call parallel_for.
///
///     std::vector<float> values(1000);
///     cpu::parallel_for(1000, 256, [&](std::int64_t begin, std::int64_t end) {
///       for (std::int64_t i = begin; i < end; ++i) values[static_cast<std::size_t>(i)] = 2;
///     });
///     values.back();   // [2]
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
/// work of some microseconds or more each, such as a row of a result. What f throws is thrown here.
///
///     std::vector<float> values(4);
///     cpu::parallel_for(4, [&](std::int64_t row) { values[static_cast<std::size_t>(row)] = 2; });
///     values;   // [2, 2, 2, 2]
template <class F>
void parallel_for(Integer count, const F& f) {
  static_assert(std::is_invocable_v<const F&, std::int64_t>,
                "kiln: parallel_for without a grain calls f(i), one std::int64_t");
  parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) f(i);
  });
}

/// How many threads work at once at most.
///
///     cpu::threads() >= 1;   // [true]
int threads();

}  // namespace kiln::cpu
