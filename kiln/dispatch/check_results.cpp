#include "kiln/dispatch/check_results.hpp"

#include <fmt/format.h>

#include "kiln/support/error.hpp"

namespace kiln::dispatch {

namespace {

std::string output(const MadeBy& by, std::size_t i) {
  return fmt::format("{}: output '{}'", by.op,
                     i < by.outputs.size() ? std::string(by.outputs[i]) : std::to_string(i));
}

}  // namespace

void check_spec(const MadeBy& by, std::size_t i, const TensorSpec& got,
                const TensorSpec& promised) {
  if (got == promised) return;
  const std::string text = fmt::format("{} is {} by the output rule, but {} gave {}", output(by, i),
                                       to_string(promised), by.rule, to_string(got));
  if (got.shape != promised.shape) throw ShapeError(text);
  throw DTypeError(text);
}

void check_usable(const MadeBy& by, std::size_t i, const std::shared_ptr<Runtime>& runtime,
                  const RawTensor& result, const TensorSpec* promised) {
  const auto gave = [&] {
    if (promised == nullptr) return fmt::format("{}: {} gave ", output(by, i), by.rule);
    return fmt::format("{} is {} by the output rule, but {} gave ", output(by, i),
                       to_string(*promised), by.rule);
  };
  if (result.buffer == nullptr) throw KernelError(gave() + "an empty handle");
  if (result.runtime != runtime) throw DeviceError(gave() + "a tensor of another device");
  require_inside([&] { return gave() + "a tensor"; }, result);
}

void check_results(const MadeBy& by, const std::shared_ptr<Runtime>& runtime,
                   std::span<const RawTensor> results, std::span<const TensorSpec> promised) {
  if (results.size() != promised.size()) {
    throw ShapeError(fmt::format("{}: the output rule promises {} tensors, {} gave {}", by.op,
                                 promised.size(), by.rule, results.size()));
  }
  for (std::size_t i = 0; i < promised.size(); ++i) {
    check_usable(by, i, runtime, results[i], &promised[i]);
    check_spec(by, i, results[i].spec(), promised[i]);
  }
}

}  // namespace kiln::dispatch
