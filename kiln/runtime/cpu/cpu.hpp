#pragma once
#include "kiln/runtime/device.hpp"

namespace kiln::cpu {

/// The host itself: every operation, on all cores that this process may use. It needs no driver.
/// Its kernels are C++: an operation whose only kernel is in another language is refused there, or
/// runs its reference where `fallback(true)` allows that. All callers share one.
///
///     AnyTensor y = relu(tensor<float>({-1, 2}, {2}, cpu::device()));
Device device();

}  // namespace kiln::cpu
