#include "kiln/runtime/trace_log.hpp"

#include <algorithm>
#include <chrono>
#include <exception>

namespace kiln {

std::uint64_t host_nanoseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

TraceDevice::TraceDevice(std::string name, std::function<void()> gather)
    : name_(std::move(name)), gather_(std::move(gather)) {
  track_ = TraceLog::shared().enter(this);
}

TraceDevice::~TraceDevice() { TraceLog::shared().leave(this); }

void TraceDevice::launch(TraceEvent event) const {
  event.track = track_;
  event.on_device = true;
  TraceLog::shared().add_launch(name_, std::move(event));
}

void TraceDevice::note(const std::string& why) const { TraceLog::shared().note(name_, why); }

void TraceDevice::gather() const noexcept {
  try {
    try {
      gather_();
    } catch (const std::exception& error) {
      note(error.what());
    }
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // There is no memory even for a note.
  }
}

// Never destroyed: devices and traces may end with the statics, in any order.
TraceLog& TraceLog::shared() {
  static TraceLog& log = *new TraceLog;
  return log;
}

std::uint64_t TraceLog::start() {
  const std::lock_guard lock(mutex_);
  ++traces_;
  Trace::active.store(true, std::memory_order_relaxed);
  return host_nanoseconds();
}

TraceData TraceLog::stop() {
  const std::lock_guard devices_lock(devices_mutex_);
  for (const TraceDevice* device : devices_) device->gather();
  const std::lock_guard lock(mutex_);
  if (--traces_ != 0) return data_;
  Trace::active.store(false, std::memory_order_relaxed);
  return std::exchange(data_, {});
}

void TraceLog::add(TraceEvent event) {
  const std::lock_guard lock(mutex_);
  if (traces_ != 0) data_.events.push_back(std::move(event));
}

void TraceLog::add_launch(const std::string& device, TraceEvent event) {
  const std::lock_guard lock(mutex_);
  if (traces_ == 0) return;
  data_.devices.try_emplace(event.track, device);
  data_.events.push_back(std::move(event));
}

void TraceLog::note(const std::string& device, const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (traces_ != 0) data_.notes.try_emplace(device, why);
}

std::uint32_t TraceLog::enter(const TraceDevice* device) {
  const std::lock_guard lock(devices_mutex_);
  devices_.push_back(device);
  return ++tracks_;
}

void TraceLog::leave(const TraceDevice* device) {
  const std::lock_guard lock(devices_mutex_);
  std::erase(devices_, device);
}

}  // namespace kiln
