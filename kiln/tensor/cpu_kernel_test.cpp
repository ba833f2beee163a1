// Operations whose kernel is a function of the host.
#include "kiln/autodiff/test_support.hpp"
#include "kiln/fusion/inspect.hpp"
#include "kiln/fusion/stream.hpp"
#include "kiln/runtime/cpu/cpu.hpp"
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
using ::testing::Pointwise;

Device host() { return test::device().is_eager() ? cpu::device().eager() : cpu::device(); }

struct Square {
  static constexpr std::string_view name = "square";
  static Expr body(Expr x) { return x * x; }
};
struct Plus {
  static constexpr std::string_view name = "plus";
  static Expr body(Expr a, Expr b) { return a + b; }
};
struct Narrow {
  static constexpr std::string_view name = "narrow";
  static Expr body(Expr x) { return cast(x, DType::f16); }
};

/// How a kernel commits what it wrote.
enum class Commit : std::uint8_t { nothing, rows, half, too_much };

/// Row sums that run: element j of a row is the sum of its first j + 1.
struct Running {
  static constexpr std::string_view name = "running";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  Commit commit = Commit::nothing;
  Param scale{1};

  static TensorSpec output(const TensorSpec& x) { return x; }
  void cpu_kernel(const cpu::Input& x, const cpu::Output& out) const {
    cpu::with_float(out.dtype(), [&](auto element) {
      using T = decltype(element);
      const auto in = x.strided<T>();
      const std::span<T> to = out.dense<T>();
      const std::int64_t n = out.dim(1);
      cpu::parallel_for(out.dim(0), 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          float sum = 0;
          for (std::int64_t j = 0; j < n; ++j) {
            sum += static_cast<float>(in(row, j)) * static_cast<float>(scale.value());
            to[static_cast<std::size_t>(row * n + j)] = T(sum);
          }
          if (commit == Commit::rows) out.commit(row * n, n);
        }
      });
      if (commit == Commit::half) out.commit(0, n);
      if (commit == Commit::too_much) out.commit(1, out.dim(0) * n);
    });
  }
};
static_assert(Extension<Running>);

std::vector<double> running(const std::vector<float>& x, std::size_t n) {
  std::vector<double> out;
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    sum = (i % n == 0 ? 0 : sum) + double{x[i]};
    out.push_back(sum);
  }
  return out;
}

TEST(CpuKernel, ReadsItsOperandsByTheirSteps) {
  const AnyTensor x = make_wave({6, 40}, 0, DType::f32, host());
  test::expect_near(apply(Running{}, x).to_vector(), running(x.to_vector(), 40), 1e-5);
  const std::vector<float> column{1, 2, 3};
  Layout repeated = Layout::dense({3, 4});
  repeated.strides = {1, 0};
  const AnyTensor broadcast(
      Stream::of(host().runtime()).view("repeated", make(column, {3}, host()).value(), repeated),
      host());
  EXPECT_THAT(apply(Running{}, broadcast).to_vector(),
              ElementsAre(1, 2, 3, 4, 2, 4, 6, 8, 3, 6, 9, 12));
}

TEST(CpuKernel, ParamsAreThoseOfTheCall) {
  const AnyTensor x = make(std::vector<float>{1, 1}, {1, 2}, host());
  for (const double scale : {0.5, 3.0}) {
    EXPECT_THAT(apply(Running{Commit::nothing, {scale}}, x).to_vector(),
                ElementsAre(scale, 2 * scale));
  }
}

TEST(CpuKernel, TakesItsNeighboursWhetherItCommitsOrNot) {
  for (const DType dtype : {DType::f32, DType::f16}) {
    const AnyTensor x = make_wave({50, 33}, 0, dtype, host());
    const AnyTensor y = make_wave({33}, 3, dtype, host());
    for (const Commit commit : {Commit::nothing, Commit::rows}) {
      const auto compute = [&](const AnyTensor& in) {
        return apply(Square{}, apply(Plus{}, apply(Running{commit}, in), y));
      };
      host().flush();
      const AnyTensor fused = compute(x);
      if (!host().is_eager()) {
        EXPECT_EQ(inspect(host()).launches, 1U);
      }
      const AnyTensor single = compute(x.to(host().eager()));
      EXPECT_EQ(values(fused), values(single));
    }
  }
}

