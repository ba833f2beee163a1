#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "kiln/dispatch/raw_tensor.hpp"
#include "kiln/scalar/expr.hpp"

namespace kiln::dispatch {

/// The operations that were fused into the store of a reduction or a kernel. The store applies them
/// to each element before it writes it.
struct FusedEpilogue {
  BodyPtr body;  ///< of the value, then an element of each of `inputs`; each root is an output
  std::vector<double> params{};  ///< the body's run-time scalars
  /// Each broadcasts to the result's shape, unless it is read at positions; may be strided.
  std::vector<RawTensor> inputs{};
  std::vector<DType> out;  ///< one for each root; outputs are dense, of the result's shape
};

/// The elementwise operations that were fused into the loads of a kernel's operand. A load computes
/// an element instead of reading it.
struct FusedProducer {
  std::size_t operand = 0;          ///< the number of the operand that they make
  BodyPtr body;                     ///< of an element of each of `inputs`; has one root
  std::vector<double> params{};     ///< the body's run-time scalars
  std::vector<RawTensor> inputs{};  ///< each broadcasts to the operand's shape; may be strided
};

/// The producer of that operand; null if there is none.
const FusedProducer* producer_of(std::span<const FusedProducer> producers, std::size_t operand);

/// Throws an error that begins with `op`: KernelError unless the producers come in the order of
/// their operands, and each has one root and as many inputs and params as its body; ShapeError if
/// an input does not broadcast to its operand's shape.
void require_fits(std::string_view op, std::span<const FusedProducer> producers,
                  std::span<const RawTensor> operands);

/// Throws an error that begins with `op`: KernelError if the body has other numbers of inputs,
/// params or roots than the epilogue, ShapeError if an input does not broadcast to `shape`, which
/// is the result's.
void require_fits(std::string_view op, const FusedEpilogue& epilogue, const Shape& shape);

}  // namespace kiln::dispatch
