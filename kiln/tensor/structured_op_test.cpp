// Operations of several results, and of several launches.
#include "kiln/autodiff/test_support.hpp"
#include "kiln/tensor/apply.hpp"

namespace kiln {
namespace {

using test::make;
using test::make_wave;
using test::message_of;
using test::values;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class T>
struct MinMax {
  T lo;
  T hi;
  std::int64_t count;
};

struct Bounds {
  static constexpr std::string_view name = "bounds";
  static constexpr std::array inputs = {"x", "y"};
  static constexpr std::array outputs = {"lo", "hi"};
  using layers = Layers<Autodiff, Cube, Fusion>;

  static MinMax<TensorSpec> output(const TensorSpec& x, const TensorSpec& y) {
    if (x != y) throw ShapeError("bounds: x and y must be alike");
    return {x, {x.shape, DType::f32}, x.shape.elements()};
  }
  static webgpu::Launch webgpu_kernel(const Operand&, const Operand&, const MinMax<Operand>& out) {
    return {.source = KernelSource::wgsl(
                "{{ bindings }}\n@compute @workgroup_size(64)\n"
                "fn main(@builtin(global_invocation_id) at: vec3<u32>) {\n"
                "  let i = at.x;\n  if (i >= params.count) { return; }\n"
                "  store_lo(i, min(x[i], y[i]));\n  store_hi(i, f32(max(x[i], y[i])));\n}\n"),
            .params = {{"count", out.count}},
            .grid = {ceil_div(out.count, 64), 1, 1}};
  }
  static void cpu_kernel(const cpu::Input& x, const cpu::Input& y, const MinMax<cpu::Output>& out) {
    cpu::with_float(x.dtype(), [&](auto element) {
      using T = decltype(element);
      for (std::size_t i = 0; i < static_cast<std::size_t>(out.count); ++i) {
        const auto a = static_cast<float>(x.dense<T>()[i]);
        const auto b = static_cast<float>(y.dense<T>()[i]);
        out.lo.dense<T>()[i] = T(std::min(a, b));
        out.hi.dense<float>()[i] = std::max(a, b);
      }
    });
  }
  struct Saved {
    std::int64_t count;
  };
  static Saved save(const Saver&, const AnyTensor&, const AnyTensor&,
                    const MinMax<AnyTensor>& out) {
    return {out.count};
  }
  /// Not the gradient, but tells which of the results it came by.
  static void backward(const Saved&, const MinMax<AnyTensor>& grad, Grads<2>& grads) {
    grads[0].set(grad.lo);
    grads[1].set(grad.hi);
  }
};
static_assert(Extension<Bounds>);

TEST(StructuredOp, GivesTensorsAndPlainValues) {
  const MinMax<AnyTensor> out =
      apply(Bounds{}, make<float>({1, 5, 3}, {3}), make<float>({4, 2, 3}, {3}));
  EXPECT_THAT(values(out.lo), ElementsAre(1, 2, 3));
  EXPECT_THAT(values(out.hi), ElementsAre(4, 5, 3));
  EXPECT_EQ(out.count, 3);
  EXPECT_THROW((void)apply(Bounds{}, make_wave({3}), make_wave({2})), ShapeError);
}

TEST(StructuredOp, ResultsMayHaveDtypesOfTheirOwn) {
  const auto out = apply(Bounds{}, make({1, 5}, {2}, DType::f16), make({4, 2}, {2}, DType::f16));
  EXPECT_EQ(out.lo.dtype(), DType::f16);
  EXPECT_EQ(out.hi.dtype(), DType::f32);
  EXPECT_THAT(values(out.lo), ElementsAre(1, 2));
  EXPECT_THAT(values(out.hi), ElementsAre(4, 5));
}

TEST(StructuredOp, EachResultCarriesItsOwnGradient) {
  const Device device = test::device().autodiff();
  const AnyTensor x = make_wave({2}, 0, DType::f32, device).require_grad();
  const AnyTensor y = make_wave({2}, 1, DType::f32, device).require_grad();
  const auto out = apply(Bounds{}, x, y);
  const std::vector<AnyTensor> both{out.lo, out.hi};
  const std::vector<AnyTensor> seeds{make<float>({1, 2}, {2}), make<float>({3, 4}, {2})};
  const Gradients g = vjp(both, seeds);
  EXPECT_THAT(values(g.of(x)), ElementsAre(1, 2));
  EXPECT_THAT(values(g.of(y)), ElementsAre(3, 4));
  // A result that nobody used has a gradient of zeros.
  const Gradients one = vjp({both.data() + 1, 1}, {seeds.data() + 1, 1});
  EXPECT_THAT(values(one.of(x)), Each(0));
  EXPECT_THAT(values(one.of(y)), ElementsAre(3, 4));
}

/// Two launches, and what the test wants of them.
enum class Way : std::uint8_t { right, shape, dtype, empty, device };

struct TwoLaunches {
  static constexpr std::string_view name = "two_launches";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  Way way = Way::right;

