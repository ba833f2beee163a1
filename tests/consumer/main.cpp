// Somebody else's program: see tests/consumer.cmake.
#include <iostream>

#include "kiln/kiln.hpp"

int main() { std::cout << "kiln " << kiln::version << '\n'; }
