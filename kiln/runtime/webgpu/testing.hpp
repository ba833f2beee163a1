#pragma once
#include "kiln/runtime/device.hpp"

namespace kiln::wgpu {

/// For tests: makes the device lost, as if its adapter were unplugged. Throws DeviceError unless it
/// is a webgpu device.
void lose_device(const Device& device);

}  // namespace kiln::wgpu
