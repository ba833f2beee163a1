#pragma once
/// For tests of this stage and those above: one opened device, made-up numbers, comparisons.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "kiln/dispatch/kernel/client.hpp"
#include "kiln/runtime/default_device.hpp"
#include "kiln/runtime/webgpu/test_support.hpp"

namespace kiln::test {

using wgpu::message_of;

/// What KILN_DEVICE names, else the best adapter of this machine. Kept open, so that tests share
/// what was compiled.
inline const Device& device() {
  static const Device opened =
      std::getenv("KILN_DEVICE") == nullptr ? webgpu::device() : default_device();
  return opened;
}

/// Whether tests run on the host's runtime.
inline bool on_cpu() { return device().runtime().name() == "cpu"; }

/// While it lives, the operations of a block that fails run one by one, as in programs of users.
class LenientFusion {
 public:
  LenientFusion() { ::setenv("KILN_STRICT_FUSION", "0", 1); }
  LenientFusion(const LenientFusion&) = delete;
  LenientFusion& operator=(const LenientFusion&) = delete;
  ~LenientFusion() { ::setenv("KILN_STRICT_FUSION", before_.c_str(), 1); }

 private:
  std::string before_ = [] {
    const char* text = std::getenv("KILN_STRICT_FUSION");
    return std::string(text == nullptr ? "" : text);
  }();
};

/// What was done so far, queued work included.
inline RuntimeCounters counters() {
  device().flush();
  return device().runtime().counters();
}

/// What `action` launches and compiles, up to its result if it gives one.
template <class Action>
RuntimeCounters counted(Action&& action) {
  const RuntimeCounters before = counters();
  RuntimeCounters after;
  if constexpr (std::is_void_v<decltype(action())>) {
    action();
    after = counters();
  } else {
    const auto kept = action();
    after = counters();
  }
  after.launches -= before.launches;
  after.compiled -= before.compiled;
  return after;
}

/// `count` numbers of mixed sign in (-1, 1), away from 0 and all different for counts below 1000.
inline std::vector<float> wave(std::int64_t count, int seed = 0) {
  std::vector<float> out(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const auto step = static_cast<float>((i * 389 + seed * 97 + 31) % 1009);
    out[static_cast<std::size_t>(i)] = (step / 1009 - 0.5F) * 2 + (step < 504.5F ? -0.01F : 0.01F);
  }
  return out;
}

/// Within `tolerance`, absolute below 1 and relative above. A NaN is near a NaN alone, an infinity
/// near itself alone.
inline bool is_near(double actual, double expected, double tolerance) {
  if (std::isnan(expected)) return std::isnan(actual);
  if (std::isinf(expected)) return actual == expected;
  return std::abs(actual - expected) <= tolerance * std::max(1.0, std::abs(expected));
}

/// Each number is near the expected one.
template <class Number = float>
void expect_near(const std::vector<Number>& actual, const std::vector<double>& expected,
                 double tolerance, const std::string& what = {}) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  std::size_t wrong = 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (!is_near(double{actual[i]}, expected[i], tolerance) && wrong++ == 0) first = i;
  }
  EXPECT_EQ(wrong, 0U) << what << " [" << first << "]: " << actual[first] << ", not "
                       << expected[first] << "; so many of " << actual.size() << " are wrong";
}

/// How far a result of one rounding may be off.
inline double tolerance_of(DType dtype) { return dtype == DType::f16 ? 2e-3 : 4e-6; }

}  // namespace kiln::test
