#pragma once
#include <fmt/format.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/dispatch/reduction/reduction_pass.hpp"
#include "kiln/dispatch/wgsl/coordinates.hpp"
#include "kiln/dispatch/wgsl/metadata.hpp"
#include "kiln/dispatch/wgsl/store.hpp"
#include "kiln/kernel/kernel_id.hpp"
#include "kiln/scalar/infer.hpp"
#include "kiln/scalar/wgsl/wgsl.hpp"

namespace kiln::dispatch::wgsl {

/// One launch of a reduction.
struct ReductionLaunch : ReductionPass {
  const Store& store;
};

/// Calls sink(name, type, word) for every number of the launch, in the order
/// the text declares them. `name` is a function, so that a launch of a prepared
/// kernel, which wants the words alone, makes no strings.
template <class Sink>
void each_number(const ReductionLaunch& pass, const BodyTypes& types, Sink sink) {
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
  const auto place_sizes = [&](std::string_view prefix, const KnownPlaces& places) {
    if (places.used != 0) each_size(prefix, places.axes, places.outermost, size);
  };
  place_sizes("kg", pass.kept_places);
  place_sizes("rg", pass.reduced_places);
}

/// The dtypes inside the bodies of a launch.
struct ReductionTypes {
  BodyTypes before;
  BodyTypes epilogue;
};

/// The kernel of the launch. It binds the inputs, the epilogue's inputs and the
/// outputs. Its numbers are those of each_number, then the epilogue's.
KernelId reduction_kernel(const ReductionLaunch& pass, const ReductionTypes& types,
                          const Limits& limits);

}  // namespace kiln::dispatch::wgsl
