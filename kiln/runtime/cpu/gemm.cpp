#include "kiln/runtime/cpu/gemm.hpp"

#include <fmt/format.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <string_view>

#include "kiln/runtime/cpu/parallel.hpp"
#include "kiln/runtime/process_end.hpp"
#include "kiln/runtime/queue_run.hpp"
#include "kiln/support/error.hpp"

// Declared as in the OpenMP standard, because omp.h may be missing if OpenMP is not switched on.
extern "C" int omp_get_max_threads();
extern "C" void omp_set_num_threads(int);

namespace kiln::cpu {
namespace {

// Below this the start of a task costs more than a second thread saves.
constexpr double operations_per_slice = 512e3;
// A slice takes seconds at most, so that others see that something is done.
constexpr double most_operations_per_slice = 256e9;
// Slices end where the library's innermost blocks end.
constexpr std::int64_t row_step = 8;
constexpr std::int64_t col_step = 16;

constinit Library onednn;

/// Part of the result.
struct Block {
  std::int64_t row, col, rows, cols;
};

struct Sizes {
  std::int64_t m, n, k;
};

/// While it lives, oneDNN uses only the calling thread. Its OpenMP threads would spin beside TBB's.
class OnOneThread {
 public:
  OnOneThread() { omp_set_num_threads(1); }
  ~OnOneThread() { omp_set_num_threads(before_); }
  OnOneThread(const OnOneThread&) = delete;
  OnOneThread& operator=(const OnOneThread&) = delete;

 private:
  int before_ = omp_get_max_threads();
};

/// An operand as oneDNN takes it: rows one after the other, or with `transposed` columns.
struct Matrix {
  const float* data;
  std::int64_t row_stride, col_stride;  // for an axis of size 1 replaced by a stride that fits
  bool transposed;

  [[nodiscard]] std::int64_t pitch() const { return transposed ? col_stride : row_stride; }
  [[nodiscard]] const float* at(std::int64_t row, std::int64_t col) const {
    return data + row * row_stride + col * col_stride;
  }
};

Matrix matrix_of(std::string_view name, const GemmOperand& operand, std::int64_t rows,
                 std::int64_t cols) {
  const std::int64_t row_stride = operand.row_stride;
  const std::int64_t col_stride = operand.col_stride;
  if (col_stride == 1 || cols == 1) {
    if (rows == 1 || row_stride >= cols) {
      return {operand.data, rows == 1 ? cols : row_stride, 1, false};
    }
  }
  if (row_stride == 1 || rows == 1) {
    if (cols == 1 || col_stride >= rows) {
      return {operand.data, 1, cols == 1 ? rows : col_stride, true};
    }
  }
  throw ShapeError(fmt::format(
      "cpu gemm: operand {} of {} x {} needs one stride of 1 and the other at least as large "
      "as that axis, but has strides {} and {}",
      name, rows, cols, row_stride, col_stride));
}

constexpr std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

/// The result cut into a grid of slices of `height` x `width`; those at the edges may be smaller.
struct Slicing {
  std::int64_t height, width, rows, cols;
};

/// One slice a thread, or more where they are large, of a form that has little to read: every slice
/// reads its rows of a and columns of b.
Slicing slicing_of(const Sizes& s, std::int64_t threads) {
  const double operations =
      2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
  const auto useful = static_cast<std::int64_t>(std::min(operations / operations_per_slice, 1e6));
  const auto needed =
      static_cast<std::int64_t>(std::min(operations / most_operations_per_slice, 1e4));
  const std::int64_t count = std::max({std::int64_t{1}, std::min(threads, useful), needed});

  Slicing best{s.m, s.n, 1, 1};
  double best_cost = -1;
  for (std::int64_t cols = 1; cols <= count; ++cols) {  // whole rows rather than parts of them
    const std::int64_t rows = count / cols;
    const std::int64_t height = std::min(s.m, round_up((s.m + rows - 1) / rows, row_step));
    const std::int64_t width = std::min(s.n, round_up((s.n + cols - 1) / cols, col_step));
    // An element that is read costs about as much as 16 products.
    const double reads = static_cast<double>(height + width);
    const double cost = static_cast<double>(height) * static_cast<double>(width) + 16 * reads;
    if (best_cost < 0 || cost < best_cost) {
      best_cost = cost;
      best = {height, width, (s.m + height - 1) / height, (s.n + width - 1) / width};
    }
  }
  return best;
}

/// One slice.
void multiply(const Block& part, const Sizes& s, const Matrix& a, const Matrix& b, float* out,
              std::int64_t out_pitch) {
  float* result = out + part.row * out_pitch + part.col;
  if (s.k == 0) {
    for (std::int64_t row = 0; row < part.rows; ++row) {
      std::fill_n(result + row * out_pitch, part.cols, 0.0F);
    }
    return;
  }
  const OnOneThread scope;
  const dnnl_status_t status = dnnl_sgemm(
      a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', part.rows, part.cols, s.k, 1.0F,
      a.at(part.row, 0), a.pitch(), b.at(0, part.col), b.pitch(), 0.0F, result, out_pitch);
  if (status != dnnl_success) {
    throw KernelError(fmt::format(
        "cpu gemm: oneDNN reports {} for m = {}, n = {}, k = {} with pitches {}, {}, {}",
        static_cast<int>(status), part.rows, part.cols, s.k, a.pitch(), b.pitch(), out_pitch));
  }
}

}  // namespace

void gemm(std::int64_t m, std::int64_t n, std::int64_t k, const GemmOperand& a,
          const GemmOperand& b, float* out, std::int64_t out_pitch) {
  if (m < 0 || n < 0 || k < 0) {
    throw ShapeError(
        fmt::format("cpu gemm: sizes must not be below 0: m = {}, n = {}, k = {}", m, n, k));
  }
  if (m == 0 || n == 0) {
    return;
  }
  if (m > 1 && out_pitch < n) {
    throw ShapeError(fmt::format("cpu gemm: the pitch of a result with {} columns must not be {}",
                                 n, out_pitch));
  }
  const Sizes sizes{m, n, k};
  const std::int64_t pitch = m == 1 ? n : out_pitch;
  // If k is 0, nothing is read, and the strides may be anything.
  const Matrix left = k == 0 ? Matrix{} : matrix_of("a", a, m, k);
  const Matrix right = k == 0 ? Matrix{} : matrix_of("b", b, k, n);
  const LibrarySection section;
  const Slicing slicing = slicing_of(sizes, threads());

  parallel_for(slicing.rows * slicing.cols, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t slice = begin; slice < end; ++slice) {
      const std::int64_t row = slice / slicing.cols * slicing.height;
      const std::int64_t col = slice % slicing.cols * slicing.width;
      multiply({row, col, std::min(slicing.height, m - row), std::min(slicing.width, n - col)},
               sizes, left, right, out, pitch);
      QueueRun::count_step();  // a thread may have many slices
    }
  });
  onednn.may_have_changed();
}

}  // namespace kiln::cpu