TEST(CpuKernel, WhatNeighboursMakeMayHaveADTypeOfItsOwnAndBeHeldBesideIt) {
  const AnyTensor x = make_wave({7, 30}, 0, DType::f32, host());
  const AnyTensor sums = apply(Running{Commit::rows}, x);
  const AnyTensor half = apply(Narrow{}, apply(Square{}, sums));
  std::vector<double> expected = running(x.to_vector(), 30);
  test::expect_near(sums.to_vector(), expected, 1e-5);
  for (double& v : expected) v *= v;
  test::expect_near(values(half), expected, 2e-3);
}

TEST(CpuKernel, CommitsThatAreNotTheWholeAreAnErrorThatSaysSo) {
  const AnyTensor x = make_wave({4, 8}, 0, DType::f32, host());
  const auto read = [&](Commit commit) {
    return message_of<KernelError>(
        [&] { (void)apply(Square{}, apply(Running{commit}, x)).to_vector(); });
  };
  if (!host().is_eager()) {
    const test::LenientFusion lenient;
    // Alone it needs no commits: what it gives then is right.
    const AnyTensor y = apply(Square{}, apply(Running{Commit::half}, x));
    EXPECT_EQ(y.to_vector().size(), 32U) << "run one by one after the fused launch failed";
  }
  EXPECT_THAT(read(Commit::too_much),
              AllOf(HasSubstr("running: output 'out' has 32 elements"), HasSubstr("from 1 on")));
}

/// It fails once something is fused with it. `runs` counts its calls.
struct Unfusable {
  static constexpr std::string_view name = "unfusable";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  static inline int runs = 0;
  static TensorSpec output(const TensorSpec& x) { return x; }
  static void cpu_kernel(const cpu::Input& x, const cpu::Output& out) {
    ++runs;
    const auto in = x.strided<float>();
    const std::span<float> to = out.dense<float>();
    for (std::int64_t i = 0; i < out.dim(0); ++i) to[static_cast<std::size_t>(i)] = in(i);
    out.commit(0, 1);
  }
};

TEST(CpuKernel, ABlockThatFailsThoughItsOperationsRunIsAnErrorIfThatIsAskedFor) {
  const AnyTensor x = make_wave({8}, 0, DType::f32, cpu::device().lazy());
  EXPECT_THAT(message_of<Error>([&] { (void)apply(Square{}, apply(Unfusable{}, x)).to_vector(); }),
              AllOf(HasSubstr("the block unfusable+square failed"), HasSubstr("KILN_STRICT_FUSION"),
                    HasSubstr("unfusable: the kernel commits 1 of its output's 8 elements")));
}

TEST(CpuKernel, ABlockThatFailsIsNotTriedAgainAndReportsSayWhy) {
  const test::LenientFusion lenient;
  const AnyTensor x = make_wave({9}, 0, DType::f32, cpu::device().lazy());
  std::vector<float> squares = values(x);
  for (float& each : squares) each *= each;
  for (const int runs : {2, 1, 1}) {  // the first time fused, then by itself
    Unfusable::runs = 0;
    const AnyTensor y = apply(Square{}, apply(Unfusable{}, x));
    const DrainReport report = inspect(x.device());
    EXPECT_EQ(values(y), squares);
    EXPECT_EQ(Unfusable::runs, runs);
    ASSERT_EQ(report.blocks.size(), 1U);
    EXPECT_THAT(report.blocks[0].fault, HasSubstr("commits 1 of its output's 9 elements"));
    EXPECT_THAT(to_table(report), HasSubstr(report.blocks[0].fault));
  }
}

/// What a kernel asks for that its operands are not.
struct Asks {
  static constexpr std::string_view name = "asks";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return x; }
  static void cpu_kernel(const cpu::Input& x, const cpu::Output&) { (void)x.dense<std::int32_t>(); }
};

TEST(CpuKernel, AnotherElementTypeIsRefusedByName) {
  const AnyTensor x = make_wave({2}, 0, DType::f32, host());
  EXPECT_THAT(message_of<DTypeError>([&] { (void)apply(Asks{}, x).to_vector(); }),
              AllOf(HasSubstr("asks: operand 'x' is f32 [2]"), HasSubstr("as i32")));
}

struct Throws {
  static constexpr std::string_view name = "throws";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return x; }
  static void cpu_kernel(const cpu::Input& x, const cpu::Output&) {
    cpu::parallel_for(x.dim(0), 1, [](std::int64_t, std::int64_t) {
      throw std::runtime_error("the disk is full");
    });
  }
};

