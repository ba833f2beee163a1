#include "kiln/kernel/kernel_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <ios>
#include <iterator>

#include "kiln/support/error.hpp"

namespace kiln {

KernelSource KernelSource::wgsl(const SourceText& source) {
  return {std::string(source.text), std::string(source.name)};
}

KernelSource KernelSource::wgsl(std::string text, std::string name) {
  return {std::move(text), std::move(name)};
}

KernelSource KernelSource::wgsl_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  try {
    if (file) text.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  } catch (const std::ios_base::failure&) {  // a folder can be opened, but not read
    file.setstate(std::ios::badbit);
  }
  if (!file) throw KernelError(fmt::format("kernel source: cannot read {}", path));
  return {std::move(text), path.substr(path.find_last_of('/') + 1)};
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
