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
/// tensor in turn it has the rank, the sizes, the strides and the offset. Throws ShapeError for a
/// number beyond 32 bits.
///
///     const RawTensor x = zeros({2, 3}).value().raw();
///     build_info({&x, 1});   // [2, 2, 3, 3, 1, 0]
std::vector<std::uint32_t> build_info(std::span<const RawTensor> tensors);

/// Buffers and launches by hand, for operations of several launches and for kernels that declare
/// every binding.
///
///     const std::string text =
///         "@group(0) @binding(0) var<storage, read> x: array<{{ elem }}>;\n"
///         "@group(0) @binding(1) var<storage, read_write> y: array<{{ elem }}>;\n"
///         "@compute @workgroup_size({{ workgroup_size_x }})\n"
///         "fn main(@builtin(global_invocation_id) at: vec3<u32>) {\n"
///         "  if (at.x < arrayLength(&x)) { y[at.x] = 2 * x[at.x]; }\n"
///         "}\n";
///     const Client client(webgpu::device().shared_runtime(), "twice");
///     const RawTensor x = client.create<float>(std::vector{1.F, 2.F}, {2});
///     const RawTensor y = client.empty(x.spec());
///     client.launch(KernelSource::wgsl(text), {64, 1, 1}, {1, 1, 1}, {x, y});
///     client.read<float>(y);   // [2, 4]
///
/// Only `read` waits. Errors begin with the operation's name: DeviceError for an empty handle and a
/// tensor of another device, ShapeError for a tensor that lies outside of its buffer.
class Client {
 public:
  /// A client of a device, device.shared_runtime(), for the operation `name`.
  Client(std::shared_ptr<Runtime> runtime, std::string_view name)
      : runtime_(std::move(runtime)), name_(name) {}

  /// What the adapter can do.
  ///
  ///     Client(device.shared_runtime(), "my_op").limits().storage_buffers >= 8;   // [true]
  [[nodiscard]] const Limits& limits() const { return runtime_->limits(); }

  /// A dense tensor of undefined contents.
  [[nodiscard]] RawTensor empty(const TensorSpec& spec) const;
  /// A dense tensor of zeros.
  ///
  ///     const Client client(device.shared_runtime(), "my_op");
  ///     client.read<float>(client.zeros({{3}, DType::f32}));   // [0, 0, 0]
  [[nodiscard]] RawTensor zeros(const TensorSpec& spec) const;
  /// Copies `from` into `into`, which may be a strided part of a buffer. Throws ShapeError or
  /// DTypeError unless they match.
  ///
  ///     const Client client(device.shared_runtime(), "my_op");
  ///     const RawTensor whole = client.zeros({{4}, DType::f32});
  ///     RawTensor part = whole;
  ///     part.layout = {.shape = {2}, .strides = {2}};
  ///     client.copy(client.create<float>(std::vector{1.F, 2.F}, {2}), part);
  ///     client.read<float>(whole);   // [1, 0, 2, 0]
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
  ///
  ///     const Client client(device.shared_runtime(), "my_op");
  ///     const RawTensor x = transpose(zeros({2, 3}, device)).value().raw();
  ///     client.contiguous(x).layout.is_dense();   // [true]
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
  /// Throws DeviceError for an empty handle and for a tensor of another device, ShapeError for one
  /// that lies outside of its buffer.
  void require_usable(const RawTensor& x) const;
  [[nodiscard]] RawTensor create_bytes(std::span<const std::byte> bytes, std::size_t count,
                                       const TensorSpec& spec) const;
  [[nodiscard]] std::vector<std::byte> read_bytes(const RawTensor& x, DType dtype) const;

  std::shared_ptr<Runtime> runtime_;
  std::string name_;
};

}  // namespace kiln
