// Operations bound by memory: bytes read and written per second.
#include <benchmark/benchmark.h>

#include "kiln/kiln.hpp"

namespace {

using namespace kiln;

template <class F>
void measure(benchmark::State& state, std::int64_t bytes, F f) {
  const Device device = webgpu::device();
  const std::int64_t rows = state.range(0);
  const AnyTensor x = random_normal({rows, 1024}, 1, device);
  AnyTensor y = f(x);
  device.synchronize();
  constexpr int calls = 10;
  for (auto _ : state) {
    for (int i = 0; i < calls; ++i) y = f(x);
    device.synchronize();
  }
  state.SetBytesProcessed(state.iterations() * calls * bytes * rows * 1024);
  state.SetLabel(to_string(device));
}

void elementwise_gelu(benchmark::State& state) {
  measure(state, 8, [](const AnyTensor& x) { return gelu(x); });
}
void elementwise_broadcast_add(benchmark::State& state) {
  const AnyTensor row = random_normal({1024}, 2, webgpu::device());
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
BENCHMARK(elementwise_gelu)->Arg(1024)->Arg(65536)->UseRealTime();
BENCHMARK(elementwise_broadcast_add)->Arg(1024)->Arg(65536)->UseRealTime();
BENCHMARK(transpose_copy)->Arg(1024)->Arg(65536)->UseRealTime();
BENCHMARK(sum_rows)->Arg(1024)->Arg(65536)->UseRealTime();
BENCHMARK(sum_columns)->Arg(1024)->Arg(65536)->UseRealTime();
BENCHMARK(sum_all)->Arg(1024)->Arg(65536)->UseRealTime();

}  // namespace
