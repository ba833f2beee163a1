#include "kiln/dispatch/epilogue.hpp"

#include <fmt/format.h>

#include "kiln/support/error.hpp"

namespace kiln::dispatch {

void require_fits(std::string_view op, const FusedEpilogue& epilogue, const Shape& shape) {
  const auto require = [&](std::string_view what, int takes, std::size_t given) {
    if (static_cast<std::size_t>(takes) == given) return;
    throw KernelError(
        fmt::format("{}: the epilogue's body has {} {}, {} are given", op, takes, what, given));
  };
  require("inputs besides the value", epilogue.body->inputs - 1, epilogue.inputs.size());
  require("params", epilogue.body->params, epilogue.params.size());
  require("roots", static_cast<int>(epilogue.body->roots.size()), epilogue.out.size());
  for (const RawTensor& t : epilogue.inputs) {
    try {
      (void)t.layout.broadcast_to(shape);
    } catch (const ShapeError& error) {
      throw ShapeError(fmt::format("{}: an input of the epilogue: {}", op, error.what()));
    }
  }
}

}  // namespace kiln::dispatch
