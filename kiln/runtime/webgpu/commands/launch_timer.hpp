#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "kiln/runtime/trace_log.hpp"
#include "kiln/runtime/webgpu/commands/recorder.hpp"

namespace kiln::wgpu {

/// Measures launches with two timestamps each, for launch_times() and for traces. Its owner locks:
/// it is not safe to use from several threads.
class LaunchTimer {
 public:
  LaunchTimer(Gpu& gpu, Recorder& recorder, const TraceDevice& track)
      : gpu_(gpu), recorder_(recorder), track_(track) {}

  void turn(bool on);
  /// Whether the next launch is to be timed. If so, this makes room for it. Call it before the
  /// launch begins, because it may submit and wait.
  bool reserve();
  /// Times the launch that is about to be recorded.
  void begin(const std::string& label);
  /// The times gathered since the last call.
  std::vector<LaunchTime> take();
  /// Hands what was timed for traces to the track.
  void give_to_trace();

 private:
  struct Launch {
    std::string label;
    bool wanted = false;  ///< for take()
    bool traced = false;
    std::string span;  ///< of a traced launch: the span in which it was launched
  };

  [[nodiscard]] bool traces() const;
  void make_queries();
  void collect();
  void hand_over(Launch launch, std::uint64_t begin, std::uint64_t nanoseconds);
  std::vector<std::uint64_t> read_queries(std::uint32_t count);

  // A query set holds 4096 queries. That is so many launches, and one timestamp after them.
  static constexpr std::uint32_t most = 2047;

  Gpu& gpu_;
  Recorder& recorder_;
  const TraceDevice& track_;
  bool on_ = false;
  QuerySetHandle queries_;
  BufferHandle resolved_;
  BufferHandle readable_;
  std::vector<Launch> launches_;  // in the query set
  std::vector<LaunchTime> times_;
};

}  // namespace kiln::wgpu
