#include "kiln/dispatch/cpu_kernel.hpp"

#include <fmt/format.h>

#include <cstring>

#include "kiln/dispatch/cpu/kernel.hpp"
#include "kiln/dispatch/elementwise.hpp"
#include "kiln/support/error.hpp"

namespace kiln::cpu {
namespace {

std::int64_t matrices(const Shape& shape) {
  return Operand{{}, DType::f32, Layout::dense(shape)}.batch();
}

void* start(std::string_view op, std::string_view name, const RawTensor& t, DType asked) {
  const bool words = t.dtype == DType::boolean && asked == DType::u32;
  if (t.dtype != asked && !words) {
    throw DTypeError(fmt::format("{}: '{}' is {}, the kernel asks for its elements as {}", op, name,
                                 to_string(t.spec()), to_string(asked)));
  }
  std::byte* data = host(*t.runtime)->data_of(op, t.buffer);
  return data + t.layout.offset * static_cast<std::int64_t>(size_of(t.dtype));
}

}  // namespace

Input::Input(std::string_view op, std::string_view name, RawTensor tensor)
    : op_(op), name_(name), tensor_(std::move(tensor)) {}

std::int64_t Input::batch() const { return matrices(shape()); }

std::size_t Input::count() const { return static_cast<std::size_t>(shape().elements()); }

const void* Input::elements(DType dtype) const { return start(op_, name_, tensor_, dtype); }

const void* Input::dense_elements(DType dtype) const {
  if (tensor_.layout.is_dense()) return elements(dtype);
  if (copy_.buffer == nullptr) copy_ = dispatch::make_dense(tensor_);
  return start(op_, name_, copy_, dtype);
}

Output::Output(std::string_view op, std::string_view name, RawTensor tensor, Sink* sink)
    : op_(op), name_(name), tensor_(std::move(tensor)), sink_(sink) {}

std::int64_t Output::batch() const { return matrices(shape()); }

void* Output::elements(DType dtype) const { return start(op_, name_, tensor_, dtype); }

void zero(const Output& out) {
  const RawTensor& t = out.raw();
  const std::uint64_t bytes = dispatch::bytes_of(t.spec());
  std::memset(host(*t.runtime)->data_of("zero", t.buffer), 0, bytes);
}

void copy(const Input& from, const RawTensor& to) {
  if (from.shape().elements() > 0) dispatch::copy_into(from.raw(), to);
}

void Output::commit(std::int64_t first, std::int64_t elements) const {
  if (first < 0 || elements < 0 || first > count() || elements > count() - first) {
    throw KernelError(fmt::format("{}: output '{}' has {} elements; {} from {} on are committed",
                                  op_, name_, count(), elements, first));
  }
  if (sink_ != nullptr) sink_->commit(first, elements);
}

}  // namespace kiln::cpu
