#include "kiln/dispatch/raw_tensor.hpp"

#include <fmt/format.h>

#include <limits>
#include <optional>

#include "kiln/support/error.hpp"

namespace kiln::dispatch {
namespace {

thread_local PoisonOutputs* poisoner = nullptr;

std::uint64_t rounded_to_words(std::uint64_t bytes) { return (bytes + 3) / 4 * 4; }

}  // namespace

PoisonOutputs::PoisonOutputs(std::uint32_t word) : word_(word), outer_(poisoner) {
  poisoner = this;
}
PoisonOutputs::~PoisonOutputs() { poisoner = outer_; }

std::uint64_t bytes_of(const TensorSpec& spec) {
  return static_cast<std::uint64_t>(spec.shape.elements()) * size_of(spec.dtype);
}

void require_countable(std::string_view op, const TensorSpec& spec) {
  if (spec.shape.elements() > std::numeric_limits<std::uint32_t>::max()) {
    throw ShapeError(fmt::format(
        "{}: {} has {} elements; kernels index with 32 bits, so at most {}", op, to_string(spec),
        spec.shape.elements(), std::numeric_limits<std::uint32_t>::max()));
  }
}

bool lies_inside(const Layout& layout, DType dtype, std::uint64_t bytes) {
  const std::optional<std::int64_t> reach = layout.reach();
  return reach && static_cast<std::uint64_t>(*reach) <= bytes / size_of(dtype);
}

void refuse_outside(const std::string& who, const Layout& layout, DType dtype,
                    std::uint64_t bytes) {
  const std::optional<std::int64_t> reach = layout.reach();
  throw ShapeError(fmt::format(
      "{}: {} {} lies outside of its buffer: it takes {} elements, there are {}", who,
      to_string(dtype), to_string(layout),
      reach ? std::to_string(*reach) : "negative or more than 2^63", bytes / size_of(dtype)));
}

void refuse_empty(const std::string& who) {
  throw KernelError(fmt::format("{}: the tensor is an empty handle", who));
}

RawTensor allocate(std::string_view op, const std::shared_ptr<Runtime>& runtime,
                   const TensorSpec& spec) {
  require_countable(op, spec);
  const std::uint64_t bytes = bytes_of(spec);
  RawTensor out{runtime, nullptr, spec.dtype, Layout::dense(spec.shape)};
  try {
    if (poisoner != nullptr) {
      out.buffer = runtime->allocate(rounded_to_words(bytes) + PoisonOutputs::canary_bytes);
      runtime->fill(out.buffer, 0, out.buffer->size(), poisoner->word_);
      poisoner->allocations_.push_back({std::string(op), spec, out.buffer});
    } else {
      out.buffer = runtime->allocate(bytes);
    }
  } catch (const OutOfMemoryError& error) {
    throw OutOfMemoryError(
        fmt::format("{}: result {} takes {} bytes: {}", op, to_string(spec), bytes, error.what()));
  }
  return out;
}

}  // namespace kiln::dispatch