  static TensorSpec output(const TensorSpec& x) { return x; }
  RawTensor webgpu_forward(Client& client, const RawTensor& x, const TensorSpec& out) const {
    const KernelSource twice = KernelSource::wgsl(
        "@group(0) @binding(0) var<storage, read> x: array<{{ elem }}>;\n"
        "@group(0) @binding(1) var<storage, read_write> y: array<{{ elem }}>;\n"
        "@compute @workgroup_size({{ workgroup_size_x }}) fn main(@builtin(global_invocation_id) "
        "at: vec3<u32>) {\n"
        "  if (at.x < arrayLength(&x)) { y[at.x] = x[at.x] * 2; }\n}\n");
    const RawTensor dense = client.contiguous(x);
    RawTensor half = client.empty(out);
    RawTensor result = client.empty(out);
    const std::array<std::int64_t, 3> grid{ceil_div(out.shape.elements(), 64), 1, 1};
    client.launch(twice, {64, 1, 1}, grid, {dense, half});
    client.launch(twice, {64, 1, 1}, grid, {half, result});
    switch (way) {
      case Way::right:
        return result;
      case Way::shape:
        return client.empty({{out.shape.elements() + 1}, out.dtype});
      case Way::dtype:
        return client.empty({out.shape, DType::i32});
      case Way::empty:
        return {};
      case Way::device:
        return Client(webgpu::device({.f16 = false}).shared_runtime(), "other").empty(out);
    }
    return {};
  }
};
static_assert(Extension<TwoLaunches>);

TEST(WgslStructuredOp, AForwardOfSeveralLaunchesGivesTheLastResult) {
  EXPECT_THAT(values(apply(TwoLaunches{}, make<float>({1, 2, 3}, {3}))), ElementsAre(4, 8, 12));
  EXPECT_THAT(values(apply(TwoLaunches{}, make({1, 2, 3}, {3}, DType::f16))),
              ElementsAre(4, 8, 12));
}

TEST(WgslStructuredOp, AResultThatIsNotAsPromisedIsRefused) {
  const AnyTensor x = make_wave({3});
  const auto refusal = [&](Way way) {
    return message_of<Error>([&] { test::evaluate(apply(TwoLaunches{way}, x)); });
  };
  const std::string promise = "two_launches: output 'out' is f32 [3] by the output rule";
  EXPECT_THAT(refusal(Way::shape), AllOf(HasSubstr(promise), HasSubstr("f32 [4]")));
  EXPECT_THAT(refusal(Way::dtype), AllOf(HasSubstr(promise), HasSubstr("i32 [3]")));
  EXPECT_THAT(refusal(Way::empty), AllOf(HasSubstr(promise), HasSubstr("empty handle")));
  EXPECT_THAT(refusal(Way::device), AllOf(HasSubstr(promise), HasSubstr("another device")));
}

/// A structured result in a structured result, with plain values of several types.
enum class Kind : std::uint8_t { small, large };

struct Opaque {
  std::int64_t version;
  std::array<bool, 2> flags;
};

template <class T>
struct Measured {
  MinMax<T> bounds;
  double scale;
  std::string label;
  Kind kind;
  DType dtype;
  Opaque opaque;
};

/// Its execution reports another plain value, if the test wants one.
struct Measure {
  static constexpr std::string_view name = "measure";
  static constexpr std::array outputs = {"lo", "hi"};
  using layers = Layers<Cube, Fusion>;
  int wrong = -1;  ///< which of the plain values

