#pragma once
#include "kiln/runtime/device.hpp"

namespace kiln {

/// The device of a program that does not choose one. KILN_DEVICE in the environment says which:
/// "cpu", "webgpu" (the best adapter) or "webgpu:NAME" (an adapter by a part of its name). Without
/// it, the best GPU; and the host where there is no GPU driver, or only one that computes on the
/// host itself.
///
/// Throws DeviceError for another KILN_DEVICE, and where the adapter it names is not there.
Device default_device();

}  // namespace kiln
