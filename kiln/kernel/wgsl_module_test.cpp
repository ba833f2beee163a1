#include "kiln/kernel/wgsl_module.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "kiln/support/error.hpp"

namespace kiln {
namespace {

using Given = std::vector<std::pair<std::string, double>>;

std::uint64_t bytes_of(const std::string& source, const Given& constants = {}) {
  return WgslModule(source).workgroup_bytes("main", constants);
}
/// Of one variable of the type, after the declarations.
std::uint64_t bytes_as(const std::string& type, const std::string& declarations = {},
                       const Given& constants = {}) {
  return bytes_of(declarations + "\nvar<workgroup> w: " + type +
                      ";\n@compute @workgroup_size(1) fn main() { w[0] = 1; }",
                  constants);
}
std::optional<std::array<std::uint64_t, 3>> size_of(const std::string& source,
                                                    const Given& constants = {}) {
  return WgslModule(source).workgroup_size("main", constants);
}
std::string refusal(const std::string& source, const Given& constants) {
  try {
    WgslModule(source).check_constants(constants);
  } catch (const KernelError& error) {
    return error.what();
  }
  return {};
}

TEST(WgslModule, SizesOfTypesAreThoseOfTheStandard) {
  EXPECT_EQ(bytes_as("array<f32, 12289>"), 49168U);  // rounded up to 16
  EXPECT_EQ(bytes_as("array<f32, 12288>"), 49152U);
  EXPECT_EQ(bytes_as("array<vec4<f32>, 8>"), 128U);
  EXPECT_EQ(bytes_as("array<vec3<f32>, 8>"), 128U);
  EXPECT_EQ(bytes_as("array<vec3f, 8>"), 128U);
  EXPECT_EQ(bytes_as("array<vec2<f16>, 8>"), 32U);
  EXPECT_EQ(bytes_as("array<vec3h, 8>"), 64U);
  EXPECT_EQ(bytes_as("array<f16, 10>"), 32U);
  EXPECT_EQ(bytes_as("array<bool, 8>"), 32U);
  EXPECT_EQ(bytes_as("array<atomic<u32>, 8>"), 32U);
  EXPECT_EQ(bytes_as("array<mat4x4<f32>, 2>"), 128U);
  EXPECT_EQ(bytes_as("array<mat2x3f, 2>"), 64U);
  EXPECT_EQ(bytes_as("array<mat3x2h, 4>"), 48U);
  EXPECT_EQ(bytes_as("array<array<array<f32, 3>, 5>, 7>"), 432U);
  EXPECT_EQ(bytes_as("f32"), 16U);
}

TEST(WgslModule, StructsHaveTheirPadding) {
  const std::string declarations =
      "struct Inner { a: f32, b: vec3<f32>, c: f16, }\n"
      "struct Outer { @align(32) x: u32, @size(20) y: Inner, z: array<u32, 3>, };\n"
      "alias Row = array<Inner, 4>;";
  EXPECT_EQ(bytes_as("Inner", declarations), 32U);
  EXPECT_EQ(bytes_as("Row", declarations), 128U);
  EXPECT_EQ(bytes_as("array<Outer, 2>", declarations), 128U);
}

TEST(WgslModule, CountsAreComputed) {
  const std::string constants =
      "const tile = 16;\nconst half: u32 = tile / 2u - 0;\noverride rows: u32 = 4;\n"
      "override both = rows * 2u;\nconst ratio = 2.5;\n@id(3) override other: i32 = 7;";
  EXPECT_EQ(bytes_as("array<f32, tile * tile>", constants), 1024U);
  EXPECT_EQ(bytes_as("array<f32, (tile + 1) * tile>", constants), 1088U);
  EXPECT_EQ(bytes_as("array<array<f32, tile>, half>", constants), 512U);
  EXPECT_EQ(bytes_as("array<f32, rows * 4>", constants), 64U);
  EXPECT_EQ(bytes_as("array<f32, rows * 4>", constants, {{"rows", 100}}), 1600U);
  EXPECT_EQ(bytes_as("array<f32, both>", constants, {{"rows", 100}}), 800U);
  EXPECT_EQ(bytes_as("array<f32, other + 1>", constants, {{"3", 11}}), 48U);
  EXPECT_EQ(bytes_as("array<f32, 1 << 4>", constants), 64U);
  EXPECT_EQ(bytes_as("array<f32, 0x10u>", constants), 64U);
  EXPECT_EQ(bytes_as("array<f32, max(tile, 20)>", constants), 80U);
  EXPECT_EQ(bytes_as("array<f32, u32(ceil(f32(tile) / 3.0)) * 4>", constants), 96U);
  EXPECT_EQ(bytes_as("array<f32, select(4, 8, tile > 8)>", constants), 32U);
  EXPECT_EQ(bytes_as("array<f32, i32(ratio * 8)>", constants), 80U);
  EXPECT_EQ(bytes_as("array<f32, 4,>", constants), 16U);
}

TEST(WgslModule, ASizeBeyondSixtyFourBitsIsNotWrapped) {
  EXPECT_EQ(bytes_as("array<array<array<vec4f, 4294967295>, 4294967295>, 16>") & ~15ULL,
            UINT64_MAX & ~15ULL);
}

TEST(WgslModule, WhatCannotBeToldIsRefusedByName) {
  try {
    (void)bytes_as("array<f32, countOneBits(7u)>");
    FAIL() << "nothing was thrown";
  } catch (const KernelError& error) {
    EXPECT_NE(std::string(error.what()).find("'w'"), std::string::npos) << error.what();
  }
  EXPECT_THROW((void)bytes_as("array<f32, a>", "const a = b; const b = a;"), KernelError);
  EXPECT_THROW((void)bytes_as("S", "struct S { s: S }"), KernelError);
  EXPECT_THROW((void)bytes_as("array<f32, 1 / 0>"), KernelError);
}

TEST(WgslModule, CountsWhatTheEntryPointReaches) {
  const std::string source =
      "var<workgroup> a: array<f32, 4>;\n"
      "var < workgroup > b : array<f32, 40>; // var<workgroup> no: array<f32, 1000>;\n"
      "/* var<workgroup> /* nested */ no: array<f32, 1000>; */\n"
      "var<workgroup> unused: array<f32, 4000>;\n"
      "var<private> mine: array<f32, 4000>;\n"
      "fn helper() { other(); }\nfn other() { b[0] = 1; }\n"
      "@compute @workgroup_size(1) fn main() { a[0] = 1; helper(); }\n"
      "@compute @workgroup_size(1) fn second() { unused[0] = 1; }\n";
  EXPECT_EQ(bytes_of(source), 16U + 160U);
  EXPECT_EQ(WgslModule(source).workgroup_bytes("second", {}), 16000U);
}

TEST(WgslModule, WorkgroupSizesAreComputed) {
  const auto entry = [](const std::string& size) {
    return "override x: u32 = 8; const y = 2; fn helper() {}\n@compute\n@workgroup_size(" + size +
           ") // not @workgroup_size(1)\nfn main(@builtin(workgroup_id) g: vec3<u32>) {}";
  };
  using Size = std::array<std::uint64_t, 3>;
  EXPECT_EQ(size_of(entry("64")), (Size{64, 1, 1}));
  EXPECT_EQ(size_of(entry("8, 4u, y")), (Size{8, 4, 2}));
  EXPECT_EQ(size_of(entry("x, x / 2, 1,")), (Size{8, 4, 1}));
  EXPECT_EQ(size_of(entry("x, x / 2"), {{"x", 32}}), (Size{32, 16, 1}));
  EXPECT_EQ(size_of("fn main() {}"), std::nullopt);
  EXPECT_EQ(size_of("@compute @workgroup_size(1) fn other() {}"), std::nullopt);
  EXPECT_THROW((void)size_of(entry("z")), KernelError);
}

TEST(WgslModule, AConstantMustBeOneThatItsOverrideHolds) {
  const std::string source =
      "override a: i32 = 1; override b: u32 = 1; override c: bool = true; override d: f32 = 1;\n"
      "override e = 1; override f = 1u; override g = 1.5; override h = false; @id(7) override k: "
      "i32;\n"
      "alias Whole = i32; override l: Whole = 1; enable f16; override m: f16 = 1; override n = e * "
      "2;";
  for (const auto& [name, value] : Given{{"a", -3},
                                         {"b", 4294967295.0},
                                         {"c", 1},
                                         {"d", 1.5},
                                         {"e", -7},
                                         {"f", 3},
                                         {"g", 0.25},
                                         {"h", 1},
                                         {"7", 2},
                                         {"l", 2},
                                         {"m", 65504},
                                         {"n", 4}}) {
    EXPECT_EQ(refusal(source, {{name, value}}), "") << name;
  }
  for (const auto& [name, value] : Given{{"a", 1.5},
                                         {"a", 3e9},
                                         {"b", -1},
                                         {"b", 1.5},
                                         {"b", 4294967296.0},
                                         {"c", 2},
                                         {"c", 0.5},
                                         {"d", 1e39},
                                         {"e", 1.5},
                                         {"f", -1},
                                         {"h", 2},
                                         {"l", 1.5},
                                         {"m", 65536},
                                         {"n", 0.5},
                                         {"a", std::numeric_limits<double>::quiet_NaN()},
                                         {"d", std::numeric_limits<double>::infinity()}}) {
    EXPECT_NE(refusal(source, {{name, value}}).find("'" + name + "'"), std::string::npos)
        << name << " as " << value;
  }
  EXPECT_NE(refusal(source, {{"amuont", 1}}).find("no such override"), std::string::npos);
  EXPECT_NE(refusal(source, {{"k", 1}}).find("no such override"), std::string::npos)
      << "one with @id has its number for a name";
}

TEST(WgslDepth, IsABoundOfTheCompilersRecursion) {
  const auto depth = [](const std::string& text) { return wgsl_depth(wgsl_tokens(text)); };
  const auto repeat = [](const std::string& text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
  };
  EXPECT_GE(depth("const a = " + repeat("(", 500) + "1" + repeat(")", 500) + ";"), 500U);
  EXPECT_GE(depth("const a = " + repeat("1 + ", 500) + "1;"), 500U);
  EXPECT_GE(depth("const a = " + repeat("-", 500) + "1;"), 500U);
  EXPECT_GE(depth("fn f() { x = a" + repeat("[0]", 500) + "; }"), 500U);
  EXPECT_GE(depth("fn f() { x = a" + repeat(".b", 500) + "; }"), 500U);
  EXPECT_GE(depth("fn f() { " + repeat("{ ", 500) + repeat("}", 500) + "}"), 500U);
  EXPECT_GE(depth("fn f() { if (x) { } " + repeat("else if (x) { } ", 500) + "}"), 500U);
  EXPECT_GE(depth("alias A = " + repeat("array<", 500) + "f32" + repeat(", 1>", 500) + ";"), 500U);
  EXPECT_GE(depth(repeat("const a = 1;", 500)), 500U);
  EXPECT_GE(depth(repeat("fn f() {", 500)), 500U) << "brackets may be left open";
  EXPECT_LE(depth("fn f() { " + repeat("x = x + 1; if (a) { y = 2; } for (;;) { } ", 500) + "}"),
            20U);
  EXPECT_LE(depth("const a = array(" + repeat("1 + 2, ", 500) + "1);"), 20U);
}

}  // namespace
}  // namespace kiln
