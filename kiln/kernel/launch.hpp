#pragma once
#include <array>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kiln/kernel/kernel_source.hpp"
#include "kiln/scalar/expr.hpp"
#include "kiln/support/argument.hpp"
#include "kiln/support/float16.hpp"
#include "kiln/support/layout.hpp"

namespace kiln {

/// A tensor as a kernel rule sees it: everything but its values.
///
///     const Operand x = {"x", DType::f32, Layout::dense({2, 3, 4})};
///     x.rank();   // [3]
///     x.shape();   // [2, 3, 4]
///     x.spec() == TensorSpec{{2, 3, 4}, DType::f32};   // [true]
struct Operand {
  std::string_view name;
  DType dtype = DType::f32;
  Layout layout;

  /// The sizes of all axes, and their number.
  [[nodiscard]] const Shape& shape() const { return layout.shape; }
  [[nodiscard]] int rank() const { return layout.shape.rank(); }
  /// The size along `axis`; negative axes count from the end. Throws ShapeError for an axis out of
  /// range.
  ///
  ///     Operand{"x", DType::f32, Layout::dense({2, 3, 4})}.dim(-1);   // [4]
  [[nodiscard]] std::int64_t dim(Integer axis) const { return layout.shape[axis]; }
  /// The step along `axis`, in elements. Throws ShapeError for an axis out of range.
  ///
  ///     Operand{"x", DType::f32, Layout::dense({2, 3, 4})}.stride(0);   // [12]
  [[nodiscard]] std::int64_t stride(Integer axis) const { return layout.stride(axis); }
  /// How many matrices it holds: the product of all sizes but the last two.
  ///
  ///     Operand{"x", DType::f32, Layout::dense({5, 2, 3, 4})}.batch();   // [10]
  [[nodiscard]] std::int64_t batch() const;
  /// Its shape and dtype.
  [[nodiscard]] TensorSpec spec() const { return {layout.shape, dtype}; }
};

/// n / d, rounded up, for n of 0 or more and d above 0.
///
///     ceil_div(65, 64);   // [2]
constexpr std::int64_t ceil_div(Integer n, Integer d) {
  return n / d + (n % d > 0 ? 1 : 0);  // n + d - 1 may be past 2^63
}

/// A number passed to a kernel at launch, which reads it as `params.name`. A size becomes a u32, a
/// double an f32, and an operation's Param field an f32 that may change without another plan.
///
///     const LaunchParam rows = {"rows", Shape{2, 3}[0]};
///     const LaunchParam epsilon = {"epsilon", 1e-5};
struct LaunchParam {
  /// From a name that WGSL takes, and a number.
  template <WholeType T>
  LaunchParam(std::string_view param_name, T size)
      : name(param_name), value(static_cast<std::int64_t>(size)) {}
  template <class T>
    requires(std::floating_point<T> || std::same_as<T, float16>)
  LaunchParam(std::string_view param_name, T number)
      : name(param_name), value(static_cast<double>(number)) {}
  LaunchParam(std::string_view param_name, const Integer& size)
      : name(param_name), value(std::int64_t{size}) {}
  LaunchParam(std::string_view param_name, const Number& number)
      : name(param_name), value(double{number}) {}
  LaunchParam(std::string_view param_name, const Param& field) : name(param_name), value(&field) {}
  LaunchParam(std::string_view param_name, const Param&& field) = delete;  // its address is kept

