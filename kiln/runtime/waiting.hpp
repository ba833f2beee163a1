#pragma once
/// Waiting for devices and for other threads.
#include <chrono>

namespace kiln {

/// How long a device may do nothing before it counts as lost, and how long a thread that works for
/// the queue may do nothing before others stop waiting for it: the environment variable
/// KILN_DEVICE_TIMEOUT in seconds, else 120. Throws DeviceError if that is no number above 0.
std::chrono::milliseconds patience_by_environment();

/// Sleeps for a time that grows with the time waited so far. So polling costs little, and the end
/// is seen early. At first it only yields, because the shortest sleep of a system is some 60 us.
class Pause {
 public:
  using Clock = std::chrono::steady_clock;
  void operator()() const;
  [[nodiscard]] Clock::duration waited() const { return Clock::now() - begin_; }

 private:
  Clock::time_point begin_ = Clock::now();
};

}  // namespace kiln
