#pragma once
#include <map>
#include <string>
#include <vector>

namespace kiln {

/// A function in WGSL, and the helpers that it calls.
struct WgslHelper {
  std::string text;
  std::vector<std::string> calls;
};

/// Adds circular, inverse and hyperbolic functions, and those of integers.
void add_wgsl_functions(std::map<std::string, WgslHelper>& to);

}  // namespace kiln
