#pragma once
#include <concepts>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kiln/kernel/kernel_id.hpp"
#include "kiln/kernel/source_template.hpp"

namespace kiln {

/// A kernel's text, its language and what is filled into it. A value; `define` and the others
/// return changed copies.
///
///     KernelSource::wgsl(matmul_wgsl).define("tile", "64")
class KernelSource {
 public:
  /// An embedded file.
  static KernelSource wgsl(const SourceText& source);
  /// Text made at run time; `name` is what errors call it.
  static KernelSource wgsl(std::string text, std::string name = "kernel.wgsl");
  /// A file read now. Throws KernelError with the path if it cannot be read.
  static KernelSource wgsl_file(const std::string& path);

  /// Sets the placeholder `{{ name }}`. Throws KernelError if it was set before.
  [[nodiscard]] KernelSource define(std::string name, std::string value) const;
  [[nodiscard]] KernelSource define(std::string name, std::int64_t value) const;
  /// Not for numbers with a fraction: how many digits of it to spell is the caller's to say.
  template <std::floating_point T>
  KernelSource define(std::string name, T value) const = delete;
  /// Sets a WGSL `override`: a constant that only tunes. Throws KernelError if it was set before.
  [[nodiscard]] KernelSource constant(std::string name, double value) const;
  /// The entry point; "main" unless set.
  [[nodiscard]] KernelSource entry(std::string name) const;

  [[nodiscard]] Language language() const { return Language::wgsl; }
  [[nodiscard]] SourceText text() const { return {name_, text_}; }
  [[nodiscard]] const SourceTemplate::Variables& variables() const { return variables_; }
  [[nodiscard]] const std::vector<std::pair<std::string, double>>& constants() const {
    return constants_;
  }
  [[nodiscard]] const std::string& entry_point() const { return entry_; }

 private:
  KernelSource(std::string text, std::string name)
      : text_(std::move(text)), name_(std::move(name)) {}

  std::string text_;
  std::string name_;
  std::string entry_ = "main";
  SourceTemplate::Variables variables_;
  std::vector<std::pair<std::string, double>> constants_;
};

}  // namespace kiln
