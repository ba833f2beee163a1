#include "expected.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace example {

using namespace kiln;

namespace {

/// Products the host may make for one tensor.
constexpr std::int64_t budget = std::int64_t{1} << 24;

std::vector<float> numbers(const AnyTensor& t) {
  if (t.dtype() == DType::f32) return t.to_vector();
  const std::vector<float16> half = t.to_vector<float16>();
  return {half.begin(), half.end()};
}

/// A sum as it should be, and how large its parts are: what an error is measured by.
struct Exact {
  double value = 0;
  double terms = 0;    ///< sum of the products' magnitudes, which f32 adds up
  double rounded = 0;  ///< sum of the magnitudes that the operations may round to the dtype

  void add_product(double a, double b) {
    value += a * b;
    terms += std::abs(a * b);
  }
  /// What was added so far is rounded once, and so is the result.
  void round() { rounded += std::abs(value); }
};

/// Elements of [0, total): one at a random place in each of `samples` equal parts. Equal steps
/// would see a few columns only.
std::int64_t sample(std::int64_t i, std::int64_t samples, std::int64_t total) {
  const std::int64_t part = total / samples;
  const auto hash = static_cast<std::uint64_t>(i + 1) * 0x9e3779b97f4a7c15U >> 33;
  return std::min(i * part + static_cast<std::int64_t>(hash % static_cast<std::uint64_t>(part)),
                  total - 1);
}

/// `exact(i)` is what element i should be, a sum of `length` products.
template <class F>
std::string compare(std::string_view what, const AnyTensor& tensor, std::int64_t length, F exact) {
  const std::vector<float> got = numbers(tensor);
  const auto total = static_cast<std::int64_t>(got.size());
  if (total == 0) return {};
  if (!std::ranges::all_of(got, [](float x) { return std::isfinite(x); })) {
    return fmt::format("{} has elements that are not finite", what);
  }
  const double unit = tensor.dtype() == DType::f16 ? 0x1p-10 : 0x1p-22;
  const std::int64_t samples =
      std::clamp<std::int64_t>(budget / std::max<std::int64_t>(length, 1), 1, total);
  for (std::int64_t s = 0; s < samples; ++s) {
    const std::int64_t i = samples == total ? s : sample(s, samples, total);
    const Exact want = exact(i);
    const double error =
        std::abs(static_cast<double>(got[static_cast<std::size_t>(i)]) - want.value);
    if (error > 0x1p-21 * want.terms + unit * want.rounded + 1e-7) {
      return fmt::format("{}: element {} is {}, not {}", what, i, got[static_cast<std::size_t>(i)],
                         want.value);
    }
  }
  return {};
}

/// The operands on the host, and the sums over them.
class Host {
 public:
  Host(const Problem& problem, const AnyTensor& out, bool fused)
      : s_(problem.sizes),
        fused_(fused),
        lhs_(numbers(problem.lhs)),
        rhs_(numbers(problem.rhs)),
        bias_(numbers(problem.bias)),
        arriving_(numbers(problem.seed)),
        out_(numbers(out)) {}

  [[nodiscard]] Exact out(std::int64_t i) const {
    const std::int64_t batch = i / (s_.m * s_.n);
    const std::int64_t row = i / s_.n % s_.m;
    Exact sum;
    for (std::int64_t k = 0; k < s_.k; ++k)
      sum.add_product(lhs(batch, row, k), rhs(batch, k, i % s_.n));
    sum.round();
    if (!fused_) return sum;
    const double bias = bias_[static_cast<std::size_t>(i)];
    sum.value += bias;
    sum.terms += std::abs(bias);
    sum.round();
    sum.value = std::max(sum.value, 0.0);
    return sum;
  }
  [[nodiscard]] Exact grad_lhs(std::int64_t i) const {
    const std::int64_t first = i / (s_.m * s_.k);
    const std::int64_t row = i / s_.k % s_.m;
    Exact total;
    for (std::int64_t batch = first; batch < (s_.broadcast_lhs ? s_.b : first + 1); ++batch) {
      Exact sum;
      for (std::int64_t n = 0; n < s_.n; ++n)
        sum.add_product(grad(batch, row, n), rhs(batch, i % s_.k, n));
      total.value += sum.value;
      total.terms += sum.terms;
      total.rounded += std::abs(sum.value);
    }
    return total;
  }
  [[nodiscard]] Exact grad_rhs(std::int64_t i) const {
    const std::int64_t batch = i / (s_.k * s_.n);
    const std::int64_t k = i / s_.n % s_.k;
    Exact sum;
    for (std::int64_t m = 0; m < s_.m; ++m)
      sum.add_product(lhs(batch, m, k), grad(batch, m, i % s_.n));
    sum.round();
    return sum;
  }
  [[nodiscard]] Exact grad_bias(std::int64_t i) const {
    const auto at = static_cast<std::size_t>(i);
    return {!fused_ || out_[at] > 0 ? arriving_[at] : 0.0};
  }

 private:
  [[nodiscard]] double lhs(std::int64_t batch, std::int64_t m, std::int64_t k) const {
    return lhs_[static_cast<std::size_t>(((s_.broadcast_lhs ? 0 : batch) * s_.m + m) * s_.k + k)];
  }
  [[nodiscard]] double rhs(std::int64_t batch, std::int64_t k, std::int64_t n) const {
    return rhs_[static_cast<std::size_t>((batch * s_.k + k) * s_.n + n)];
  }
  /// The gradient past the ReLU. The result that was read decides: where it is about 0, rounding
  /// does.
  [[nodiscard]] double grad(std::int64_t batch, std::int64_t m, std::int64_t n) const {
    return grad_bias((batch * s_.m + m) * s_.n + n).value;
  }

  Sizes s_;
  bool fused_;
  std::vector<float> lhs_;
  std::vector<float> rhs_;
  std::vector<float> bias_;
  std::vector<float> arriving_;
  std::vector<float> out_;
};

}  // namespace

std::string fault_in(const Outcome& outcome, const Candidate& candidate, const Problem& problem) {
  const Sizes& s = problem.sizes;
  const Host host(problem, outcome.out, candidate.fused);
  std::string fault = compare("out", outcome.out, s.k, [&](std::int64_t i) { return host.out(i); });
  if (!outcome.gradients || !fault.empty()) return fault;
  const Gradients& grads = *outcome.gradients;
  fault = compare("grad lhs", grads.of(problem.lhs), s.n * (s.broadcast_lhs ? s.b : 1),
                  [&](std::int64_t i) { return host.grad_lhs(i); });
  if (fault.empty()) {
    fault = compare("grad rhs", grads.of(problem.rhs), s.m,
                    [&](std::int64_t i) { return host.grad_rhs(i); });
  }
  if (fault.empty() && candidate.fused) {
    fault = compare("grad bias", grads.of(problem.bias), 1,
                    [&](std::int64_t i) { return host.grad_bias(i); });
  }
  return fault;
}

}  // namespace example
