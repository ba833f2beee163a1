#include "kiln/dispatch/kernel/client.hpp"

#include <fmt/format.h>

#include "kiln/dispatch/backend.hpp"
#include "kiln/dispatch/elementwise/elementwise.hpp"
#include "kiln/dispatch/kernel/languages.hpp"
#include "kiln/dispatch/words.hpp"
#include "kiln/support/error.hpp"

namespace kiln {

namespace {

void require_on(const std::string& who, const RawTensor& x, const Runtime& runtime) {
  if (x.buffer == nullptr || x.runtime == nullptr)
    throw DeviceError(fmt::format("{}: a tensor is an empty handle", who));
  if (x.runtime.get() == &runtime) return;
  throw DeviceError(
      fmt::format("{}: the tensor {} is on another device ({}: {}) than the launches ({}: {})", who,
                  to_string(x.spec()), x.runtime->name(), x.runtime->adapter(), runtime.name(),
                  runtime.adapter()));
}

}  // namespace

std::vector<std::uint32_t> build_info(std::span<const RawTensor> tensors) {
  std::vector<std::uint32_t> info;
  for (const RawTensor& t : tensors) {
    info.push_back(static_cast<std::uint32_t>(t.shape().rank()));
    for (const std::int64_t size : t.shape())
      info.push_back(dispatch::word_of_size("build_info", size));
    for (int axis = 0; axis < t.shape().rank(); ++axis)
      info.push_back(dispatch::word_of_size("build_info", t.layout.stride(axis)));
    info.push_back(dispatch::word_of_size("build_info", t.layout.offset));
  }
  return info;
}

RawTensor Client::empty(const TensorSpec& spec) const {
  return dispatch::allocate(name_, runtime_, spec);
}

RawTensor Client::zeros(const TensorSpec& spec) const {
  RawTensor out = empty(spec);
  runtime_->fill(out.buffer, 0, (dispatch::bytes_of(spec) + 3) / 4 * 4, 0);
  return out;
}

void Client::copy(const RawTensor& from, const RawTensor& into) const {
  const auto text = [&] {
    return fmt::format("{}: copy takes tensors of one shape and dtype, got {} and {}", name_,
                       to_string(from.spec()), to_string(into.spec()));
  };
  require_usable(from);
  require_usable(into);
  if (from.shape() != into.shape()) throw ShapeError(text());
  if (from.dtype != into.dtype) throw DTypeError(text());
  dispatch::copy_into(from, into);
}

RawTensor Client::contiguous(const RawTensor& x) const {
  require_usable(x);
  return dispatch::make_dense(x);
}

void Client::require_usable(const RawTensor& x) const {
  require_on(name_, x, *runtime_);
  dispatch::require_inside([&] { return name_; }, x);
}

RawTensor Client::create_bytes(std::span<const std::byte> bytes, std::size_t count,
                               const TensorSpec& spec) const {
  if (static_cast<std::int64_t>(count) != spec.shape.elements()) {
    throw ShapeError(
        fmt::format("{}: {} values given for shape {}", name_, count, to_string(spec.shape)));
  }
  RawTensor out = empty(spec);
  runtime_->write(out.buffer, 0, bytes);
  return out;
}

std::vector<std::byte> Client::read_bytes(const RawTensor& x, DType dtype) const {
  if (x.dtype != dtype) {
    throw DTypeError(fmt::format("{}: read as {}, but the tensor is {}", name_, to_string(dtype),
                                 to_string(x.spec())));
  }
  const RawTensor dense = contiguous(x);
  return runtime_->read(dense.buffer, 0, dispatch::bytes_of(dense.spec())).get();
}

void Client::launch(const KernelSource& source, const std::array<std::uint32_t, 3>& workgroup,
                    const std::array<std::int64_t, 3>& grid, std::span<const RawTensor> buffers,
                    Flag trusted) const {
  if (!dispatch::accepts(*runtime_, source.language())) {
    throw UnsupportedError(fmt::format("{}: {} is {}; {}: {} takes kernels in {}", name_,
                                       source.text().name, to_string(source.language()),
                                       runtime_->name(), runtime_->adapter(),
                                       to_string(runtime_->languages().front())));
  }
  auto [id, rendered] =
      dispatch::backend_of(*runtime_).raw_kernel(name_, source, workgroup, buffers);
  id.trusted = trusted;
  if (id.bindings.size() != buffers.size()) {
    throw KernelError(fmt::format("{}: {} declares {} storage buffers, but {} are given", name_,
                                  rendered.name, id.bindings.size(), buffers.size()));
  }
  std::array<std::uint32_t, 3> size{};
  for (std::size_t i = 0; i < 3; ++i) {
    if (grid[i] < 0 || grid[i] > limits().workgroups) {
      throw KernelError(fmt::format(
          "{}: {}: grid {} x {} x {} is above the adapter's limit of {} workgroups in a dimension",
          name_, rendered.name, grid[0], grid[1], grid[2], limits().workgroups));
    }
    size[i] = static_cast<std::uint32_t>(grid[i]);
  }
  std::vector<Binding> bindings;
  for (const RawTensor& t : buffers) {
    const std::string who = fmt::format("{}: {}", name_, rendered.name);
    require_on(who, t, *runtime_);
    dispatch::require_inside([&] { return std::string_view(who); }, t);
    bindings.push_back({t.buffer});
  }
  CompiledKernelPtr kernel;
  try {
    kernel = runtime_->compile(id, name_);
  } catch (const KernelError& error) {
    throw KernelError(rendered.locate(error.what()));
  }
  runtime_->launch(kernel, bindings, {}, size);
}

}  // namespace kiln
