#pragma once
#include "kiln/runtime/device.hpp"

namespace kiln {

/// The device of a program that does not choose one. The environment variable KILN_DEVICE names it:
/// "cpu", "webgpu" (the best adapter) or "webgpu:NAME" (an adapter by a part of its name). Without
/// it, it is the best GPU, or the host if there is no GPU driver, or only one that computes on the
/// host.
///
///     const AnyTensor x = zeros({2, 3}, default_device());
///
/// Throws DeviceError for any other KILN_DEVICE, and if the named adapter does not exist.
Device default_device();

}  // namespace kiln
