#pragma once
#include "kiln/runtime/device.hpp"

namespace kiln::cpu {

/// The host as a device: every operation, on all cores that this process may use, without a driver.
/// Its kernels are C++. An operation whose only kernel is in another language is refused, or runs
/// its reference if `fallback(true)` allows that. All callers share one runtime.
///
///     relu(tensor({-1.0, 2.0}, cpu::device()));   // [0, 2]
Device device();

}  // namespace kiln::cpu
