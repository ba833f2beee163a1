#pragma once
/// The matrix multiplication of the cpu runtime, in single precision.
#include <cstdint>

namespace kiln::cpu {

/// One operand of a multiplication: element (i, j) is data[i * row_stride + j * col_stride]. One of
/// the strides is 1, the other at least as large as that row or column is long; the stride of an
/// axis of size 1 may be anything.
struct GemmOperand {
  const float* data = nullptr;
  std::int64_t row_stride = 0;
  std::int64_t col_stride = 0;
};

/// out[i * out_pitch + j] = sum over k of a(i, k) * b(k, j), for i < m, j < n.
///
/// `out` must not overlap an operand. It is not read, so old contents, even NaN, do not matter. k =
/// 0 gives zeros; m = 0 or n = 0 does nothing. NaN and infinities are as in IEEE 754.
///
/// From about a million operations on it uses the oneTBB threads of the calling arena, below that
/// only the calling thread. Any number of threads may call it at once, also from TBB tasks; a
/// thread that waits here takes no other task. For a batch call it in a loop: a tbb::parallel_for
/// for many small matrices, a plain loop for few large ones. The first calls take some 30 ms more,
/// because the library compiles its inner loops.
///
/// Equal shapes, strides and arena sizes give equal bits. Throws ShapeError for sizes below 0 and
/// for other strides, and KernelError if the library reports an error.
///
///     gemm(m, n, k, {a, k, 1}, {b, 1, k}, c, n);  // c[m, n] = a[m, k] * b[n, k]^T
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, const GemmOperand& a,
          const GemmOperand& b, float* out, std::int64_t out_pitch);

}  // namespace kiln::cpu
