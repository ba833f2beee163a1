// What the fields of a struct of rules become: parts of a key, or numbers given at launch.
#include "kiln/autodiff/test_support.hpp"
#include "kiln/runtime/cpu/cpu.hpp"
#include "kiln/tensor/apply.hpp"

namespace kiln {
namespace {

using test::make;
using test::message_of;
using test::values;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

webgpu::Launch over_elements(const std::string& statement, const Operand& out) {
  return {.source = KernelSource::wgsl("{{ bindings }}\n@compute @workgroup_size(64)\n"
                                       "fn main(@builtin(global_invocation_id) at: vec3<u32>) {\n"
                                       "  let i = at.x;\n  if (i >= params.count) { return; }\n  " +
                                       statement + "\n}\n"),
          .params = {{"count", out.shape().elements()}},
          .grid = {ceil_div(out.shape().elements(), 64), 1, 1}};
}

struct Pair {
  Param scale;
  Param shift;
};

/// y = x * list[0] + pair.shift and so on: every number of it is a Param, at whatever depth.
struct Deep {
  static constexpr std::string_view name = "deep";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  std::array<Param, 1> list;
  Pair pair;
  std::optional<Param> maybe;
  std::vector<Pair> many;

  static TensorSpec output(const TensorSpec& x) { return x; }
  webgpu::Launch webgpu_kernel(const Operand&, const Operand& out) const {
    std::string sum = "x[i] * params.list + params.scale * 10 + params.shift * 100";
    if (maybe) sum += " + params.maybe * 1000";
    for (std::size_t k = 0; k < many.size(); ++k) sum += " + params.many" + std::to_string(k);
    webgpu::Launch launch = over_elements("store_out(i, " + sum + ");", out);
    launch.params.emplace_back("list", list[0]);
    launch.params.emplace_back("scale", pair.scale);
    launch.params.emplace_back("shift", pair.shift);
    if (maybe) launch.params.emplace_back("maybe", *maybe);
    for (std::size_t k = 0; k < many.size(); ++k)
      launch.params.emplace_back("many" + std::to_string(k), many[k].shift);
    return launch;
  }
  void cpu_kernel(const cpu::Input& x, const cpu::Output& out) const {
    double rest = pair.scale.value() * 10 + pair.shift.value() * 100;
    if (maybe) rest += maybe->value() * 1000;
    for (const Pair& p : many) rest += p.shift.value();
    for (std::size_t i = 0; i < out.dense<float>().size(); ++i) {
      out.dense<float>()[i] =
          static_cast<float>(static_cast<double>(x.dense<float>()[i]) * list[0].value() + rest);
    }
  }
};
static_assert(Extension<Deep>);

TEST(Attributes, AParamAtAnyDepthTakesPartInOneDrainWithItsOwnValue) {
  const AnyTensor x = make<float>({1, 2}, {2});
  const AnyTensor a = apply(Deep{{2}, {0, 0}, {}, {}}, x);
  const AnyTensor b = apply(Deep{{3}, {0, 0}, {}, {}}, x);
  const AnyTensor c = apply(Deep{{2}, {1, 0}, {}, {}}, x);
  const AnyTensor d = apply(Deep{{2}, {0, 1}, {}, {}}, x);
  const AnyTensor e = apply(Deep{{2}, {0, 1}, Param(1), {}}, x);
  const AnyTensor f = apply(Deep{{2}, {0, 1}, Param(2), {}}, x);
  const AnyTensor g = apply(Deep{{2}, {0, 1}, Param(2), {{7, 1}, {7, 2}}}, x);
  const AnyTensor h = apply(Deep{{2}, {0, 1}, Param(2), {{7, 1}, {7, 3}}}, x);
  EXPECT_THAT(values(a), ElementsAre(2, 4));
  EXPECT_THAT(values(b), ElementsAre(3, 6));
  EXPECT_THAT(values(c), ElementsAre(12, 14));
  EXPECT_THAT(values(d), ElementsAre(102, 104));
  EXPECT_THAT(values(e), ElementsAre(1102, 1104));
  EXPECT_THAT(values(f), ElementsAre(2102, 2104));
  EXPECT_THAT(values(g), ElementsAre(2105, 2107));
  EXPECT_THAT(values(h), ElementsAre(2106, 2108));
}

TEST(Attributes, AParamAtAnyDepthCompilesNothing) {
  const AnyTensor x = make<float>({1, 2}, {2});
  (void)values(apply(Deep{{2}, {0, 0}, Param(1), {{1, 1}}}, x));
  const auto spent = test::counted([&] {
    for (int i = 0; i < 5; ++i) {
      const auto f = static_cast<float>(i);
      EXPECT_THAT(values(apply(Deep{{double(i)}, {double(i), 0}, Param(i), {{1, double(i)}}}, x)),
                  ElementsAre(f * 1012, f * 1013));
    }
  });
  EXPECT_EQ(spent.compiled, 0U);
}

struct Polynomial {
  static constexpr std::string_view name = "polynomial";
  std::array<Param, 2> factors;
  Pair end;
  Expr body(Expr x) const { return (x * factors[1] + factors[0]) * end.scale + end.shift; }
};

TEST(Attributes, ABodyTakesParamsAtAnyDepth) {
  const AnyTensor x = make<float>({1, 2}, {2});
  const AnyTensor a = apply(Polynomial{{1, 2}, {1, 0}}, x);
  const AnyTensor b = apply(Polynomial{{1, 3}, {2, 5}}, x);
  EXPECT_THAT(values(a), ElementsAre(3, 5));
  EXPECT_THAT(values(b), ElementsAre(13, 19));
}

/// An aggregate that can be walked like a list, and has more to it.
struct Window {
  std::array<int, 2> sizes;
  int step;
  [[nodiscard]] const int* begin() const { return sizes.data(); }
  [[nodiscard]] const int* end() const { return sizes.data() + sizes.size(); }
  [[nodiscard]] std::size_t size() const { return sizes.size(); }
};
struct Windowed {
  static constexpr std::string_view name = "windowed";
  Window window;
  std::optional<int> extra;
  Expr body(Expr x) const {
    Expr y = window.step == 2 ? x * 2 : x;
    return extra == 1 ? y + 100 : y;
  }
};

TEST(Attributes, EveryFieldIsInTheKeyWhateverElseTheStructCanDo) {
  const AnyTensor x = make<float>({1, 3}, {2});
  EXPECT_THAT(values(apply(Windowed{{{4, 4}, 1}, {}}, x)), ElementsAre(1, 3));
  EXPECT_THAT(values(apply(Windowed{{{4, 4}, 2}, {}}, x)), ElementsAre(2, 6));
  EXPECT_THAT(values(apply(Windowed{{{4, 4}, 2}, 0}, x)), ElementsAre(2, 6));
  EXPECT_THAT(values(apply(Windowed{{{4, 4}, 2}, 1}, x)), ElementsAre(102, 106));
}

struct Options {
  Number scale = 2;
  Integer shift = 0;
  Flag negate = false;
};
struct WithOptions {
  static constexpr std::string_view name = "with_options";
  Options options;
  Expr body(Expr x) const {
    Expr y = options.scale == 2 ? x * 2 : x;
    if (options.shift == 2) y = y + 2;
    return options.negate ? -y : y;
  }
};

TEST(Attributes, FieldsOfOptionsAreNumbersToo) {
  const AnyTensor x = make<float>({1, 3}, {2});
  WithOptions op;
  EXPECT_THAT(values(apply(op, x)), ElementsAre(2, 6));
  op.options.scale *= 0.5;
  op.options.shift += 2;
  EXPECT_THAT(values(apply(op, x)), ElementsAre(3, 5));
  op.options.negate = true;
  EXPECT_THAT(values(apply(op, x)), ElementsAre(-3, -5));
}

/// Where the rules look at what a Param is, though what they give is kept for every value.
enum class Reads : std::uint8_t { launch, constant, text, way };

struct Baked {
  static constexpr std::string_view name = "baked";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  Param alpha;
  Reads reads;

