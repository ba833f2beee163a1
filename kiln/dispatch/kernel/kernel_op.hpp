#pragma once
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kiln/dispatch/epilogue.hpp"
#include "kiln/dispatch/kernel/op_table.hpp"

namespace kiln::dispatch {

/// Runs an operation's `webgpu_forward`, or its kernel: the first candidate that is in a language
/// of the runtime and does not decline. All results of a forward are compared with `out` before any
/// is given back. Throws KernelError, UnsupportedError, ShapeError, DTypeError or OutOfMemoryError
/// that begins with the operation's name.
///
/// With an epilogue, `out` is the one result before it. That is not kept; the epilogue's results
/// are given back. Throws KernelError for an operation that takes no epilogue.
std::vector<RawTensor> run_kernel(const OpTable& table, const void* op,
                                  const std::shared_ptr<Runtime>& runtime,
                                  std::span<const RawTensor> inputs,
                                  std::span<const TensorSpec> out,
                                  const FusedEpilogue* epilogue = nullptr);

/// How many storage buffers the operation's launch binds, its output included, if its store may
/// apply an epilogue. Nothing if it may not: several launches or outputs, an output that is read
/// back or zeroed, a kernel in SPIR-V, or no kernel that takes these operands. An epilogue binds
/// one more buffer for each input, and for each result except the first. Asks the operation's
/// kernel rule. The names of `inputs` do not matter.
std::optional<int> takes_epilogue(const OpTable& table, const void* op, Runtime& runtime,
                                  std::span<const Operand> inputs, std::span<const TensorSpec> out);

}  // namespace kiln::dispatch
