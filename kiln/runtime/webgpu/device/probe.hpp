#pragma once
#include <memory>

#include "kiln/runtime/webgpu/device/gpu.hpp"

namespace kiln::wgpu {

/// Sets `loop_rounds` and `subgroup` of `gpu->limits`, which a software adapter does not state. It
/// runs a kernel that counts. What the kernel does not show stays as it is.
void probe(const std::shared_ptr<Gpu>& gpu);

}  // namespace kiln::wgpu
