#include "kiln/dispatch/epilogue.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kiln/dispatch/access.hpp"
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
  for (std::size_t i = 0; i < epilogue.inputs.size(); ++i) {
    try {
      (void)seen_by(*epilogue.body, i + 1, epilogue.inputs[i].layout, shape);
    } catch (const ShapeError& error) {
      throw ShapeError(fmt::format("{}: an input of the epilogue: {}", op, error.what()));
    }
  }
}

const FusedProducer* producer_of(std::span<const FusedProducer> producers, std::size_t operand) {
  const auto at = std::ranges::find(producers, operand, &FusedProducer::operand);
  return at == producers.end() ? nullptr : &*at;
}

void require_fits(std::string_view op, std::span<const FusedProducer> producers,
                  std::span<const RawTensor> operands) {
  std::size_t next = 0;
  for (const FusedProducer& p : producers) {
    if (p.operand < next || p.operand >= operands.size()) {
      throw KernelError(
          fmt::format("{}: a producer makes operand {} of {}; they must come in the order of their "
                      "operands",
                      op, p.operand, operands.size()));
    }
    next = p.operand + 1;
    const Body& body = *p.body;
    if (body.roots.size() != 1 || static_cast<std::size_t>(body.inputs) != p.inputs.size() ||
        static_cast<std::size_t>(body.params) != p.params.size()) {
      throw KernelError(fmt::format(
          "{}: the producer of operand {} has {} roots, {} inputs and {} params; there must be 1, "
          "{} and {}",
          op, p.operand, body.roots.size(), body.inputs, body.params, p.inputs.size(),
          p.params.size()));
    }
    for (const RawTensor& t : p.inputs) {
      try {
        (void)t.layout.broadcast_to(operands[p.operand].layout.shape);
      } catch (const ShapeError& error) {
        throw ShapeError(fmt::format("{}: an input of a producer: {}", op, error.what()));
      }
    }
  }
}

}  // namespace kiln::dispatch
