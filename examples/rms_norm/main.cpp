// One operation on three devices: its own kernel, a refusal, and its reference.
#include <fmt/format.h>

#include "rms_norm.hpp"

namespace {

using namespace kiln;

void show(const Device& device) {
  const AnyTensor x = tensor<float>({3, 4, 0, -12}, {2, 2}, device);
  const AnyTensor weight = ones({2}, device);
  try {
    const std::vector<float> y = example::rms_norm(x, weight, 0).to_vector();
    fmt::print("{}{}\n  {:.4f} {:.4f} {:.4f} {:.4f}\n", to_string(device),
               device.allows_fallback() ? ", with fallback(true)" : "", y[0], y[1], y[2], y[3]);
  } catch (const UnsupportedError& error) {
    fmt::print("{}\n  refused: {}\n", to_string(device), error.what());
  }
}

}  // namespace

int main() {
  try {
    show(webgpu::device());
    show(cpu::device());
    show(cpu::device().fallback(true));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
