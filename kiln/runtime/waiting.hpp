#pragma once
/// How long others are waited for.
#include <chrono>

namespace kiln {

/// How long a device may do nothing before it counts as lost, and a thread that works for the queue
/// before others wait for it no more: the environment variable KILN_DEVICE_TIMEOUT in seconds, else
/// 120. Throws DeviceError where that is no number above 0.
std::chrono::milliseconds patience_by_environment();

/// Sleeps a while that grows with the time waited so far, so that asking costs little and the end
/// is seen early. At first it only lets others run: a system's shortest sleep is some 60 us.
class Pause {
 public:
  using Clock = std::chrono::steady_clock;
  void operator()() const;
  [[nodiscard]] Clock::duration waited() const { return Clock::now() - begin_; }

 private:
  Clock::time_point begin_ = Clock::now();
};

}  // namespace kiln
