#include "kiln/dispatch/wgsl/epilogue_code.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kiln/dispatch/kernel_cache.hpp"
#include "kiln/dispatch/words.hpp"
#include "kiln/scalar/wgsl/wgsl.hpp"

namespace kiln::dispatch::wgsl {
namespace {

Reads reads_of(const FusedEpilogue& epilogue, const Shape& shape) {
  std::vector<Layout> layouts;
  layouts.reserve(epilogue.inputs.size());
  for (const RawTensor& t : epilogue.inputs) layouts.push_back(t.layout);
  return {"kiln_f", shape, layouts};
}

}  // namespace

EpilogueCode::EpilogueCode(std::string_view op, const FusedEpilogue& epilogue,
                           const TensorSpec& value)
    : op_(op), epilogue_(epilogue), value_(value.dtype), reads_(reads_of(epilogue, value.shape)) {}

BodyTypes EpilogueCode::types() const {
  std::vector<DType> dtypes{value_};
  for (const RawTensor& t : epilogue_.inputs) dtypes.push_back(t.dtype);
  return infer(op_, *epilogue_.body, dtypes, epilogue_.out[0]);
}

void EpilogueCode::append_key(std::string& key) const {
  append_bytes(key, epilogue_.body.get());
  for (const RawTensor& t : epilogue_.inputs) append_bytes(key, t.dtype);
  for (const DType dtype : epilogue_.out) append_bytes(key, dtype);
  reads_.append_key(key);
}

template <class Sink>
void EpilogueCode::each_number(const BodyTypes& types, Sink sink) const {
  each_param(op_, "kiln_p", epilogue_.params, types, sink);
  reads_.each_number([&](auto name, std::int64_t number) {
    sink(name, std::string_view("u32"), word_of_size(op_, number));
  });
}

void EpilogueCode::add_numbers(Metadata& metadata, const BodyTypes& types) const {
  each_number(types, [&](auto name, std::string_view type, std::uint32_t word) {
    metadata.add(name(), type, word);
  });
}

std::vector<std::uint32_t> EpilogueCode::words(const BodyTypes& types) const {
  std::vector<std::uint32_t> words;
  each_number(types, [&](auto, std::string_view, std::uint32_t word) { words.push_back(word); });
  return words;
}

std::vector<StoredArray> EpilogueCode::inputs(bool vec4) const {
  std::vector<StoredArray> arrays;
  for (std::size_t i = 0; i < epilogue_.inputs.size(); ++i)
    arrays.push_back(
        {fmt::format("kiln_f{}", i), epilogue_.inputs[i].dtype, vec4 && reads_.is_quad(i)});
  return arrays;
}

std::vector<StoredArray> EpilogueCode::results(bool vec4) const {
  std::vector<StoredArray> arrays;
  for (std::size_t r = 0; r < epilogue_.out.size(); ++r)
    arrays.push_back({fmt::format("kiln_y{}", r), epilogue_.out[r], vec4});
  return arrays;
}

namespace {
std::string declare_all(KernelId& id, std::uint32_t group, std::uint32_t first, Access access,
                        const std::vector<StoredArray>& arrays) {
  std::string text;
  for (const StoredArray& array : arrays) text += declare_array(id, group, first++, access, array);
  return text;
}
}  // namespace

std::string EpilogueCode::declare_inputs(KernelId& id, std::uint32_t group, std::uint32_t first,
                                         bool vec4) const {
  return declare_all(id, group, first, Access::read, inputs(vec4));
}

std::string EpilogueCode::declare_results(KernelId& id, std::uint32_t group, std::uint32_t first,
                                          bool vec4) const {
  return declare_all(id, group, first, Access::read_write, results(vec4));
}

std::string EpilogueCode::store(std::string_view name, const BodyTypes& types,
                                std::set<std::string>& helpers) const {
  return computed_store({.op = op_,
                         .name = std::string(name),
                         .value = value_,
                         .body = *epilogue_.body,
                         .types = types,
                         .param_prefix = param_prefix,
                         .operands = inputs(false),
                         .reads = {&reads_},
                         .results = results(false)},
                        helpers);
}

}  // namespace kiln::dispatch::wgsl
