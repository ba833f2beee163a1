// What a rule throws, of whatever type: it fails what depends on the operation and nothing else,
// and says where it comes from.
#include "kiln/autodiff/test_support.hpp"
#include "kiln/fusion/stream.hpp"
#include "kiln/tensor/apply.hpp"

namespace kiln {
namespace {

using test::make_wave;
using test::message_of;
using test::values;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

enum class Rule : std::uint8_t { none, output, kernel, save, backward, reference, fuse, forward };

/// Throws what no library threw on purpose where `here` is the rule that is to fail.
void fault(Rule here, Rule faulty, bool standard) {
  if (here != faulty) return;
  if (standard) (void)std::vector<int>().at(5);  // NOLINT(bugprone-unused-return-value): throws
  throw 17;  // NOLINT(hicpp-exception-baseclass): anything can be thrown
}

struct Square {
  static constexpr std::string_view name = "square";
  static Expr body(Expr x) { return x * x; }
};
struct Plus {
  static constexpr std::string_view name = "plus";
  static Expr body(Expr a, Expr b) { return a + b; }
};

/// x, by a kernel on every runtime; one of its rules throws.
struct Faulty {
  static constexpr std::string_view name = "faulty";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Autodiff, Cube, Fusion>;
  Rule faulty = Rule::none;
  bool standard = true;

