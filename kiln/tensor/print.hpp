#pragma once
#include <iosfwd>
#include <string>

#include "kiln/autodiff/any_tensor.hpp"

namespace kiln {

/// Values in nested brackets, then dtype, shape and device; long axes are shortened to their ends.
/// Waits for the values.
///
///     [[1, 2],
///      [3, 4]] f32 [2, 2] on webgpu: llvmpipe (LLVM 15.0.6, 256 bits)
std::string to_string(const AnyTensor& tensor);
std::ostream& operator<<(std::ostream& out, const AnyTensor& tensor);

}  // namespace kiln
