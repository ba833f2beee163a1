#pragma once
#include <cstdint>
#include <vector>

#include "kiln/kernel/launch.hpp"
#include "kiln/runtime/runtime.hpp"

namespace kiln {

/// How a matrix product is divided: a workgroup's outputs, its steps along k, a thread's outputs.
struct MatmulTile {
  std::uint32_t m = 64;
  std::uint32_t n = 64;
  std::uint32_t k = 8;
  std::uint32_t thread_m = 8;
  std::uint32_t thread_n = 4;
  std::uint32_t k_split =
      1;  ///< teams of threads that share the outputs and divide k among themselves
  std::uint32_t buffers = 2;  ///< stages in workgroup memory

  [[nodiscard]] std::uint32_t threads() const { return m / thread_m * (n / thread_n) * k_split; }
  /// Workgroup memory, in bytes.
  [[nodiscard]] std::uint32_t bytes() const;
  [[nodiscard]] bool fits(const Limits& limits) const {
    return threads() <= limits.workgroup_invocations && threads() <= limits.workgroup_size[0] &&
           bytes() <= limits.workgroup_bytes;
  }
};

/// The best of the measured tiles for these sizes on a GPU. A software adapter takes
/// `lanes_matmul`.
MatmulTile choose_tile(const Limits& limits, std::int64_t batches, std::int64_t m, std::int64_t n,
                       std::int64_t k);

/// How often a product loads each element of its operands, if a workgroup that loads everything
/// once makes rows x cols outputs.
std::vector<Repeated> times_loaded(const Operand& lhs, const Operand& rhs, const Operand& out,
                                   std::int64_t rows, std::int64_t cols);

}  // namespace kiln
