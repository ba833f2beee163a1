// The process ends while other threads compute. `kiln_process_end TIMES` starts itself so often for
// each way to end; `kiln_process_end WAY MILLISECONDS` ends in that way after so long.
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>

#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "kiln/kiln.hpp"

extern char** environ;

namespace {

using namespace kiln;

constexpr int clean = 7;  // what no fault and no missing library ends with
constexpr std::array<std::string_view, 3> ways = {"return", "exit", "thread"};

std::atomic<int> ready = 0;

void multiply() {
  AnyTensor x = full({256, 256}, 0.5);
  const AnyTensor scale = full({256, 256}, 1.0 / 128);
  while (true) {
    x = matmul(x, scale);
    (void)x.read<float>();
    ++ready;
  }
}

void chain() {
  AnyTensor x = full({512, 512}, 0.5);
  while (true) {
    for (int i = 0; i < 8; ++i) x = tanh(x * 2 + 1);
    (void)sum(x).item<float>();
    ++ready;
  }
}

/// Tensors that end with the statics, one of them with work that nobody asked for.
std::vector<AnyTensor>& kept() {
  static std::vector<AnyTensor> tensors;
  return tensors;
}

int end(std::string_view way, std::chrono::milliseconds after) {
  kept().push_back(full({100}, 1.0F));
  kept().push_back(exp(kept().front()));
  std::thread(multiply).detach();
  std::thread(chain).detach();
  while (ready < 4) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(after);
  if (way == "exit") std::exit(clean);
  if (way == "thread") std::thread([] { std::exit(clean); }).join();
  return clean;
}

int number(std::string_view text) {
  int value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

int run_self(std::string program, std::string way, std::string after) {
  std::array<char*, 4> arguments = {program.data(), way.data(), after.data(), nullptr};
  pid_t child = 0;
  if (posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments.data(), environ) != 0)
    return -1;
  int status = 0;
  return waitpid(child, &status, 0) == child ? status : -1;
}

int run_all(const std::string& program, int times) {
  int faults = 0;
  for (int i = 0; i < times; ++i) {
    for (const std::string_view way : ways) {
      const int status = run_self(program, std::string(way), std::to_string(i % 13));
      if (WIFEXITED(status) && WEXITSTATUS(status) == clean) continue;
      ++faults;
      fmt::print(stderr, "{} after {} ms: {} {}\n", way, i % 13,
                 WIFEXITED(status) ? "exit code" : "signal",
                 WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    }
  }
  fmt::print("{} of {} ends were not clean\n", faults, times * static_cast<int>(ways.size()));
  return faults == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::span arguments(argv, static_cast<std::size_t>(argc));
  if (argc == 3) return end(arguments[1], std::chrono::milliseconds(number(arguments[2])));
  if (argc == 2 && number(arguments[1]) > 0) return run_all(arguments[0], number(arguments[1]));
  fmt::print(stderr, "usage: kiln_process_end TIMES\n");
  return 2;
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
