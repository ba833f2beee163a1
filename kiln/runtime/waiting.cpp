#include "kiln/runtime/waiting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <thread>

#include "kiln/support/error.hpp"

namespace kiln {

using std::chrono::microseconds;
using std::chrono::milliseconds;

milliseconds patience_by_environment() {
  const char* text = std::getenv("KILN_DEVICE_TIMEOUT");  // NOLINT(concurrency-mt-unsafe): read
  if (text == nullptr || *text == '\0') return milliseconds(120'000);
  char* end = nullptr;
  const double seconds = std::strtod(text, &end);
  constexpr std::chrono::duration<double> longest = longest_patience;
  if (*end != '\0' || !(seconds > 0) || seconds > longest.count()) {
    throw DeviceError(
        fmt::format("KILN_DEVICE_TIMEOUT is \"{}\"; it must be a number of seconds above 0", text));
  }
  return milliseconds(static_cast<std::int64_t>(std::ceil(seconds * 1000)));
}

void Pause::operator()() const {
  const auto waited = std::chrono::duration_cast<microseconds>(this->waited());
  if (waited < microseconds(100)) return std::this_thread::yield();
  std::this_thread::sleep_for(
      std::clamp(waited / part_, microseconds(10), microseconds(milliseconds(1))));
}

}  // namespace kiln
