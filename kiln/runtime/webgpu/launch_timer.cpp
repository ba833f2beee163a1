#include "kiln/runtime/webgpu/launch_timer.hpp"

#include <cstring>

#include "kiln/runtime/webgpu/mapping.hpp"

namespace kiln::wgpu {

void LaunchTimer::turn(bool on) {
  if (on && !queries_) make_queries();
  on_ = on;
}

void LaunchTimer::reserve() {
  if (labels_.size() == most) collect();
}

void LaunchTimer::begin(const std::string& label) {
  recorder_.time_next(queries_.get(), static_cast<std::uint32_t>(labels_.size()) * 2);
  labels_.push_back(label);
}

std::vector<LaunchTime> LaunchTimer::take() {
  collect();
  return std::exchange(times_, {});
}

void LaunchTimer::make_queries() {
  constexpr std::uint64_t bytes = std::uint64_t{most} * 2 * sizeof(std::uint64_t);
  ErrorScope scope(gpu_);
  WGPUQuerySetDescriptor queries = WGPU_QUERY_SET_DESCRIPTOR_INIT;
  queries.type = WGPUQueryType_Timestamp;
  queries.count = most * 2;
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
  if (labels_.empty()) return;
  const std::vector<std::string> labels = std::exchange(labels_, {});
  const auto count = static_cast<std::uint32_t>(labels.size()) * 2;
  const std::uint64_t bytes = count * sizeof(std::uint64_t);
  recorder_.resolve(queries_.get(), count, resolved_.get());
  recorder_.copy_out(resolved_.get(), 0, readable_.get(), bytes);
  Mapping mapping(gpu_, readable_.get(), bytes, recorder_.flush_and_restart());
  std::vector<std::uint64_t> ticks(count);
  std::memcpy(ticks.data(), mapping.wait().data(), bytes);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::uint64_t begin = ticks[i * 2];
    const std::uint64_t end = ticks[i * 2 + 1];
    const double elapsed =
        end > begin ? static_cast<double>(end - begin) * gpu_.nanoseconds_per_tick : 0;
    times_.push_back({labels[i], static_cast<std::uint64_t>(elapsed)});
  }
}

}  // namespace kiln::wgpu