TEST(CpuKernel, WhatItThrowsMeetsWhoReadsTheResultOrAnythingMadeOfIt) {
  const AnyTensor x = make_wave({200}, 0, DType::f32, host());
  const auto read = [&](const AnyTensor& y) {
    return message_of<std::runtime_error>([&] { (void)y.to_vector(); });
  };
  if (host().is_eager()) {
    EXPECT_THROW((void)apply(Throws{}, x), std::runtime_error);
    return;
  }
  const AnyTensor y = apply(Throws{}, x);
  EXPECT_THAT(read(apply(Square{}, y)), HasSubstr("the disk is full"));
  EXPECT_THAT(read(y), HasSubstr("the disk is full"));
  EXPECT_EQ(apply(Square{}, x).to_vector().size(), 200U);
}

/// Only for the host, with a reference and a gradient of its own that tells itself apart.
struct HostOnly {
  static constexpr std::string_view name = "host_only";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Autodiff, Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return x; }
  static void cpu_kernel(const cpu::Input& x, const cpu::Output& out) {
    for (std::size_t i = 0; i < x.dense<float>().size(); ++i)
      out.dense<float>()[i] = x.dense<float>()[i] + 1;
  }
  struct Saved {};
  static Saved save(const Saver&, const AnyTensor&, const AnyTensor&) { return {}; }
  static void backward(const Saved&, const AnyTensor& grad, Grads<1>& grads) {
    grads[0].set(apply(Plus{}, grad, apply(Plus{}, grad, grad)));
  }
  static AnyTensor reference(const AnyTensor& x) {
    return apply(Plus{}, x, AnyTensor(full(x.device(), x.spec(), 1), x.device().plain()));
  }
};

TEST(CpuKernel, OnAWebgpuDeviceItIsRefusedAtTheCallOrItsReferenceRuns) {
  const Device gpu = webgpu::device();
  const AnyTensor x = make_wave({3}, 0, DType::f32, gpu);
  EXPECT_THAT(message_of<UnsupportedError>([&] { (void)apply(HostOnly{}, x); }),
              AllOf(HasSubstr("host_only: "), HasSubstr("webgpu: "), HasSubstr("offers C++"),
                    HasSubstr("takes kernels in WGSL"), HasSubstr("device.fallback(true)")));
  const Device allowed = gpu.fallback(true);
  EXPECT_FALSE(allowed.fallback(false).allows_fallback());
  std::vector<std::vector<float>> gradients;
  for (const Device& device : {allowed, cpu::device()}) {
    const AnyTensor leaf = make_wave({3}, 0, DType::f32, device.autodiff()).require_grad();
    const AnyTensor y = apply(HostOnly{}, leaf);
    const AnyTensor seed = make(std::vector<float>{1, 2, 3}, {3}, device);
    EXPECT_EQ(y.to_vector(), values(apply(HostOnly{}, make_wave({3}, 0, DType::f32, host()))));
    gradients.push_back(vjp({&y, 1}, {&seed, 1}).of(leaf).to_vector());
  }
  EXPECT_THAT(gradients, Each(ElementsAre(3, 6, 9))) << "the operation's own backward, on both";
}

struct Bare {
  static constexpr std::string_view name = "bare";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return x; }
  static void cpu_kernel(const cpu::Input& x, const cpu::Output& out) { cpu::copy(x, out.raw()); }
};

TEST(CpuKernel, WithoutAReferenceAllowingItDoesNotHelpAndTheErrorSaysSo) {
  const AnyTensor x = make_wave({3}, 0, DType::f32, webgpu::device().fallback());
  EXPECT_THAT(message_of<UnsupportedError>([&] { (void)apply(Bare{}, x); }),
              AllOf(HasSubstr("bare: "), HasSubstr("there is no rule 'reference'")));
}

TEST(CpuKernel, RawLaunchesOfWgslAreRefusedOnTheHost) {
  const Client client(cpu::device().shared_runtime(), "by_hand");
  const RawTensor x = client.zeros({{4}, DType::f32});
  EXPECT_THAT(message_of<UnsupportedError>([&] {
                client.launch(KernelSource::wgsl("@compute @workgroup_size(1) fn main() {}"),
                              {1, 1, 1}, {1, 1, 1}, {x});
              }),
              AllOf(HasSubstr("by_hand: "), HasSubstr("WGSL"), HasSubstr("C++")));
  EXPECT_THAT(client.read<float>(x), Each(0)) << "all but launches works";
}

