// Somebody else's program with a kernel in SPIR-V: see tests/consumer.cmake.
#include <iostream>

#include "double_spirv.hpp"
#include "kiln/version.hpp"

int main() {
  std::cout << "kiln " << kiln::version << ", " << double_spirv.words.size()
            << " words of SPIR-V\n";
  return double_spirv.words.empty() ? 1 : 0;
}
