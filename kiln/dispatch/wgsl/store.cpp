#include "kiln/dispatch/wgsl/store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "kiln/dispatch/kernel_cache.hpp"
#include "kiln/dispatch/words.hpp"
#include "kiln/scalar/compose.hpp"

namespace kiln::dispatch::wgsl {
namespace {

Reads reads_of(const FusedEpilogue& epilogue, const Shape& shape) {
  std::vector<Layout> layouts;
  layouts.reserve(epilogue.inputs.size());
  for (const RawTensor& t : epilogue.inputs)
    layouts.push_back(seen_by(*epilogue.body, layouts.size() + 1, t.layout, shape));
  return {"kiln_f_", shape, layouts, KnownPlaces(*epilogue.body, shape)};
}

/// fused(own(value, operands...), inputs...). The result of the own epilogue is rounded to
/// `dtypes[0]`, as if it had been stored.
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

std::string declare_all(KernelId& id, std::uint32_t group, std::uint32_t& next, Access access,
                        const std::vector<StoredArray>& arrays) {
  std::string text;
  for (const StoredArray& array : arrays) text += declare_array(id, group, next++, access, array);
  return text;
}

}  // namespace

Store::Store(std::string_view op, const TensorSpec& value, const FusedEpilogue* fused,
             StoreCall call, std::optional<LaunchEpilogue> own)
    : op_(op), value_(value.dtype), fused_(fused), call_(std::move(call)), own_(std::move(own)) {
  if (fused_ != nullptr) fused_reads_ = reads_of(*fused_, value.shape);
  by_four_ = call_.four && reads_by_four(reads(), call_.result.vec4);
  if (!own_ || !by_four_) return;
  for (std::size_t i = 0; i < own_->operands.size(); ++i) {
    bool& vec4 = own_->operands[i].vec4;
    vec4 = vec4 || (own_->store_alone[i] && own_->reads.is_quad(i));
  }
}

std::span<const RawTensor> Store::inputs() const {
  return fused_ == nullptr ? std::span<const RawTensor>() : fused_->inputs;
}

std::vector<DType> Store::results() const {
  return fused_ == nullptr ? std::vector{value_} : fused_->out;
}

void Store::append_key(std::string& key) const {
  append_bytes(key, fused_ != nullptr);
  if (fused_ == nullptr) return;
  append_bytes(key, fused_->body.get());
  for (const RawTensor& t : fused_->inputs) append_bytes(key, t.dtype);
  for (const DType dtype : fused_->out) append_bytes(key, dtype);
  fused_reads_->append_key(key);
}

std::vector<const Reads*> Store::reads() const {
  std::vector<const Reads*> all;
  if (own_) all.push_back(&own_->reads);
  if (fused_reads_) all.push_back(&*fused_reads_);
  return all;
}

std::vector<DType> Store::operand_dtypes() const {
  std::vector<DType> dtypes{value_};
  if (own_) {
    for (const StoredArray& t : own_->operands) dtypes.push_back(t.dtype);
  }
  for (const RawTensor& t : inputs()) dtypes.push_back(t.dtype);
  return dtypes;
}

/// The composed body of all epilogues.
BodyPtr Store::body() const {
  if (fused_ == nullptr) return own_->body;
  return own_ ? compose(op_, *own_->body, *fused_, operand_dtypes()) : fused_->body;
}

BodyTypes Store::types() const {
  if (plain()) return {};
  return infer(op_, *body(), operand_dtypes(), results()[0]);
}

template <class Sink>
void Store::each_fused_number(const BodyTypes& types, Sink sink) const {
  if (fused_ == nullptr) return;
  each_param(op_, "kiln_p", fused_->params, types, sink);
  fused_reads_->each_number([&](auto name, std::int64_t number) {
    sink(name, std::string_view("u32"), word_of_size(op_, number));
  });
}

std::size_t Store::add_numbers(Metadata& metadata, const BodyTypes& types) const {
  if (own_) {
    own_->reads.each_number([&](auto name, std::int64_t number) {
      metadata.add(name(), "u32", word_of_size(op_, number));
    });
  }
  const std::size_t first = metadata.named();
  each_fused_number(types, [&](auto name, std::string_view type, std::uint32_t word) {
    metadata.add(name(), type, word);
  });
  return first;
}

std::vector<std::uint32_t> Store::words(const BodyTypes& types) const {
  std::vector<std::uint32_t> words;
  each_fused_number(types,
                    [&](auto, std::string_view, std::uint32_t word) { words.push_back(word); });
  return words;
}

bool Store::reads_in_vec4(std::string_view name) const {
  return own_ && std::ranges::any_of(own_->operands, [&](const StoredArray& array) {
           return array.vec4 && array.name == name;
         });
}

std::vector<StoredArray> Store::fused_arrays() const {
  std::vector<StoredArray> arrays;
  for (std::size_t i = 0; i < inputs().size(); ++i) {
    arrays.push_back(
        {fmt::format("kiln_f{}", i), inputs()[i].dtype, by_four_ && fused_reads_->is_quad(i)});
  }
  return arrays;
}

std::vector<StoredArray> Store::result_arrays() const {
  if (fused_ == nullptr) return {call_.result};
  std::vector<StoredArray> arrays;
  for (std::size_t r = 0; r < fused_->out.size(); ++r)
    arrays.push_back({fmt::format("kiln_y{}", r), fused_->out[r], call_.result.vec4});
  return arrays;
}

std::string Store::declare_inputs(KernelId& id, std::uint32_t group, std::uint32_t& next) const {
  return declare_all(id, group, next, Access::read, fused_arrays());
}

std::string Store::declare_results(KernelId& id, std::uint32_t group, std::uint32_t& next) const {
  return declare_all(id, group, next, Access::read_write, result_arrays());
}

std::string Store::functions(const BodyTypes& types, std::set<std::string>& helpers) const {
  if (plain()) return plain_store(call_.name, call_.result, call_.four);
  std::vector<StoredArray> operands = own_ ? own_->operands : std::vector<StoredArray>();
  std::ranges::copy(fused_arrays(), std::back_inserter(operands));
  const BodyPtr all = body();
  return computed_store({.op = op_,
                         .name = call_.name,
                         .value = value_,
                         .body = *all,
                         .types = types,
                         .param_prefix = "params.kiln_p",
                         .operands = std::move(operands),
                         .reads = reads(),
                         .results = result_arrays(),
                         .four = call_.four},
                        helpers);
}

}  // namespace kiln::dispatch::wgsl
