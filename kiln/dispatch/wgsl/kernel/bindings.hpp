#pragma once
#include <string>
#include <vector>

#include "kiln/dispatch/epilogue.hpp"
#include "kiln/dispatch/kernel/op_table.hpp"
#include "kiln/dispatch/wgsl/metadata.hpp"

namespace kiln::dispatch::wgsl {

/// A launch that is ready to compile: `{{ bindings }}` and stores are generated, the template is
/// rendered.
struct RenderedLaunch {
  KernelId id;
  RenderedSource source;             ///< where lines of id.source come from
  std::vector<std::uint32_t> words;  ///< the metadata block
  std::array<std::uint32_t, 3> grid{};
  struct Patch {
    std::size_t word;   ///< of the metadata block
    std::size_t param;  ///< the operation's Param that belongs there
  };
  std::vector<Patch> patches;
  BodyTypes store_types;          ///< of what the store does to the first output
  std::size_t epilogue_word = 0;  ///< where in the metadata block the epilogue's numbers begin
};

/// Adds the launch's own numbers, in their order, and returns those that are Param fields. Throws
/// KernelError for two of one name, and for a Param of another operation.
std::vector<RenderedLaunch::Patch> add_params(const OpTable& table, const webgpu::Launch& launch,
                                              std::span<const Param* const> params,
                                              Metadata& metadata);

/// Throws KernelError for a launch whose loops take more rounds than the adapter allows.
void require_rounds(const OpTable& table, const webgpu::Launch& launch, const Limits& limits);

/// A launch of SPIR-V: see KernelSource::spirv. Throws KernelError for what takes generated text,
/// for bindings that are not the launch's, and for a grid above the limit.
RenderedLaunch bind_module(const OpTable& table, const webgpu::Launch& launch,
                           std::span<const Operand> in, std::span<const Operand> out,
                           std::span<const Param* const> params, const Limits& limits);

/// Throws KernelError for a launch that breaks the kernel's contract: no {{ bindings }}, an output
/// never stored, names that clash or do not exist, a grid above the limit in a kernel that does not
/// use kiln_workgroup. With an epilogue there is exactly one output; the buffers bound are then the
/// inputs, the scratch, the epilogue's inputs, and its results.
RenderedLaunch render(const OpTable& table, const webgpu::Launch& launch,
                      std::span<const Operand> in, std::span<const Operand> out,
                      std::span<const Param* const> params, const Limits& limits,
                      const FusedEpilogue* epilogue);

}  // namespace kiln::dispatch::wgsl
