#pragma once
#include <span>
#include <string>
#include <string_view>

#include "kiln/dispatch/raw_tensor.hpp"
#include "kiln/dispatch/wgsl/metadata.hpp"
#include "kiln/dispatch/wgsl/reads.hpp"
#include "kiln/scalar/infer.hpp"

namespace kiln::dispatch::wgsl {

/// One elementwise launch: a store without a kernel before it.
struct ElementwiseLaunch {
  std::string_view op;
  const BodyPtr& body;
  std::span<const double> params;
  std::span<const RawTensor> inputs;
  std::span<const RawTensor> outputs;
  Reads reads;  ///< of the inputs, then where the outputs' elements are
  /// For each input the number of the output that has its buffer; else -1. Empty if there is none.
  std::span<const std::int32_t> overwritten_by{};
  int steps = 1;  ///< how often a thread makes width() results; 1 if coordinates are needed

  [[nodiscard]] bool is_overwritten(std::size_t input) const {
    return input < overwritten_by.size() && overwritten_by[input] >= 0;
  }
  /// How many adjacent results a thread makes at once.
  [[nodiscard]] int width() const { return reads.by_four() ? 4 : 1; }
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
  call.reads.each_number(size);
}

/// The kernel of the launch, for workgroups of `workgroup` threads.
KernelId elementwise_kernel(const ElementwiseLaunch& call, const BodyTypes& types,
                            const Limits& limits, std::uint32_t workgroup);

}  // namespace kiln::dispatch::wgsl
