#include "timing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "expected.hpp"

namespace example {

using namespace kiln;

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// A number of calls, each handed to the device by itself: several in one queue would share what
/// they have in common. Launches are counted, so that none is left out because nobody looks at it.
struct Round {
  Outcome last;
  double seconds = 0;
  std::uint64_t launches = 0;
};

Round run_round(const Candidate& candidate, const Problem& problem, const Device& device,
                std::int64_t calls) {
  Round round;
  const std::uint64_t before = device.runtime().counters().launches;
  const Clock::time_point start = Clock::now();
  for (std::int64_t i = 0; i < calls; ++i) {
    round.last = call(candidate, problem);
    device.flush();
  }
  device.synchronize();
  round.seconds = seconds_since(start);
  round.launches = device.runtime().counters().launches - before;
  return round;
}

std::int64_t calls_in_round(double seconds_a_call) {
  return static_cast<std::int64_t>(std::clamp(0.05 / seconds_a_call, 1.0, 1000.0));
}

}  // namespace

Timing time_call(const Candidate& candidate, bool backward, std::uint64_t seed,
                 const TimingOptions& options) {
  const auto& [sizes, dtype, device, iterations] = options;
  Timing timing{.name = candidate.name + (backward ? " + backward" : "")};
  // The first call compiles, and the first round fills the pool: none of it is timed.
  run_round(candidate, make_problem(sizes, dtype, device, backward, 2 * seed), device, 1);
  const Problem problem = make_problem(sizes, dtype, device, backward, 2 * seed + 1);
  device.synchronize();

  Round round = run_round(candidate, problem, device, 1);
  timing.launches = round.launches;
  const std::int64_t calls = iterations > 0 ? iterations : calls_in_round(round.seconds);
  round = run_round(candidate, problem, device, calls);

  std::vector<double> times;
  double total = 0;
  while (total < 0.3 || (times.size() < 3 && total < 3)) {
    round = run_round(candidate, problem, device, calls);
    if (round.launches != timing.launches * static_cast<std::uint64_t>(calls)) {
      timing.fault = fmt::format("{} calls made {} launches, one makes {}", calls, round.launches,
                                 timing.launches);
      return timing;
    }
    times.push_back(round.seconds / static_cast<double>(calls));
    total += round.seconds;
  }
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
  timing.seconds = times[times.size() / 2];
  timing.gflops = sizes.flops() * (backward ? 3 : 1) / timing.seconds / 1e9;
  timing.fault = fault_in(round.last, candidate, problem);
  return timing;
}

}  // namespace example
