#include "kiln/dispatch/kernel/check_results.hpp"

#include <fmt/format.h>

#include "kiln/support/error.hpp"

namespace kiln::dispatch {

namespace {

/// "op: output 'out' is f32 [2] by the output rule, but kernel gave "; without the first part if it
/// is not known what was promised.
std::string gave(const MadeBy& by, std::size_t i, const TensorSpec* promised) {
  const std::string name = i < by.outputs.size() ? std::string(by.outputs[i]) : std::to_string(i);
  const std::string said =
      promised == nullptr ? ":"
                          : fmt::format(" is {} by the output rule, but", to_string(*promised));
  return fmt::format("{}: output '{}'{} {} gave ", by.op, name, said, by.rule);
}

}  // namespace

void check_spec(const MadeBy& by, std::size_t i, const TensorSpec& got,
                const TensorSpec& promised) {
  if (got == promised) return;
  const std::string text = gave(by, i, &promised) + to_string(got);
  if (got.shape != promised.shape) throw ShapeError(text);
  throw DTypeError(text);
}

void check_usable(const MadeBy& by, std::size_t i, const std::shared_ptr<Runtime>& runtime,
                  const RawTensor& result, const TensorSpec* promised) {
  if (result.buffer == nullptr) throw KernelError(gave(by, i, promised) + "an empty handle");
  if (result.runtime != runtime)
    throw DeviceError(gave(by, i, promised) + "a tensor of another device");
  require_inside([&] { return gave(by, i, promised) + "a tensor"; }, result);
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
