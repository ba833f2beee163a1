#pragma once
/// The one exception family of the library. Every message names the operation, what is required and
/// the actual values.
#include <stdexcept>
#include <string>

namespace kiln {

/// Base of everything the library throws.
///
///     try {
///       reshape(zeros({2, 3}), {4});
///     } catch (const Error& error) {
///       std::cout << error.what();  // which names the operation and both shapes
///     }
struct Error : std::runtime_error {
  using runtime_error::runtime_error;
};

/// Shapes, ranks or axes that do not fit together.
struct ShapeError : Error {
  using Error::Error;
};

/// A dtype that an operation does not take, or operands whose dtypes differ.
struct DTypeError : Error {
  using Error::Error;
};

/// No such adapter, operands on different devices, or a device that was lost.
struct DeviceError : Error {
  using Error::Error;
};

/// A kernel that does not compile, has other bindings than stated, or needs more than there is.
struct KernelError : Error {
  using Error::Error;
};

/// Something an operation has no rule for, such as the gradient of one without `backward`.
struct UnsupportedError : Error {
  using Error::Error;
};

/// An allocation above the adapter's limit, or one that the adapter refused.
struct OutOfMemoryError : Error {
  using Error::Error;
};

}  // namespace kiln
