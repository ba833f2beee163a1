// Gradients as a user's rules give them: what may be kept, what a rule must set, and what is
// refused.
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

struct Mul {
  static constexpr std::string_view name = "mul";
  static Expr body(Expr a, Expr b) { return a * b; }
};
struct Widen {
  static constexpr std::string_view name = "widen";
  static Expr body(Expr x) { return cast(x, DType::f32); }
};
struct Narrow {
  static constexpr std::string_view name = "narrow";
  static Expr body(Expr x) { return cast(x, DType::f16); }
};

Device training() { return test::device().autodiff(); }
AnyTensor leaf(const Shape& shape, int seed = 0) {
  return make_wave(shape, seed, DType::f32, training()).require_grad();
}

Gradients backward(const AnyTensor& out) {
  const AnyTensor seed =
      make(std::vector<float>(static_cast<std::size_t>(out.shape().elements()), 1), out.shape(),
           out.dtype(), out.device());
  return vjp({&out, 1}, {&seed, 1});
}

/// a * b + c by a kernel; what backward does is the test's to say.
enum class Fault : std::uint8_t {
  none,
  zeros,
  shape,
  dtype,
  unset,
  not_reduced,
  unreducible,
  not_kept,
  device
};

struct MulAdd {
  static constexpr std::string_view name = "mul_add";
  static constexpr std::array inputs = {"a", "b", "c"};
  using layers = Layers<Autodiff, Cube, Fusion>;
  Fault fault = Fault::none;

  static TensorSpec output(const TensorSpec& a, const TensorSpec&, const TensorSpec&) { return a; }
  static webgpu::Launch webgpu_kernel(const Operand&, const Operand&, const Operand& c,
                                      const Operand& out) {
    return {.source = KernelSource::wgsl("{{ bindings }}\n"
                                         "@compute @workgroup_size(64)\n"
                                         "fn main(@builtin(global_invocation_id) at: vec3<u32>) {\n"
                                         "  let i = at.x;\n"
                                         "  if (i >= params.count) { return; }\n"
                                         "  store_out(i, a[i] * b[i] + c[i % params.repeat]);\n"
                                         "}\n"),
            .params = {{"count", out.shape().elements()}, {"repeat", c.shape().elements()}},
            .grid = {ceil_div(out.shape().elements(), 64), 1, 1}};
  }
  static void cpu_kernel(const cpu::Input& a, const cpu::Input& b, const cpu::Input& c,
                         const cpu::Output& out) {
    const auto addend = c.dense<float>();
    for (std::size_t i = 0; i < out.dense<float>().size(); ++i)
      out.dense<float>()[i] = a.dense<float>()[i] * b.dense<float>()[i] + addend[i % addend.size()];
  }

  struct Saved {
    Checkpoint a;
    Checkpoint b;
  };
  Saved save(const Saver& saver, const AnyTensor& a, const AnyTensor& b, const AnyTensor&,
             const AnyTensor&) const {
    return {saver.keep_if(b.tracked() && fault != Fault::not_kept, a),
            saver.keep_if(a.tracked(), b)};
  }
  void backward(const Saved& saved, const AnyTensor& grad, Grads<3>& grads) const {
    auto& [a, b, c] = grads;
    if (a) {
      switch (fault) {
        case Fault::zeros:
          a.set(AnyTensor(full(grad.device(), grad.spec(), 0), grad.device()));
          break;
        case Fault::shape:
          a.set(make_wave({1, 2}));
          break;
        case Fault::dtype:
          a.set(apply(Narrow{}, grad));
          break;
        case Fault::unset:
          break;
        case Fault::device:
          a.set(make_wave({2, 3}, 0, DType::f32, webgpu::device({.f16 = false})));
          break;
        case Fault::unreducible:
          a.set_reduced(make_wave({5}));
          break;
        default:
          a.set(apply(Mul{}, grad, saved.b.get()));
      }
    }
    if (b) b.set(apply(Mul{}, grad, saved.a.get()));
    if (c && fault == Fault::not_reduced) c.set(grad);
    if (c && fault != Fault::not_reduced) c.set_reduced(grad);
  }
};
static_assert(Extension<MulAdd>);

