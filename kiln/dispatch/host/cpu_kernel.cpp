#include "kiln/dispatch/host/cpu_kernel.hpp"

#include <fmt/format.h>

#include <cstring>
#include <limits>

#include "kiln/dispatch/elementwise/elementwise.hpp"
#include "kiln/dispatch/host/sink.hpp"
#include "kiln/support/error.hpp"

namespace kiln::cpu {
std::int64_t detail::matrix_start(const Layout& layout, std::int64_t batch, const Shape& out) {
  std::int64_t start = 0;
  for (int axis = -3; axis >= -out.rank(); --axis) {
    const std::int64_t index = batch % out[axis];
    batch /= out[axis];
    const bool own = axis >= -layout.shape.rank() && layout.shape[axis] != 1;
    start += own ? index * layout.stride(axis) : 0;
  }
  return start;
}

Layout detail::last_two(const Layout& layout) {
  return {{layout.shape[-2], layout.shape[-1]}, {layout.stride(-2), layout.stride(-1)}};
}

Argument::Argument(std::string_view op, std::string_view name, RawTensor tensor)
    : op_(op), name_(name), tensor_(std::move(tensor)) {
  dispatch::require_inside([&] { return title("operand"); }, tensor_);
}

std::int64_t Argument::batch() const { return Operand{name_, dtype(), tensor_.layout}.batch(); }

std::string Argument::title(std::string_view kind) const {
  return fmt::format("{}: {} '{}'", op_, kind, name_);
}

void* Argument::elements(const RawTensor& t, DType asked) const {
  const bool words = t.dtype == DType::boolean && asked == DType::u32;
  if (t.dtype != asked && !words) {
    throw DTypeError(fmt::format("{} is {}, the kernel asks for its elements as {}",
                                 title("operand"), to_string(t.spec()), to_string(asked)));
  }
  CpuRuntime* runtime = host(*t.runtime);
  if (runtime == nullptr) {
    throw DeviceError(fmt::format("{} is on {}, where no function of the host reads it",
                                  title("operand"), t.runtime->name()));
  }
  std::byte* data = runtime->data_of(op_, t.buffer);
  return data + t.layout.offset * static_cast<std::int64_t>(size_of(t.dtype));
}

const RawTensor& Input::made_dense() const {
  if (raw().layout.is_dense()) return raw();
  if (copy_.buffer == nullptr) copy_ = dispatch::make_dense(raw());
  return copy_;
}

Strided<const float> Input::floats() const {
  if (dtype() != DType::f16) return strided<float>();
  if (wide_.empty()) {
    const std::span<const float16> half = dense<float16>();
    wide_.assign(half.begin(), half.end());
  }
  return {wide_.data(), Layout::dense(shape())};
}

Strided<float> Output::floats() const {
  const Layout layout = Layout::dense(shape());
  if (dtype() != DType::f16) return {dense<float>().data(), layout};
  // Elements that the kernel forgets are NaN.
  if (wide_->empty()) wide_->assign(count(), std::numeric_limits<float>::quiet_NaN());
  return {wide_->data(), layout};
}

void Output::round(std::int64_t first, std::int64_t elements) const {
  if (wide_->empty()) return;
  const float* from = wide_->data() + first;
  float16* to = dense<float16>().data() + first;
  constexpr std::int64_t grain = 1 << 13;
  parallel_for(elements, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) to[i] = float16(from[i]);
  });
}

void zero(const Output& out) {
  const RawTensor& t = out.raw();
  const std::uint64_t bytes = dispatch::bytes_of(t.spec());
  std::memset(host(*t.runtime)->data_of("zero", t.buffer), 0, bytes);
}

void copy(const Input& from, const RawTensor& to) {
  dispatch::require_inside([] { return "copy"; }, to);
  if (from.shape() != to.shape() || from.dtype() != to.dtype) {
    throw ShapeError(fmt::format("copy: takes tensors of one shape and dtype, got {} and {}",
                                 to_string(from.spec()), to_string(to.spec())));
  }
  if (from.shape().elements() > 0) dispatch::copy_into(from.raw(), to);
}

void Output::commit(Integer begin, Integer size) const {
  const std::int64_t first = begin;
  const std::int64_t elements = size;
  const std::int64_t all = shape().elements();
  if (first < 0 || elements < 0 || first > all || elements > all - first) {
    throw KernelError(fmt::format("{} has {} elements; {} from {} on are committed",
                                  title("output"), all, elements, first));
  }
  if (sink_ == nullptr) return;  // then all is rounded at the end
  round(first, elements);
  sink_->commit(first, elements);
}

void Output::close() const {
  if (sink_ == nullptr || !sink_->has_commits()) round(0, shape().elements());
  if (sink_ != nullptr) sink_->close();
}

}  // namespace kiln::cpu
