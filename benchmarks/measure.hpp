#pragma once
/// What the benchmarks share: how calls are timed, and what is reported of them.
#include <benchmark/benchmark.h>

#include <cstdint>

#include "kiln/kiln.hpp"

namespace bench {

/// How operations run: queued and fused, or each when it is called.
enum class Mode : std::uint8_t { lazy, eager };

inline kiln::Device device_for(Mode mode) {
  const kiln::Device device = kiln::default_device();  // KILN_DEVICE says which
  return mode == Mode::lazy ? device.lazy() : device.eager();
}

/// Whether the adapter has buffers for `elements` numbers of f32; reports it where it has not.
inline bool fits(benchmark::State& state, const kiln::Device& device, std::int64_t elements) {
  if (static_cast<std::uint64_t>(elements) * sizeof(float) <= device.limits().binding_bytes)
    return true;
  state.SkipWithError("the adapter has no buffers so large");
  return false;
}

inline std::uint64_t launches(const kiln::Device& device) {
  return device.runtime().counters().launches;
}

/// Reports what one of `calls` took, and how many launches it was: a call that was left out, or
/// merged with another, shows.
inline void report(benchmark::State& state, const kiln::Device& device, double calls,
                   std::uint64_t launches_before) {
  state.counters["per call"] =
      benchmark::Counter(calls, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["launches"] = static_cast<double>(launches(device) - launches_before) / calls;
  state.SetLabel(to_string(device));
}

/// The last result, and how many there were.
struct Timed {
  kiln::AnyTensor last;
  double calls = 0;
};

/// Times calls of `f`, each handed to the device by itself: of several in one queue only those that
/// are held would run, and equal ones once. Kernels are compiled and plans made before.
template <class F>
Timed time_calls(benchmark::State& state, const kiln::Device& device, F f) {
  const bool by_the_host = device.limits().software_adapter || device.runtime().name() == "cpu";
  const int calls = by_the_host ? 1 : 10;  // many enough to hide the wait on a GPU
  Timed timed;
  const auto round = [&] {
    for (int i = 0; i < calls; ++i) {
      timed.last = f();
      device.flush();
    }
    device.synchronize();
  };
  device.flush();  // what makes the inputs is none of the calls
  for (int i = 0; i < 2; ++i) round();
  const std::uint64_t before = launches(device);
  for (auto _ : state) round();
  timed.calls = static_cast<double>(state.iterations()) * calls;
  report(state, device, timed.calls, before);
  return timed;
}

/// `amount` units a second, of which every call did as many.
inline void report_rate(benchmark::State& state, const char* unit, double amount,
                        const Timed& timed) {
  state.counters[unit] = benchmark::Counter(amount * timed.calls, benchmark::Counter::kIsRate);
}

/// Reports a fault unless `got` is finite and within `tolerance` of `expected` everywhere.
inline void check_near(benchmark::State& state, const kiln::AnyTensor& got,
                       const kiln::AnyTensor& expected, double tolerance) {
  const kiln::AnyTensor distance = max(abs(got - expected.to(got.device())));
  const float worst = cast(distance, kiln::DType::f32).item();
  if (!(static_cast<double>(worst) <= tolerance)) state.SkipWithError("the last result is wrong");
}

}  // namespace bench
