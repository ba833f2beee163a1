#pragma once
#include <cstdint>

#include "kiln/runtime/host_memory.hpp"
#include "kiln/runtime/memory_pool.hpp"
#include "kiln/runtime/webgpu/device/native.hpp"

namespace kiln::wgpu {

/// One whole buffer of wgpu-native. Slices of one buffer would not do: a launch may not read one
/// and write another.
struct GpuMemory {
  HostClaim claim;  ///< of a software adapter, whose memory is the host's
  BufferHandle buffer;
  std::uint64_t size = 0;
  std::uint64_t id = 0;
  std::uint64_t written_at =
      0;  ///< the last batch that copies into it before its launches; see Recorder
  std::uint64_t used_at = 0;  ///< the last batch whose main part uses it
};
using GpuMemoryPool = kiln::MemoryPool<GpuMemory>;
using GpuMemoryPtr = GpuMemoryPool::MemoryPtr;

}  // namespace kiln::wgpu
