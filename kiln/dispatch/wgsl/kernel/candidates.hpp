#pragma once
#include <memory>
#include <span>
#include <vector>

#include "kiln/dispatch/kernel/op_table.hpp"

namespace kiln::dispatch::wgsl {

/// What an operation's kernel rule answered.
struct Candidates {
  std::vector<webgpu::Launch> launches;  ///< best first
  /// The Param fields of the operation that was asked, which may be gone: only what the launches
  /// name them by.
  std::vector<const Param*> params;
};
using CandidatesPtr = std::shared_ptr<const Candidates>;

/// The answer for these operands and results. The rule is asked once, and its answer is kept for
/// the plan and the launch that follow: it depends on attributes, dtypes, layouts and the runtime
/// alone. The names of `in` do not matter. Throws what the rule throws.
CandidatesPtr candidates(Runtime& runtime, const OpTable& table, const void* op,
                         std::span<const Operand> in, std::span<const TensorSpec> out);

}  // namespace kiln::dispatch::wgsl