  TensorSpec output(const TensorSpec& x) const {
    fault(Rule::output, faulty, standard);
    return x;
  }
  webgpu::Launch webgpu_kernel(const Operand& x, const Operand&) const {
    fault(Rule::kernel, faulty, standard);
    return {.source = KernelSource::wgsl("{{ bindings }}\n"
                                         "@compute @workgroup_size({{ workgroup_size_x }})\n"
                                         "fn main(@builtin(global_invocation_id) at: vec3<u32>) {\n"
                                         "  if (at.x < params.n) { store_out(at.x, x[at.x]); }\n"
                                         "}\n"),
            .params = {{"n", x.shape().elements()}},
            .grid = {ceil_div(x.shape().elements(), 64), 1, 1}};
  }
  void cpu_kernel(const cpu::Input& x, const cpu::Output& out) const {
    fault(Rule::kernel, faulty, standard);
    cpu::copy(x, out.raw());
  }
  struct Saved {};
  Saved save(const Saver&, const AnyTensor&, const AnyTensor&) const {
    fault(Rule::save, faulty, standard);
    return {};
  }
  void backward(const Saved&, const AnyTensor& grad, Grads<1>& grads) const {
    fault(Rule::backward, faulty, standard);
    grads[0].set(grad);
  }
};
static_assert(Extension<Faulty>);

/// The same in ordinary operations.
struct FaultyReference {
  static constexpr std::string_view name = "faulty_reference";
  using layers = Layers<Default<Autodiff>, Default<Cube>, Fusion>;
  bool standard = true;
  static TensorSpec output(const TensorSpec& x) { return x; }
  [[nodiscard]] AnyTensor reference(const AnyTensor& x) const {
    fault(Rule::reference, Rule::reference, standard);
    return x;
  }
};

/// Queued by hand: the rule throws, or what it queues.
struct FaultyFuse {
  static constexpr std::string_view name = "faulty_fuse";
  using layers = Layers<Fusion>;
  Rule faulty = Rule::fuse;
  bool standard = true;
  static TensorSpec output(const TensorSpec& x) { return x; }
  AnyTensor fuse(Stream& stream, const AnyTensor& x) const {
    fault(Rule::fuse, faulty, standard);
    const auto run = [how = *this](Client&, std::span<const RawTensor> in) {
      fault(Rule::forward, how.faulty, how.standard);
      return std::vector(in.begin(), in.end());
    };
    return {stream.launch(name, x.device(), {&x.value(), 1}, {&x.spec(), 1}, run).front(),
            x.device()};
  }
};

/// Several launches by hand.
struct FaultyForward {
  static constexpr std::string_view name = "faulty_forward";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  bool standard = true;
  static TensorSpec output(const TensorSpec& x) { return x; }
  RawTensor webgpu_forward(Client&, const RawTensor& x, const TensorSpec&) const {
    fault(Rule::forward, Rule::forward, standard);
    return x;
  }
};

/// The text of both kinds of exception, the operation and the rule before it.
auto says(const std::string& op, std::string_view rule, bool standard) {
  return AllOf(StartsWith(op + ": " + std::string(rule) + ": "),
               HasSubstr(standard ? "__n (which is 5)" : "not a std::exception"));
}

AnyTensor input(int seed = 0) { return make_wave({6}, seed, DType::f32, test::device().lazy()); }

/// An operation whose kernel throws, among others that have nothing to do with it: they are
/// computed, and who reads what was made of it is told.
template <class Op>
void expect_the_rest_to_go_on(const Op& op, std::string_view rule) {
  const AnyTensor x = input();
  const AnyTensor fine = apply(Square{}, x);
  const AnyTensor bad = apply(op, fine);
  const AnyTensor fused = apply(Square{}, bad);  // perhaps in its store
  const AnyTensor mixed = apply(Plus{}, fused, fine);
  const AnyTensor other = apply(Plus{}, fine, x);
  EXPECT_EQ(values(other), values(apply(Plus{}, apply(Square{}, x), x)));
  for (const AnyTensor& t : {mixed, bad, fused}) {
    EXPECT_THAT(message_of<Error>([&] { (void)values(t); }),
                says(std::string(Op::name), rule, op.standard));
  }
  EXPECT_EQ(values(fine), values(apply(Square{}, x)));
  const AnyTensor eager = x.to(x.device().eager());
  EXPECT_THAT(message_of<Error>([&] { (void)apply(op, eager); }),
              says(std::string(Op::name), rule, op.standard));
}

TEST(RuleException, OutOfAKernelFailsWhatDependsOnItAndNothingElse) {
  for (const bool standard : {true, false})
    expect_the_rest_to_go_on(Faulty{Rule::kernel, standard},
                             test::on_cpu() ? "cpu_kernel" : "webgpu_kernel");
}

TEST(RuleException, OutOfALaunchByHandToo) {
  for (const bool standard : {true, false})
    expect_the_rest_to_go_on(FaultyFuse{Rule::forward, standard}, "the launching function");
}

TEST(WgslRuleException, OutOfAForwardToo) {
  for (const bool standard : {true, false})
    expect_the_rest_to_go_on(FaultyForward{standard}, "webgpu_forward");
}

TEST(RuleException, OnTheCallersThreadSaysWhichRuleOfWhichOperation) {
  for (const bool standard : {true, false}) {
    const AnyTensor x = input();
    const AnyTensor leaf = x.to(x.device().autodiff()).require_grad();
    const auto thrown = [&](auto call) { return message_of<Error>(call); };
    EXPECT_THAT(thrown([&] { (void)apply(Faulty{Rule::output, standard}, x); }),
                says("faulty", "output", standard));
    EXPECT_THAT(thrown([&] { (void)apply(Faulty{Rule::save, standard}, leaf); }),
                says("faulty", "save", standard));
    EXPECT_THAT(thrown([&] { (void)apply(FaultyReference{standard}, x); }),
                says("faulty_reference", "reference", standard));
    EXPECT_THAT(thrown([&] { (void)apply(FaultyFuse{Rule::fuse, standard}, x); }),
                says("faulty_fuse", "fuse", standard));
    const AnyTensor y = apply(Faulty{Rule::backward, standard}, leaf);
    const AnyTensor seed = input(1);
    EXPECT_THAT(thrown([&] { (void)vjp({&y, 1}, {&seed, 1}); }),
                says("faulty", "backward", standard));
    EXPECT_EQ(values(y), values(x));
  }
}

TEST(RuleException, NestsWhatWasThrown) {
  const AnyTensor y = apply(Faulty{Rule::kernel}, input());
  try {
    (void)values(y);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THROW(std::rethrow_if_nested(error), std::out_of_range);
  }
}

}  // namespace
}  // namespace kiln
