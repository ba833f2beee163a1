// Operations bound by memory: bytes read and written per second.
#include <benchmark/benchmark.h>

#include "benchmarks/measure.hpp"

namespace {

using namespace bench;
using namespace kiln;

/// `bytes` an element of x are read and written by a call.
template <class F>
void measure(benchmark::State& state, int bytes, F f) {
  const Device device = device_for(Mode::lazy);
  const std::int64_t rows = state.range(0);
  if (!fits(state, device, rows * 1024)) return;
  const AnyTensor x = random_normal({rows, 1024}, 1, device);
  const AnyTensor expected = f(x);
  const Timed timed = time_calls(state, device, [&] { return f(x); });
  report_rate(state, "bytes/s", bytes * 1024.0 * static_cast<double>(rows), timed);
  check_near(state, timed.last, expected, 0);
}

void elementwise_gelu(benchmark::State& state) {
  measure(state, 8, [](const AnyTensor& x) { return gelu(x); });
}
void elementwise_broadcast_add(benchmark::State& state) {
  const AnyTensor row = random_normal({1024}, 2, device_for(Mode::lazy));
  measure(state, 8, [&](const AnyTensor& x) { return x + row; });
}
void transpose_copy(benchmark::State& state) {
  measure(state, 8, [](const AnyTensor& x) { return transpose(x) + 0; });
}
void sum_rows(benchmark::State& state) {
  measure(state, 4, [](const AnyTensor& x) { return sum(x, 1); });
}
void sum_columns(benchmark::State& state) {
  measure(state, 4, [](const AnyTensor& x) { return sum(x, 0); });
}
void sum_all(benchmark::State& state) {
  measure(state, 4, [](const AnyTensor& x) { return sum(x); });
}

// Operations that make elements, or say where they come from.

void random_normal_made(benchmark::State& state) {
  measure(state, 4, [](const AnyTensor& x) { return random_normal(x.shape(), 3, x.device()); });
}
void random_uniform_made(benchmark::State& state) {
  measure(state, 4, [](const AnyTensor& x) { return random_uniform(x.shape(), 3, x.device()); });
}
/// Elements and their numbers are read, each number names a random element of all.
void gather_elements(benchmark::State& state) {
  const std::int64_t n = state.range(0) * 1024;
  const Interval all{0, static_cast<double>(n)};
  const AnyTensor index = cast(random_uniform({n}, 2, all, device_for(Mode::lazy)), DType::i32);
  measure(state, 12, [&](const AnyTensor& x) { return gather(reshape(x, {n}), 0, index); });
}
/// As many values are added to random elements, of which there are `one_of` times fewer.
void scatter_to(benchmark::State& state, std::int64_t one_of) {
  const std::int64_t n = state.range(0) * 1024;
  const std::int64_t places = n / one_of;
  const Interval all{0, static_cast<double>(places)};
  const Device device = device_for(Mode::lazy);
  const AnyTensor index = cast(random_uniform({n}, 2, all, device), DType::i32);
  const AnyTensor from = zeros({places}, device) + 0;
  measure(state, 12,
          [&](const AnyTensor& x) { return scatter_add(from, 0, index, reshape(x, {n})); });
}
void scatter_add_elements(benchmark::State& state) { scatter_to(state, 1); }
void scatter_add_often(benchmark::State& state) { scatter_to(state, 1024); }
/// The gradient of a gather of rows: each number names a random row.
void gather_rows_gradient(benchmark::State& state) {
  const std::int64_t rows = state.range(0);
  const Interval all{0, static_cast<double>(rows)};
  const AnyTensor picks =
      cast(random_uniform({rows, 1}, 2, all, device_for(Mode::lazy)), DType::i32);
  measure(state, 12, [&](const AnyTensor& x) {
    const AnyTensor t = x.to(x.device().autodiff()).require_grad();
    const AnyTensor y = gather(t, 0, broadcast_to(picks, x.shape()));
    return vjp({&y, 1}, {&x, 1}).of(t);
  });
}
void concat_columns(benchmark::State& state) {
  measure(state, 8,
          [](const AnyTensor& x) { return concat({slice(x, 1, 0, 512), slice(x, 1, 512)}, 1); });
}
/// The gradient of a slice: its elements between zeros.
void slice_gradient(benchmark::State& state) {
  measure(state, 6, [](const AnyTensor& x) {
    const AnyTensor t = x.to(x.device().autodiff()).require_grad();
    const AnyTensor part = slice(t, 1, 0, 512);
    const AnyTensor seed = slice(x, 1, 512);
    return vjp({&part, 1}, {&seed, 1}).of(t);
  });
}

BENCHMARK(random_normal_made)->Arg(1024)->Arg(65536)->UseRealTime();
BENCHMARK(random_uniform_made)->Arg(1024)->Arg(65536)->UseRealTime();
BENCHMARK(gather_elements)->Arg(1024)->Arg(4096)->UseRealTime();
BENCHMARK(scatter_add_elements)->Arg(1024)->Arg(4096)->UseRealTime();
BENCHMARK(scatter_add_often)->Arg(1024)->Arg(4096)->UseRealTime();
BENCHMARK(gather_rows_gradient)->Arg(1024)->Arg(4096)->UseRealTime();
BENCHMARK(concat_columns)->Arg(1024)->Arg(65536)->UseRealTime();
BENCHMARK(slice_gradient)->Arg(1024)->Arg(65536)->UseRealTime();
BENCHMARK(elementwise_gelu)->Arg(1024)->Arg(16384)->Arg(65536)->UseRealTime();
BENCHMARK(elementwise_broadcast_add)->Arg(1024)->Arg(16384)->Arg(65536)->UseRealTime();
BENCHMARK(transpose_copy)->Arg(1024)->Arg(16384)->Arg(65536)->UseRealTime();
BENCHMARK(sum_rows)->Arg(1024)->Arg(16384)->Arg(65536)->UseRealTime();
BENCHMARK(sum_columns)->Arg(1024)->Arg(16384)->Arg(65536)->UseRealTime();
BENCHMARK(sum_all)->Arg(1024)->Arg(16384)->Arg(65536)->UseRealTime();

}  // namespace
