#pragma once
#include <span>

#include "kiln/dispatch/reduction.hpp"
#include "kiln/runtime/cpu/cpu_runtime.hpp"

namespace kiln::dispatch {

/// Reduces on the host, to results that are allocated and hold at least one element; see
/// run_reduction. The order of additions depends on shape and strides alone.
void reduce_on_host(cpu::CpuRuntime& runtime, const ReductionCall& call,
                    std::span<const RawTensor> inputs, const TensorSpec& out, const Finish* finish,
                    std::span<const RawTensor> results);

}  // namespace kiln::dispatch
