#include "kiln/kernel/kernel_source.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>

#include "kiln/support/error.hpp"

namespace kiln {
namespace {

/// An open file, closed when this ends.
struct OpenFile {
  int number;
  explicit OpenFile(const std::string& path)
      // Non-blocking: to open a pipe would else wait until somebody writes into it.
      : number(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (number >= 0) ::close(number);
  }
};

std::string read_file(const std::string& path) {
  const auto refuse = [&](const std::string& why) {
    throw KernelError(fmt::format("kernel source: cannot read {}{}", path, why));
  };
  const OpenFile file(path);
  if (file.number < 0) refuse("");
  struct stat status{};
  if (::fstat(file.number, &status) != 0) refuse("");
  if (!S_ISREG(status.st_mode)) refuse(": it is no regular file");
  std::string text;
  std::array<char, 16384> part{};
  while (true) {
    const ssize_t got = ::read(file.number, part.data(), part.size());
    if (got == 0) return text;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse("");
    text.append(part.data(), static_cast<std::size_t>(got));
    if (text.size() > KernelSource::most_bytes) {
      refuse(fmt::format(": it has more than the {} bytes that a kernel may have",
                         KernelSource::most_bytes));
    }
  }
}

}  // namespace

KernelSource KernelSource::wgsl(const SourceText& source) {
  return {std::string(source.text), std::string(source.name)};
}

KernelSource KernelSource::wgsl(std::string text, std::string name) {
  return {std::move(text), std::move(name)};
}

KernelSource KernelSource::wgsl_file(const std::string& path) {
  return {read_file(path), path.substr(path.find_last_of('/') + 1)};
}

KernelSource KernelSource::spirv(const SourceWords& source) {
  return {std::vector(source.words.begin(), source.words.end()), std::string(source.name)};
}

KernelSource KernelSource::spirv(std::vector<std::uint32_t> words, std::string name) {
  return {std::move(words), std::move(name)};
}

KernelSource KernelSource::define(std::string name, std::string value) const {
  if (language_ == Language::spirv) {
    throw KernelError(
        fmt::format("{}: variable '{}' cannot be set: SPIR-V is no template; constant() sets "
                    "specialisation constants",
                    name_, name));
  }
  KernelSource copy = *this;
  const auto [at, added] = copy.variables_.emplace(std::move(name), std::move(value));
  if (!added) throw KernelError(fmt::format("{}: variable '{}' is set twice", name_, at->first));
  return copy;
}

KernelSource KernelSource::define(std::string name, std::int64_t value) const {
  return define(std::move(name), std::to_string(value));
}

KernelSource KernelSource::constant(std::string name, double value) const {
  const auto same = [&](const auto& constant) { return constant.first == name; };
  if (std::ranges::any_of(constants_, same)) {
    throw KernelError(fmt::format("{}: constant '{}' is set twice", name_, name));
  }
  const auto digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  if (language_ == Language::spirv && (name.empty() || !std::ranges::all_of(name, digit))) {
    throw KernelError(fmt::format(
        "{}: constant '{}': SPIR-V has numbers for names; give the constant_id", name_, name));
  }
  KernelSource copy = *this;
  copy.constants_.emplace_back(std::move(name), value);
  return copy;
}

KernelSource KernelSource::entry(std::string name) const {
  KernelSource copy = *this;
  copy.entry_ = std::move(name);
  return copy;
}

}  // namespace kiln
