#pragma once
/// Waiting for devices and for other threads.
#include <algorithm>
#include <chrono>
#include <utility>

namespace kiln {

/// The longest patience. Nobody waits longer, and sums of longer times would overflow.
constexpr std::chrono::milliseconds longest_patience{1'000'000'000'000};

/// How long a device may do nothing before it counts as lost, and how long a thread that works for
/// the queue may do nothing before others stop waiting for it: the environment variable
/// KILN_DEVICE_TIMEOUT in seconds, else 120. Throws DeviceError if that is no number above 0.
std::chrono::milliseconds patience_by_environment();

/// Sleeps for a part of the time waited so far, at least 10 us and at most 1 ms, so that polling
/// costs little, and the end is seen early. For the first 100 us it only yields, because the
/// shortest sleep of a system is some 60 us.
class Pause {
 public:
  using Clock = std::chrono::steady_clock;
  /// Where what is waited for runs on the same processor cores, which polling takes time from.
  static constexpr int coarse = 16;
  /// Where it does not: what is seen late is less than 1 %, with about ten times as many polls.
  static constexpr int fine = 256;
  explicit Pause(int part) : part_(part) {}
  void operator()() const;
  [[nodiscard]] Clock::duration waited() const { return Clock::now() - begin_; }

 private:
  Clock::time_point begin_ = Clock::now();
  int part_;
};

/// Ends when nothing has been done for too long.
class Patience {
 public:
  explicit Patience(Pause::Clock::duration longest) : longest_(longest) {}
  /// Call it again and again while waiting. `progress`: whether something was done since the last
  /// call. A process that was stopped has not waited: the time between two calls counts in part.
  [[nodiscard]] bool ends(bool progress) {
    const auto now = Pause::Clock::now();
    idle_ += std::min(now - std::exchange(last_, now), longest_ / 8);
    if (progress) idle_ = {};
    return idle_ > longest_;
  }

 private:
  Pause::Clock::duration longest_;
  Pause::Clock::duration idle_{};
  Pause::Clock::time_point last_ = Pause::Clock::now();
};

}  // namespace kiln
