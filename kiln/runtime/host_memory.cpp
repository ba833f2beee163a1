#include "kiln/runtime/host_memory.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>

#include "kiln/support/error.hpp"

namespace kiln {
namespace {

constexpr std::uint64_t unlimited = UINT64_MAX;
// Small claims are checked together, because asking the system takes longer than a small
// allocation.
constexpr std::uint64_t looked_at_once = 16 << 20;
// What is left for the rest of the process and of the machine.
constexpr std::uint64_t kept_free = 128 << 20;

std::atomic<std::uint64_t> claimed = 0;
std::atomic<std::uint64_t> not_looked_at = 0;

/// The number behind `key` in a file of lines such as "MemAvailable:  1234 kB" or "inactive_file
/// 5".
std::optional<std::uint64_t> number_in(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  std::string word;
  std::uint64_t number = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    if (words >> word && word == key && words >> number) return number;
  }
  return std::nullopt;
}

/// A file's only number; nothing for "max" and where there is none.
std::optional<std::uint64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

/// What a control group has left. Files that are cached for reading count as free: the system drops
/// them before it ends a process.
std::uint64_t left_in(const std::string& limit, const std::string& usage, const std::string& stat) {
  const auto most = number_in(limit);
  const auto used = number_in(usage);
  if (!most || !used) return unlimited;
  const std::uint64_t cached =
      number_in(stat, "inactive_file").value_or(0) + number_in(stat, "active_file").value_or(0);
  const std::uint64_t kept = *used > cached ? *used - cached : 0;
  return *most > kept ? *most - kept : 0;
}

/// The least that is left in the group at `path` and in the groups around it.
std::uint64_t left_in_groups(const std::string& base, std::string path, bool second) {
  std::uint64_t left = unlimited;
  while (true) {
    const std::string folder = base + path + "/memory.";
    left = std::min(left, second ? left_in(folder + "max", folder + "current", folder + "stat")
                                 : left_in(folder + "limit_in_bytes", folder + "usage_in_bytes",
                                           folder + "stat"));
    if (path.empty()) return left;
    path.resize(std::min(path.find_last_of('/'), path.size() - 1));
  }
}

std::uint64_t left_in_all_groups(const std::string& root) {
  std::ifstream groups(root + "/proc/self/cgroup");
  std::uint64_t left = unlimited;
  for (std::string line; std::getline(groups, line);) {  // "0::/a/b", or "4:memory:/a/b"
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    while (path.ends_with('/')) path.pop_back();
    if (controllers.empty())
      left = std::min(left, left_in_groups(root + "/sys/fs/cgroup", path, true));
    if (("," + controllers + ",").find(",memory,") != std::string::npos)
      left = std::min(left, left_in_groups(root + "/sys/fs/cgroup/memory", path, false));
  }
  return left;
}

/// Anonymous memory that this process uses, not what was only promised to it.
std::uint64_t resident() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t size = 0;
  std::uint64_t all = 0;
  std::uint64_t shared = 0;
  if (!(file >> size >> all >> shared)) return 0;
  return (all - std::min(all, shared)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

std::optional<std::uint64_t> most_by_environment() {
  const char* text = std::getenv("KILN_HOST_MEMORY");  // NOLINT(concurrency-mt-unsafe): only read
  if (text == nullptr || *text == '\0') return std::nullopt;
  char* end = nullptr;
  const double number = std::strtod(text, &end);
  const std::string_view unit(end);
  const double scale = unit.empty() ? 1 : unit == "K" ? 0x1p10 : unit == "M" ? 0x1p20 : 0x1p30;
  const bool known = unit.empty() || unit == "K" || unit == "M" || unit == "G";
  if (end == text || !known || !(number >= 0) || number * scale > 0x1p62) {
    throw DeviceError(
        fmt::format("KILN_HOST_MEMORY is \"{}\"; it must be a number of bytes, or one with K, M or "
                    "G behind it",
                    text));
  }
  return static_cast<std::uint64_t>(number * scale);
}

/// Whether the machine can give all that is claimed.
bool covered() {
  const std::uint64_t all = claimed.load();
  if (const auto most = most_by_environment()) return all <= *most;
  const std::uint64_t left = host_memory_left();
  if (left == unlimited) return true;
  const std::uint64_t there = resident();
  const std::uint64_t promised = all > there ? all - there : 0;
  return left > kept_free && promised <= left - kept_free;
}

}  // namespace

std::uint64_t host_memory_left(const std::string& root) {
  std::uint64_t left = left_in_all_groups(root);
  if (const auto kilobytes = number_in(root + "/proc/meminfo", "MemAvailable:"))
    left = std::min(left, *kilobytes << 10);
  return left;
}

std::optional<HostClaim> HostClaim::take(std::uint64_t bytes) {
  HostClaim claim(bytes);
  claimed.fetch_add(bytes);
  if (not_looked_at.fetch_add(bytes) + bytes < looked_at_once) return claim;
  if (!covered()) return std::nullopt;  // the next claim asks again
  not_looked_at.store(0);
  return claim;
}

HostClaim::~HostClaim() { claimed.fetch_sub(bytes_); }

}  // namespace kiln
