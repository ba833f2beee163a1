#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "kiln/runtime/trace_log.hpp"
#include "kiln/runtime/webgpu/commands/recorder.hpp"

namespace kiln::wgpu {

/// Measures launches by two timestamps each, for who asks and for traces. Not safe to share: its
/// owner locks.
class LaunchTimer {
 public:
  LaunchTimer(Gpu& gpu, Recorder& recorder, const TraceDevice& track)
      : gpu_(gpu), recorder_(recorder), track_(track) {}

  void turn(bool on);
  /// Whether the next launch is to be timed; makes room for it then. May submit and wait: call it
  /// before the launch begins.
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
    std::string span;  ///< of a traced one: the span that it was launched in
  };

  [[nodiscard]] bool traces() const;
  void make_queries();
  void collect();
  void hand_over(Launch launch, std::uint64_t begin, std::uint64_t nanoseconds);
  std::vector<std::uint64_t> read_queries(std::uint32_t count);

  // So many launches, and a stamp when they are done, fill a query set, which holds 4096 queries.
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
