#pragma once
#include <memory>
#include <span>
#include <vector>

#include "kiln/dispatch/epilogue.hpp"
#include "kiln/dispatch/kernel/fusable.hpp"
#include "kiln/dispatch/kernel/op_table.hpp"

namespace kiln::dispatch {

/// Runs an operation's `webgpu_forward`, or its kernel: the first candidate that is in a language
/// of the runtime and does not decline. All results of a forward are compared with `out` before any
/// is given back. Throws KernelError, UnsupportedError, ShapeError, DTypeError or OutOfMemoryError
/// that begins with the operation's name.
///
/// With an epilogue, `out` is the one result before it. That is not kept; the epilogue's results
/// are given back. An operand that a producer makes has no buffer: `inputs` has the dtype and
/// layout that the kernel rule is told. Throws KernelError for an operation that takes no epilogue,
/// and for an operand that takes no producer; see fusable.
std::vector<RawTensor> run_kernel(const OpTable& table, const void* op,
                                  const std::shared_ptr<Runtime>& runtime,
                                  std::span<const RawTensor> inputs,
                                  std::span<const TensorSpec> out,
                                  const FusedEpilogue* epilogue = nullptr,
                                  std::span<const FusedProducer> producers = {});

/// Throws KernelError, because nothing can be fused into the loads of that operand.
[[noreturn]] void refuse_producer(const OpTable& table, const FusedProducer& producer);

/// What the operation's launch lets be fused into it. Its store takes no epilogue where there are
/// several launches or outputs, an output that is read back or zeroed, a kernel in SPIR-V, or no
/// kernel that takes these operands. An operand takes a producer if the kernel reads it through
/// `load_NAME` alone. Asks the operation's kernel rule. The names of `inputs` do not matter.
Fusable fusable(const OpTable& table, const void* op, Runtime& runtime,
                std::span<const Operand> inputs, std::span<const TensorSpec> out);

}  // namespace kiln::dispatch
