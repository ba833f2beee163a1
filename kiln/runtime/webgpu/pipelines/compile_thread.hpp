#pragma once
#include <functional>
#include <memory>
#include <string>

#include "kiln/runtime/webgpu/device/gpu.hpp"

namespace kiln::wgpu {

/// How deep a kernel may nest: for WGSL as wgsl_depth() counts, for SPIR-V in blocks. wgpu-native's
/// compiler descends as deep, and would end the process where its thread's stack is full.
constexpr std::uint64_t most_kernel_depth = 4000;

/// Runs `work` on a thread of its own, whose stack is large enough for a compiler that descends
/// `most_kernel_depth` levels, and throws what it throws. Where it does not end within the device's
/// patience the device counts as lost, and the thread is left alone: `work` must keep what it uses.
void on_compile_thread(Gpu& gpu, const std::string& what, std::function<void()> work);

}  // namespace kiln::wgpu
