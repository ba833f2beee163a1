#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "kiln/runtime/webgpu/recorder.hpp"

namespace kiln::wgpu {

/// Measures launches by two timestamps each. Not safe to share: its owner locks.
class LaunchTimer {
 public:
  LaunchTimer(Gpu& gpu, Recorder& recorder) : gpu_(gpu), recorder_(recorder) {}

  void turn(bool on);
  [[nodiscard]] bool on() const { return on_; }
  /// Makes room for one more launch. May submit and wait: call it before the launch begins.
  void reserve();
  /// Times the launch that is about to be recorded.
  void begin(const std::string& label);
  /// The times gathered since the last call.
  std::vector<LaunchTime> take();

 private:
  void make_queries();
  void collect();

  static constexpr std::uint32_t most = 2048;  // launches in a query set, which holds 4096 queries

  Gpu& gpu_;
  Recorder& recorder_;
  bool on_ = false;
  QuerySetHandle queries_;
  BufferHandle resolved_;
  BufferHandle readable_;
  std::vector<std::string> labels_;  // of the launches in the query set
  std::vector<LaunchTime> times_;
};

}  // namespace kiln::wgpu
