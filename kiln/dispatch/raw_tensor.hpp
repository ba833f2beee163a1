#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/runtime/runtime.hpp"
#include "kiln/support/layout.hpp"

namespace kiln {

/// Elements in device memory: a buffer and where in it they lie. What kernels work on; it knows
/// nothing of gradients.
///
///     const RawTensor x = tensor({1.0, 2.0}).value().raw();
///     x.shape();   // [2]
///     to_string(x.spec());   // "f32 [2]"
struct RawTensor {
  std::shared_ptr<Runtime> runtime;
  BufferPtr buffer;
  DType dtype = DType::f32;
  Layout layout;

  /// Its shape; shape and dtype.
  [[nodiscard]] const Shape& shape() const { return layout.shape; }
  [[nodiscard]] TensorSpec spec() const { return {layout.shape, dtype}; }
};

namespace dispatch {

/// A dense tensor of undefined contents. Throws an error that begins with `op`: OutOfMemoryError,
/// and ShapeError past 2^32 elements.
RawTensor allocate(std::string_view op, const std::shared_ptr<Runtime>& runtime,
                   const TensorSpec& spec);

/// Throws ShapeError that begins with `op` past the 2^32 elements that kernels can count.
void require_countable(std::string_view op, const TensorSpec& spec);

/// Whether all elements of a layout lie within the `bytes` that a buffer has. This is called for
/// every layout that kiln did not make, before anything is read through it.
bool lies_inside(const Layout& layout, DType dtype, std::uint64_t bytes);
[[noreturn]] void refuse_outside(const std::string& who, const Layout& layout, DType dtype,
                                 std::uint64_t bytes);
[[noreturn]] void refuse_empty(const std::string& who);
/// Throws ShapeError that begins with `who`() if they do not.
template <class Who>
void require_inside(const Who& who, const Layout& layout, DType dtype, std::uint64_t bytes) {
  if (!lies_inside(layout, dtype, bytes)) refuse_outside(std::string(who()), layout, dtype, bytes);
}
/// The same of a tensor and its buffer. Throws KernelError for an empty handle.
template <class Who>
void require_inside(const Who& who, const RawTensor& tensor) {
  if (tensor.buffer == nullptr || tensor.runtime == nullptr) refuse_empty(std::string(who()));
  require_inside(who, tensor.layout, tensor.dtype, tensor.buffer->size());
}

/// The bytes that a dense tensor takes.
std::uint64_t bytes_of(const TensorSpec& spec);

/// While one lives on this thread, each new buffer is filled with a word before kernels run. The
/// word also fills at least 256 bytes after the elements. check_op examines both afterwards.
class PoisonOutputs {
 public:
  static constexpr std::uint32_t pattern =
      0x7fa0'dead;  // a signalling NaN: arithmetic on it gives another one
  static constexpr std::uint64_t canary_bytes = 256;

  /// What was allocated, and for which operation. It lives as long as the PoisonOutputs.
  struct Allocation {
    std::string op;
    TensorSpec spec;
    BufferPtr buffer;
  };

  /// Inputs get another word than outputs. That finds a kernel which copies from beyond the end of
  /// an input to beyond the end of an output.
  explicit PoisonOutputs(std::uint32_t word = pattern);
  ~PoisonOutputs();
  PoisonOutputs(const PoisonOutputs&) = delete;
  PoisonOutputs& operator=(const PoisonOutputs&) = delete;

  /// All allocations since this one was made. Those made while an inner PoisonOutputs lived belong
  /// to the inner one.
  [[nodiscard]] const std::vector<Allocation>& allocations() const { return allocations_; }

 private:
  friend RawTensor allocate(std::string_view, const std::shared_ptr<Runtime>&, const TensorSpec&);
  std::uint32_t word_;
  std::vector<Allocation> allocations_;
  PoisonOutputs* outer_;
};

}  // namespace dispatch
}  // namespace kiln
