// Operations that a user writes with a kernel of their own: identity, parameters and dtypes.
#include "kiln/autodiff/test_support.hpp"
#include "kiln/tensor/apply.hpp"

namespace kiln {
namespace {

using test::make;
using test::make_wave;
using test::values;
using ::testing::Each;
using ::testing::ElementsAre;

/// Begins every kernel of these tests: `i` is the element, one a thread.
const std::string head = R"({{ bindings }}
@compute @workgroup_size({{ workgroup_size_x }})
fn main(@builtin(global_invocation_id) at: vec3<u32>) {
  let i = at.x;
  if (i >= params.count) { return; }
)";

webgpu::Launch over_elements(const std::string& body, const Operand& out) {
  return {.source = KernelSource::wgsl(head + body + "\n}\n"),
          .workgroup = {64, 1, 1},
          .params = {{"count", out.shape().elements()}},
          .grid = {ceil_div(out.shape().elements(), 64), 1, 1}};
}

struct Twice {
  static constexpr std::string_view name = "mine";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return x; }
  static webgpu::Launch webgpu_kernel(const Operand&, const Operand& out) {
    return over_elements("store_out(i, x[i] * 2);", out);
  }
};

struct PlusHundred {
  static constexpr std::string_view name = "mine";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return x; }
  static webgpu::Launch webgpu_kernel(const Operand&, const Operand& out) {
    return over_elements("store_out(i, x[i] + 100);", out);
  }
};
static_assert(Extension<Twice> && Extension<PlusHundred>);

TEST(WgslKernelOp, TwoKernelsOfOneNameStayTwoInOneBatch) {
  const AnyTensor x = make<float>({1, 2, 3}, {3});
  const AnyTensor a = apply(Twice{}, x);
  const AnyTensor b = apply(PlusHundred{}, x);
  const AnyTensor c = apply(PlusHundred{}, apply(Twice{}, x));
  EXPECT_THAT(values(a), ElementsAre(2, 4, 6));
  EXPECT_THAT(values(b), ElementsAre(101, 102, 103));
  EXPECT_THAT(values(c), ElementsAre(102, 104, 106));
}

TEST(WgslKernelOp, F32AndThenF16AreTwoPipelines) {
  for (int round = 0; round < 2; ++round) {
    EXPECT_THAT(values(apply(Twice{}, make<float>({1, 2, 3}, {3}))), ElementsAre(2, 4, 6));
    EXPECT_THAT(values(apply(Twice{}, make({1, 2, 3}, {3}, DType::f16))), ElementsAre(2, 4, 6));
    EXPECT_THAT(values(apply(Twice{}, make<std::int32_t>({-1, 2}, {2}))), ElementsAre(-2, 4));
    EXPECT_THAT(values(apply(Twice{}, make<std::uint32_t>({1, 7}, {2}))), ElementsAre(2, 14));
  }
}

TEST(WgslKernelOp, CompilesOncePerKernelNotPerShape) {
  (void)apply(Twice{}, make_wave({5}));
  const auto spent = test::counted([] {
    for (const std::int64_t n : {5, 6, 64, 65, 1000}) {
      EXPECT_EQ(values(apply(Twice{}, make_wave({n})))[0], test::wave(n)[0] * 2);
    }
  });
  EXPECT_EQ(spent.compiled, 0U);
  EXPECT_EQ(spent.launches, 5U);
}

/// x * by + plus; counts how often its rule is asked.
struct Counting {
  static constexpr std::string_view name = "counting";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  Param by;
  int plus;
  static int& asked() {
    static int count = 0;
    return count;
  }
  static TensorSpec output(const TensorSpec& x) { return x; }
  webgpu::Launch webgpu_kernel(const Operand&, const Operand& out) const {
    ++asked();
    webgpu::Launch launch =
        over_elements("store_out(i, x[i] * Elem(params.by) + Elem(params.plus));", out);
    launch.params.emplace_back("by", by);
    launch.params.emplace_back("plus", plus);
    return launch;
  }
};

struct Negated {
  static constexpr std::string_view name = "negated";
  static Expr body(Expr x) { return -x; }
};

