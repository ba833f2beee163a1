// Operations as users write them: kernels of their own, several results, and some that go wrong.
#include <fmt/format.h>

#include <new>
#include <stdexcept>

#include "fuzz/operation_support.hpp"

namespace kiln::fuzz {
namespace {

constexpr const char* head =
    "{{ bindings }}\n@compute @workgroup_size({{ workgroup_size_x }})\n"
    "fn main(@builtin(global_invocation_id) at: vec3<u32>) {\n"
    "  let i = at.x;\n  if (i >= params.count) { return; }\n";

webgpu::Launch over_elements(const std::string& body, std::int64_t count) {
  return {.source = KernelSource::wgsl(head + body + "\n}\n"),
          .params = {{"count", count}},
          .grid = {ceil_div(count, 64), 1, 1}};
}

template <class F>
void with_number(DType dtype, const F& f) {
  if (is_float(dtype)) return cpu::with_float(dtype, f);
  if (dtype == DType::i32) return f(std::int32_t());
  f(std::uint32_t());
}

/// x times `by`, plus `shift`, plus the element's place where `counts`.
struct Line {
  static constexpr std::string_view name = "fuzz_line";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Autodiff, Cube, Fusion>;
  Param by;
  Param shift;
  bool counts;

  static TensorSpec output(const TensorSpec& x) { return x; }
  webgpu::Launch webgpu_kernel(const Operand&, const Operand& out) const {
    webgpu::Launch launch =
        over_elements(fmt::format("store_out(i, x[i] * Elem(params.by) + Elem(params.shift){});",
                                  counts ? " + Elem(i)" : ""),
                      out.shape().elements());
    launch.params.emplace_back("by", by);
    launch.params.emplace_back("shift", shift);
    return launch;
  }
  void cpu_kernel(const cpu::Input& x, const cpu::Output& out) const {
    with_number(out.dtype(), [&](auto element) {
      using T = decltype(element);
      using C = std::conditional_t<std::is_integral_v<T>, T, float>;
      const auto from = x.dense<T>();
      const auto to = out.dense<T>();
      for (std::size_t i = 0; i < to.size(); ++i) {
        to[i] = T(static_cast<C>(from[i]) * static_cast<C>(by.value()) +
                  static_cast<C>(shift.value()) + static_cast<C>(counts ? i : 0));
      }
    });
  }
  static constexpr Bound bound = Bound::memory;
  struct Saved {};
  static Saved save(const Saver&, const AnyTensor&, const AnyTensor&) { return {}; }
  void backward(const Saved&, const AnyTensor& grad, Grads<1>& grads) const {
    grads[0].set(grad * by.value());
  }
};
static_assert(Extension<Line>);

/// The same as a body.
struct LineBody {
  static constexpr std::string_view name = "fuzz_line_body";
  Param by;
  Param shift;
  Expr body(Expr x) const { return x * by + shift; }
};

/// Products of rows, read where they lie.
struct RowDot {
  static constexpr std::string_view name = "fuzz_row_dot";
  static constexpr std::array inputs = {"a", "b"};
  using layers = Layers<Autodiff, Cube, Fusion>;

