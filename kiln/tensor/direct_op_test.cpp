// Operations without an output rule: the shapes of their results depend on values.
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

struct Twice {
  static constexpr std::string_view name = "twice";
  static Expr body(Expr x) { return x * 2; }
};

Device training() { return test::device().autodiff(); }

Gradients backward(const AnyTensor& out) {
  const std::vector<float> ones(static_cast<std::size_t>(out.shape().elements()), 1);
  const AnyTensor seed = make(ones, out.shape(), out.device());
  return vjp({&out, 1}, {&seed, 1});
}

template <class T>
RawTensor created(const Client& client, const std::vector<T>& values) {
  return client.create(std::span<const T>(values), {std::ssize(values)});
}

/// The indices of the elements that are not 0.
struct Nonzero {
  static constexpr std::string_view name = "nonzero";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube>;
  static RawTensor webgpu_forward(Client& client, const RawTensor& x) {
    if (x.shape().rank() != 1) throw ShapeError("nonzero: x must have rank 1");
    std::vector<std::int32_t> found;
    std::int32_t at = 0;
    for (const float v : client.read<float>(x)) {
      if (v != 0) found.push_back(at);
      ++at;
    }
    return client.create(std::span<const std::int32_t>(found), {std::ssize(found)});
  }
};
static_assert(Extension<Nonzero>);

TEST(WgslDirectOp, TheShapeDependsOnValues) {
  const auto indices = [](const std::vector<float>& x) {
    const auto size = static_cast<std::int64_t>(x.size());
    return apply(Nonzero{}, make<float>(x, {size})).to_vector<std::int32_t>();
  };
  EXPECT_THAT(indices({0, 5, 0, -1, NAN}), ElementsAre(1, 3, 4));
  EXPECT_TRUE(indices({0, 0}).empty());
  EXPECT_TRUE(indices({}).empty());
}

TEST(WgslDirectOp, ReadsResultsOfOtherOperationsAndFeedsThem) {
  const AnyTensor x = apply(Twice{}, make<float>({0, 1, 2}, {3}));
  const AnyTensor found = apply(Twice{}, apply(Nonzero{}, x));
  EXPECT_THAT(found.to_vector<std::int32_t>(), ElementsAre(2, 4));
  EXPECT_THAT(message_of<ShapeError>([] { (void)apply(Nonzero{}, make_wave({2, 2})); }),
              HasSubstr("nonzero"));
}

TEST(WgslDirectOp, IndicesHaveNoGradient) {
  const AnyTensor x = make<float>({0, 4}, {2}, training()).require_grad();
  const AnyTensor found = apply(Nonzero{}, x);
  EXPECT_FALSE(found.tracked());
  EXPECT_THROW((void)found.backward(), UnsupportedError);
}

/// grad's elements at the places where x is above 0, and 0 elsewhere.
struct SpreadPositive {
  static constexpr std::string_view name = "spread_positive";
  static constexpr std::array inputs = {"x", "grad"};
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x, const TensorSpec&) { return x; }
  static webgpu::Launch webgpu_kernel(const Operand&, const Operand&, const Operand& out) {
    return {.source = KernelSource::wgsl(
                "{{ bindings }}\n@compute @workgroup_size(64)\n"
                "fn main(@builtin(global_invocation_id) at: vec3<u32>) {\n"
                "  if (at.x >= params.count) { return; }\n"
                "  var before = 0u;\n"
                "  for (var i = 0u; i < at.x; i++) { before += select(0u, 1u, x[i] > 0); }\n"
                "  if (x[at.x] > 0) { store_out(at.x, grad[before]); }\n}\n"),
            .params = {{"count", out.dim(0)}},
            .grid = {ceil_div(out.dim(0), 64), 1, 1},
            .zeroed = true};
  }
};
static_assert(Extension<SpreadPositive>);

enum class Fault : std::uint8_t { none, empty, device, gradient };

/// The elements above 0, one after the other, and how many they are.
template <class T>
struct Taken {
  T elements;
  std::int64_t count;
};

struct TakePositive {
  static constexpr std::string_view name = "take_positive";
  static constexpr std::array inputs = {"x"};
  static constexpr std::array outputs = {"elements"};
  using layers = Layers<Autodiff, Cube>;
  Fault fault = Fault::none;