TEST(WgslKernelOp, ARuleIsAskedOnceForCallPlanAndLaunch) {
  const AnyTensor x = make<float>({1, 2}, {2});
  const auto asked = [](const auto& f) {
    Counting::asked() = 0;
    f();
    return Counting::asked();
  };
  const auto plain = [](float by, int plus, const AnyTensor& on) {
    return values(apply(Counting{by, plus}, on));
  };
  EXPECT_EQ(asked([&] { EXPECT_THAT(plain(2, 1, x), ElementsAre(3, 5)); }), 1);
  // Another value of its Param, and another kernel from the same answer.
  EXPECT_EQ(asked([&] {
              EXPECT_THAT(plain(3, 1, x), ElementsAre(4, 7));
              const AnyTensor fused = apply(Negated{}, apply(Counting{5.0, 1}, x));
              EXPECT_THAT(values(fused), ElementsAre(-6, -11));
            }),
            0);
  // What it may depend on: attributes, shapes, dtypes.
  EXPECT_EQ(asked([&] { EXPECT_THAT(plain(2, 4, x), ElementsAre(6, 8)); }), 1);
  EXPECT_EQ(asked([&] { EXPECT_THAT(plain(2, 1, make<float>({1}, {1})), ElementsAre(3)); }), 1);
  EXPECT_EQ(
      asked([&] { EXPECT_THAT(plain(2, 1, make({1, 2}, {2}, DType::f16)), ElementsAre(3, 5)); }),
      1);
}

struct Tuned {
  static constexpr std::string_view name = "tuned";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  double factor;
  TensorSpec output(const TensorSpec& x) const { return x; }
  webgpu::Launch webgpu_kernel(const Operand&, const Operand& out) const {
    webgpu::Launch launch = over_elements("store_out(i, x[i] * factor);", out);
    launch.source = KernelSource::wgsl("override factor: f32 = 1.0;\n" + head +
                                       "  store_out(i, x[i] * factor);\n}\n")
                        .constant("factor", factor);
    return launch;
  }
};

TEST(WgslKernelOp, AnOverrideConstantToggledIsAnotherKernel) {
  const AnyTensor x = make<float>({1, 2}, {2});
  for (const double factor : {3.0, 5.0, 3.0}) {
    const auto by = static_cast<float>(factor);
    EXPECT_THAT(values(apply(Tuned{factor}, x)), ElementsAre(by, 2 * by));
  }
}

struct Scale {
  static constexpr std::string_view name = "scale";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  Param by;
  int power;
  TensorSpec output(const TensorSpec& x) const { return x; }
  webgpu::Launch webgpu_kernel(const Operand&, const Operand& out) const {
    webgpu::Launch launch = over_elements(
        "var y = x[i] * params.by + params.shift;\n"
        "for (var k = 1u; k < params.power; k++) { y *= x[i]; }\nstore_out(i, y);",
        out);
    launch.params.emplace_back("by", by);
    launch.params.emplace_back("shift", 0.5);
    launch.params.emplace_back("power", power);
    return launch;
  }
};

TEST(WgslKernelOp, ParamsReachTheKernelAndNeverCompileAgain) {
  const AnyTensor x = make<float>({1, 2, 4}, {3});
  EXPECT_THAT(values(apply(Scale{{2}, 1}, x)), ElementsAre(2.5F, 4.5F, 8.5F));
  const auto spent = test::counted([&] {
    for (int i = 0; i < 20; ++i) {
      const auto f = static_cast<float>(i);
      EXPECT_THAT(values(apply(Scale{{double(i)}, 1}, x)),
                  ElementsAre(f + 0.5F, 2 * f + 0.5F, 4 * f + 0.5F));
    }
    EXPECT_THAT(values(apply(Scale{{0}, 3}, x)), ElementsAre(0.5F, 2, 8));
  });
  EXPECT_EQ(spent.compiled, 0U);
}

/// Which of two sources is an attribute: it is part of the key.
struct Chosen {
  static constexpr std::string_view name = "chosen";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  std::string expression;
  std::vector<int> added;
  TensorSpec output(const TensorSpec& x) const { return x; }
  webgpu::Launch webgpu_kernel(const Operand&, const Operand& out) const {
    webgpu::Launch launch = over_elements("store_out(i, ({{ expression }}) + {{ sum }});", out);
    int sum = 0;
    for (const int n : added) sum = sum * 10 + n;
    launch.source = launch.source.define("expression", expression).define("sum", sum);
    return launch;
  }
};

TEST(WgslKernelOp, EveryAttributeIsPartOfThePlan) {
  const AnyTensor x = make<float>({1, 2}, {2});
  EXPECT_THAT(values(apply(Chosen{"x[i] * 2", {}}, x)), ElementsAre(2, 4));
  EXPECT_THAT(values(apply(Chosen{"x[i] * 3", {}}, x)), ElementsAre(3, 6));
  EXPECT_THAT(values(apply(Chosen{"x[i] * 3", {1}}, x)), ElementsAre(4, 7));
  EXPECT_THAT(values(apply(Chosen{"x[i] * 3", {1, 2}}, x)), ElementsAre(15, 18));
  EXPECT_THAT(values(apply(Chosen{"x[i] * 3", {2, 1}}, x)), ElementsAre(24, 27));
}