  static Measured<TensorSpec> output(const TensorSpec& x) {
    return {{x, x, 2}, 0.5, "all", Kind::small, x.dtype, {1, {true, false}}};
  }
  Measured<RawTensor> webgpu_forward(Client&, const RawTensor& x,
                                     const Measured<TensorSpec>& out) const {
    Measured<RawTensor> given{
        {x, x, out.bounds.count}, out.scale, out.label, out.kind, out.dtype, out.opaque};
    if (wrong == 0) given.bounds.count = 3;
    if (wrong == 1) given.scale = NAN;
    if (wrong == 2) given.label = "some";
    if (wrong == 3) given.kind = Kind::large;
    if (wrong == 4) given.dtype = DType::f16;
    if (wrong == 5) given.opaque.version = 2;
    if (wrong == 6) given.opaque.flags[1] = true;
    return given;
  }
};
static_assert(Extension<Measure>);

TEST(WgslStructuredOp, APlainValueThatExecutionContradictsIsRefused) {
  const AnyTensor x = make_wave({3});
  const auto run = [&](int wrong) {
    const auto out = apply(Measure{wrong}, x);
    EXPECT_EQ(out.bounds.count, 2) << "plain values are those of the rule, and come at once";
    return values(out.bounds.hi);
  };
  EXPECT_EQ(run(-1), values(x));
  const auto refusal = [&](int wrong) { return message_of<Error>([&] { (void)run(wrong); }); };
  EXPECT_THAT(refusal(0), HasSubstr("measure: field 0.2 of the result is 2 by the output rule, but "
                                    "webgpu_forward gave 3"));
  EXPECT_THAT(refusal(1), HasSubstr("field 1 of the result is 0.5 by the output rule, but "
                                    "webgpu_forward gave nan"));
  EXPECT_THAT(refusal(2), AllOf(HasSubstr("field 2"), HasSubstr("'all'"), HasSubstr("'some'")));
  EXPECT_THAT(refusal(3), AllOf(HasSubstr("field 3"), HasSubstr("is 0"), HasSubstr("gave 1")));
  EXPECT_THAT(refusal(4), AllOf(HasSubstr("field 4"), HasSubstr("f32"), HasSubstr("gave f16")));
  EXPECT_THAT(refusal(5), AllOf(HasSubstr("field 5.0"), HasSubstr("is 1"), HasSubstr("gave 2")));
  EXPECT_THAT(refusal(6), HasSubstr("measure: field 5.1 of the result: webgpu_forward gave another "
                                    "value than the output rule"));
}

struct MeasureByReference {
  static constexpr std::string_view name = "measure_by_reference";
  static constexpr std::array outputs = {"lo", "hi"};
  using layers = Layers<Default<Cube>, Fusion>;
  static MinMax<TensorSpec> output(const TensorSpec& x) { return {x, x, 2}; }
  static MinMax<AnyTensor> reference(const AnyTensor& x) { return {x, x, 3}; }
};
static_assert(Extension<MeasureByReference>);

TEST(StructuredOp, APlainValueThatTheReferenceContradictsIsRefused) {
  EXPECT_THAT(
      message_of<Error>([] { (void)values(apply(MeasureByReference{}, make_wave({3})).lo); }),
      AllOf(HasSubstr("measure_by_reference: field 2 of the result is 2"),
            HasSubstr("the reference gave 3")));
}

struct Wrong {
  static constexpr std::string_view name = "wrong";
  using layers = Layers<Default<Autodiff>, Default<Cube>, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return {{x.shape[0], 1}, x.dtype}; }
  static AnyTensor reference(const AnyTensor& x) { return x; }
};

TEST(StructuredOp, AReferenceThatBreaksTheOutputRuleIsRefused) {
  EXPECT_THAT(message_of<ShapeError>([] { (void)apply(Wrong{}, make_wave({3})); }),
              AllOf(HasSubstr("wrong: output 'out' is f32 [3, 1]"), HasSubstr("f32 [3]")));
}

template <class T>
struct Many {
  T a, b, c, d, e, f, g, h, i, j, k;
};
template <class T>
struct Groups {
  Many<T> first;
  std::int64_t count;
  Many<T> second;
};

/// Eleven results, and twenty-two in two groups: more than anybody names.
struct Eleven {
  static constexpr std::string_view name = "eleven";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  static Many<TensorSpec> output(const TensorSpec& x) { return {x, x, x, x, x, x, x, x, x, x, x}; }
  static Many<RawTensor> webgpu_forward(Client&, const RawTensor& x, const Many<TensorSpec>&) {
    return {x, x, x, x, x, x, x, x, x, x, {}};
  }
  static void cpu_kernel(const cpu::Input& x, const Many<cpu::Output>& out) {
    out.k.dense<float>()[0] = x.dense<float>()[0] + 10;
    (void)out.k.dense<std::int32_t>();
  }
};
struct InGroups {
  static constexpr std::string_view name = "in_groups";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  static Groups<TensorSpec> output(const TensorSpec& x) {
    return {Eleven::output(x), 22, Eleven::output(x)};
  }
  static Groups<RawTensor> webgpu_forward(Client& client, const RawTensor& x,
                                          const Groups<TensorSpec>& out) {
    Groups<RawTensor> all{{x, x, x, x, x, x, x, x, x, x, x}, 22, {x, x, x, x, x, x, x, x, x, x, x}};
    all.second.k = client.zeros(out.second.k);
    return all;
  }
  static void cpu_kernel(const cpu::Input& x, const Groups<cpu::Output>& out) {
    const auto fill = [&](const Many<cpu::Output>& to) {
      for (const cpu::Output* t :
           {&to.a, &to.b, &to.c, &to.d, &to.e, &to.f, &to.g, &to.h, &to.i, &to.j, &to.k})
        t->dense<float>()[0] = x.dense<float>()[0];
    };
    fill(out.first);
    fill(out.second);
    cpu::zero(out.second.k);
  }
};
static_assert(Extension<Eleven> && Extension<InGroups>);

TEST(StructuredOp, MoreThanEightUnnamedResultsAreNumbered) {
  const AnyTensor x = make<float>({5}, {1});
  EXPECT_THAT(message_of<Error>([&] { (void)values(apply(Eleven{}, x).a); }),
              AllOf(HasSubstr("eleven"), HasSubstr("'out10'")));
  const auto out = apply(InGroups{}, x);
  EXPECT_EQ(out.count, 22);
  EXPECT_THAT(values(out.first.a), ElementsAre(5));
  EXPECT_THAT(values(out.first.k), ElementsAre(5));
  EXPECT_THAT(values(out.second.j), ElementsAre(5));
  EXPECT_THAT(values(out.second.k), ElementsAre(0));
}

struct Picky {
  static constexpr std::string_view name = "picky";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return x; }
  static std::vector<webgpu::Launch> webgpu_kernel(const Operand& x, const Operand& out,
                                                   const webgpu::Limits& limits) {
    const auto fill = [&](const char* number) -> webgpu::Launch {
      return {.source = KernelSource::wgsl(
                            "{{ bindings }}\n@compute @workgroup_size(64)\n"
                            "fn main(@builtin(global_invocation_id) at: vec3<u32>) {\n"
                            "  if (at.x < params.count) { store_out(at.x, {{ number }}); }\n}\n")
                            .define("number", number),
              .params = {{"count", out.shape().elements()}}};
    };
    EXPECT_GT(limits.workgroups, 0U);
    return {x.dim(0) % 4 == 0 ? fill("4")
                              : webgpu::Launch::decline("by fours: size is no multiple of 4"),
            x.dim(0) % 2 == 0 ? fill("2") : webgpu::Launch::decline("by twos: size is odd")};
  }
};
static_assert(Extension<Picky>);

