#include "kiln/tensor/apply_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "kiln/autodiff/gradients.hpp"
#include "kiln/dispatch/kernel/languages.hpp"
#include "kiln/dispatch/words.hpp"
#include "kiln/fusion/stream.hpp"
#include "kiln/scalar/infer.hpp"
#include "kiln/support/error.hpp"
#include "kiln/tensor/scatter.hpp"

namespace kiln::detail {
namespace {

/// The languages that an operation with launches by hand counts as written in.
constexpr std::array launched_by_hand{Language::wgsl};

}  // namespace

Stream& stream_of(const Device& device) { return Stream::of(device.runtime()); }

void refuse_backward(const Node& node) {
  throw UnsupportedError(fmt::format(
      "{}: has a backward rule for webgpu only, and the tensor is on {}; add a rule 'backward'",
      node.op, to_string(*node.device)));
}

namespace {

std::vector<dispatch::Described> described(std::span<const AnyTensor> in) {
  std::vector<dispatch::Described> all;
  all.reserve(in.size());
  for (const AnyTensor& t : in) all.push_back({t.dtype(), t.value().layout()});
  return all;
}

UnsupportedError no_kernel(const OpTable& table, const void* op, const Device& device,
                           std::span<const AnyTensor> in, std::span<const TensorSpec> out) {
  const auto offered = dispatch::languages_offered(table, op, device.runtime(), described(in), out);
  return dispatch::no_accepted_kernel(table.name, device.runtime(), offered);
}

[[noreturn]] void refuse_fallback(const UnsupportedError& error) {
  throw UnsupportedError(
      fmt::format("{}. It is allowed here, but there is no rule 'reference'", error.what()));
}

}  // namespace

bool runs_itself(const OpTable& table, const void* op, const Device& device,
                 std::span<const AnyTensor> in, std::span<const TensorSpec> out) {
  Runtime& runtime = device.runtime();
  const auto inputs = dispatch::asks_kernel_rule(table, runtime)
                          ? described(in)
                          : std::vector<dispatch::Described>{};
  if (dispatch::has_kernel_for(table, op, runtime, inputs, out)) return true;
  if (!device.allows_fallback()) throw no_kernel(table, op, device, in, out);
  return false;
}

bool runs_itself(std::string_view op, const Device& device) {
  if (dispatch::takes_launches(device.runtime())) return true;
  if (!device.allows_fallback())
    throw dispatch::no_accepted_kernel(op, device.runtime(), launched_by_hand);
  return false;
}

void refuse_fallback(const OpTable& table, const void* op, const Device& device,
                     std::span<const AnyTensor> in, std::span<const TensorSpec> out) {
  refuse_fallback(no_kernel(table, op, device, in, out));
}

void refuse_fallback(std::string_view op, const Device& device) {
  refuse_fallback(dispatch::no_accepted_kernel(op, device.runtime(), launched_by_hand));
}

ElementwiseCall call_of(std::string_view op, const ElementBody& made, std::vector<double> params,
                        std::span<const TensorSpec> in, const TensorSpec& out) {
  std::vector<DType> dtypes;
  for (const TensorSpec& spec : in) dtypes.push_back(spec.dtype);
  const BodyTypes types = infer(op, *made.body, dtypes, out.dtype);
  if (types.roots[0] != out.dtype) {
    throw DTypeError(
        fmt::format("{}: the result is {} by the output rule, but rule 'element' gives {}; cast it",
                    op, to_string(out.dtype), to_string(types.roots[0])));
  }
  for (std::size_t i = 0; i < params.size(); ++i)
    (void)dispatch::word_of(op, params[i], types.params[i]);  // throws if the dtype lacks it
  for (const double number : made.numbers) (void)dispatch::word_of(op, number, DType::i32);
  return {made.body, std::move(params), true, made.numbers};
}

std::shared_ptr<void> save_for_element(std::vector<ElementGradient> gradients,
                                       std::vector<double> params, const Saver& saver,
                                       std::span<const AnyTensor> in) {
  auto saved = std::make_shared<ElementSaved>();
  for (std::size_t i = 0; i < in.size(); ++i) {
    const auto uses = [&](const ElementBody& made) {
      return made.body != nullptr && made.body->uses(0, static_cast<int>(i));
    };
    const bool read = std::ranges::any_of(gradients, [&](const ElementGradient& gradient) {
      return uses(gradient.made) ||
             std::ranges::any_of(gradient.scattered, [&](const ElementScatter& part) {
               return uses(part.places) || uses(part.values);
             });
    });
    saved->in.push_back(saver.keep_if(read, in[i]));
  }
  saved->gradients = std::move(gradients);
  saved->params = std::move(params);
  return saved;
}

void backward_of_element(const Node& node, std::span<const AnyTensor> grads,
                         std::span<GradSlot> slots) {
  const auto& saved = *static_cast<const ElementSaved*>(node.saved.get());
  const AnyTensor& grad = grads[0];
  const Device& device = *node.device;
  std::vector<Value> in;
  for (const Checkpoint& c : saved.in)
    in.push_back(c.kept() ? c.get().value() : grad.value());  // one that is not kept is not read
  in.push_back(grad.value());
  const std::string_view name = lasting_name(fmt::format("{}_backward", node.op));
  const auto computed = [&](const ElementBody& made, const TensorSpec& spec) {
    const ElementwiseCall call{made.body, saved.params, true, made.numbers};
    return AnyTensor(record({name, call}, device, in, {&spec, 1}).front(), device);
  };
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (!slots[i]) continue;
    const ElementGradient& gradient = saved.gradients[i];
    const DType dtype = node.in[i].dtype;
    const bool nothing = grad.shape().elements() == 0;
    if (!nothing && gradient.made.body != nullptr) {
      slots[i].set_reduced(computed(gradient.made, {gradient.shape, dtype}));
    } else if (!nothing && !gradient.scattered.empty()) {
      std::vector<Scattered> parts;
      for (const ElementScatter& part : gradient.scattered) {
        parts.push_back({computed(part.places, {grad.shape(), DType::u32}),
                         computed(part.values, {grad.shape(), DType::f32})});
      }
      slots[i].set(scatter_sums(parts, {gradient.shape, dtype}));
    } else {
      slots[i].set({full(device, node.in[i], 0), device});
    }
  }
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

void check_results(const dispatch::MadeBy& by, std::span<const TensorSpec> promised,
                   std::span<const AnyTensor> results) {
  for (std::size_t i = 0; i < promised.size(); ++i)
    dispatch::check_spec(by, i, results[i].spec(), promised[i]);
}

void refuse_plain(const dispatch::MadeBy& by, const std::string& field, const std::string& said,
                  const std::string& given) {
  if (said.empty() || given.empty()) {
    throw Error(
        fmt::format("{}: field {} of the result: {} gave another value than the output rule", by.op,
                    field, by.rule));
  }
  throw Error(fmt::format("{}: field {} of the result is {} by the output rule, but {} gave {}",
                          by.op, field, said, by.rule, given));
}

std::string spelled_number(double value) { return fmt::format("{}", value); }

std::vector<AnyTensor> attach_direct(std::string_view op, std::span<const std::string_view> names,
                                     std::span<const RawTensor> results, const Device& device,
                                     const GradRule& rule, std::span<const AnyTensor> in,
                                     std::shared_ptr<const void> attributes) {
  std::vector<Value> values;
  for (std::size_t i = 0; i < results.size(); ++i) {
    dispatch::check_usable({op, names, "webgpu_forward"}, i, device.shared_runtime(), results[i]);
    dispatch::require_countable(op, results[i].spec());
    values.emplace_back(results[i]);
  }
  return attach(op, std::move(values), device, rule, in, std::move(attributes), nullptr);
}

std::vector<AnyTensor> attach_to(std::string_view op, std::span<const AnyTensor> results,
                                 const Device& device, const GradRule& rule,
                                 std::span<const AnyTensor> in,
                                 std::shared_ptr<const void> attributes) {
  std::vector<Value> values;
  for (const AnyTensor& t : results) {
    if (!t.device().same_as(device)) {
      throw DeviceError(fmt::format("{}: a result is on another device ({}) than the operands ({})",
                                    op, to_string(t.device()), to_string(device)));
    }
    values.push_back(t.value());
  }
  return attach(op, std::move(values), device, rule, in, std::move(attributes), nullptr);
}

}  // namespace kiln::detail