  static TensorSpec output(const TensorSpec& x) { return x; }
  webgpu::Launch webgpu_kernel(const Operand&, const Operand& out) const {
    webgpu::Launch launch = over_elements("store_out(i, x[i] * 2);", out);
    if (reads == Reads::launch) launch.params.emplace_back("alpha", alpha.value());
    if (reads == Reads::constant)
      launch.source = launch.source.constant("alpha", std::array{alpha}[0].value());
    if (reads == Reads::text)
      launch.source = launch.source.define("a", std::to_string(alpha.value()));
    if (reads == Reads::way && alpha.value() > 1) launch.strided = true;
    return launch;
  }
  void cpu_kernel(const cpu::Input& x, const cpu::Output& out) const {
    for (std::size_t i = 0; i < out.dense<float>().size(); ++i)
      out.dense<float>()[i] = x.dense<float>()[i] * static_cast<float>(alpha.value());
  }
};
static_assert(Extension<Baked>);

TEST(WgslAttributes, AKernelRuleThatReadsAParamIsRefusedByName) {
  const AnyTensor x = make<float>({1, 2}, {2});
  for (const Reads reads : {Reads::launch, Reads::constant, Reads::text, Reads::way}) {
    EXPECT_THAT(message_of<Error>([&] { (void)values(apply(Baked{2, reads}, x)); }),
                AllOf(HasSubstr("baked"), HasSubstr("webgpu_kernel"), HasSubstr("Param")));
  }
}

TEST(Attributes, ACpuKernelReadsParamsAtEveryCall) {
  const Device host = cpu::device();
  const AnyTensor x = make<float>({1, 2}, {2}).to(host);
  const AnyTensor a = apply(Baked{2, Reads::launch}, x);
  const AnyTensor b = apply(Baked{3, Reads::launch}, x);
  EXPECT_THAT(values(a), ElementsAre(2, 4));
  EXPECT_THAT(values(b), ElementsAre(3, 6));
}

struct Branch {
  static constexpr std::string_view name = "branch";
  Param alpha;
  Expr body(Expr x) const { return alpha.value() > 0 ? x : -x; }
};

TEST(Attributes, ABodyThatReadsAParamIsRefusedByName) {
  const AnyTensor x = make<float>({1, 2}, {2});
  for (int round = 0; round < 2; ++round) {
    EXPECT_THAT(message_of<Error>([&] { (void)apply(Branch{1}, x); }),
                AllOf(HasSubstr("branch"), HasSubstr("'body'"), HasSubstr("Param")));
  }
}

template <class T>
struct Told {
  T y;
  double scale;
};

/// Its output rule tells callers a number that is a Param; the kernel gets it, too.
struct Telling {
  static constexpr std::string_view name = "telling";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  Param alpha;
  Told<TensorSpec> output(const TensorSpec& x) const { return {x, alpha.value()}; }
  static webgpu::Launch webgpu_kernel(const Operand&, const Told<Operand>& out) {
    webgpu::Launch launch = over_elements("store_out0(i, x[i] * params.scale);", out.y);
    launch.params.emplace_back("scale", out.scale);
    return launch;
  }
  static void cpu_kernel(const cpu::Input& x, const Told<cpu::Output>& out) {
    for (std::size_t i = 0; i < out.y.dense<float>().size(); ++i)
      out.y.dense<float>()[i] = x.dense<float>()[i] * static_cast<float>(out.scale);
  }
};
static_assert(Extension<Telling>);

TEST(WgslAttributes, AParamDoesNotReachAKernelRuleThroughTheOutputRule) {
  const AnyTensor x = make<float>({1, 2}, {2});
  EXPECT_THAT(message_of<Error>([&] { (void)values(apply(Telling{2}, x).y); }),
              AllOf(HasSubstr("telling"), HasSubstr("webgpu_kernel"), HasSubstr("Param")));
}

TEST(Attributes, AnOutputRuleMayTellAParamToCallers) {
  const AnyTensor x = make<float>({1, 2}, {2}).to(cpu::device());
  const auto a = apply(Telling{2}, x);
  const auto b = apply(Telling{3}, x);
  EXPECT_EQ(a.scale, 2);
  EXPECT_EQ(b.scale, 3);
  EXPECT_THAT(values(a.y), ElementsAre(2, 4));
  EXPECT_THAT(values(b.y), ElementsAre(3, 6));
}

/// A view, a reduction and a gradient run at every call: what they read of a Param counts.
struct Part {
  static constexpr std::string_view name = "part";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  Param from;
  static TensorSpec output(const TensorSpec& x) { return {{1}, x.dtype}; }
  std::optional<Layout> view(const Layout& in) const {
    Layout out{.shape = {1}, .offset = in.offset};
    out.offset += static_cast<std::int64_t>(from.value()) * in.stride(0);
    return out;
  }
};
struct ScaledSum {
  static constexpr std::string_view name = "scaled_sum";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  Param by;
  static TensorSpec output(const TensorSpec& x) { return {{}, x.dtype}; }
  Reduction reduction(const TensorSpec&) const {
    return {.combine = Combine::sum, .axes = {0}, .scale = by.value()};
  }
};
static_assert(Extension<Part> && Extension<ScaledSum>);

TEST(Attributes, ViewsAndReductionsReadParamsAtEveryCall) {
  const AnyTensor x = make<float>({1, 2, 4}, {3});
  const AnyTensor parts[] = {apply(Part{0}, x), apply(Part{2}, x)};
  const AnyTensor sums[] = {apply(ScaledSum{1}, x), apply(ScaledSum{3}, x)};
  EXPECT_THAT(values(parts[0]), ElementsAre(1));
  EXPECT_THAT(values(parts[1]), ElementsAre(4));
  EXPECT_THAT(values(sums[0]), ElementsAre(7));
  EXPECT_THAT(values(sums[1]), ElementsAre(21));
}

struct Sloped {
  static constexpr std::string_view name = "sloped";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Autodiff, Default<Cube>, Default<Fusion>>;
  Param by;
  static AnyTensor reference(const AnyTensor& x) { return apply(Polynomial{{0, 1}, {1, 0}}, x); }
  struct Saved {
    double by;
  };
  Saved save(const Saver&, const AnyTensor&, const AnyTensor&) const { return {by.value()}; }
  void backward(const Saved& saved, const AnyTensor& grad, Grads<1>& grads) const {
    grads[0].set(apply(Polynomial{{saved.by, by}, {1, 0}}, grad));
  }
};
static_assert(Extension<Sloped>);

TEST(Attributes, GradientRulesReadParamsAtEveryCall) {
  const Device device = test::device().autodiff();
  const AnyTensor x = test::make_wave({2}, 0, DType::f32, device).require_grad();
  for (const double by : {2.0, 3.0}) {
    const AnyTensor y = apply(Sloped{by}, x);
    const AnyTensor seed = make<float>({1, 2}, {2});
    const Gradients g = vjp({&y, 1}, {&seed, 1});
    const auto f = static_cast<float>(by);
    EXPECT_THAT(values(g.of(x)), ElementsAre(2 * f, 3 * f));
  }
}

}  // namespace
}  // namespace kiln
