#pragma once
#include <memory>

#include "kiln/runtime/webgpu/device/gpu.hpp"

namespace kiln::wgpu {

/// Sets what a software adapter does not state, `loop_rounds` and `subgroup` of `gpu->limits`, by
/// running a kernel that counts. What that does not show stays as it is.
void probe(const std::shared_ptr<Gpu>& gpu);

}  // namespace kiln::wgpu
