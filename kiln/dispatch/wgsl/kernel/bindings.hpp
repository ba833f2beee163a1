#pragma once
#include <string>
#include <vector>

#include "kiln/dispatch/epilogue.hpp"
#include "kiln/dispatch/kernel/op_table.hpp"
#include "kiln/dispatch/wgsl/kernel/loads.hpp"
#include "kiln/dispatch/wgsl/metadata.hpp"

namespace kiln::dispatch::wgsl {

/// A launch that is ready to compile. `{{ bindings }}` and stores are generated, and the template
/// is rendered.
struct RenderedLaunch {
  KernelId id;
  RenderedSource source;             ///< has the origin of each line of id.source
  std::vector<std::uint32_t> words;  ///< the metadata block
  std::array<std::uint32_t, 3> grid{};
  struct Patch {
    std::size_t word;   ///< of the metadata block
    std::size_t param;  ///< the number of the operation's Param that belongs there
  };
  std::vector<Patch> patches;
  BodyTypes store_types;          ///< of the body that the store applies to the first output
  std::size_t epilogue_word = 0;  ///< the word at which the epilogue's numbers begin
  /// Of each producer: the dtypes inside its body, and the word of its first run-time scalar.
  struct Scalars {
    BodyTypes types;
    std::size_t word = 0;
  };
  std::vector<Scalars> producers;
};

/// The Param fields of an operation, in order: of the one that gave the launch, and of the one that
/// is launched.
struct ParamFields {
  std::span<const Param* const> asked;
  std::span<const Param* const> own;
};

/// Adds the launch's own numbers, in their order, and returns those that are Param fields. Throws
/// KernelError for two of one name, and for a Param of another operation.
std::vector<RenderedLaunch::Patch> add_params(const OpTable& table, const webgpu::Launch& launch,
                                              const ParamFields& params, Metadata& metadata);

/// Throws KernelError for a launch whose loops take more rounds than the adapter allows.
void require_rounds(const OpTable& table, const webgpu::Launch& launch, const Limits& limits);

/// Makes a launch of SPIR-V ready; see KernelSource::spirv. Throws KernelError for options that
/// need generated text, for bindings that differ from the launch's, and for a grid above the limit.
RenderedLaunch bind_module(const OpTable& table, const webgpu::Launch& launch,
                           std::span<const Operand> in, std::span<const Operand> out,
                           const ParamFields& params, const Limits& limits);

/// Makes a launch of WGSL ready. Throws KernelError for a launch that breaks the contract: no
/// {{ bindings }}, an output that is never stored, names that clash or do not exist, or a grid
/// above the limit without kiln_workgroup. With an epilogue there is exactly one output. The bound
/// buffers are the inputs, the scratch, the epilogue's inputs and the results. In place of an input
/// that a producer makes stands what the producer reads.
RenderedLaunch render(const OpTable& table, const webgpu::Launch& launch,
                      std::span<const OperandReads> reads, std::span<const Operand> in,
                      std::span<const Operand> out, const ParamFields& params, const Limits& limits,
                      const FusedEpilogue* epilogue, std::span<const FusedProducer> producers);

}  // namespace kiln::dispatch::wgsl
