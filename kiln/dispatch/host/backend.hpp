#pragma once
#include "kiln/dispatch/backend.hpp"

namespace kiln::dispatch::host {

/// Of the runtime of the host: bodies run as loops over tiles, rules are functions.
extern const Backend backend;

// What it is made of; see Backend.
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

}  // namespace kiln::dispatch::host
