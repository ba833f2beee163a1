#pragma once
#include <memory>
#include <span>
#include <vector>

#include "kiln/runtime/runtime.hpp"
#include "kiln/support/layout.hpp"

namespace kiln {

/// Elements in device memory: a buffer and where in it they lie. What kernels work on; it knows nothing of gradients.
struct RawTensor {
  std::shared_ptr<Runtime> runtime;
  BufferPtr buffer;
  DType dtype = DType::f32;
  Layout layout;

  [[nodiscard]] const Shape& shape() const { return layout.shape; }
  [[nodiscard]] TensorSpec spec() const { return {layout.shape, dtype}; }
};

namespace dispatch {

/// Dense, undefined contents. Throws OutOfMemoryError that begins with `op`, and ShapeError past 2^32 elements.
RawTensor allocate(std::string_view op, const std::shared_ptr<Runtime>& runtime, const TensorSpec& spec);

/// Bytes a dense tensor takes.
std::uint64_t bytes_of(const TensorSpec& spec);

/// While one lives on this thread, outputs are filled with `pattern` before kernels run, and stand in front of 256 bytes of
/// the same: what check_op looks at afterwards.
class PoisonOutputs {
 public:
  static constexpr std::uint32_t pattern = 0x7fc0'dead;  // an f32 NaN, and two f16 that do not occur
  static constexpr std::uint64_t canary_bytes = 256;
  PoisonOutputs();
  ~PoisonOutputs();
  PoisonOutputs(const PoisonOutputs&) = delete;
  PoisonOutputs& operator=(const PoisonOutputs&) = delete;
};

}  // namespace dispatch
}  // namespace kiln
