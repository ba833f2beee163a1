#pragma once
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kiln/dispatch/raw_tensor.hpp"
#include "kiln/kernel/launch.hpp"

namespace kiln {

/// Shapes and strides of several tensors in one u32 array, for kernels bound by hand. For each
/// tensor in turn it has the rank, the sizes, the strides and the offset.
std::vector<std::uint32_t> build_info(std::span<const RawTensor> tensors);

/// Buffers and launches by hand, for operations of several launches and for kernels that declare
/// every binding.
///
///     RawTensor y = client.empty({{n}, DType::f32});
///     client.launch(KernelSource::wgsl(text), {256, 1, 1}, {ceil_div(n, 256), 1, 1}, {x, y});
///
/// Only `read` waits. Errors begin with the operation's name: DeviceError for an empty handle and a
/// tensor of another device, ShapeError for a tensor that lies outside of its buffer.
class Client {
 public:
  Client(std::shared_ptr<Runtime> runtime, std::string_view name)
      : runtime_(std::move(runtime)), name_(name) {}

  [[nodiscard]] const Limits& limits() const { return runtime_->limits(); }

  /// A dense tensor of undefined contents.
  [[nodiscard]] RawTensor empty(const TensorSpec& spec) const;
  /// A dense tensor of zeros.
  [[nodiscard]] RawTensor zeros(const TensorSpec& spec) const;
  /// Copies `from` into `into`, which may be a strided part of a buffer. Throws ShapeError or
  /// DTypeError unless they match.
  void copy(const RawTensor& from, const RawTensor& into) const;
  /// A dense tensor of the given values. Throws ShapeError unless `shape` has as many elements as
  /// there are values.
  template <class T>
  [[nodiscard]] RawTensor create(std::span<const T> values, const Shape& shape) const {
    static_assert(!std::is_same_v<T, bool>,
                  "kiln: a bool is stored as a 32-bit word; pass std::uint32_t and 0 or 1");
    return create_bytes(std::as_bytes(values), values.size(), {shape, dtype_of<T>});
  }
  /// The same values, dense from the start of a buffer: `x` itself if it is like that already.
  [[nodiscard]] RawTensor contiguous(const RawTensor& x) const;

  /// Launches a kernel that declares its own @group and @binding. `buffers` are in the order of
  /// (group, binding); the source declares each as read or read_write. `{{ elem }}` is the dtype of
  /// the first buffer, `{{ workgroup_size_x }}` comes from `workgroup`, and f16 is enabled if a
  /// buffer has it. A SPIR-V module states bindings and workgroup itself. Throws KernelError for a
  /// wrong number of buffers, a grid above the limit, and a compile error.
  void launch(const KernelSource& source, const std::array<std::uint32_t, 3>& workgroup,
              const std::array<std::int64_t, 3>& grid, std::span<const RawTensor> buffers,
              Flag trusted = false) const;
  void launch(const KernelSource& source, const std::array<std::uint32_t, 3>& workgroup,
              const std::array<std::int64_t, 3>& grid, std::initializer_list<RawTensor> buffers,
              Flag trusted = false) const {
    launch(source, workgroup, grid, std::span(buffers.begin(), buffers.size()), trusted);
  }

  /// The values, dense. Waits. T must be the element type.
  template <class T>
  [[nodiscard]] std::vector<T> read(const RawTensor& x) const {
    const std::vector<std::byte> bytes = read_bytes(x, dtype_of<T>);
    std::vector<T> values(bytes.size() / sizeof(T));
    std::copy(bytes.begin(), bytes.end(), std::as_writable_bytes(std::span(values)).begin());
    return values;
  }

 private:
  /// Throws DeviceError for an empty handle and another device's tensor, ShapeError for one that
  /// lies outside of its buffer.
  void require_usable(const RawTensor& x) const;
  [[nodiscard]] RawTensor create_bytes(std::span<const std::byte> bytes, std::size_t count,
                                       const TensorSpec& spec) const;
  [[nodiscard]] std::vector<std::byte> read_bytes(const RawTensor& x, DType dtype) const;

  std::shared_ptr<Runtime> runtime_;
  std::string name_;
};

}  // namespace kiln
