#pragma once
/// For runtimes: what traces collect, and how a device hands over its launches.
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kiln/runtime/trace.hpp"

namespace kiln {

/// Nanoseconds of std::chrono::steady_clock.
std::uint64_t host_nanoseconds();

/// A span of a thread, or a launch.
struct TraceEvent {
  std::string name;
  std::uint64_t begin = 0;     ///< host_nanoseconds()
  std::uint64_t duration = 0;  ///< nanoseconds
  std::uint32_t track = 0;     ///< number of the thread, or of the device
  bool on_device = false;
  std::string kernel;  ///< of a launch
  std::vector<std::pair<std::string_view, std::uint64_t>> args;
};

/// What was recorded.
struct TraceData {
  std::vector<TraceEvent> events;
  std::map<std::uint32_t, std::string> devices;  ///< names, by track
  std::map<std::string, std::string> notes;      ///< of devices by name: why launches are missing
};

/// `data` from `begin` on, in Chrome's trace format.
std::string trace_json(TraceData data, std::uint64_t begin);

/// The innermost span of the calling thread that is recorded; empty if there is none.
std::string_view current_trace_span();

/// The track of one opened device.
class TraceDevice {
 public:
  /// `gather` hands over the timed launches by launch(). A trace that stops calls it, possibly from
  /// another thread.
  TraceDevice(std::string name, std::function<void()> gather);
  TraceDevice(const TraceDevice&) = delete;
  TraceDevice& operator=(const TraceDevice&) = delete;
  /// Waits for traces that are about to call `gather`.
  ~TraceDevice();

  void launch(TraceEvent event) const;
  /// Says in the file why launches of this device are missing.
  void note(const std::string& why) const;
  /// Lets the device hand over its launches now. An error becomes a note.
  void gather() const noexcept;

 private:
  std::string name_;
  std::function<void()> gather_;
  std::uint32_t track_ = 0;
};

/// The record that all traces share. There is one.
class TraceLog {
 public:
  static TraceLog& shared();

  /// A trace begins. Gives the time of its begin.
  std::uint64_t start();
  /// A trace ends. Gives everything that was recorded, also what other traces asked for.
  TraceData stop();
  void add(TraceEvent event);
  void add_launch(const std::string& device, TraceEvent event);
  void note(const std::string& device, const std::string& why);

  /// Gives the device's track.
  std::uint32_t enter(const TraceDevice* device);
  void leave(const TraceDevice* device);

 private:
  std::mutex devices_mutex_;  // held while devices hand over; taken before a runtime's lock
  std::vector<const TraceDevice*> devices_;
  std::uint32_t tracks_ = 0;

  std::mutex mutex_;  // taken last
  int traces_ = 0;
  TraceData data_;
};

/// Starts the trace that KILN_TRACE names, once. Throws Error if the file cannot be written.
void trace_by_environment();

}  // namespace kiln
