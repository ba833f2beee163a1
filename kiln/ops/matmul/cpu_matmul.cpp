#include <algorithm>
#include <vector>

#include "kiln/ops/matmul/matmul.hpp"
#include "kiln/runtime/cpu/gemm.hpp"

namespace kiln {
namespace {

/// The matrices of one operand in single precision: where each starts, and its steps.
class Matrices {
 public:
  explicit Matrices(const cpu::Input& x) : layout_(x.raw().layout) {
    const bool rows = layout_.stride(-1) == 1 && layout_.stride(-2) >= x.dim(-1);
    const bool columns = layout_.stride(-2) == 1 && layout_.stride(-1) >= x.dim(-2);
    if (x.dtype() == DType::f16) {
      const auto half = x.dense<float16>();
      copy_.assign(half.begin(), half.end());
      data_ = copy_.data();
      layout_ = Layout::dense(x.shape());
    } else if (rows || columns) {
      data_ = x.strided<float>().data();
    } else {
      data_ = x.dense<float>().data();
      layout_ = Layout::dense(x.shape());
    }
  }

  /// Matrix number `batch` of those that the operand broadcasts to.
  [[nodiscard]] cpu::GemmOperand at(std::int64_t batch, const Shape& out) const {
    std::int64_t offset = 0;
    for (int axis = -3; axis >= -out.rank(); --axis) {
      const std::int64_t index = batch % out[axis];
      batch /= out[axis];
      const bool own = axis >= -layout_.shape.rank() && layout_.shape[axis] != 1;
      offset += own ? index * layout_.stride(axis) : 0;
    }
    return {data_ + offset, layout_.stride(-2), layout_.stride(-1)};
  }

 private:
  Layout layout_;
  std::vector<float> copy_;
  const float* data_ = nullptr;
};

}  // namespace

void cpu::matmul(const Input& lhs, const Input& rhs, const Output& out) {
  const Matrices a(lhs);
  const Matrices b(rhs);
  const std::int64_t m = out.dim(-2);
  const std::int64_t n = out.dim(-1);
  const auto multiply = [&](std::int64_t batch, float* to, const GemmFinish& finish) {
    gemm(m, n, lhs.dim(-1), a.at(batch, out.shape()), b.at(batch, out.shape()), to, n, finish);
  };
  std::vector<float> wide(out.dtype() == DType::f16 ? static_cast<std::size_t>(m * n) : 0);
  for (std::int64_t batch = 0; batch < out.batch(); ++batch) {
    const std::int64_t first = batch * m * n;
    if (out.dtype() == DType::f16) {
      multiply(batch, wide.data(), {});
      const auto to = out.dense<float16>().subspan(static_cast<std::size_t>(first), wide.size());
      std::ranges::transform(wide, to.begin(), [](float x) { return float16(x); });
      out.commit(first, m * n);
    } else {
      multiply(batch, out.dense<float>().data() + first, {});
      out.commit(first, m * n);
    }
  }
}

}  // namespace kiln
