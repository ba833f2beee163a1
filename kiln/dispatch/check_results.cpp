#include "kiln/dispatch/check_results.hpp"

#include <fmt/format.h>

#include "kiln/support/error.hpp"

namespace kiln::dispatch {

void check_results(const MadeBy& by, const std::shared_ptr<Runtime>& runtime,
                   std::span<const RawTensor> results, std::span<const TensorSpec> promised) {
  if (results.size() != promised.size()) {
    throw ShapeError(fmt::format("{}: the output rule promises {} tensors, {} gave {}", by.op,
                                 promised.size(), by.rule, results.size()));
  }
  for (std::size_t i = 0; i < promised.size(); ++i) {
    const RawTensor& t = results[i];
    const auto said = [&] {
      const std::string name =
          i < by.outputs.size() ? std::string(by.outputs[i]) : std::to_string(i);
      return fmt::format("{}: output '{}' is {} by the output rule, but {} gave ", by.op, name,
                         to_string(promised[i]), by.rule);
    };
    if (t.buffer == nullptr) throw KernelError(said() + "an empty handle");
    if (t.runtime != runtime) throw DeviceError(said() + "a tensor of another device");
    if (t.spec().shape != promised[i].shape) throw ShapeError(said() + to_string(t.spec()));
    if (t.spec().dtype != promised[i].dtype) throw DTypeError(said() + to_string(t.spec()));
    require_inside([&] { return said() + "a tensor"; }, t);
  }
}

}  // namespace kiln::dispatch
