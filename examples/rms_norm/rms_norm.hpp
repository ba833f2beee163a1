#pragma once
/// An operation with one kernel, in WGSL: what becomes of it on a device that takes other
/// languages.
#include "kiln/kiln.hpp"

namespace example {

/// x * rsqrt(mean(x^2) + epsilon) * weight over the last axis: x [..., N], weight [N], f32 or f16
/// (Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019).
///
/// Runs on webgpu devices. On others it throws UnsupportedError that names the languages, or runs
/// its reference where `device.fallback(true)` allows that. Throws ShapeError and DTypeError with
/// both operands where they do not fit.
kiln::AnyTensor rms_norm(const kiln::AnyTensor& x, const kiln::AnyTensor& weight,
                         double epsilon = 1e-5);

}  // namespace example
