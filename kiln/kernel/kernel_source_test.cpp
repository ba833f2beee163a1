#include "kiln/kernel/kernel_source.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "kiln/support/error.hpp"

namespace kiln {
namespace {

using Constants = std::vector<std::pair<std::string, double>>;

template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const KernelError& error) {
    return error.what();
  }
  return "no KernelError";
}

/// A file that is gone after the test.
struct TemporaryFile {
  explicit TemporaryFile(std::string_view text)
      : path(std::filesystem::path(testing::TempDir()) / "kiln_kernel_source_test.wgsl") {
    std::ofstream(path, std::ios::binary) << text;
  }
  ~TemporaryFile() { std::filesystem::remove(path); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  std::filesystem::path path;
};

TEST(KernelSource, OfAStringHasTheNameThatErrorsUse) {
  EXPECT_EQ(KernelSource::wgsl("text").text().name, "kernel.wgsl");
  const KernelSource source = KernelSource::wgsl("text", "mine.wgsl");
  EXPECT_EQ(source.text().name, "mine.wgsl");
  EXPECT_EQ(source.text().text, "text");
  EXPECT_EQ(source.language(), Language::wgsl);
}

TEST(KernelSource, OfAnEmbeddedFileHasItsName) {
  constexpr SourceText embedded{"matmul.wgsl", "fn main() {}"};
  EXPECT_EQ(KernelSource::wgsl(embedded).text().name, "matmul.wgsl");
  EXPECT_EQ(KernelSource::wgsl(embedded).text().text, "fn main() {}");
}

TEST(KernelSource, OfAFileHasItsBytesAndItsLastName) {
  const TemporaryFile file("line\r\n\n// é\n");
  const KernelSource source = KernelSource::wgsl_file(file.path.string());
  EXPECT_EQ(source.text().text, "line\r\n\n// é\n");
  EXPECT_EQ(source.text().name, "kiln_kernel_source_test.wgsl");
}

TEST(KernelSource, OfAnEmptyFileIsEmpty) {
  const TemporaryFile file("");
  EXPECT_EQ(KernelSource::wgsl_file(file.path.string()).text().text, "");
}

TEST(KernelSource, OfAFileThatCannotBeReadIsRefusedWithThePath) {
  EXPECT_EQ(error_of([] { KernelSource::wgsl_file("/nowhere/x.wgsl"); }),
            "kernel source: cannot read /nowhere/x.wgsl");
}

TEST(KernelSource, OfWhatIsNoRegularFileIsRefusedAtOnce) {
  const std::string refusal = ": it is no regular file";
  for (const std::string path : {"/tmp", "/dev/zero"})
    EXPECT_EQ(error_of([&] { KernelSource::wgsl_file(path); }),
              "kernel source: cannot read " + path + refusal);
  const auto pipe = std::filesystem::path(testing::TempDir()) / "kiln_kernel_source_test.pipe";
  std::filesystem::remove(pipe);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { KernelSource::wgsl_file(pipe.string()); }),
            "kernel source: cannot read " + pipe.string() + refusal);
  std::filesystem::remove(pipe);
}

TEST(KernelSource, OfAFileHasALimit) {
  const std::string most(KernelSource::most_bytes, ' ');
  EXPECT_EQ(KernelSource::wgsl_file(TemporaryFile(most).path.string()).text().text.size(),
            most.size());
  const TemporaryFile more(most + " ");
  EXPECT_EQ(error_of([&] { KernelSource::wgsl_file(more.path.string()); }),
            "kernel source: cannot read " + more.path.string() +
                ": it has more than the 4194304 bytes that a kernel may have");
}

TEST(KernelSource, DefineReturnsAChangedCopy) {
  const KernelSource plain = KernelSource::wgsl("{{ tile }}");
  const KernelSource tiled = plain.define("tile", "64").define("unroll", 4);
  EXPECT_TRUE(plain.variables().empty());
  EXPECT_EQ(tiled.variables(), (SourceTemplate::Variables{{"tile", "64"}, {"unroll", "4"}}));
}

TEST(KernelSource, AVariableSetTwiceIsNamed) {
  const KernelSource source = KernelSource::wgsl("", "mine.wgsl").define("tile", 64);
  EXPECT_EQ(error_of([&] { (void)source.define("tile", 64); }),
            "mine.wgsl: variable 'tile' is set twice");
  EXPECT_EQ(error_of([&] { (void)source.define("tile", "8"); }),
            "mine.wgsl: variable 'tile' is set twice");
}

template <class T>
concept Definable = requires(KernelSource source, T value) { source.define("tile", value); };

TEST(KernelSource, AFloatIsNeverCutToAWholeNumber) {
  static_assert(Definable<int>);
  static_assert(Definable<std::int64_t>);
  static_assert(Definable<std::uint32_t>);
  static_assert(Definable<const char*>);
  static_assert(!Definable<double>);
  static_assert(!Definable<float>);
}

TEST(KernelSource, ConstantsKeepTheirOrder) {
  const KernelSource source = KernelSource::wgsl("").constant("b", 2).constant("a", 0.5);
  EXPECT_EQ(source.constants(), (Constants{{"b", 2}, {"a", 0.5}}));
}

TEST(KernelSource, AConstantSetTwiceIsNamed) {
  const KernelSource source = KernelSource::wgsl("", "mine.wgsl").constant("unroll", 2);
  EXPECT_EQ(error_of([&] { (void)source.constant("unroll", 4); }),
            "mine.wgsl: constant 'unroll' is set twice");
}

TEST(KernelSource, TheEntryPointIsMainUnlessSet) {
  const KernelSource source = KernelSource::wgsl("");
  EXPECT_EQ(source.entry_point(), "main");
  EXPECT_EQ(source.entry("reduce").entry_point(), "reduce");
}

TEST(KernelSource, OfAModuleHasItsWordsAndNoText) {
  const std::vector<std::uint32_t> words{1, 2, 3};
  const KernelSource source = KernelSource::spirv(words, "mine.spv");
  EXPECT_EQ(source.language(), Language::spirv);
  EXPECT_EQ(source.words(), words);
  EXPECT_EQ(source.text().name, "mine.spv");
  EXPECT_EQ(source.text().text, "");
  EXPECT_EQ(KernelSource::spirv(words).text().name, "kernel.spv");
  const SourceWords embedded{"matmul.comp", words};
  EXPECT_EQ(KernelSource::spirv(embedded).words(), words);
  EXPECT_EQ(KernelSource::spirv(embedded).text().name, "matmul.comp");
  EXPECT_TRUE(KernelSource::wgsl("text").words().empty());
}

TEST(KernelSource, AModuleIsNoTemplate) {
  const KernelSource source = KernelSource::spirv({1}, "mine.spv");
  EXPECT_EQ(error_of([&] { (void)source.define("tile", 64); }),
            "mine.spv: variable 'tile' cannot be set: SPIR-V is no template; constant() sets "
            "specialisation constants");
}

TEST(KernelSource, ConstantsOfAModuleHaveNumbers) {
  const KernelSource source = KernelSource::spirv({1}, "mine.spv");
  EXPECT_EQ(source.constant("3", 0.5).constants(), (Constants{{"3", 0.5}}));
  EXPECT_EQ(source.entry("reduce").entry_point(), "reduce");
  for (const char* name : {"unroll", "", "-1", "1e2"}) {
    EXPECT_EQ(error_of([&] { (void)source.constant(name, 1); }),
              "mine.spv: constant '" + std::string(name) +
                  "': SPIR-V has numbers for names; give the constant_id");
  }
}

}  // namespace
}  // namespace kiln
