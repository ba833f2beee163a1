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
/// `out` overlaps no operand and is not read: what it held, NaN included, does not matter. k = 0
/// gives zeros; m = 0 or n = 0 does nothing. NaN and infinities travel as IEEE 754 says.
///
/// Runs on the oneTBB threads of the calling arena, from about a million operations on; smaller
/// ones on the calling thread alone. Any number of threads may call it at once, TBB tasks too;
/// while one waits here it takes up no other task. A batch is a loop over it: many small matrices
/// in a tbb::parallel_for, few large ones in a plain loop. The library compiles its inner loops in
/// the first calls, which take some 30 ms more.
///
/// Equal shapes, strides and arena sizes give equal bits. Throws ShapeError for sizes below 0 and
/// strides that are none of the above, and KernelError for what the library reports.
///
///     gemm(m, n, k, {a, k, 1}, {b, 1, k}, c, n);  // c[m, n] = a[m, k] * b[n, k]^T
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, const GemmOperand& a,
          const GemmOperand& b, float* out, std::int64_t out_pitch);

}  // namespace kiln::cpu