TEST(GradientRules, ARuleSetsTheGradientOfEachTrackedInput) {
  const AnyTensor a = leaf({2, 3});
  const AnyTensor b = leaf({2, 3}, 1);
  const AnyTensor c = leaf({3}, 2);
  const Gradients g = backward(apply(MulAdd{}, a, b, c));
  EXPECT_EQ(values(g.of(a)), values(b));
  EXPECT_EQ(values(g.of(b)), values(a));
  EXPECT_THAT(values(g.of(c)), ElementsAre(2, 2, 2));
}

TEST(GradientRules, OneTensorInSeveralSlotsGetsTheSum) {
  const AnyTensor x = leaf({4});
  const std::vector<float> g = values(backward(apply(MulAdd{}, x, x, x)).of(x));
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(g[i], 2 * values(x)[i] + 1, 1e-6);
}

TEST(GradientRules, WhatOnlyUntrackedParentsNeedIsFreed) {
  const std::uint64_t bytes = 1 << 20;
  const Shape shape{1 << 18};
  const auto in_use = [] { return test::counters().bytes_in_use; };
  const AnyTensor bias = leaf(shape, 2);
  const std::uint64_t before = in_use();
  {
    AnyTensor out;
    {
      const AnyTensor a = make_wave(shape, 0, DType::f32, training());
      const AnyTensor b = make_wave(shape, 1, DType::f32, training());
      out = apply(MulAdd{}, a, b, bias);
      EXPECT_EQ(in_use() - before, 3 * bytes);
    }
    EXPECT_EQ(in_use() - before, bytes) << "with only the bias tracked, a and b are freed";
    EXPECT_THAT(values(backward(out).of(bias)), Each(1));
  }
  {
    AnyTensor out;
    {
      const AnyTensor a = make_wave(shape, 0, DType::f32, training());
      const AnyTensor b = leaf(shape, 1);
      out = apply(MulAdd{}, a, b, bias);
    }
    EXPECT_EQ(in_use() - before, 2 * bytes) << "a is kept for b's gradient, b itself is not";
  }
  EXPECT_EQ(in_use(), before);
}

TEST(GradientRules, WithoutATrackedInputNothingIsKept) {
  const std::int64_t nodes = Node::alive();
  const AnyTensor x = make_wave({3}, 0, DType::f32, training());
  const AnyTensor out = apply(MulAdd{}, x, x, x);
  EXPECT_FALSE(out.tracked());
  EXPECT_EQ(Node::alive(), nodes);
}

TEST(GradientRules, ABackwardThatReturnsZerosGivesZeros) {
  const AnyTensor x = leaf({3});
  EXPECT_THAT(
      values(backward(apply(MulAdd{Fault::zeros}, x, make_wave({3}), make_wave({3}))).of(x)),
      Each(0));
}

std::string refusal(Fault fault) {
  const AnyTensor a = leaf({2, 3});
  const AnyTensor b = leaf({2, 3}, 1);
  const AnyTensor c = leaf({3}, 2);
  const AnyTensor out = apply(MulAdd{fault}, a, b, c);
  return message_of<Error>([&] { (void)backward(out); });
}

TEST(GradientRules, AWrongGradientIsAnErrorThatNamesOperationAndSlot) {
  const std::string slot_a = "mul_add: backward: gradient of input 'a'";
  EXPECT_THAT(refusal(Fault::shape),
              AllOf(HasSubstr(slot_a), HasSubstr("[1, 2]"), HasSubstr("[2, 3]")));
  EXPECT_THAT(refusal(Fault::dtype),
              AllOf(HasSubstr(slot_a), HasSubstr("f16 [2, 3]"), HasSubstr("f32 [2, 3]")));
  EXPECT_THAT(refusal(Fault::unset), HasSubstr(slot_a + " was not set"));
  EXPECT_THAT(refusal(Fault::unreducible),
              AllOf(HasSubstr(slot_a), HasSubstr("[5]"), HasSubstr("[2, 3]")));
  EXPECT_THAT(refusal(Fault::not_reduced),
              AllOf(HasSubstr("gradient of input 'c'"), HasSubstr("[2, 3]"), HasSubstr("[3]"),
                    HasSubstr("set_reduced")));
  EXPECT_THAT(refusal(Fault::not_kept), HasSubstr("not kept"));
  EXPECT_THAT(refusal(Fault::device), AllOf(HasSubstr(slot_a + " is on another device (webgpu: "),
                                            HasSubstr("to(device)")));
}