  static TensorSpec output(const TensorSpec& a, const TensorSpec& b) {
    if (a != b || a.shape.rank() != 2) throw ShapeError("fuzz_row_dot: takes two equal matrices");
    return {Shape{a.shape[0]}, a.dtype};
  }
  static webgpu::Launch webgpu_kernel(const Operand& a, const Operand&, const Operand& out) {
    webgpu::Launch launch = over_elements(
        "var sum: Acc = 0;\n"
        "for (var k = 0u; k < params.k; k++) {\n"
        "  sum += Acc(a[a_offset() + i * a_stride(0u) + k * a_stride(1u)]) *\n"
        "         Acc(b[b_offset() + i * b_stride(0u) + k * b_stride(1u)]);\n}\n"
        "store_out(i, Elem(sum));",
        out.shape().elements());
    launch.params.emplace_back("k", a.dim(1));
    launch.strided = true;
    return launch;
  }
  static void cpu_kernel(const cpu::Input& a, const cpu::Input& b, const cpu::Output& out) {
    cpu::with_float(out.dtype(), [&](auto element) {
      using T = decltype(element);
      const auto x = a.strided<T>();
      const auto y = b.strided<T>();
      for (std::int64_t i = 0; i < out.dim(0); ++i) {
        float sum = 0;
        for (std::int64_t k = 0; k < a.dim(1); ++k)
          sum += static_cast<float>(x(i, k)) * static_cast<float>(y(i, k));
        out.dense<T>()[at(i)] = T(sum);
      }
    });
  }
  static constexpr Bound bound = Bound::compute;
  struct Saved {
    Checkpoint a;
    Checkpoint b;
  };
  static Saved save(const Saver& saver, const AnyTensor& a, const AnyTensor& b, const AnyTensor&) {
    return {saver.keep_if(b.tracked(), a), saver.keep_if(a.tracked(), b)};
  }
  static void backward(const Saved& saved, const AnyTensor& grad, Grads<2>& grads) {
    const AnyTensor column = unsqueeze(grad, 1);
    if (grads[0]) grads[0].set(scale_gradient(column, saved.b.get()));
    if (grads[1]) grads[1].set(scale_gradient(column, saved.a.get()));
  }
};
static_assert(Extension<RowDot>);

template <class T>
struct Two {
  T sum;
  T difference;
};

/// Two results of one launch.
struct SumAndDifference {
  static constexpr std::string_view name = "fuzz_sum_and_difference";
  static constexpr std::array inputs = {"a", "b"};
  static constexpr std::array outputs = {"sum", "difference"};
  using layers = Layers<Autodiff, Cube, Fusion>;

  static Two<TensorSpec> output(const TensorSpec& a, const TensorSpec& b) {
    if (a != b) throw ShapeError("fuzz_sum_and_difference: takes two equal tensors");
    return {a, a};
  }
  static webgpu::Launch webgpu_kernel(const Operand& a, const Operand&, const Two<Operand>&) {
    return over_elements("store_sum(i, a[i] + b[i]);\nstore_difference(i, a[i] - b[i]);",
                         a.shape().elements());
  }
  static void cpu_kernel(const cpu::Input& a, const cpu::Input& b, const Two<cpu::Output>& out) {
    cpu::with_float(a.dtype(), [&](auto element) {
      using T = decltype(element);
      const auto x = a.dense<T>();
      const auto y = b.dense<T>();
      for (std::size_t i = 0; i < x.size(); ++i) {
        out.sum.template dense<T>()[i] = T(static_cast<float>(x[i]) + static_cast<float>(y[i]));
        out.difference.template dense<T>()[i] =
            T(static_cast<float>(x[i]) - static_cast<float>(y[i]));
      }
    });
  }
  static constexpr Bound bound = Bound::memory;
  struct Saved {};
  static Saved save(const Saver&, const AnyTensor&, const AnyTensor&, const Two<AnyTensor>&) {
    return {};
  }
  static void backward(const Saved&, const Two<AnyTensor>& grad, Grads<2>& grads) {
    if (grads[0]) grads[0].set(grad.sum + grad.difference);
    if (grads[1]) grads[1].set(grad.sum - grad.difference);
  }
};
static_assert(Extension<SumAndDifference>);

/// How an operation goes wrong.
enum class How : std::uint8_t {
  kiln_error,
  does_not_compile,
  other_error,
  no_error_type,
  out_of_memory,
  count
};

std::string cause_of(How how, int number) {
  switch (how) {
    case How::kiln_error:
    case How::other_error:
      return fmt::format("on purpose, number {}", number);
    default:
      return "fuzz_failing";
  }
}

/// Gives x, if it gave anything.
struct Failing {
  static constexpr std::string_view name = "fuzz_failing";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Autodiff, Cube, Fusion>;
  How how;
  int number;

