#pragma once
#include <fmt/format.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/dispatch/coalesced_axes.hpp"
#include "kiln/dispatch/reduction.hpp"
#include "kiln/dispatch/wgsl/coordinates.hpp"
#include "kiln/dispatch/wgsl/epilogue_code.hpp"
#include "kiln/dispatch/wgsl/metadata.hpp"
#include "kiln/kernel/kernel_id.hpp"
#include "kiln/scalar/infer.hpp"
#include "kiln/scalar/wgsl.hpp"

namespace kiln::dispatch::wgsl {

/// How a kernel finds an operand's elements along the reduced axes.
enum class Reach : std::uint8_t {
  fixed,    ///< one element serves all: read once
  strided,  ///< by coordinates
  repeat,   ///< by coordinates; four neighbours share one element
  quad,     ///< by coordinates; four neighbours are one aligned vec4
};

/// Which threads combine what.
enum class Variant : std::uint8_t {
  rows,     ///< a team of lanes combines one part of one output's elements
  columns,  ///< each thread does, alone
};

/// One launch of a reduction.
struct ReductionPass {
  std::string_view op;
  Combine combine = Combine::sum;
  DType element = DType::f32;  ///< what is combined
  DType value = DType::f32;    ///< of a result, before it is finished
  Variant variant = Variant::rows;
  int width = 1;  ///< neighbours one step takes
  double scale = 1;
  BodyPtr before;
  std::span<const double> params;
  std::vector<RawTensor> inputs;
  const EpilogueCode* epilogue = nullptr;  ///< null: results are stored as they are
  std::vector<RawTensor> outputs;
  CoalescedAxes kept;
  CoalescedAxes reduced;
  std::vector<Reach> reach;  ///< one an input
  std::int64_t splits = 1;   ///< parts that an output's elements are combined in
  std::int64_t chunk = 0;    ///< elements of one part
  std::uint32_t workgroup = 256;
  std::uint32_t lanes = 256;  ///< of a team; divides `workgroup`
};

/// Calls sink(name, type, word) for every number of the launch, in the order the text declares
/// them. `name` is a function, so that a launch of a prepared kernel, which wants the words alone,
/// makes no strings.
template <class Sink>
void each_number(const ReductionPass& pass, const BodyTypes& types, Sink sink) {
  const auto size = [&](auto name, std::int64_t value) {
    sink(name, "u32", word_of_size(pass.op, value));
  };
  size([] { return std::string("outputs"); }, pass.kept.count());
  size([] { return std::string("count"); }, pass.reduced.count());
  size([] { return std::string("splits"); }, pass.splits);
  size([] { return std::string("chunk"); }, pass.chunk);
  sink([] { return std::string("neutral"); }, "u32", neutral_word(pass.combine, pass.element));
  sink([] { return std::string("scale"); }, "f32", word_of(pass.op, pass.scale, DType::f32));
  each_param(pass.op, "p", pass.params, types, sink);
  for (std::size_t i = 0; i < pass.inputs.size(); ++i)
    size([i] { return fmt::format("o{}", i); }, pass.inputs[i].layout.offset);
  each_size("k", pass.kept, 0, size);
  for (std::size_t i = 0; i < pass.inputs.size(); ++i)
    each_step("k", pass.kept, i, [](std::size_t) { return true; }, size);
  each_size("r", pass.reduced, 0, size);
  for (std::size_t i = 0; i < pass.inputs.size(); ++i)
    each_step(
        "r", pass.reduced, i, [&](std::size_t) { return pass.reach[i] != Reach::fixed; }, size);
}

/// The dtypes inside the functions of a launch.
struct ReductionTypes {
  BodyTypes before;
  BodyTypes epilogue;
};

/// The kernel of the launch. Its buffers are the inputs, the epilogue's inputs, the outputs; its
/// numbers are each_number's and then the epilogue's.
KernelId reduction_kernel(const ReductionPass& pass, const ReductionTypes& types,
                          const Limits& limits);

}  // namespace kiln::dispatch::wgsl
