#pragma once
#include "kiln/runtime/device.hpp"

namespace kiln::wgpu {

/// For tests: loses the device as an adapter that is unplugged would. Throws DeviceError unless it
/// is a webgpu device.
void lose_device(const Device& device);

}  // namespace kiln::wgpu