  static TensorSpec output(const TensorSpec& x) { return x; }
  webgpu::Launch webgpu_kernel(const Operand&, const Operand& out) const {
    if (how == How::does_not_compile)
      return over_elements("store_out(i, no_such_function(x[i]));", out.shape().elements());
    if (how == How::out_of_memory) {
      webgpu::Launch launch =
          over_elements("much[i] = f32(i);\nstore_out(i, x[i]);", out.shape().elements());
      launch.scratch = {{"much", DType::f32, std::int64_t{1} << 40}};
      return launch;
    }
    fail();
  }
  void cpu_kernel(const cpu::Input&, const cpu::Output&) const { fail(); }
  [[noreturn]] void fail() const {
    const std::string cause = cause_of(how, number);
    if (how == How::other_error) throw std::out_of_range(cause);
    if (how == How::out_of_memory) throw std::bad_alloc();
    if (how == How::no_error_type) throw number;  // NOLINT: what users may do
    throw KernelError("fuzz_failing: " + cause);
  }
  static constexpr Bound bound = Bound::memory;
  struct Saved {};
  static Saved save(const Saver&, const AnyTensor&, const AnyTensor&) { return {}; }
  static void backward(const Saved&, const AnyTensor& grad, Grads<1>& grads) { grads[0].set(grad); }
};
static_assert(Extension<Failing>);

/// Gives x; its gradient goes wrong.
struct FailingGradient {
  static constexpr std::string_view name = "fuzz_failing_gradient";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Autodiff, Default<Cube>, Fusion>;
  How how;
  int number;

