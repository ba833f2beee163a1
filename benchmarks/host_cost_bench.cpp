// What one small operation costs the host: 5,000 in a row on 16 elements, waited for once at the
// end. Queued ones whose results are dropped never run, and equal ones run once; so what is held
// differs from case to case.
#include <benchmark/benchmark.h>

#include <vector>

#include "benchmarks/measure.hpp"

namespace {

using namespace bench;
using namespace kiln;

constexpr int calls = 5000;

/// Times `round`, which makes all the calls and gives the last result. Kernels are compiled and
/// plans made before.
template <class F>
void measure(benchmark::State& state, const Device& device, float expected, F round) {
  AnyTensor last;
  const auto timed = [&] {
    last = round();
    device.synchronize();
  };
  device.flush();  // what makes the inputs is none of the calls
  for (int i = 0; i < 2; ++i) timed();
  const std::uint64_t before = launches(device);
  for (auto _ : state) timed();
  report(state, device, static_cast<double>(state.iterations()) * calls, before);
  if (last.to_vector().front() != expected) state.SkipWithError("the last result is wrong");
}

/// Equal calls on one input, of which nobody keeps the result but of the last.
void add_one_dropped(benchmark::State& state, Mode mode) {
  const Device device = device_for(mode);
  const AnyTensor x = ones({16}, device);
  measure(state, device, 2, [&] {
    for (int i = 1; i < calls; ++i) (void)(x + 1);
    return x + 1;
  });
}

/// The same; each result is kept until the next is there.
void add_one(benchmark::State& state, Mode mode) {
  const Device device = device_for(mode);
  const AnyTensor x = ones({16}, device);
  measure(state, device, 2, [&] {
    AnyTensor y = x;
    for (int i = 0; i < calls; ++i) y = x + 1;
    return y;
  });
}

/// Different calls on one input, all of whose results are kept: none can be left out.
void add_held(benchmark::State& state, Mode mode) {
  const Device device = device_for(mode);
  const AnyTensor x = ones({16}, device);
  std::vector<AnyTensor> held(calls);
  measure(state, device, calls, [&] {
    for (int i = 0; i < calls; ++i) held[static_cast<std::size_t>(i)] = x + i;
    return held.back();
  });
}

/// Each on the result of the one before: what a queued operation costs.
void add_one_chained(benchmark::State& state, Mode mode) {
  const Device device = device_for(mode);
  const AnyTensor x = ones({16}, device);
  measure(state, device, 1 + calls, [&] {
    AnyTensor y = x;
    for (int i = 0; i < calls; ++i) y = y + 1;
    return y;
  });
}

/// With a gradient graph growing behind it, which is dropped at the end.
void add_one_tracked(benchmark::State& state, Mode mode) {
  const Device device = device_for(mode).autodiff();
  const AnyTensor x = ones({16}, device).require_grad();
  measure(state, device, 1 + calls, [&] {
    AnyTensor y = x;
    for (int i = 0; i < calls; ++i) y = y + 1;
    return y;
  });
}

/// A kernel with rules of its own: a matrix product of 4 x 4, chained.
void small_matmul(benchmark::State& state, Mode mode) {
  const Device device = device_for(mode);
  const AnyTensor x = full({4, 4}, 0.25, device);
  measure(state, device, 0.25F, [&] {
    AnyTensor y = x;
    for (int i = 0; i < calls; ++i) y = matmul(y, x);
    return y;
  });
}

void as_shown(benchmark::internal::Benchmark* b) {
  b->Unit(benchmark::kMillisecond)->UseRealTime();
}
BENCHMARK_CAPTURE(add_one_dropped, lazy, Mode::lazy)->Apply(as_shown);
BENCHMARK_CAPTURE(add_one_dropped, eager, Mode::eager)->Apply(as_shown);
BENCHMARK_CAPTURE(add_one, lazy, Mode::lazy)->Apply(as_shown);
BENCHMARK_CAPTURE(add_one, eager, Mode::eager)->Apply(as_shown);
BENCHMARK_CAPTURE(add_held, lazy, Mode::lazy)->Apply(as_shown);
BENCHMARK_CAPTURE(add_held, eager, Mode::eager)->Apply(as_shown);
BENCHMARK_CAPTURE(add_one_chained, lazy, Mode::lazy)->Apply(as_shown);
BENCHMARK_CAPTURE(add_one_chained, eager, Mode::eager)->Apply(as_shown);
BENCHMARK_CAPTURE(add_one_tracked, lazy, Mode::lazy)->Apply(as_shown);
BENCHMARK_CAPTURE(add_one_tracked, eager, Mode::eager)->Apply(as_shown);
BENCHMARK_CAPTURE(small_matmul, lazy, Mode::lazy)->Apply(as_shown);
BENCHMARK_CAPTURE(small_matmul, eager, Mode::eager)->Apply(as_shown);

}  // namespace