TEST(WgslStructuredOp, CandidatesAreTriedInOrderAndSayWhyTheyDecline) {
  EXPECT_THAT(values(apply(Picky{}, make_wave({4}))), Each(4));
  EXPECT_THAT(values(apply(Picky{}, make_wave({6}))), Each(2));
  EXPECT_THAT(message_of<KernelError>([] { test::evaluate(apply(Picky{}, make_wave({3}))); }),
              AllOf(HasSubstr("picky"), HasSubstr("no multiple of 4"), HasSubstr("size is odd")));
}

struct Counting {
  static constexpr std::string_view name = "counting";
  static constexpr std::array<const char*, 0> inputs{};
  using layers = Layers<Cube, Fusion>;
  std::int64_t count;
  TensorSpec output() const { return {{count}, DType::u32}; }
  static webgpu::Launch webgpu_kernel(const Operand& out) {
    return {
        .source = KernelSource::wgsl("{{ bindings }}\n@compute @workgroup_size(64)\n"
                                     "fn main(@builtin(global_invocation_id) at: vec3<u32>) {\n"
                                     "  if (at.x < params.count) { store_out(at.x, at.x); }\n}\n"),
        .params = {{"count", out.dim(0)}},
        .grid = {ceil_div(out.dim(0), 64), 1, 1}};
  }
};

TEST(WgslStructuredOp, AnOperationWithoutInputsIsAppliedToADevice) {
  EXPECT_THAT(values(apply(Counting{3}, test::device())), ElementsAre(0, 1, 2));
}

}  // namespace
}  // namespace kiln