struct AddThree {
  static constexpr std::string_view name = "add_three";
  static constexpr std::array inputs = {"a", "b", "c"};
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& a, const TensorSpec&, const TensorSpec&) { return a; }
  static webgpu::Launch webgpu_kernel(const Operand&, const Operand&, const Operand&,
                                      const Operand& out) {
    return over_elements("store_out(i, a[i] + 10 * b[i] + 100 * c[i]);", out);
  }
};

TEST(WgslKernelOp, OneTensorMayBeGivenSeveralTimes) {
  const AnyTensor x = make<float>({1, 2}, {2});
  const AnyTensor y = make<float>({3, 4}, {2});
  EXPECT_THAT(values(apply(AddThree{}, x, x, y)), ElementsAre(311, 422));
  EXPECT_THAT(values(apply(AddThree{}, x, y, x)), ElementsAre(131, 242));
  EXPECT_THAT(values(apply(AddThree{}, y, y, y)), ElementsAre(333, 444));
}

TEST(WgslKernelOp, ViewsAreMadeDenseUnlessTheKernelTakesStrides) {
  const AnyTensor x = make<float>({0, 1, 2, 3, 4, 5}, {6});
  RawTensor odd = x.value().raw();
  odd.layout.shape = Shape{3};
  odd.layout.strides[0] = 2;
  odd.layout.offset = 1;
  const AnyTensor view(Value(odd), test::device());
  EXPECT_THAT(values(apply(AddThree{}, view, view, view)), ElementsAre(111, 333, 555));

  odd.layout.strides[0] = 0;
  const AnyTensor repeated(Value(odd), test::device());
  EXPECT_THAT(values(apply(Twice{}, repeated)), ElementsAre(2, 2, 2));
}

TEST(WgslKernelOp, TwoSlicesOfOneBufferAreInputsWhileTheResultIsAnother) {
  const AnyTensor x = make_wave({256});
  RawTensor first = x.value().raw();
  first.layout = Layout::dense({128});
  RawTensor second = first;
  second.layout.offset = 128;
  const AnyTensor a(Value(first), test::device());
  const AnyTensor b(Value(second), test::device());
  const std::vector<float> sum = values(apply(AddThree{}, a, b, a));
  const std::vector<float> in = values(x);
  for (std::size_t i = 0; i < 128; ++i) EXPECT_NEAR(sum[i], 101 * in[i] + 10 * in[i + 128], 1e-4);
  EXPECT_EQ(values(x), in);
}

TEST(WgslKernelOp, NothingIsLaunchedForAnEmptyResult) {
  const auto spent = test::counted([] {
    EXPECT_TRUE(values(apply(Twice{}, make<float>({}, {0, 4}))).empty());
    EXPECT_TRUE(values(apply(AddThree{}, make<float>({}, {3, 0}), make<float>({}, {3, 0}),
                             make<float>({}, {3, 0})))
                    .empty());
  });
  EXPECT_EQ(spent.launches, 0U);
}

/// Reads nothing of an input that may be empty.
struct Ones {
  static constexpr std::string_view name = "ones_like_rows";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return {{x.shape[0]}, x.dtype}; }
  static webgpu::Launch webgpu_kernel(const Operand&, const Operand& out) {
    return over_elements("if (x_shape(1) > 0u) { store_out(i, x[i]); } else { store_out(i, 1); }",
                         out);
  }
};

TEST(WgslKernelOp, AnEmptyInputCanBeBound) {
  EXPECT_THAT(values(apply(Ones{}, make<float>({}, {3, 0}))), Each(1));
}

TEST(WgslKernelOp, ScalarsAndRankEightPassThroughOneKernel) {
  EXPECT_THAT(values(apply(Twice{}, make<float>({3}, {}))), ElementsAre(6));
  const AnyTensor x = make_wave({1, 2, 1, 3, 1, 2, 1, 2});
  const AnyTensor y = apply(Twice{}, x);
  EXPECT_EQ(y.shape(), x.shape());
  EXPECT_EQ(values(y)[23], values(x)[23] * 2);
}

TEST(WgslKernelOp, LaunchesWithoutWaiting) {
  const AnyTensor one = make<float>({1}, {1});
  (void)values(apply(Twice{}, one));
  for (const int launches : {1, 100}) {
    const std::uint64_t before = test::counters().submits;
    AnyTensor y = one;
    for (int i = 0; i < launches; ++i) y = apply(Twice{}, y);
    EXPECT_LE(test::counters().submits - before, static_cast<std::uint64_t>(launches) / 16);
    EXPECT_EQ(values(y)[0], std::ldexp(1.0F, launches));
  }
}

}  // namespace
}  // namespace kiln
