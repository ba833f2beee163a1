#include "kiln/dispatch/client.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

#include "kiln/dispatch/elementwise.hpp"
#include "kiln/dispatch/metadata.hpp"
#include "kiln/kernel/spirv_module.hpp"
#include "kiln/scalar/wgsl.hpp"
#include "kiln/support/error.hpp"

namespace kiln::webgpu {
namespace {

/// The number in "attribute(3)" at or after `at`; moves `at` behind it.
std::optional<std::uint32_t> attribute(std::string_view text, std::string_view name,
                                       std::size_t at) {
  const std::size_t found = text.find(name, at);
  if (found == std::string_view::npos) return std::nullopt;
  std::size_t begin = text.find('(', found);
  if (begin == std::string_view::npos) return std::nullopt;
  begin = text.find_first_not_of(" \t", begin + 1);
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data() + begin, text.data() + text.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

std::string without_comments(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    if (text.substr(i).starts_with("//")) {
      i = std::min(text.find('\n', i), text.size());
    } else if (text.substr(i).starts_with("/*")) {
      i = std::min(text.find("*/", i), text.size() - 2) + 2;
    } else {
      out += text[i++];
    }
  }
  return out;
}

/// The storage buffers a kernel declares, by (group, binding).
std::vector<BindingSlot> declared_bindings(std::string_view source) {
  const std::string text = without_comments(source);
  std::vector<BindingSlot> slots;
  for (std::size_t at = text.find("var<storage"); at != std::string::npos;
       at = text.find("var<storage", at + 1)) {
    const std::size_t begin = text.find_last_of(";{}", at);
    const std::string_view attributes =
        std::string_view(text).substr(begin == std::string::npos ? 0 : begin + 1,
                                      at - (begin == std::string::npos ? 0 : begin + 1));
    const std::string_view mode = std::string_view(text).substr(at, text.find('>', at) - at);
    const auto group = attribute(attributes, "@group", 0);
    const auto binding = attribute(attributes, "@binding", 0);
    if (!group || !binding) continue;  // the compiler says what is wrong with it
    slots.push_back(
        {*group, *binding,
         mode.find("read_write") != std::string_view::npos ? Access::read_write : Access::read});
  }
  std::ranges::sort(slots, {}, [](const BindingSlot& s) { return std::pair(s.group, s.binding); });
  return slots;
}

/// The storage buffers of a SPIR-V module, by (set, binding).
std::vector<BindingSlot> module_bindings(std::string_view op, const KernelSource& source) {
  try {
    std::vector<BindingSlot> slots;
    for (const SpirvModule::Buffer& buffer : read_spirv(source.words()).buffers) {
      slots.push_back(
          {buffer.set, buffer.binding, buffer.read_only ? Access::read : Access::read_write});
    }
    return slots;
  } catch (const KernelError& error) {
    throw KernelError(fmt::format("{}: {}: {}", op, source.text().name, error.what()));
  }
}

RenderedSource render(const KernelSource& source, const std::array<std::uint32_t, 3>& workgroup,
                      std::span<const RawTensor> buffers) {
  SourceTemplate::Variables library;
  if (!buffers.empty()) library["elem"] = std::string(wgsl_storage_type(buffers[0].dtype));
  const std::array<std::string, 3> axes{"x", "y", "z"};
  for (std::size_t i = 0; i < 3; ++i)
    library["workgroup_size_" + axes[i]] = std::to_string(workgroup[i]);
  RenderedSource rendered = SourceTemplate(source.text()).render(source.variables(), library);
  // On the first line, so that line numbers stay.
  const auto half = [](const RawTensor& t) { return t.dtype == DType::f16; };
  if (std::ranges::any_of(buffers, half)) rendered.text.insert(0, "enable f16; ");
  return rendered;
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
    return fmt::format("{}: copy takes two of one shape and dtype ({}, {})", name_,
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
  if (x.buffer == nullptr || x.runtime != runtime_)
    throw DeviceError(fmt::format("{}: a tensor is an empty handle, or of another device", name_));
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
  const auto accepted = runtime_->languages();
  if (std::ranges::find(accepted, source.language()) == accepted.end()) {
    throw UnsupportedError(fmt::format("{}: {} is {}; {}: {} takes kernels in {}", name_,
                                       source.text().name, to_string(source.language()),
                                       runtime_->name(), runtime_->adapter(),
                                       to_string(accepted.front())));
  }
  RenderedSource rendered;
  KernelId id{.language = source.language(),
              .words = source.words(),
              .entry = source.entry_point(),
              .workgroup = workgroup,
              .constants = source.constants(),
              .trusted = trusted};
  if (source.language() == Language::spirv) {
    rendered.name = source.text().name;
    id.workgroup = {1, 1, 1};  // the module has its own
    id.bindings = module_bindings(name_, source);
  } else {
    rendered = render(source, workgroup, buffers);
    id.source = rendered.text;
    id.bindings = declared_bindings(rendered.text);
  }
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
    if (t.buffer == nullptr || t.runtime != runtime_) {
      throw DeviceError(
          fmt::format("{}: {}: a buffer is empty or of another device", name_, rendered.name));
    }
    dispatch::require_inside([&] { return fmt::format("{}: {}", name_, rendered.name); }, t);
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

}  // namespace kiln::webgpu