struct Bare {
  static constexpr std::string_view name = "bare";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return x; }
  static RawTensor webgpu_forward(Client&, const RawTensor& x, const TensorSpec&) { return x; }
  static void cpu_kernel(const cpu::Input& x, const cpu::Output& out) { cpu::copy(x, out.raw()); }
};

TEST(GradientRules, AnOperationWithoutAGradientSaysSoInBackwardOnly) {
  const AnyTensor x = leaf({3});
  const AnyTensor y = apply(Bare{}, x);
  EXPECT_EQ(values(y), values(x));
  EXPECT_THAT(message_of<UnsupportedError>([&] { (void)backward(apply(Mul{}, y, x)); }),
              AllOf(HasSubstr("bare: has no gradient"), HasSubstr("Default<Autodiff>")));
}

// Composites.

/// x * x * y, with a gradient of its own (a hundred times the right one, to tell).
struct OwnBackward {
  static constexpr std::string_view name = "own_backward";
  static constexpr std::array inputs = {"x", "y"};
  using layers = Layers<Autodiff, Default<Cube>, Fusion>;
  static TensorSpec output(const TensorSpec& x, const TensorSpec&) { return x; }
  static AnyTensor reference(const AnyTensor& x, const AnyTensor& y) {
    return apply(Mul{}, apply(Mul{}, x, x), y);
  }
  struct Saved {};
  static Saved save(const Saver&, const AnyTensor&, const AnyTensor&, const AnyTensor&) {
    return {};
  }
  static void backward(const Saved&, const AnyTensor& grad, Grads<2>& grads) {
    const AnyTensor hundred(full(grad.device(), grad.spec(), 100), grad.device());
    grads[0].set(hundred);
    grads[1].set(hundred);
  }
};

/// The same, differentiated through the reference.
struct ByReference {
  static constexpr std::string_view name = "by_reference";
  static constexpr std::array inputs = {"x", "y"};
  using layers = Layers<Default<Autodiff>, Default<Cube>, Default<Fusion>>;
  static AnyTensor reference(const AnyTensor& x, const AnyTensor& y) {
    return OwnBackward::reference(x, y);
  }
};

/// A kernel whose gradient comes from its reference.
struct KernelByReference {
  static constexpr std::string_view name = "kernel_by_reference";
  static constexpr std::array inputs = {"x", "y"};
  using layers = Layers<Default<Autodiff>, Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x, const TensorSpec&) { return x; }
  static AnyTensor reference(const AnyTensor& x, const AnyTensor& y) {
    return OwnBackward::reference(x, y);
  }
  static webgpu::Launch webgpu_kernel(const Operand&, const Operand&, const Operand& out) {
    return {.source = KernelSource::wgsl(
                "{{ bindings }}\n@compute @workgroup_size(64)\n"
                "fn main(@builtin(global_invocation_id) at: vec3<u32>) {\n"
                "  if (at.x < params.count) { store_out(at.x, x[at.x] * x[at.x] * y[at.x]); }\n"
                "}\n"),
            .params = {{"count", out.shape().elements()}},
            .grid = {ceil_div(out.shape().elements(), 64), 1, 1}};
  }
  static void cpu_kernel(const cpu::Input& x, const cpu::Input& y, const cpu::Output& out) {
    for (std::size_t i = 0; i < out.dense<float>().size(); ++i) {
      const float v = x.dense<float>()[i];
      out.dense<float>()[i] = v * v * y.dense<float>()[i];
    }
  }
};
static_assert(Extension<OwnBackward> && Extension<ByReference> && Extension<KernelByReference>);

