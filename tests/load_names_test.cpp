// The names of generated loads: which operands may have them, and what else in a kernel has the
// name of an operand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/queued.hpp"

namespace kiln {
namespace {

using queued::drained;
using queued::expect_same_as_eager;
using queued::In;
using queued::input;
using queued::lazy;
using test::make_wave;
using test::message_of;
using test::values;
using ::testing::HasSubstr;

/// An operand's name as a template argument.
template <std::size_t N>
struct Named {
  char chars[N]{};
  constexpr Named(const char (&text)[N]) {  // NOLINT: a literal
    std::copy_n(text, N, chars);
  }
};

/// A kernel that reads the first of its two operands. A test gives their names.
template <Named first, Named second>
struct Odd {
  static constexpr std::string_view name = "odd";
  static constexpr std::array<std::string_view, 2> inputs{first.chars, second.chars};
  using layers = Layers<Cube, Fusion>;
  bool repeats = false;

  static TensorSpec output(const TensorSpec& x, const TensorSpec&) { return x; }
  webgpu::Launch webgpu_kernel(const Operand& x, const Operand&, const Operand&) const {
    const std::string a = first.chars;
    webgpu::Launch launch{
        .source = KernelSource::wgsl("{{ bindings }}\n"
                                     "@compute @workgroup_size({{ workgroup_size_x }})\n"
                                     "fn main(@builtin(global_invocation_id) at: vec3<u32>) {\n"
                                     "  if (at.x < params.n) { store_out(at.x, load_" +
                                         a + "(at.x)); }\n}\n",
                                     "odd.wgsl"),
        .params = {{"n", x.shape().elements()}},
        .grid = {ceil_div(x.shape().elements(), 64), 1, 1}};
    if (repeats) launch.repeated = {{.name = second.chars}};
    return launch;
  }
};

template <class Op>
std::string refusal(const Op& op) {
  const AnyTensor x = input({4});
  return message_of<KernelError>([&] { (void)values(apply(op, x, x)); });
}

TEST(WgslLoadNames, TheLoadOfAnOperandMayEndWithAFour) {
  const AnyTensor x = input({4});
  const AnyTensor y = apply(Odd<"x4", "x">{}, x * 2.0, x);
  test::expect_near(values(y), test::doubles(values(x * 2.0)), 0);
}

TEST(WgslLoadNames, NamesThatLoadsCannotHaveAreRefused) {
  EXPECT_EQ(refusal(Odd<"x", "load_x">{}),
            "odd: operand 'load_x': the name is what the load of 'x' is called");
  EXPECT_THAT(refusal(Odd<"x", "other">{true}),
              HasSubstr("repeated names 'other', which is no input that is read by load_other"));
}

/// What reads x besides its load: a statement before the one that stores `value`.
struct Scoped {
  static constexpr std::string_view name = "scoped";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  std::string functions;
  std::string statement;

  static TensorSpec output(const TensorSpec& x) { return x; }
  webgpu::Launch webgpu_kernel(const Operand& x, const Operand&) const {
    return {.source = KernelSource::wgsl("{{ bindings }}\n" + functions +
                                         "\n@compute @workgroup_size({{ workgroup_size_x }})\n"
                                         "fn main(@builtin(global_invocation_id) at: vec3<u32>) {\n"
                                         "  let i = at.x;\n  if (i >= params.n) { return; }\n"
                                         "  var value = load_x(i);\n  " +
                                         statement + "\n  store_out(i, value);\n}\n"),
            .params = {{"n", x.shape().elements()}},
            .grid = {ceil_div(x.shape().elements(), 64), 1, 1}};
  }
};
static_assert(Extension<Scoped>);

TEST(WgslLoadNames, ALocalVariableOfAnOperandsNameReadsNoArray) {
  const std::vector in{input({8})};
  const auto launches = [&](const Scoped& op) {
    const auto f = [&](In t) { return apply(op, relu(t[0])); };
    expect_same_as_eager(f, in);
    return drained(f, in).launches;
  };
  EXPECT_EQ(launches({"", "let x = value * 2; value = x + x;"}), 1U);
  EXPECT_EQ(launches({"", "for (var x = 0u; x < 3u; x++) { value += Elem(x); }"}), 1U);
  EXPECT_EQ(launches({"fn twice(x: Elem) -> Elem { return x + x; }", "value = twice(value);"}), 1U);
  EXPECT_EQ(launches({"", "if (i > 2) { let x = value; value = x * 3; }"}), 1U);
  // The array is meant before the variable is there, behind its block, and in another function.
  EXPECT_EQ(launches({"", "let x = x[i]; value += x;"}), 2U);
  EXPECT_EQ(launches({"", "if (i > 2) { let x = value; value = x * 3; } value += x[i];"}), 2U);
  EXPECT_EQ(launches({"", "for (var x = 0u; x < 3u; x++) { value += Elem(x); } value += x[i];"}),
            2U);
  EXPECT_EQ(launches({"fn at_two() -> Elem { return x[2]; }", "let x = at_two(); value += x;"}),
            2U);
  EXPECT_EQ(launches({"fn twice(x: Elem) -> Elem { return x + x; }", "value = twice(x[i]);"}), 2U);
}

// A kernel may have a function of that name itself. Then nothing is generated, and nothing fused.
struct OwnLoad {
  static constexpr std::string_view name = "own_load";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return x; }
  static webgpu::Launch webgpu_kernel(const Operand& x, const Operand&) {
    return {
        .source = KernelSource::wgsl("{{ bindings }}\n"
                                     "fn load_x(i: u32) -> Elem { return x[i] + 1; }\n"
                                     "@compute @workgroup_size({{ workgroup_size_x }})\n"
                                     "fn main(@builtin(global_invocation_id) at: vec3<u32>) {\n"
                                     "  if (at.x < params.n) { store_out(at.x, load_x(at.x)); }\n"
                                     "}\n"),
        .params = {{"n", x.shape().elements()}},
        .grid = {ceil_div(x.shape().elements(), 64), 1, 1}};
  }
};

TEST(WgslLoadNames, AKernelsOwnFunctionOfThatNameStays) {
  const auto f = [](In t) { return apply(OwnLoad{}, relu(t[0])); };
  const std::vector in{input({8})};
  EXPECT_EQ(drained(f, in).launches, 2U);
  expect_same_as_eager(f, in);
}

}  // namespace
}  // namespace kiln
