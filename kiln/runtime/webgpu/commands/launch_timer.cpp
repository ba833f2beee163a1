#include "kiln/runtime/webgpu/commands/launch_timer.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kiln/runtime/webgpu/memory/mapping.hpp"

namespace kiln::wgpu {

void LaunchTimer::turn(bool on) {
  if (on && !queries_) make_queries();
  on_ = on;
}

bool LaunchTimer::reserve() {
  if (!on_ && !traces()) return false;
  if (!queries_) make_queries();
  if (launches_.size() == most) collect();
  return true;
}

bool LaunchTimer::traces() const {
  if (!Trace::recording()) return false;
  if (!gpu_.limits.timestamps) track_.note("the adapter has no timestamps: no launches");
  return gpu_.limits.timestamps;
}

void LaunchTimer::begin(const std::string& label) {
  recorder_.time_next(queries_.get(), static_cast<std::uint32_t>(launches_.size()) * 2);
  Launch& launch = launches_.emplace_back(Launch{label, on_, Trace::recording(), {}});
  if (launch.traced) launch.span = current_trace_span();
}

std::vector<LaunchTime> LaunchTimer::take() {
  collect();
  return std::exchange(times_, {});
}

void LaunchTimer::give_to_trace() {
  if (std::ranges::any_of(launches_, &Launch::traced)) collect();
}

void LaunchTimer::make_queries() {
  constexpr std::uint64_t bytes = std::uint64_t{most + 1} * 2 * sizeof(std::uint64_t);
  ErrorScope scope(gpu_);
  WGPUQuerySetDescriptor queries = WGPU_QUERY_SET_DESCRIPTOR_INIT;
  queries.type = WGPUQueryType_Timestamp;
  queries.count = (most + 1) * 2;
  QuerySetHandle made(wgpuDeviceCreateQuerySet(gpu_.device.get(), &queries));
  WGPUBufferDescriptor buffer = WGPU_BUFFER_DESCRIPTOR_INIT;
  buffer.size = bytes;
  buffer.usage = WGPUBufferUsage_QueryResolve | WGPUBufferUsage_CopySrc;
  resolved_ = BufferHandle(wgpuDeviceCreateBuffer(gpu_.device.get(), &buffer));
  buffer.usage = WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst;
  readable_ = BufferHandle(wgpuDeviceCreateBuffer(gpu_.device.get(), &buffer));
  gpu_.raise(scope.take(), "webgpu: cannot time launches");
  queries_ = std::move(made);
}

void LaunchTimer::collect() {
  if (launches_.empty()) return;
  const TraceSpan span("gather launch times");
  std::vector<Launch> launches = std::exchange(launches_, {});
  const auto count = static_cast<std::uint32_t>(launches.size()) * 2;
  recorder_.stamp(queries_.get(), count);
  const std::vector<std::uint64_t> ticks = read_queries(count + 2);
  // The two clocks are compared here: the device has written its last timestamp, and the host has
  // noticed.
  const std::uint64_t now = host_nanoseconds();
  const std::uint64_t last = *std::ranges::max_element(ticks);
  const auto nanoseconds = [&](std::uint64_t from, std::uint64_t to) {
    const double elapsed = to > from ? static_cast<double>(to - from) : 0;
    return static_cast<std::uint64_t>(elapsed * gpu_.nanoseconds_per_tick);
  };
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const std::uint64_t begin = ticks[i * 2];
    hand_over(std::move(launches[i]), now - nanoseconds(begin, last),
              nanoseconds(begin, ticks[i * 2 + 1]));
  }
}

void LaunchTimer::hand_over(Launch launch, std::uint64_t begin, std::uint64_t nanoseconds) {
  if (launch.traced) {
    track_.launch({.name = launch.span.empty() ? launch.label : std::move(launch.span),
                   .begin = begin,
                   .duration = nanoseconds,
                   .kernel = launch.label});
  }
  if (launch.wanted) times_.push_back({std::move(launch.label), nanoseconds, begin});
}

std::vector<std::uint64_t> LaunchTimer::read_queries(std::uint32_t count) {
  const std::uint64_t bytes = count * sizeof(std::uint64_t);
  recorder_.resolve(queries_.get(), count, resolved_.get());
  recorder_.copy_out(resolved_.get(), 0, readable_.get(), bytes);
  recorder_.flush_and_restart();
  Mapping mapping(gpu_, readable_.get(), bytes);
  std::vector<std::uint64_t> ticks(count);
  std::memcpy(ticks.data(), mapping.wait().data(), bytes);
  return ticks;
}

}  // namespace kiln::wgpu
