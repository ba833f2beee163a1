#pragma once
#include <fmt/format.h>

#include <string_view>

#include "kiln/dispatch/rows/row_pass.hpp"
#include "kiln/dispatch/wgsl/coordinates.hpp"
#include "kiln/dispatch/wgsl/metadata.hpp"

namespace kiln::dispatch::wgsl {

/// Calls sink(name, type, word) for every number of the launch, in the order the text declares
/// them. `name` is a function, so that a launch of a prepared kernel makes no strings.
template <class Sink>
void each_number(const RowPass& pass, const BodyTypes& types, Sink sink) {
  const RowsCall& call = pass.call;
  const auto size = [&](auto name, std::int64_t value) {
    sink(name, "u32", word_of_size(call.op, value));
  };
  size([] { return std::string("rows"); }, pass.kept.count());
  size([] { return std::string("count"); }, pass.count());
  for (std::size_t f = 0; f < call.folds.size(); ++f) {
    const Fold& fold = call.folds[f];
    sink([f] { return fmt::format("neutral{}", f); }, "u32",
         neutral_word(fold.combine, fold.element));
    sink([f] { return fmt::format("scale{}", f); }, "f32",
         word_of(call.op, fold.scale, DType::f32));
  }
  each_param(call.op, "p", call.params, types, sink);
  for (std::size_t i = 0; i < pass.layouts.size(); ++i)
    size([i] { return fmt::format("o{}", i); }, pass.layouts[i].offset);
  each_size("k", pass.kept, 0, size);
  if (pass.kept_places.used != 0)
    each_size("kg", pass.kept_places.axes, pass.kept_places.outermost, size);
  for (std::size_t i = 0; i < pass.layouts.size(); ++i) {
    each_step("k", pass.kept, i, [](std::size_t) { return true; }, size);
    each_step(
        "r", pass.reduced, i, [&](std::size_t) { return pass.reach[i] == Reach::strided; }, size);
  }
}

/// The kernel of the launch. It binds the inputs, then the results. `inputs`: their dtypes.
KernelId rows_kernel(const RowPass& pass, std::span<const DType> inputs, const BodyTypes& types,
                     const Limits& limits);

}  // namespace kiln::dispatch::wgsl
