#pragma once
#include <functional>
#include <memory>
#include <string>

#include "kiln/runtime/webgpu/device/gpu.hpp"

namespace kiln::wgpu {

/// How deep a kernel may nest: for WGSL as wgsl_depth() counts, for SPIR-V in blocks. wgpu-native's
/// compiler recurses as deep. It would end the process when the stack of its thread is full.
constexpr std::uint64_t most_kernel_depth = 4000;

/// Runs `work` on a thread of its own and throws what it throws. The thread's stack is large enough
/// for a compiler that recurses `most_kernel_depth` levels. If `work` does not end within the
/// device's patience, the device counts as lost and the thread goes on alone. So `work` must own
/// what it uses.
void on_compile_thread(Gpu& gpu, const std::string& what, std::function<void()> work);

}  // namespace kiln::wgpu