/// `Running`, written over floats.
struct RunningFloats {
  static constexpr std::string_view name = "running_floats";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  Commit commit = Commit::nothing;

  static TensorSpec output(const TensorSpec& x) { return x; }
  void cpu_kernel(const cpu::Input& x, const cpu::Output& out) const {
    const auto in = x.floats();
    const auto to = out.floats();
    cpu::parallel_for(out.dim(0), [&](std::int64_t row) {
      float sum = 0;
      for (std::int64_t j = 0; j < out.dim(1); ++j) to(row, j) = sum += in(row, j);
      if (commit == Commit::rows) out.commit(row * out.dim(1), out.dim(1));
    });
    if (commit == Commit::half) out.commit(0, out.dim(1));
  }
};

TEST(CpuKernel, FloatsReadAndWriteBothFloatTypes) {
  for (const DType dtype : {DType::f32, DType::f16}) {
    const AnyTensor x = make_wave({6, 40}, 0, dtype, host());
    Layout turned = Layout::dense({40, 6});
    turned.strides = {1, 40};
    const AnyTensor strided(Stream::of(host().runtime()).view("turned", x.value(), turned), host());
    for (const Commit commit : {Commit::nothing, Commit::rows}) {
      EXPECT_EQ(values(apply(RunningFloats{commit}, x)), values(apply(Running{}, x)));
      EXPECT_EQ(values(apply(RunningFloats{commit}, strided)), values(apply(Running{}, strided)));
    }
  }
}

TEST(CpuKernel, FloatsOfF16AreRoundedBeforeNeighboursSeeThem) {
  const AnyTensor x = make_wave({50, 33}, 0, DType::f16, host());
  const std::vector<float> expected =
      values(apply(Square{}, apply(Running{}, x.to(host().eager()))));
  for (const Commit commit : {Commit::nothing, Commit::rows}) {
    EXPECT_EQ(values(apply(Square{}, apply(RunningFloats{commit}, x))), expected);
  }
  // Alone it needs no commits: what it did not commit is rounded all the same.
  EXPECT_EQ(values(apply(RunningFloats{Commit::half}, x)), values(apply(Running{}, x)));
}

/// The kernel gets copies of its outputs in a struct.
struct TwoFloats {
  static constexpr std::string_view name = "two_floats";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  template <class T>
  struct Two {
    T twice;
    T thrice;
  };
  static Two<TensorSpec> output(const TensorSpec& x) { return {x, x}; }
  static void cpu_kernel(const cpu::Input& x, const Two<cpu::Output>& out) {
    const auto in = x.floats();
    for (std::int64_t i = 0; i < x.dim(0); ++i) {
      out.twice.floats()(i) = 2 * in(i);
      out.thrice.floats()(i) = 3 * in(i);
    }
  }
};

TEST(CpuKernel, FloatsOfSeveralResultsAreRounded) {
  const AnyTensor x = make_wave({9}, 0, DType::f16, host());
  const auto out = apply(TwoFloats{}, x);
  EXPECT_EQ(values(out.twice), values(apply(Plus{}, x, x)));
  EXPECT_EQ(values(out.thrice), values(apply(Plus{}, x, apply(Plus{}, x, x))));
}

struct FloatsOfIntegers {
  static constexpr std::string_view name = "floats_of_integers";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return x; }
  static void cpu_kernel(const cpu::Input& x, const cpu::Output&) { (void)x.floats(); }
};

TEST(CpuKernel, FloatsOfIntegersAreRefusedByName) {
  const AnyTensor x = make(std::vector<std::int32_t>{1, 2}, {2}, host());
  EXPECT_THAT(
      message_of<DTypeError>([&] { (void)apply(FloatsOfIntegers{}, x).to_vector<std::int32_t>(); }),
      AllOf(HasSubstr("floats_of_integers: operand 'x' is i32 [2]"), HasSubstr("as f32")));
}

TEST(CpuKernel, NothingToComputeCallsNoKernel) {
  EXPECT_EQ(apply(Throws{}, make_wave({0}, 0, DType::f32, host())).to_vector().size(), 0U);
}

}  // namespace
}  // namespace kiln