  std::string name;
  std::variant<std::int64_t, double, const Param*> value;
};

/// Memory a kernel uses for itself, declared as `var<storage, read_write> NAME: array<...>`;
/// undefined at the start.
struct Scratch {
  std::string name;
  DType dtype = DType::f32;
  Integer elements = 0;
};

/// An input of which a kernel loads an element more than once.
///
///     const Repeated weights = {"w", ceil_div(1000, 64)};   // once for each tile
struct Repeated {
  std::string name;
  Integer times = 0;  ///< how often, about; 0: very often
};

/// What the generated store computes before it writes a value: `body(value, inputs...)`, each input
/// read at the index stored to. The inputs are operands of the operation, of the output's shape.
/// Inputs that the kernel itself does not read may be strided, and are not copied.
struct Epilogue {
  BodyPtr body;
  std::vector<std::string> inputs;
};

/// An epilogue from a function of expressions: the value, then one for each name. Throws
/// KernelError if their numbers differ.
///
///     const auto end = [](Expr value, Expr bias) { return relu(value + bias); };
///     epilogue(end, {"bias"}).inputs.size();   // [1]
template <class F>
Epilogue epilogue(F f, std::vector<std::string> inputs);

/// Whether a kernel only writes its output, or also reads it. With `atomic` it does so through
/// WGSL's atomic functions alone: outputs are i32 or u32, arrays of atomics, and have no store.
enum class OutputAccess : std::uint8_t { write, read_write, atomic };

namespace webgpu {

/// What a `webgpu_kernel` rule returns: how its kernel is started. Nothing is started yet.
///
///     struct Twice {
///       static constexpr std::string_view name = "twice";
///       static constexpr std::array inputs = {"x"};
///       using layers = Layers<Cube, Fusion>;
///       static TensorSpec output(const TensorSpec& x) { return x; }
///       static webgpu::Launch webgpu_kernel(const Operand& x, const Operand& out) {
///         constexpr const char* text = R"({{ bindings }}
///     @compute @workgroup_size({{ workgroup_size_x }})
///     fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
///             @builtin(local_invocation_id) local: vec3<u32>) {
///       let i = kiln_workgroup(group, groups).x * {{ workgroup_size_x }} + local.x;
///       if (i < params.n) { store_out(i, x[i] + x[i]); }
///     })";
///         const std::int64_t n = x.shape().elements();
///         return {.source = KernelSource::wgsl(text),
///                 .params = {{"n", out.shape().elements()}},
///                 .grid = {ceil_div(n, 64), 1, 1}};
///       }
///     };
///     apply(Twice{}, tensor({1.0, 2.0}, webgpu::device()));   // [2, 4]
struct Launch {
  /// With SPIR-V, `workgroup` means nothing, and `strided`, `vec4`, `repeated` and `store` are
  /// refused; see KernelSource::spirv for what the module binds.
  KernelSource source;
  std::array<std::uint32_t, 3> workgroup{64, 1, 1};
  std::vector<LaunchParam> params{};
  /// Workgroups along x, y and z. Above the adapter's limit it is folded if the kernel uses
  /// kiln_workgroup, else refused.
  std::array<std::int64_t, 3> grid{1, 1, 1};
  OutputAccess access = OutputAccess::write;
  /// The kernel reads inputs through NAME_offset() or NAME_batch(i) and NAME_stride(d); otherwise
  /// they are made dense first.
  Flag strided = false;
  /// In a strided launch: operands that are made dense anyway.
  std::vector<std::string> dense{};
  /// Inputs declared as arrays of vec4 of elements.
  std::vector<std::string> vec4{};
  /// Inputs of which the kernel loads an element many times through its generated load. Only little
  /// work is fused into such loads, and the less the oftener.
  std::vector<Repeated> repeated{};
  std::vector<Scratch> scratch{};
  std::optional<Epilogue> store{};
  /// Outputs are zero before the kernel runs, and are otherwise undefined.
  Flag zeroed = false;
  /// The adapter's own bounds and loop checks are off, and the kernel guards every access itself.
  /// check_op finds writes outside of the outputs.
  Flag trusted = false;
  /// The most rounds that all loops of one thread take together, if that grows with the operands.
  /// A launch of more than Limits::loop_rounds is refused, because the adapter would end its loops
  /// early.
  Integer rounds = 0;
  /// Why this candidate does not take these operands or this adapter. Empty if it does.
  std::string declined{};

  /// A candidate that declines; `language` is what its kernel is written in.
  ///
  ///     webgpu::Launch::decline("K is no multiple of 16").declined;   // "K is no multiple of 16"
  static Launch decline(std::string why, Language language = Language::wgsl);
};

}  // namespace webgpu

namespace detail {
template <class F, std::size_t... I>
BodyPtr body_from(F& f, std::index_sequence<I...>) {
  ExprGraph graph;
  const std::array<Expr, sizeof...(I)> in{graph.input(static_cast<int>(I))...};
  const std::int32_t root = graph.place(f(in[I]...));
  return make_body(graph, static_cast<int>(sizeof...(I)), 0, std::array{root});
}
template <class F, std::size_t N = 1>
constexpr std::size_t expr_arity() {
  if constexpr ([]<std::size_t... I>(std::index_sequence<I...>) {
                  return std::is_invocable_v<F, decltype((void(I), std::declval<Expr>()))...>;
                }(std::make_index_sequence<N>{})) {
    return N;
  } else {
    static_assert(N < 8, "kiln: an epilogue is a function of up to seven Expr");
    return expr_arity<F, N + 1>();
  }
}
Epilogue make_epilogue(BodyPtr body, std::vector<std::string> inputs);
}  // namespace detail

template <class F>
Epilogue epilogue(F f, std::vector<std::string> inputs) {
  constexpr std::size_t arity = detail::expr_arity<F>();
  return detail::make_epilogue(detail::body_from(f, std::make_index_sequence<arity>{}),
                               std::move(inputs));
}

}  // namespace kiln