TEST(GradientRules, ACompositeWithItsOwnBackwardUsesIt) {
  const AnyTensor x = leaf({3});
  const AnyTensor y = leaf({3}, 1);
  const AnyTensor out = apply(OwnBackward{}, x, y);
  const std::vector<float> a = values(x);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(values(out)[i], a[i] * a[i] * values(y)[i], 1e-6);
  const Gradients g = backward(out);
  EXPECT_THAT(values(g.of(x)), Each(100));
  EXPECT_THAT(values(g.of(y)), Each(100));
}

template <class Op>
void expect_reference_gradients() {
  const auto f = [](const std::vector<AnyTensor>& in) -> AnyTensor {
    return apply(Op{}, in[0], in[1]);
  };
  test::expect_gradients(std::string(Op::name), f, {make_wave({4}), make_wave({4}, 1)});
  const AnyTensor x = leaf({3});
  const AnyTensor y = make_wave({3}, 1, DType::f32, training());
  EXPECT_FALSE(backward(apply(Op{}, x, y)).contains(y));
}

TEST(GradientRules, DefaultAutodiffDifferentiatesTheReference) {
  expect_reference_gradients<ByReference>();
  expect_reference_gradients<KernelByReference>();
}

struct First {
  static constexpr std::string_view name = "first";
  static constexpr std::array inputs = {"x", "y"};
  using layers = Layers<Default<Autodiff>, Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x, const TensorSpec&) { return x; }
  static AnyTensor reference(const AnyTensor& x, const AnyTensor&) { return x; }
  static RawTensor webgpu_forward(Client&, const RawTensor& x, const RawTensor&,
                                  const TensorSpec&) {
    return x;
  }
  static void cpu_kernel(const cpu::Input& x, const cpu::Input&, const cpu::Output& out) {
    cpu::copy(x, out.raw());
  }
};

TEST(GradientRules, AReferenceThatIgnoresAnInputGivesItZero) {
  const AnyTensor x = leaf({3});
  const AnyTensor y = leaf({2}, 1);
  const Gradients g = backward(apply(First{}, x, y));
  EXPECT_THAT(values(g.of(x)), Each(1));
  EXPECT_THAT(values(g.of(y)), ElementsAre(0, 0));
}

struct Cube3 {
  static constexpr std::string_view name = "cube";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Autodiff, Default<Cube>, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return x; }
  static AnyTensor reference(const AnyTensor& x) { return apply(Mul{}, x, apply(Mul{}, x, x)); }
  struct Saved {
    Checkpoint x;
  };
  static Saved save(const Saver& saver, const AnyTensor& x, const AnyTensor&) {
    return {saver.keep(x)};
  }
  static void webgpu_backward(const Saved& saved, const AnyTensor& grad, Grads<1>& grads) {
    grads[0].set(apply(MulAdd{}, saved.x.get(), saved.x.get(), grad));  // not the gradient: to tell
  }
};
static_assert(Extension<Cube3>);

TEST(WgslGradientRules, AWebgpuBackwardMayLaunchKernelsOfItsOwn) {
  const AnyTensor x = make<float>({2, 3}, {2}, training()).require_grad();
  EXPECT_THAT(values(backward(apply(Cube3{}, x)).of(x)), ElementsAre(5, 10));
}

TEST(GradientRules, GradientsGoThroughCasts) {
  const AnyTensor x = make({1, 2}, {2}, DType::f16, training()).require_grad();
  const AnyTensor y = apply(Mul{}, apply(Widen{}, x), make<float>({3, 4}, {2}, training()));
  const AnyTensor g = backward(y).of(x);
  EXPECT_EQ(g.dtype(), DType::f16);
  EXPECT_THAT(values(g), ElementsAre(3, 4));
}

}  // namespace
}  // namespace kiln
