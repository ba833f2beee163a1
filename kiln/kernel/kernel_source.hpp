#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "kiln/kernel/kernel_id.hpp"
#include "kiln/kernel/source_template.hpp"
#include "kiln/support/argument.hpp"

namespace kiln {

/// A kernel's text or words, its language and what is filled into it. A value; `define` and the
/// others return changed copies.
///
///     const KernelSource source = KernelSource::wgsl("const tile = {{ tile }};");
///     const KernelSource tiled = source.define("tile", 64).constant("unroll", 4);
class KernelSource {
 public:
  /// Text in WGSL: an embedded file.
  ///
  ///     const SourceText scale_wgsl = {"scale.wgsl", "const by = {{ factor }};"};
  ///     KernelSource::wgsl(scale_wgsl).text().name;   // "scale.wgsl"
  static KernelSource wgsl(const SourceText& source);
  /// Text in WGSL that is made at run time; `name` is what errors call it.
  ///
  ///     KernelSource::wgsl("const by = 2;", "scale.wgsl").text().text;   // "const by = 2;"
  static KernelSource wgsl(std::string text, std::string name = "kernel.wgsl");
  /// A file with text in WGSL, read now. Throws KernelError with the path if it cannot be read, is
  /// no regular file, or has more than `most_bytes`.
  ///
  ///     KernelSource::wgsl_file("no_such_file.wgsl");   // throws KernelError
  static KernelSource wgsl_file(const std::string& path);

  static constexpr std::size_t most_bytes = std::size_t{4} << 20;

  /// A compiled module, for devices that take SPIR-V. It is no template, and nothing is generated
  /// into it. In a webgpu::Launch it finds everything at fixed places, here as GLSL writes them:
  ///
  /// - set = 0, from binding = 0 on: storage buffers. First come the inputs in the operation's
  ///   order, which the module declares `readonly`, then the outputs, then the scratch.
  /// - set = 1, binding = 0: a uniform block of the launch's params in their order, each 32 bits
  ///   wide: a size as uint, any other number as float. There is no block without params.
  ///
  /// Operands are dense. The workgroup's size is the module's own, and the grid is what the launch
  /// says, never folded. The module must be valid, as spirv-val sees it, and made for Vulkan 1.0:
  /// garbage and parts of a module are refused, but wgpu-native ends the process for some others.
  ///
  ///     const std::vector<std::uint32_t> words = {0x07230203, 0x00010000};
  ///     KernelSource::spirv(words, "scale.spv").language() == Language::spirv;   // [true]
  static KernelSource spirv(const SourceWords& source);
  static KernelSource spirv(std::vector<std::uint32_t> words, std::string name = "kernel.spv");

  /// Sets the placeholder `{{ name }}` to a text or an integer. Throws KernelError if it was set
  /// before, and for SPIR-V.
  ///
  ///     const KernelSource source = KernelSource::wgsl("const by: {{ type }} = {{ by }};");
  ///     const KernelSource filled = source.define("type", "f32").define("by", 2);
  ///     filled.define("by", 3);   // throws KernelError
  [[nodiscard]] KernelSource define(std::string name, std::string value) const;
  [[nodiscard]] KernelSource define(std::string name, std::int64_t value) const;
  /// Not for numbers with a fraction: how many digits of it to spell is the caller's to say. Nor
  /// for a bool or a character, of which a number is no spelling.
  template <class T>
    requires(std::is_arithmetic_v<T> && !WholeType<T>)
  KernelSource define(std::string name, T value) const = delete;
  /// Sets a WGSL `override`, or by its number a specialisation constant of SPIR-V: a constant that
  /// only tunes. Throws KernelError if it was set before.
  ///
  ///     const KernelSource source = KernelSource::wgsl("override unroll = 1;");
  ///     source.constant("unroll", 4).constants().size();   // [1]
  [[nodiscard]] KernelSource constant(std::string name, double value) const;
  /// Sets the entry point. Without it the entry point is "main".
  ///
  ///     const std::string text = "@compute @workgroup_size(1) fn rows() {}";
  ///     KernelSource::wgsl(text).entry("rows").entry_point();   // "rows"
  [[nodiscard]] KernelSource entry(std::string name) const;

  /// What was given: the language, text and words, what is filled in, and the entry point.
  ///
  ///     const KernelSource source = KernelSource::wgsl("const by = {{ by }};").define("by", 2);
  ///     source.variables().at("by");   // "2"
  [[nodiscard]] Language language() const { return language_; }
  /// Empty but for its name if the kernel is SPIR-V.
  [[nodiscard]] SourceText text() const { return {name_, text_}; }
  /// Empty if the kernel is no SPIR-V.
  [[nodiscard]] const std::vector<std::uint32_t>& words() const { return words_; }
  [[nodiscard]] const SourceTemplate::Variables& variables() const { return variables_; }
  [[nodiscard]] const std::vector<std::pair<std::string, double>>& constants() const {
    return constants_;
  }
  [[nodiscard]] const std::string& entry_point() const { return entry_; }

 private:
  KernelSource(std::string text, std::string name)
      : text_(std::move(text)), name_(std::move(name)) {}
  KernelSource(std::vector<std::uint32_t> words, std::string name)
      : language_(Language::spirv), words_(std::move(words)), name_(std::move(name)) {}

  Language language_ = Language::wgsl;
  std::string text_;
  std::vector<std::uint32_t> words_;
  std::string name_;
  std::string entry_ = "main";
  SourceTemplate::Variables variables_;
  std::vector<std::pair<std::string, double>> constants_;
};

}  // namespace kiln
