#pragma once
/// How generated text finds elements: it splits a number into coordinates along axes. Names begin
/// with a prefix. Sizes are `params.PREFIXd1`, steps of operand 0 `params.PREFIXs0_1`, coordinates
/// PREFIXc1.
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "kiln/dispatch/coalesced_axes.hpp"

namespace kiln::dispatch::wgsl {

/// Statements that split the number `index` into coordinates along the axes from `outermost` on.
/// They use the sizes of these axes, except that of the first axis of all.
std::string coordinates(std::string_view index, std::string_view prefix, std::size_t rank,
                        std::size_t outermost = 0);

/// The text that adds the step of coordinate `axis` in an operand to a sum.
std::string step(std::string_view prefix, std::size_t operand, std::size_t axis);

/// Calls sink(name, number) for the sizes that coordinates() takes. `name` is a function, so that
/// a prepared launch makes no strings.
template <class Sink>
void each_size(std::string_view prefix, const CoalescedAxes& axes, std::size_t outermost,
               Sink sink) {
  for (std::size_t axis = outermost == 0 ? 1 : outermost; axis < axes.rank; ++axis)
    sink([=] { return fmt::format("{}d{}", prefix, axis); }, axes.sizes[axis]);
}

/// The same for the steps of one operand along the axes for which needed(axis) is true.
template <class Needed, class Sink>
void each_step(std::string_view prefix, const CoalescedAxes& axes, std::size_t operand,
               Needed needed, Sink sink) {
  for (std::size_t axis = 0; axis < axes.rank; ++axis) {
    if (!needed(axis)) continue;
    sink([=] { return fmt::format("{}s{}_{}", prefix, operand, axis); },
         axes.strides[operand][axis]);
  }
}

}  // namespace kiln::dispatch::wgsl
