#pragma once
#include <iosfwd>
#include <string>

#include "kiln/autodiff/any_tensor.hpp"

namespace kiln {

/// Values in nested brackets, then dtype, shape and device: "[1, 2] f32 [2] on cpu: ...". Only the
/// ends of long axes are shown. Waits for the values.
///
///     const std::string text = to_string(tensor({1.0, 2.0}));
std::string to_string(const AnyTensor& tensor);
/// Prints to_string(tensor).
///
///     std::cout << tensor({1.0, 2.0}) << "\n";
std::ostream& operator<<(std::ostream& out, const AnyTensor& tensor);

}  // namespace kiln
