#pragma once
/// For tests of what becomes of operations on a queue: which launches, and the same values.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kiln/fusion/inspect.hpp"
#include "kiln/kiln.hpp"
#include "kiln/ops/test_support.hpp"

namespace kiln::queued {

using In = const std::vector<AnyTensor>&;

inline Device lazy() { return test::device().lazy(); }

inline AnyTensor input(const Shape& shape, int seed = 0, DType dtype = DType::f32) {
  return test::make_wave(shape, seed, dtype, lazy());
}

/// What it takes to read the result of `f`, nothing else being queued.
template <class F>
DrainReport drained(F f) {
  lazy().flush();
  const AnyTensor out = f();
  DrainReport report = inspect(lazy());
  (void)test::values(out);
  return report;
}
template <class F>
DrainReport drained(F f, In in) {
  return drained([&] { return f(in); });
}

/// The same values queued and at once. Compilers of fused text may join a product and a sum, whose
/// rounding then differs.
template <class F>
void expect_same_as_eager(F f, std::vector<AnyTensor> in, const std::string& what = {},
                          double tolerance = 2e-6) {
  const std::vector<float> fused = test::values(f(in));
  for (AnyTensor& t : in) t = t.to(test::device().eager());
  test::expect_near(fused, test::doubles(test::values(f(in))), tolerance, what);
}

}  // namespace kiln::queued
