#include "kiln/dispatch/wgsl/kernel/kernel_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "kiln/dispatch/words.hpp"
#include "kiln/scalar/compose.hpp"
#include "kiln/scalar/wgsl/wgsl.hpp"
#include "kiln/support/error.hpp"

namespace kiln::dispatch::wgsl {
namespace {

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// fused(own(value, operands...), inputs...), with what the own one gives rounded to the
/// dtype of `dtypes[0]`, as it would be in memory.
BodyPtr compose(std::string_view op, const Body& own, const FusedEpilogue& fused,
                std::span<const DType> dtypes) {
  Composer composer;
  std::vector<std::int32_t> values;
  for (std::size_t i = 0; i < dtypes.size(); ++i)
    values.push_back(composer.input(static_cast<int>(i)));
  const auto taken = static_cast<std::size_t>(own.inputs);
  const std::vector<std::int32_t> stored = composer.add(op, own, std::span(values).first(taken),
                                                        dtypes.first(taken), {}, dtypes.first(1));
  std::vector<std::int32_t> inputs(stored);
  std::vector<DType> input_dtypes{dtypes[0]};
  inputs.insert(inputs.end(), values.begin() + own.inputs, values.end());
  input_dtypes.insert(input_dtypes.end(), dtypes.begin() + own.inputs, dtypes.end());
  std::vector<int> params(fused.params.size());
  std::iota(params.begin(), params.end(), 0);
  const auto roots = composer.add(op, *fused.body, inputs, input_dtypes, params, fused.out);
  return composer.finish(static_cast<int>(dtypes.size()), fused.body->params, roots);
}

}  // namespace

bool mentions_operand(const webgpu::Launch& launch, std::string_view name) {
  const auto in_value = [&](const auto& variable) { return mentions(variable.second, name); };
  return mentions(launch.source.text().text, name) ||
         std::ranges::any_of(launch.source.variables(), in_value);
}

KernelStore::KernelStore(const OpTable& table, const webgpu::Launch& launch,
                         std::span<const Operand> in, const Operand& out, const EpilogueCode* fused)
    : table_(table),
      launch_(launch),
      out_(out),
      fused_(fused),
      four_(calls(launch.source.text().text, fmt::format("store_{}4", out.name))),
      vec4_(contains(launch.vec4, out.name)) {
  if (launch.store) find_operands(in);
  if (fused != nullptr) reads_.push_back(&fused->reads());
  if (!reads_.empty()) put_together();
}

void KernelStore::fail(const std::string& what) const {
  throw KernelError(fmt::format("{}: {}: {}", table_.name, launch_.source.text().name, what));
}

void KernelStore::find_operands(std::span<const Operand> in) {
  const Epilogue& e = *launch_.store;
  if (e.body->inputs != static_cast<int>(e.inputs.size()) + 1) {
    fail(fmt::format("the epilogue takes {} values besides the stored one, but names {} operands",
                     e.body->inputs - 1, e.inputs.size()));
  }
  std::vector<Layout> layouts;
  for (const std::string& name : e.inputs) {
    const auto at = std::ranges::find_if(in, [&](const Operand& t) { return t.name == name; });
    if (at == in.end()) fail(fmt::format("the epilogue names '{}', which is no input", name));
    if (at->shape() != out_.shape()) {
      fail(fmt::format(
          "the epilogue reads '{}' {} where it stores '{}' {}; the shapes must be equal", name,
          to_string(at->shape()), out_.name, to_string(out_.shape())));
    }
    operands_.push_back(&*at);
    layouts.push_back(at->layout);
  }
  reads_.push_back(&own_.emplace("kiln_e", out_.shape(), layouts));
}

void KernelStore::put_together() {
  by_four_ = four_ && reads_by_four(reads_, vec4_);
  std::vector<DType> dtypes{out_.dtype};
  for (const Operand* t : operands_) dtypes.push_back(t->dtype);
  if (fused_ == nullptr) {
    body_ = launch_.store->body;
    types_ = infer(table_.name, *body_, dtypes, out_.dtype);
    return;
  }
  const FusedEpilogue& fused = fused_->epilogue();
  for (const RawTensor& t : fused.inputs) dtypes.push_back(t.dtype);
  body_ = launch_.store ? compose(table_.name, *launch_.store->body, fused, dtypes) : fused.body;
  types_ = infer(table_.name, *body_, dtypes, fused.out[0]);
}

StoredArray KernelStore::array_of(std::size_t operand) const {
  const Operand& t = *operands_[operand];
  const bool own = contains(launch_.vec4, t.name);
  return {std::string(t.name), t.dtype, own || reads_in_vec4(t.name)};
}

bool KernelStore::reads_in_vec4(std::string_view name) const {
  if (!by_four_ || mentions_operand(launch_, name)) return false;
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    if (operands_[i]->name == name) return own_->is_quad(i);
  }
  return false;
}

std::size_t KernelStore::add_numbers(Metadata& metadata) const {
  if (own_) {
    own_->each_number([&](auto name, std::int64_t number) {
      metadata.add(name(), "u32", word_of_size(table_.name, number));
    });
  }
  const std::size_t first = metadata.named();
  if (fused_ != nullptr) fused_->add_numbers(metadata, types_);
  return first;
}

std::string KernelStore::declare_inputs(KernelId& id, std::uint32_t group,
                                        std::uint32_t& next_binding) const {
  if (fused_ == nullptr) return {};
  const std::uint32_t first = next_binding;
  next_binding += static_cast<std::uint32_t>(fused_->epilogue().inputs.size());
  return fused_->declare_inputs(id, group, first, by_four_);
}

std::string KernelStore::text(KernelId& id, std::uint32_t group, std::uint32_t& next_binding,
                              const StoredArray& array, std::set<std::string>& helpers) const {
  const std::string name = fmt::format("store_{}", out_.name);
  std::vector<StoredArray> results{array};
  if (fused_ != nullptr) results = fused_->results(vec4_);
  std::string text;
  for (const StoredArray& result : results)
    text += declare_array(id, group, next_binding++, Access::read_write, result);
  if (plain()) return text + plain_store(name, array, four_);
  std::vector<StoredArray> arrays;
  for (std::size_t i = 0; i < operands_.size(); ++i) arrays.push_back(array_of(i));
  if (fused_ != nullptr) {
    const std::vector<StoredArray> inputs = fused_->inputs(by_four_);
    arrays.insert(arrays.end(), inputs.begin(), inputs.end());
  }
  return text + computed_store({.op = table_.name,
                                .name = name,
                                .value = out_.dtype,
                                .body = *body_,
                                .types = types_,
                                .param_prefix = EpilogueCode::param_prefix,
                                .operands = std::move(arrays),
                                .reads = reads_,
                                .results = std::move(results),
                                .four = four_},
                               helpers);
}

}  // namespace kiln::dispatch::wgsl
