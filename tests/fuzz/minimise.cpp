#include "fuzz/minimise.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

namespace kiln::fuzz {
namespace {

bool contains(const std::vector<int>& list, int i) {
  return std::ranges::find(list, i) != list.end();
}

/// Whether the results of a step can be given as numbers.
bool can_be_fixed(const Model& program, const Step& step) {
  if (step.count != 1 || step.op->name == "input") return false;
  const Array& array = program.at(step.first);
  return array.leaves.empty() && array.fate.sound() && !array.absent &&
         std::ranges::none_of(array.ids, [&](Id id) { return program.scalars().wild(id); });
}

Step as_input(const Model& program, const Step& step) {
  const Array& array = program.at(step.first);
  Step input{.op = &operation("input"),
             .shape = array.spec.shape,
             .dtype = array.spec.dtype,
             .device = array.device};
  for (const Id id : array.ids)
    input.numbers.push_back(rounded(program.scalars().value(id), array.spec.dtype));
  return input;
}

/// Whether this program, started anew, finds a fault.
bool fails(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "kiln_fuzz");
  std::vector<char*> argv;
  for (std::string& a : arguments) argv.push_back(a.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&quiet, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int error = posix_spawn(&child, "/proc/self/exe", &quiet, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&quiet);
  if (error != 0) return false;
  int status = 0;
  waitpid(child, &status, 0);
  return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

}  // namespace

Model part_of(const Model& program, const Part& part) {
  Model out;
  std::vector<int> renamed(program.values().size(), -1);
  for (std::size_t i = 0; i < program.steps().size(); ++i) {
    const auto number = static_cast<int>(i);
    if (!part.keep.empty() && !contains(part.keep, number)) continue;
    Step step = program.steps()[i];
    if (contains(part.fixed, number)) step = as_input(program, step);
    bool complete = true;
    for (int& in : step.in) {
      in = renamed[static_cast<std::size_t>(in)];
      complete = complete && in >= 0;
    }
    if (!complete) continue;
    const int old = program.steps()[i].first;
    out.apply(step);
    for (int k = 0; k < out.steps().back().count; ++k)
      renamed[static_cast<std::size_t>(old + k)] = out.steps().back().first + k;
  }
  return out;
}

Model varied(const Model& program, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Model out;
  for (Step step : program.steps()) {
    if (step.op->name == "input") {
      // Where numbers are indices they stay in their range.
      for (std::size_t i = step.numbers.size(); i > 1; --i)
        std::swap(step.numbers[i - 1], step.numbers[random() % i]);
    } else if (step.op->name.ends_with("scalar") && step.op->name != "pow_scalar") {
      step.numbers[0] = 1 + static_cast<double>(random() % 3);
    } else if (step.op->name.starts_with("line")) {
      step.numbers = {1 + static_cast<double>(random() % 3), static_cast<double>(random() % 3)};
    }
    out.apply(step);
  }
  return out;
}

std::vector<std::string> to_arguments(const Part& part) {
  std::vector<std::string> out;
  if (!part.keep.empty())
    out.insert(out.end(), {"--keep", fmt::format("{}", fmt::join(part.keep, ","))});
  if (!part.fixed.empty())
    out.insert(out.end(), {"--fixed", fmt::format("{}", fmt::join(part.fixed, ","))});
  return out;
}

Part minimise(const Model& program, const std::vector<std::string>& arguments, bool* alone) {
  const auto still_fails = [&](const Part& part) {
    std::vector<std::string> all = arguments;
    for (const std::string& a : to_arguments(part)) all.push_back(a);
    return fails(all);
  };
  Part best;
  for (int i = 0; i < static_cast<int>(program.steps().size()); ++i) best.keep.push_back(i);
  *alone = still_fails(best);
  if (!*alone) return best;
  const auto drop = [&](std::size_t chunk) {
    bool dropped = false;
    for (std::size_t end = best.keep.size(); end > 0 && best.keep.size() > 1;) {
      const std::size_t begin = end > chunk ? end - chunk : 0;
      Part less = best;
      less.keep.erase(less.keep.begin() + static_cast<std::ptrdiff_t>(begin),
                      less.keep.begin() + static_cast<std::ptrdiff_t>(end));
      if (!less.keep.empty() && still_fails(less)) {
        best = less;
        dropped = true;
      }
      end = std::min(begin, best.keep.size());
    }
    return dropped;
  };
  for (std::size_t chunk = (best.keep.size() + 1) / 2; chunk > 1; chunk = (chunk + 1) / 2) {
    drop(chunk);
    if (chunk == 2) break;
  }
  while (drop(1)) {
  }
  for (const int i : std::vector<int>(best.keep.rbegin(), best.keep.rend())) {
    if (!can_be_fixed(program, program.steps()[static_cast<std::size_t>(i)])) continue;
    Part fixed = best;
    fixed.fixed.push_back(i);
    if (still_fails(fixed)) best = fixed;
  }
  while (drop(1)) {
  }
  return best;
}

}  // namespace kiln::fuzz
