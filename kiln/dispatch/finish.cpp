#include "kiln/dispatch/finish.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kiln/dispatch/kernel_cache.hpp"
#include "kiln/scalar/wgsl.hpp"
#include "kiln/support/error.hpp"

namespace kiln::dispatch {
namespace {

void require_counts(std::string_view op, const Finish& finish) {
  const auto require = [&](std::string_view what, int takes, std::size_t given) {
    if (static_cast<std::size_t>(takes) == given) return;
    throw KernelError(
        fmt::format("{}: the finish's body has {} {}, {} are given", op, takes, what, given));
  };
  require("inputs besides the value", finish.body->inputs - 1, finish.inputs.size());
  require("params", finish.body->params, finish.params.size());
  require("roots", static_cast<int>(finish.body->roots.size()), finish.out.size());
}

Reads reads_of(std::string_view op, const Finish& finish, const Shape& shape) {
  require_counts(op, finish);
  std::vector<Layout> layouts;
  layouts.reserve(finish.inputs.size());
  for (const RawTensor& t : finish.inputs) layouts.push_back(t.layout);
  try {
    return {"kiln_f", shape, layouts};
  } catch (const ShapeError& error) {
    throw ShapeError(fmt::format("{}: an input of the finish: {}", op, error.what()));
  }
}

}  // namespace

FinishCode::FinishCode(std::string_view op, const Finish& finish, const TensorSpec& value)
    : op_(op), finish_(finish), value_(value.dtype), reads_(reads_of(op, finish, value.shape)) {}

BodyTypes FinishCode::types() const {
  std::vector<DType> dtypes{value_};
  for (const RawTensor& t : finish_.inputs) dtypes.push_back(t.dtype);
  return infer(op_, *finish_.body, dtypes, finish_.out[0]);
}

bool FinishCode::uses_half() const {
  const auto half = [](const RawTensor& t) { return t.dtype == DType::f16; };
  return std::ranges::any_of(finish_.inputs, half) ||
         std::ranges::find(finish_.out, DType::f16) != finish_.out.end();
}

void FinishCode::append_key(std::string& key) const {
  append_bytes(key, finish_.body.get());
  for (const RawTensor& t : finish_.inputs) append_bytes(key, t.dtype);
  for (const DType dtype : finish_.out) append_bytes(key, dtype);
  reads_.append_key(key);
}

template <class Sink>
void FinishCode::each_number(const BodyTypes& types, Sink sink) const {
  for (std::size_t i = 0; i < finish_.params.size(); ++i) {
    const DType dtype = types.params[i];
    const auto type = dtype == DType::boolean ? std::string_view("u32") : wgsl_compute_type(dtype);
    sink([i] { return fmt::format("kiln_p{}", i); }, type, word_of(op_, finish_.params[i], dtype));
  }
  reads_.each_number([&](auto name, std::int64_t number) {
    sink(name, std::string_view("u32"), word_of_size(op_, number));
  });
}

void FinishCode::add_numbers(Metadata& metadata, const BodyTypes& types) const {
  each_number(types, [&](auto name, std::string_view type, std::uint32_t word) {
    metadata.add(name(), type, word);
  });
}

std::vector<std::uint32_t> FinishCode::words(const BodyTypes& types) const {
  std::vector<std::uint32_t> words;
  each_number(types, [&](auto, std::string_view, std::uint32_t word) { words.push_back(word); });
  return words;
}

std::vector<StoredArray> FinishCode::inputs(bool vec4) const {
  std::vector<StoredArray> arrays;
  for (std::size_t i = 0; i < finish_.inputs.size(); ++i)
    arrays.push_back(
        {fmt::format("kiln_f{}", i), finish_.inputs[i].dtype, vec4 && reads_.is_quad(i)});
  return arrays;
}

std::vector<StoredArray> FinishCode::results(bool vec4) const {
  std::vector<StoredArray> arrays;
  for (std::size_t r = 0; r < finish_.out.size(); ++r)
    arrays.push_back({fmt::format("kiln_y{}", r), finish_.out[r], vec4});
  return arrays;
}

std::string FinishCode::declare_inputs(KernelId& id, std::uint32_t group, std::uint32_t first,
                                       bool vec4) const {
  std::string text;
  for (const StoredArray& array : inputs(vec4))
    text += declare_array(id, group, first++, Access::read, array);
  return text;
}

std::string FinishCode::declare_results(KernelId& id, std::uint32_t group, std::uint32_t first,
                                        bool vec4) const {
  std::string text;
  for (const StoredArray& array : results(vec4))
    text += declare_array(id, group, first++, Access::read_write, array);
  return text;
}

std::string FinishCode::store(std::string_view name, const BodyTypes& types,
                              std::set<std::string>& helpers) const {
  return computed_store({.op = op_,
                         .name = std::string(name),
                         .value = value_,
                         .body = *finish_.body,
                         .types = types,
                         .param_prefix = param_prefix,
                         .operands = inputs(false),
                         .reads = {&reads_},
                         .results = results(false)},
                        helpers);
}

}  // namespace kiln::dispatch