  Taken<RawTensor> webgpu_forward(Client& client, const RawTensor& x) const {
    std::vector<float> taken;
    for (const float v : client.read<float>(x)) {
      if (v > 0) taken.push_back(v);
    }
    const auto count = static_cast<std::int64_t>(taken.size());
    if (fault == Fault::empty) return {{}, count};
    if (fault == Fault::device) {
      const auto other = webgpu::device({.f16 = false}).shared_runtime();
      return {created(Client(other, "other"), taken), count};
    }
    return {created(client, taken), count};
  }
  struct Saved {
    Checkpoint x;
    std::int64_t count;
  };
  static Saved save(const Saver& saver, const AnyTensor& x, const Taken<AnyTensor>& out) {
    return {saver.keep(x), out.count};
  }
  void backward(const Saved& saved, const Taken<AnyTensor>& grad, Grads<1>& grads) const {
    EXPECT_EQ(saved.count, grad.count);
    EXPECT_EQ(grad.elements.shape(), Shape{saved.count});
    grads[0].set(fault == Fault::gradient ? grad.elements
                                          : apply(SpreadPositive{}, saved.x.get(), grad.elements));
  }
};
static_assert(Extension<TakePositive>);

AnyTensor leaf() { return make<float>({1, -2, 3, 0, 5}, {5}, training()).require_grad(); }

TEST(WgslDirectOp, GivesPlainValuesToo) {
  const Taken<AnyTensor> out = apply(TakePositive{}, make<float>({1, -2, 3}, {3}));
  EXPECT_EQ(out.count, 2);
  EXPECT_THAT(values(out.elements), ElementsAre(1, 3));
  EXPECT_FALSE(out.elements.tracked());
}

TEST(WgslDirectOp, ItsBackwardRuleIsUsed) {
  const AnyTensor x = leaf();
  const AnyTensor y = apply(Twice{}, apply(TakePositive{}, apply(Twice{}, x)).elements);
  EXPECT_THAT(values(y), ElementsAre(4, 12, 20));
  EXPECT_THAT(values(backward(y).of(x)), ElementsAre(4, 0, 4, 0, 4));
}

TEST(WgslDirectOp, ItsGradientIsWhatDifferencesSay) {
  const auto f = [](const std::vector<AnyTensor>& in) {
    return apply(TakePositive{}, in[0]).elements;
  };
  test::expect_gradients("take_positive", f, {make_wave({9})});
}

TEST(WgslDirectOp, WrongResultsAreRefused) {
  const AnyTensor x = leaf();
  EXPECT_THAT(message_of<KernelError>([&] { (void)apply(TakePositive{Fault::empty}, x); }),
              AllOf(HasSubstr("take_positive: output 'elements'"), HasSubstr("an empty handle")));
  EXPECT_THAT(message_of<DeviceError>([&] { (void)apply(TakePositive{Fault::device}, x); }),
              AllOf(HasSubstr("take_positive: output 'elements'"), HasSubstr("another device")));
  const AnyTensor out = apply(TakePositive{Fault::gradient}, x).elements;
  EXPECT_THAT(message_of<ShapeError>([&] { (void)backward(out); }),
              AllOf(HasSubstr("take_positive: backward: gradient of input 'x'"), HasSubstr("[3]"),
                    HasSubstr("[5]")));
}

/// The first element that is not 0, if there is one.
struct FirstNonzero {
  static constexpr std::string_view name = "first_nonzero";
  using layers = Layers<Cube>;
  static RawTensor webgpu_forward(Client& client, const RawTensor& x) {
    for (const float v : client.read<float>(x)) {
      if (v != 0) return created(client, std::vector<float>{v});
    }
    return created(client, std::vector<float>{});
  }
};
static_assert(Extension<FirstNonzero>);

TEST(WgslDirectOp, WithoutAGradientItSaysSoInBackwardOnly) {
  const AnyTensor y = apply(FirstNonzero{}, leaf());
  EXPECT_THAT(values(y), ElementsAre(1));
  EXPECT_THAT(message_of<UnsupportedError>([&] { (void)backward(apply(Twice{}, y)); }),
              HasSubstr("first_nonzero: has no gradient"));
}

struct ByReference {
  static constexpr std::string_view name = "by_reference";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Default<Autodiff>, Cube>;
  static RawTensor webgpu_forward(Client& client, const RawTensor& x) {
    return created(client, client.read<float>(x));
  }
  static AnyTensor reference(const AnyTensor& x) { return apply(Twice{}, x); }  // to tell
};
static_assert(Extension<ByReference>);

TEST(WgslDirectOp, DefaultAutodiffDifferentiatesItsReference) {
  const AnyTensor x = leaf();
  const AnyTensor y = apply(ByReference{}, x);
  EXPECT_EQ(values(y), values(x));
  EXPECT_THAT(values(backward(y).of(x)), Each(2));
}

struct WorkgroupLimit {
  static constexpr std::string_view name = "workgroup_limit";
  using layers = Layers<Cube>;
  static RawTensor webgpu_forward(Client& client) {
    return created(client, std::vector<std::uint32_t>{client.limits().workgroups});
  }
};
static_assert(Extension<WorkgroupLimit>);

TEST(WgslDirectOp, WithoutInputsItIsAppliedToADevice) {
  EXPECT_GE(apply(WorkgroupLimit{}, test::device()).item<std::uint32_t>(), 65535U);
}

}  // namespace
}  // namespace kiln
