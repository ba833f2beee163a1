// Loads libraries with operations, uses and unloads them, again and again. They have the same
// names and often the same addresses, and compute different things.
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <span>

#include "kiln/kiln.hpp"

namespace {

using namespace kiln;

double run(const char* file) {
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw Error(dlerror());
  auto* const function =
      reinterpret_cast<double (*)()>(dlsym(library, "run_plugin"));  // NOLINT: as POSIX says
  if (function == nullptr) throw Error(dlerror());
  const double result = function();
  if (dlclose(library) != 0) throw Error(dlerror());
  if (dlopen(file, RTLD_NOW | RTLD_NOLOAD) != nullptr) throw Error("the library stays loaded");
  return result;
}

/// What has nothing to do with the libraries goes on.
double other_work() {
  AnyTensor x = full({100}, 0.5);
  for (int i = 0; i < 5; ++i) x = x * 2 - 0.5;
  return sum(x).item();
}

int faults = 0;
void expect(const char* what, double got, double right) {
  if (got == right) return;
  ++faults;
  fmt::print(stderr, "{}: {}, not {}\n", what, got, right);
}

}  // namespace

int main(int argc, char** argv) try {
  const std::span plugins(argv + 1, static_cast<std::size_t>(argc - 1));
  const Device device = default_device();  // stays open, with all that it keeps
  for (int round = 0; round < 3; ++round) {
    double factor = 2;  // of the first one; each has one more than that before it
    for (const char* file : plugins) {
      expect(file, run(file), 3 * factor + 10 * factor + 9 + 2 * factor);
      expect("other work", other_work(), 50);
      ++factor;
    }
  }
  fmt::print("{} libraries, {} faults\n", plugins.size(), faults);
  return faults == 0 && !plugins.empty() ? 0 : 1;
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
