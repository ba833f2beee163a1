#include "kiln/tensor/support.hpp"

#include <fmt/format.h>

#include "kiln/autodiff/gradients.hpp"
#include "kiln/support/error.hpp"

namespace kiln::detail {

void refuse_backward(const Node& node) {
  throw UnsupportedError(fmt::format(
      "{}: has a backward rule for webgpu only, and the tensor is on {}; add a rule 'backward'",
      node.op, to_string(*node.device)));
}

void set_from_reference(std::span<const AnyTensor> outs, std::span<const AnyTensor> grads,
                        std::span<const AnyTensor> in, std::span<GradSlot> slots) {
  const Gradients found = vjp(outs, grads);
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (!slots[i]) continue;
    slots[i].set(found.contains(in[i])
                     ? found.of(in[i])
                     : AnyTensor(full(in[i].device(), in[i].spec(), 0), in[i].device()));
  }
}

void check_results(std::string_view op, std::span<const std::string_view> names,
                   std::span<const TensorSpec> promised, std::span<const AnyTensor> results) {
  for (std::size_t i = 0; i < promised.size(); ++i) {
    const TensorSpec& got = results[i].spec();
    if (got == promised[i]) continue;
    const std::string text =
        fmt::format("{}: output '{}' is {} by the output rule, but execution gave {}", op, names[i],
                    to_string(promised[i]), to_string(got));
    if (got.shape != promised[i].shape) throw ShapeError(text);
    throw DTypeError(text);
  }
}

std::vector<AnyTensor> attach_to(std::string_view op, std::span<const AnyTensor> results,
                                 const Device& device, const GradRule& rule,
                                 std::span<const AnyTensor> in,
                                 std::shared_ptr<const void> attributes) {
  std::vector<Value> values;
  for (const AnyTensor& t : results) values.push_back(t.value());
  return attach(op, std::move(values), device, rule, in, std::move(attributes), nullptr);
}

}  // namespace kiln::detail
