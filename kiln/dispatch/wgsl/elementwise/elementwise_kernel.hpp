#pragma once
#include <fmt/format.h>

#include <span>
#include <string>
#include <string_view>

#include "kiln/dispatch/access.hpp"
#include "kiln/dispatch/raw_tensor.hpp"
#include "kiln/dispatch/wgsl/coordinates.hpp"
#include "kiln/dispatch/wgsl/metadata.hpp"
#include "kiln/scalar/infer.hpp"
#include "kiln/scalar/wgsl/wgsl.hpp"

namespace kiln::dispatch::wgsl {

/// One elementwise launch.
struct ElementwiseLaunch {
  std::string_view op;
  const BodyPtr& body;
  std::span<const double> params;
  std::span<const RawTensor> inputs;
  std::span<const RawTensor> outputs;
  CoalescedView view;  ///< operands: the inputs, then the outputs
  /// Of each input, the output that has its buffer; else -1. Empty where none has.
  std::span<const std::int32_t> overwritten_by{};
  int steps = 1;  ///< times that a thread makes view.width results; 1 where coordinates are needed

  [[nodiscard]] bool is_overwritten(std::size_t input) const {
    return input < overwritten_by.size() && overwritten_by[input] >= 0;
  }
};

/// Calls sink(name, type, word) for every number of the launch, in the order the text declares
/// them. `name` is a function, so that a launch of a prepared kernel, which wants the words alone,
/// makes no strings.
template <class Sink>
void each_number(const ElementwiseLaunch& call, const BodyTypes& types, std::int64_t elements,
                 Sink sink) {
  const auto size = [&](auto name, std::int64_t value) {
    sink(name, "u32", word_of_size(call.op, value));
  };
  size([] { return std::string("n"); }, elements);
  each_param(call.op, "p", call.params, types, sink);
  const CoalescedView& view = call.view;
  for (std::size_t i = 0; i < view.offsets.size(); ++i)
    size([i] { return fmt::format("o{}", i); }, view.offsets[i]);
  each_size("", view, 0, size);
  for (std::size_t i = 0; i < view.access.size(); ++i)
    each_step("", view, i, [&](std::size_t) { return has_coordinates(view.access[i]); }, size);
}

/// The kernel of the launch, for workgroups of `workgroup` threads.
KernelId elementwise_kernel(const ElementwiseLaunch& call, const BodyTypes& types,
                            const Limits& limits, std::uint32_t workgroup);

}  // namespace kiln::dispatch::wgsl
