#include "kiln/kernel/launch.hpp"

#include <fmt/format.h>

#include "kiln/support/error.hpp"

namespace kiln {

std::int64_t Operand::batch() const {
  std::int64_t count = 1;
  for (int axis = 0; axis < rank() - 2; ++axis) count *= dim(axis);
  return count;
}

Epilogue detail::make_epilogue(BodyPtr body, std::vector<std::string> inputs) {
  const auto wanted = static_cast<std::size_t>(body->inputs) - 1;
  if (inputs.size() != wanted) {
    throw KernelError(fmt::format(
        "epilogue: a function of {} expressions reads {} inputs beside the value, but {} are named",
        body->inputs, wanted, inputs.size()));
  }
  return {std::move(body), std::move(inputs)};
}

webgpu::Launch webgpu::Launch::decline(std::string why, Language language) {
  const bool spirv = language == Language::spirv;
  return {
      .source = spirv ? KernelSource::spirv(std::vector<std::uint32_t>()) : KernelSource::wgsl(""),
      .declined = std::move(why)};
}

}  // namespace kiln
