#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "kiln/dispatch/host/result_store.hpp"
#include "kiln/ops/matmul/matmul.hpp"
#include "kiln/runtime/cpu/gemm.hpp"
#include "kiln/runtime/cpu/parallel.hpp"
#include "kiln/scalar/host/tile_kernels.hpp"

namespace kiln {
namespace {

/// The matrices of one operand in single precision.
class Matrices {
 public:
  explicit Matrices(const cpu::Input& x) : view_(nullptr, x.raw().layout) {
    const Layout& layout = x.raw().layout;
    const bool rows = layout.stride(-1) == 1 && layout.stride(-2) >= x.dim(-1);
    const bool columns = layout.stride(-2) == 1 && layout.stride(-1) >= x.dim(-2);
    if (x.dtype() == DType::f16) {
      const auto half = x.dense<float16>();
      copy_.assign(half.begin(), half.end());
      view_ = {copy_.data(), Layout::dense(x.shape())};
    } else if (rows || columns) {
      view_ = x.strided<float>();
    } else {
      view_ = {x.dense<float>().data(), Layout::dense(x.shape())};
    }
  }

  [[nodiscard]] cpu::GemmOperand at(std::int64_t batch, const Shape& out) const {
    const auto matrix = view_.matrix(batch, out);
    return {matrix.data(), matrix.stride(0), matrix.stride(1)};
  }

 private:
  std::vector<float> copy_;
  cpu::Strided<const float> view_;
};

/// Applies the epilogue to the whole result, in place.
std::optional<dispatch::FusedEpilogue> fused_of(const Epilogue& epilogue,
                                                std::span<const cpu::Input> inputs, DType out) {
  if (epilogue.body == nullptr) return std::nullopt;
  dispatch::FusedEpilogue fused{epilogue.body, {}, {}, {out}};
  for (const cpu::Input& input : inputs) fused.inputs.push_back(input.raw());
  return fused;
}

struct Sizes {
  std::int64_t m, n, k;
};

/// The sum of an element's products. Those with a zero of the gradient are 0. It ends at the first
/// NaN, since the sum stays NaN.
float summed_again(const cpu::GemmOperand& a, const cpu::GemmOperand& b, std::int64_t k,
                   GradientIn gradient) {
  float sum = 0;
  for (std::int64_t i = 0; i < k && !std::isnan(sum); ++i) {
    const float x = a.data[i * a.col_stride];
    const float y = b.data[i * b.row_stride];
    sum += (gradient == GradientIn::lhs ? x : y) == 0 ? 0 : x * y;
  }
  return sum;
}

/// Makes zeros of the gradient strong in a finished product. Only sums that are NaN can change.
void sum_nans_again(const Sizes& sizes, const cpu::GemmOperand& a, const cpu::GemmOperand& b,
                    float* out, GradientIn gradient) {
  const std::int64_t grain = std::max<std::int64_t>((1 << 16) / sizes.n, 1);
  cpu::parallel_for(sizes.m, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      float* sums = out + row * sizes.n;
      // A NaN counts as the largest.
      if (!std::isnan(tile_kernels().max_f32(sums, static_cast<std::size_t>(sizes.n)))) continue;
      for (std::int64_t col = 0; col < sizes.n; ++col) {
        if (!std::isnan(sums[col])) continue;
        const cpu::GemmOperand x{a.data + row * a.row_stride, a.row_stride, a.col_stride};
        const cpu::GemmOperand y{b.data + col * b.col_stride, b.row_stride, b.col_stride};
        sums[col] = summed_again(x, y, sizes.k, gradient);
      }
    }
  });
}

}  // namespace

void cpu::matmul(const Input& lhs, const Input& rhs, const Output& out, const Epilogue& epilogue,
                 std::span<const Input> inputs, GradientIn gradient) {
  constexpr std::string_view name = "matmul";
  const Matrices a(lhs);
  const Matrices b(rhs);
  const std::int64_t size = out.dim(-2) * out.dim(-1);
  const RawTensor& result = out.raw();
  CpuRuntime& runtime = *host(*result.runtime);
  const std::byte* values = runtime.data_of(name, result.buffer);
  const auto fused = fused_of(epilogue, inputs, out.dtype());
  const dispatch::host::ResultStore store(runtime, name, fused ? &*fused : nullptr, result.spec(),
                                          {&result, 1});
  const bool half = out.dtype() == DType::f16;
  std::vector<float> wide(half ? static_cast<std::size_t>(size) : 0);
  for (std::int64_t batch = 0; batch < out.batch(); ++batch) {
    const std::int64_t first = batch * size;
    float* to = half ? wide.data() : out.dense<float>().data() + first;
    const Sizes sizes{out.dim(-2), out.dim(-1), lhs.dim(-1)};
    const GemmOperand left = a.at(batch, out.shape());
    const GemmOperand right = b.at(batch, out.shape());
    gemm(sizes.m, sizes.n, sizes.k, left, right, to, sizes.n);
    if (gradient != GradientIn::neither && size > 0)
      sum_nans_again(sizes, left, right, to, gradient);
    if (half) {
      const auto stored =
          out.dense<float16>().subspan(static_cast<std::size_t>(first), wide.size());
      std::ranges::transform(wide, stored.begin(), [](float x) { return float16(x); });
    }
    const std::size_t bytes = dispatch::bytes_of({Shape{first}, out.dtype()});
    store.apply_all(first, size, values + bytes);
    out.commit(first, size);
  }
}

}  // namespace kiln
