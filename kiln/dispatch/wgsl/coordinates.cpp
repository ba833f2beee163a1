#include "kiln/dispatch/wgsl/coordinates.hpp"

namespace kiln::dispatch::wgsl {

std::string coordinates(std::string_view index, std::string_view prefix, std::size_t rank,
                        std::size_t outermost) {
  std::string text;
  std::string rest(index);
  for (std::size_t axis = rank; axis-- > outermost;) {
    const std::string size = fmt::format("params.{}d{}", prefix, axis);
    // The first axis takes everything that is left.
    text += fmt::format("  let {}c{} = {}{};\n", prefix, axis, rest,
                        axis == 0 ? std::string() : " % " + size);
    if (axis == outermost) break;
    const std::string outer = fmt::format("{}r{}", prefix, axis);
    text += fmt::format("  let {} = {} / {};\n", outer, rest, size);
    rest = outer;
  }
  return text;
}

std::string step(std::string_view prefix, std::size_t operand, std::size_t axis) {
  return fmt::format(" + {0}c{1} * params.{0}s{2}_{1}", prefix, axis, operand);
}

}  // namespace kiln::dispatch::wgsl
