#pragma once
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kiln/dispatch/epilogue.hpp"
#include "kiln/dispatch/kernel/op_table.hpp"

namespace kiln::dispatch {

/// Runs an operation's kernel, the first that is written in a language of the runtime's and does
/// not decline, or its forward. Results of a forward are compared with `out`, all before any is
/// given back. Throws KernelError, UnsupportedError, ShapeError, DTypeError or OutOfMemoryError
/// that begins with the operation's name.
///
/// With an epilogue `out` is the one result before it, which is not kept: the results are those of
/// the epilogue. Throws KernelError for an operation that takes none.
std::vector<RawTensor> run_kernel(const OpTable& table, const void* op,
                                  const std::shared_ptr<Runtime>& runtime,
                                  std::span<const RawTensor> inputs,
                                  std::span<const TensorSpec> out,
                                  const FusedEpilogue* epilogue = nullptr);

/// How many storage buffers the operation's launch binds, its output among them, where an epilogue
/// may be applied by its store; nothing where it may not: several launches, several outputs, an
/// output that is read back or zeroed, a kernel in SPIR-V, no kernel that takes these operands. An
/// epilogue takes one more for each input, and one for each result but the first. Asks the
/// operation's kernel rule; the names of `inputs` do not matter.
std::optional<int> takes_epilogue(const OpTable& table, const void* op, const Runtime& runtime,
                                  std::span<const Operand> inputs, std::span<const TensorSpec> out);

}  // namespace kiln::dispatch
