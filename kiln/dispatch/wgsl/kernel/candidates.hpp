#pragma once
#include <memory>
#include <span>
#include <vector>

#include "kiln/dispatch/kernel/op_table.hpp"
#include "kiln/dispatch/wgsl/kernel/loads.hpp"

namespace kiln::dispatch::wgsl {

/// The answer of an operation's kernel rule.
struct Candidates {
  std::vector<webgpu::Launch> launches;  ///< best first
  /// How each of them reads the operands; nothing of one that declines.
  std::vector<std::vector<OperandReads>> reads;
  /// The addresses of the Param fields by which the launches name them. The operation that was
  /// asked may be gone, so nothing may be read from them.
  std::vector<const Param*> params;

  /// The same of a launch among `launches`.
  [[nodiscard]] std::span<const OperandReads> reads_of(const webgpu::Launch& launch) const {
    return reads[static_cast<std::size_t>(&launch - launches.data())];
  }
};
using CandidatesPtr = std::shared_ptr<const Candidates>;

/// The answer for these operands and results. The rule is asked once. Its answer is kept for the
/// plan and the launch that follow, since it depends only on attributes, dtypes, layouts and the
/// runtime. The names of `in` do not matter. Throws what the rule throws.
CandidatesPtr candidates(Runtime& runtime, const OpTable& table, const void* op,
                         std::span<const Operand> in, std::span<const TensorSpec> out);

}  // namespace kiln::dispatch::wgsl
