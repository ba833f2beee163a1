#pragma once
#include "kiln/dispatch/backend.hpp"

namespace kiln::dispatch::wgsl {

/// The backend of runtimes that compile WGSL or SPIR-V. Kernels are generated, or made ready from a
/// rule's source.
extern const Backend backend;

// The functions of the table; see Backend.
void run_elementwise(Runtime& runtime, const ElementwiseWork& work);
void run_reduction(const std::shared_ptr<Runtime>& runtime, const ReductionCall& call,
                   std::span<const RawTensor> inputs, const TensorSpec& out,
                   const FusedEpilogue* epilogue, std::span<const RawTensor> results);
bool takes_rows(Runtime& runtime, const RowsCall& call, std::span<const RawTensor> inputs);
void run_rows(const std::shared_ptr<Runtime>& runtime, const RowsCall& call,
              std::span<const RawTensor> inputs, std::span<const RawTensor> results);
std::vector<RawTensor> run_kernel(const std::shared_ptr<Runtime>& runtime, const OpTable& table,
                                  const void* op, std::span<const RawTensor> inputs,
                                  std::span<const TensorSpec> out, const FusedEpilogue* epilogue,
                                  std::span<const FusedProducer> producers);
Fusable fusable(const OpTable& table, const void* op, Runtime& runtime,
                std::span<const Operand> inputs, std::span<const TensorSpec> out);
RawKernel raw_kernel(std::string_view op, const KernelSource& source,
                     const std::array<std::uint32_t, 3>& workgroup,
                     std::span<const RawTensor> buffers);

}  // namespace kiln::dispatch::wgsl
