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

/// Times `round`, which makes all the calls and gives the last result.
template <class F>
void measure(benchmark::State& state, const Device& device, float expected, F round) {
  AnyTensor last = round();
  device.synchronize();
  const std::uint64_t before = launches(device);
  for (auto _ : state) {
    last = round();
    device.synchronize();
  }
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

void lazy_and_eager(const char* name, void (*f)(benchmark::State&, Mode)) {
  for (const Mode mode : {Mode::lazy, Mode::eager}) {
    const std::string full_name = std::string(name) + (mode == Mode::lazy ? "/lazy" : "/eager");
    benchmark::RegisterBenchmark(full_name.c_str(), f, mode)
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
  }
}

[[maybe_unused]] const bool registered = [] {
  lazy_and_eager("add_one_dropped", add_one_dropped);
  lazy_and_eager("add_one", add_one);
  lazy_and_eager("add_held", add_held);
  lazy_and_eager("add_one_chained", add_one_chained);
  lazy_and_eager("add_one_tracked", add_one_tracked);
  lazy_and_eager("small_matmul", small_matmul);
  return true;
}();

}  // namespace
