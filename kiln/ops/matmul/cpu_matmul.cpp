#include <algorithm>
#include <optional>
#include <vector>

#include "kiln/dispatch/cpu/finish.hpp"
#include "kiln/ops/matmul/matmul.hpp"
#include "kiln/runtime/cpu/gemm.hpp"

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

/// The epilogue's function over the whole result, in place.
std::optional<dispatch::Finish> finish_of(const Epilogue& epilogue,
                                          std::span<const cpu::Input> inputs, DType out) {
  if (epilogue.body == nullptr) return std::nullopt;
  dispatch::Finish finish{epilogue.body, {}, {}, {out}};
  for (const cpu::Input& input : inputs) finish.inputs.push_back(input.raw());
  return finish;
}

}  // namespace

void cpu::matmul(const Input& lhs, const Input& rhs, const Output& out, const Epilogue& epilogue,
                 std::span<const Input> inputs) {
  constexpr std::string_view name = "matmul";
  const Matrices a(lhs);
  const Matrices b(rhs);
  const std::int64_t size = out.dim(-2) * out.dim(-1);
  const RawTensor& result = out.raw();
  CpuRuntime& runtime = *host(*result.runtime);
  const std::byte* values = runtime.data_of(name, result.buffer);
  const auto finish = finish_of(epilogue, inputs, out.dtype());
  const dispatch::HostFinish end(runtime, name, finish ? &*finish : nullptr, result.spec(),
                                 {&result, 1});
  const bool half = out.dtype() == DType::f16;
  std::vector<float> wide(half ? static_cast<std::size_t>(size) : 0);
  for (std::int64_t batch = 0; batch < out.batch(); ++batch) {
    const std::int64_t first = batch * size;
    float* to = half ? wide.data() : out.dense<float>().data() + first;
    gemm(out.dim(-2), out.dim(-1), lhs.dim(-1), a.at(batch, out.shape()), b.at(batch, out.shape()),
         to, out.dim(-1));
    if (half) {
      const auto stored =
          out.dense<float16>().subspan(static_cast<std::size_t>(first), wide.size());
      std::ranges::transform(wide, stored.begin(), [](float x) { return float16(x); });
    }
    const std::size_t bytes = dispatch::bytes_of({Shape{first}, out.dtype()});
    end.apply_all(first, size, values + bytes);
    out.commit(first, size);
  }
}

}  // namespace kiln