  static TensorSpec output(const TensorSpec& x) { return x; }
  static AnyTensor reference(const AnyTensor& x) { return x * 1.0; }
  struct Saved {};
  static Saved save(const Saver&, const AnyTensor&, const AnyTensor&) { return {}; }
  void backward(const Saved&, const AnyTensor& grad, Grads<1>& grads) const {
    grads[0].set(apply(Failing{how, number}, grad));
  }
};
static_assert(Extension<FailingGradient>);

bool draw_line(Draw& d, Step& s) {
  if (!draw_one(numbers)(d, s)) return false;
  s.numbers = {static_cast<double>(1 + d.below(3)), static_cast<double>(d.below(3))};
  s.ints = {d.below(2)};
  return true;
}

std::vector<Array> model_line(Model& m, const Step& s) {
  const DType d = m.at(s.in[0]).spec.dtype;
  Scalars& t = m.scalars();
  double place = 0;
  return {elementwise(m, s.in, d, [&](const std::vector<Id>& x) {
    const Id scaled = t.make(Fn::mul, d, x[0], t.given(s.numbers[0], d));
    const Id moved = t.make(Fn::add, d, scaled, t.given(s.numbers[1], d));
    return s.ints[0] != 0 ? t.make(Fn::add, d, moved, t.given(place++, d)) : moved;
  })};
}

bool draw_equal_pair(Draw& d, Step& s, int rank) {
  const int a = d.pick([&](const Array& x) {
    return is_float(x.spec.dtype) && (rank < 0 || x.spec.shape.rank() == rank);
  });
  if (a < 0) return false;
  const Array first = d.at(a);
  int b = d.pick([&](const Array& x) { return x.spec == first.spec && x.device == first.device; });
  if (b < 0 || (b == a && d.chance(80)))
    b = d.input(first.spec.shape, first.spec.dtype, first.device);
  s.in = {a, b};
  return true;
}

std::vector<Array> model_row_dot(Model& m, const Step& s) {
  const Array& a = m.at(s.in[0]);
  const Array& b = m.at(s.in[1]);
  Scalars& t = m.scalars();
  Array out{.spec = {Shape{a.spec.shape[0]}, a.spec.dtype}};
  const auto k = at(a.spec.shape[1]);
  for (std::size_t row = 0; row < at(a.spec.shape[0]); ++row) {
    std::vector<Id> products;
    for (std::size_t i = row * k; i < (row + 1) * k; ++i)
      products.push_back(t.make(Fn::mul, DType::f32, a.ids[i], b.ids[i]));
    out.ids.push_back(t.sum(out.spec.dtype, products));
  }
  return {out};
}

std::vector<Array> model_two(Model& m, const Step& s) {
  const DType d = m.at(s.in[0]).spec.dtype;
  const auto by = [&](Fn fn) {
    return elementwise(
        m, s.in, d, [&](const std::vector<Id>& x) { return m.scalars().make(fn, d, x[0], x[1]); });
  };
  return {by(Fn::add), by(Fn::sub)};
}

bool draw_failing(Draw& d, Step& s) {
  if (!draw_one(numbers)(d, s) || d.at(s.in[0]).ids.empty()) return false;
  s.ints = {d.below(static_cast<int>(How::count)), d.below(1000)};
  return true;
}

Failing failing(const Step& s) {
  return {static_cast<How>(s.ints[0]), static_cast<int>(s.ints[1])};
}

std::string cause_of(const Step& s) {
  return cause_of(static_cast<How>(s.ints[0]), static_cast<int>(s.ints[1]));
}

/// x itself, under a name of its own in the scalars' graph.
Array same(Model& m, const Step& s) {
  const DType d = m.at(s.in[0]).spec.dtype;
  return elementwise(m, s.in, d, [&](const std::vector<Id>& x) {
    return m.scalars().make(Fn::mul, d, x[0], m.scalars().given(1, d));
  });
}

}  // namespace

void add_custom(std::vector<Operation>& to) {
  to.push_back({"line", 14, draw_line, model_line, [](Run&, const Step& s, auto in) {
                  return one(apply(Line{{s.numbers[0]}, {s.numbers[1]}, s.ints[0] != 0}, in[0]));
                }});
  to.push_back({"line_body", 10,
                [](Draw& d, Step& s) {
                  const bool drawn = draw_line(d, s);
                  s.ints = {0};
                  return drawn;
                },
                model_line,
                [](Run&, const Step& s, auto in) {
                  return one(apply(LineBody{{s.numbers[0]}, {s.numbers[1]}}, in[0]));
                }});
  to.push_back({"row_dot", 10, [](Draw& d, Step& s) { return draw_equal_pair(d, s, 2); },
                model_row_dot,
                [](Run&, const Step&, auto in) { return one(apply(RowDot{}, in[0], in[1])); }});
  to.push_back({"sum_and_difference", 10,
                [](Draw& d, Step& s) { return draw_equal_pair(d, s, -1); }, model_two,
                [](Run&, const Step&, auto in) {
                  const Two<AnyTensor> two = apply(SumAndDifference{}, in[0], in[1]);
                  return std::vector{two.sum, two.difference};
                }});
  to.push_back({"failing", 10, draw_failing,
                [](Model& m, const Step& s) {
                  Array out = same(m, s);
                  out.fate = {.fails = true, .causes = {cause_of(s)}};
                  return std::vector{out};
                },
                [](Run&, const Step& s, auto in) { return one(apply(failing(s), in[0])); }});
  to.push_back(
      {.name = "failing_gradient",
       .weight = 6,
       .draw = [](Draw& d,
                  Step& s) { return draw_failing(d, s) && is_float(d.at(s.in[0]).spec.dtype); },
       .model = [](Model& m, const Step& s) { return std::vector{same(m, s)}; },
       .run =
           [](Run&, const Step& s, auto in) {
             const Failing f = failing(s);
             return one(apply(FailingGradient{f.how, f.number}, in[0]));
           },
       .fails_backward = [](const Step& s) { return cause_of(s); }});
}

}  // namespace kiln::fuzz
