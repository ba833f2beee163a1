// Kernels of the host that are wrong: check_op must find each, and say where.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "kiln/check/check.hpp"
#include "kiln/ops/elementwise/elementwise.hpp"
#include "kiln/runtime/cpu/cpu.hpp"

namespace kiln::broken {
namespace {

using testing::HasSubstr;

enum class Fault : std::uint8_t {
  none,
  lost_nan,
  last_row_unwritten,
  strides_ignored,
  written_outside,
  commits_too_early,
  input_changed
};

/// relu(x * 2), row by row.
struct Doubled {
  static constexpr std::string_view name = "doubled";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Default<Autodiff>, Cube, Fusion>;
  Fault fault = Fault::none;

  static TensorSpec output(const TensorSpec& x) { return x; }
  static AnyTensor reference(const AnyTensor& x) { return relu(x * 2.0); }
  void cpu_kernel(const cpu::Input& x, const cpu::Output& out) const {
    cpu::with_float(out.dtype(), [&](auto element) { run<decltype(element)>(x, out); });
  }

  template <class T>
  void run(const cpu::Input& x, const cpu::Output& out) const {
    const auto in = x.strided<T>();
    const std::span<T> to = out.dense<T>();
    const std::int64_t n = out.dim(1);
    const std::int64_t rows = out.dim(0) - (fault == Fault::last_row_unwritten ? 1 : 0);
    if (fault == Fault::commits_too_early) out.commit(0, out.dim(0) * n);
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t j = 0; j < n; ++j) {
        const T& from = fault == Fault::strides_ignored ? in.data()[row * n + j] : in(row, j);
        const float doubled = static_cast<float>(from) * 2;
        const bool kept = fault == Fault::lost_nan ? doubled > 0 : !(doubled <= 0);
        to[static_cast<std::size_t>(row * n + j)] = T(kept ? doubled : 0);
      }
    }
    if (fault == Fault::written_outside) to.data()[out.dim(0) * n] = T(1);
    if (fault == Fault::input_changed) *const_cast<T*>(in.data()) = T(9);  // NOLINT: the fault
  }
};
static_assert(Extension<Doubled>);

CheckReport checked(Fault fault) {
  return check_op(
      Doubled{fault},
      {.devices = {cpu::device()}, .cases = {{"flat", {{3, 5}}}}, .difference_samples = 2});
}

/// The rows that fail, as "name: detail".
std::string faults(Fault fault) {
  std::string text;
  for (const CheckRow& row : checked(fault).rows) {
    if (!row.pass) text += row.name + ": " + row.detail + "\n";
  }
  return text;
}

TEST(BrokenCpuKernels, TheRightOnePassesInBothDTypes) {
  const CheckReport report = checked(Fault::none);
  EXPECT_TRUE(report.passed()) << report.table();
  const auto about_f16 = [](const CheckRow& row) { return row.name.ends_with("f16"); };
  EXPECT_TRUE(std::ranges::any_of(report.rows, about_f16));
}

TEST(BrokenCpuKernels, ALostNaNIsFound) { EXPECT_THAT(faults(Fault::lost_nan), HasSubstr("NaN")); }

TEST(BrokenCpuKernels, ARowThatIsNeverWrittenIsFound) {
  EXPECT_THAT(faults(Fault::last_row_unwritten), HasSubstr("never written"));
}

TEST(BrokenCpuKernels, IgnoredStridesAreFound) {
  EXPECT_THAT(faults(Fault::strides_ignored), HasSubstr("forward from strided inputs, f32"));
}

TEST(BrokenCpuKernels, AWriteBehindTheOutputIsFound) {
  EXPECT_THAT(faults(Fault::written_outside), HasSubstr("forward memory, f32"));
}

TEST(BrokenCpuKernels, WhatIsCommittedBeforeItIsThereIsFoundAmongNeighbours) {
  EXPECT_THAT(faults(Fault::commits_too_early), HasSubstr("lazy vs eager"));
}

TEST(BrokenCpuKernels, AChangedInputIsFound) {
  EXPECT_THAT(faults(Fault::input_changed), HasSubstr("was changed"));
}

}  // namespace
}  // namespace kiln::broken
