// Makes docs/operations.md: what each operation takes, differentiates, fuses with and runs on,
// found by calling it.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/kiln.hpp"

namespace {

using namespace kiln;

/// What a call is made of.
struct Arguments {
  Device device;
  DType dtype;
  AnyTensor x{};  ///< [2, 3] of 1 and 2, in that dtype
  AnyTensor y{};  ///< the same, another tensor
};

using In = const Arguments&;

struct Operation {
  std::string_view text;  ///< the call, as the page shows it
  std::function<AnyTensor(In)> call;
  bool creates = false;  ///< takes no tensor
};

struct Family {
  std::string_view title;
  std::string_view header;
  std::vector<Operation> operations;
};

AnyTensor labels(const Device& device) {
  return tensor(std::vector<std::int32_t>{0, 1}, {2}, device.plain());
}

std::vector<Family> families() {
  return {
      {"Creation",
       "kiln/ops/create/create.hpp",
       {{"full(shape, value)", [](In a) { return full({2, 3}, 1, a.dtype, a.device); }, true},
        {"zeros(shape)", [](In a) { return zeros({2, 3}, a.dtype, a.device); }, true},
        {"ones(shape)", [](In a) { return ones({2, 3}, a.dtype, a.device); }, true},
        {"full_like(x, value)", [](In a) { return full_like(a.x, 1); }, true},
        {"zeros_like(x)", [](In a) { return zeros_like(a.x); }, true},
        {"ones_like(x)", [](In a) { return ones_like(a.x); }, true},
        {"arange(count)", [](In a) { return arange(6, a.dtype, a.device); }, true},
        {"random_uniform(shape, seed)",
         [](In a) { return random_uniform({2, 3}, 1, {}, a.dtype, a.device); }, true},
        {"random_normal(shape, seed)",
         [](In a) { return random_normal({2, 3}, 1, {}, a.dtype, a.device); }, true}}},
      {"Elementwise",
       "kiln/ops/elementwise/elementwise.hpp",
       {{"a + b, add(a, b)", [](In a) { return a.x + a.y; }},
        {"a - b, sub(a, b)", [](In a) { return a.x - a.y; }},
        {"a * b, mul(a, b)", [](In a) { return a.x * a.y; }},
        {"a / b, div(a, b)", [](In a) { return a.x / a.y; }},
        {"a + number, and the like", [](In a) { return a.x + 1; }},
        {"-x, neg(x)", [](In a) { return -a.x; }},
        {"abs(x)", [](In a) { return abs(a.x); }},
        {"exp(x)", [](In a) { return exp(a.x); }},
        {"log(x)", [](In a) { return log(a.x); }},
        {"sqrt(x)", [](In a) { return sqrt(a.x); }},
        {"rsqrt(x)", [](In a) { return rsqrt(a.x); }},
        {"tanh(x)", [](In a) { return tanh(a.x); }},
        {"sigmoid(x)", [](In a) { return sigmoid(a.x); }},
        {"relu(x)", [](In a) { return relu(a.x); }},
        {"relu_backward(out, grad)", [](In a) { return relu_backward(a.x, a.y); }},
        {"scale_gradient(grad, slope)", [](In a) { return scale_gradient(a.x, a.y); }},
        {"gelu(x)", [](In a) { return gelu(a.x); }},
        {"silu(x)", [](In a) { return silu(a.x); }},
        {"softplus(x)", [](In a) { return softplus(a.x); }},
        {"erf(x)", [](In a) { return erf(a.x); }},
        {"pow(base, exponent)", [](In a) { return pow(a.x, a.y); }},
        {"minimum(a, b)", [](In a) { return minimum(a.x, a.y); }},
        {"maximum(a, b)", [](In a) { return maximum(a.x, a.y); }},
        {"clamp(x, low, high)", [](In a) { return clamp(a.x, 1, 2); }}}},
      {"Elementwise functions",
       "kiln/ops/elementwise/functions.hpp",
       {{"sin(x)", [](In a) { return sin(a.x); }},
        {"cos(x)", [](In a) { return cos(a.x); }},
        {"tan(x)", [](In a) { return tan(a.x); }},
        {"asin(x)", [](In a) { return asin(a.x); }},
        {"acos(x)", [](In a) { return acos(a.x); }},
        {"atan(x)", [](In a) { return atan(a.x); }},
        {"atan2(y, x)", [](In a) { return atan2(a.y, a.x); }},
        {"sinh(x)", [](In a) { return sinh(a.x); }},
        {"cosh(x)", [](In a) { return cosh(a.x); }},
        {"asinh(x)", [](In a) { return asinh(a.x); }},
        {"acosh(x)", [](In a) { return acosh(a.x); }},
        {"atanh(x)", [](In a) { return atanh(a.x); }},
        {"exp2(x)", [](In a) { return exp2(a.x); }},
        {"log2(x)", [](In a) { return log2(a.x); }},
        {"log1p(x)", [](In a) { return log1p(a.x); }},
        {"expm1(x)", [](In a) { return expm1(a.x); }},
        {"floor(x)", [](In a) { return floor(a.x); }},
        {"ceil(x)", [](In a) { return ceil(a.x); }},
        {"round(x)", [](In a) { return round(a.x); }},
        {"trunc(x)", [](In a) { return trunc(a.x); }},
        {"sign(x)", [](In a) { return sign(a.x); }}}},
      {"Integers",
       "kiln/ops/elementwise/integers.hpp",
       {{"floor_div(a, b)", [](In a) { return floor_div(a.x, a.y); }},
        {"mod(a, b)", [](In a) { return mod(a.x, a.y); }},
        {"a << b, left_shift(a, b)", [](In a) { return a.x << a.y; }},
        {"a >> b, right_shift(a, b)", [](In a) { return a.x >> a.y; }},
        {"a & b, bit_and(a, b)", [](In a) { return a.x & a.y; }},
        {"bit_or(a, b)", [](In a) { return bit_or(a.x, a.y); }},
        {"a ^ b, bit_xor(a, b)", [](In a) { return a.x ^ a.y; }},
        {"~x, bit_not(x)", [](In a) { return ~a.x; }}}},
      {"Comparisons, choice and casts",
       "kiln/ops/compare/compare.hpp",
       {{"a == b, equal(a, b)", [](In a) { return equal(a.x, a.y); }},
        {"a != b, not_equal(a, b)", [](In a) { return not_equal(a.x, a.y); }},
        {"a < b, less(a, b)", [](In a) { return less(a.x, a.y); }},
        {"a <= b, less_equal(a, b)", [](In a) { return less_equal(a.x, a.y); }},
        {"a > b, greater(a, b)", [](In a) { return greater(a.x, a.y); }},
        {"a >= b, greater_equal(a, b)", [](In a) { return greater_equal(a.x, a.y); }},
        {"is_nan(x)", [](In a) { return is_nan(a.x); }},
        {"is_inf(x)", [](In a) { return is_inf(a.x); }},
        {"is_finite(x)", [](In a) { return is_finite(a.x); }},
        {"!x, logical_not(x)", [](In a) { return logical_not(a.x); }},
        {"a && b, logical_and(a, b)", [](In a) { return logical_and(a.x, a.y); }},
        {"logical_or(a, b)", [](In a) { return logical_or(a.x, a.y); }},
        {"where(condition, yes, no)",
         [](In a) { return where(cast(a.y.detach(), DType::boolean), a.x, a.x); }},
        {"cast(x, dtype)",
         [](In a) { return cast(a.x, a.dtype == DType::f16 ? DType::f32 : DType::f16); }}}},
      {"Reductions",
       "kiln/ops/reduce/reduce.hpp",
       {{"sum(x, axes)", [](In a) { return sum(a.x, 1); }},
        {"mean(x, axes)", [](In a) { return mean(a.x, 1); }},
        {"max(x, axes)", [](In a) { return max(a.x, 1); }},
        {"min(x, axes)", [](In a) { return min(a.x, 1); }},
        {"argmax(x, axis)", [](In a) { return argmax(a.x, 1); }},
        {"argmin(x, axis)", [](In a) { return argmin(a.x, 1); }}}},
      {"Views",
       "kiln/ops/movement/movement.hpp",
       {{"reshape(x, shape)", [](In a) { return reshape(a.x, {3, 2}); }},
        {"permute(x, axes)", [](In a) { return permute(a.x, {1, 0}); }},
        {"transpose(x)", [](In a) { return transpose(a.x); }},
        {"slice(x, axis, begin, end, step)", [](In a) { return slice(a.x, 1, 1); }},
        {"broadcast_to(x, shape)", [](In a) { return broadcast_to(a.x, {4, 2, 3}); }},
        {"unsqueeze(x, axis)", [](In a) { return unsqueeze(a.x, 0); }},
        {"squeeze(x, axes)", [](In a) { return squeeze(slice(a.x, 0, 1)); }},
        {"concat(tensors, axis)", [](In a) { return concat({a.x, a.y}, 0); }},
        {"stack(tensors, axis)", [](In a) { return stack({a.x, a.y}); }}}},
      {"Matrix products",
       "kiln/ops/matmul/matmul.hpp",
       {{"matmul(lhs, rhs)", [](In a) { return matmul(a.x, transpose(a.y)); }}}},
      {"Gather",
       "kiln/ops/gather/gather.hpp",
       {{"gather(x, axis, index)",
         [](In a) { return gather(a.x, 1, unsqueeze(labels(a.device), 1)); }},
        {"scatter_add(x, axis, index, values)",
         [](In a) {
           return scatter_add(a.x, 1, unsqueeze(labels(a.device), 1), slice(a.y, 1, 0, 1));
         }}}},
      {"Softmax",
       "kiln/ops/softmax/softmax.hpp",
       {{"softmax(x, axis)", [](In a) { return softmax(a.x); }},
        {"log_softmax(x, axis)", [](In a) { return log_softmax(a.x); }}}},
      {"Normalisation",
       "kiln/ops/norm/norm.hpp",
       {{"layer_norm(x, weight, bias)",
         [](In a) {
           return layer_norm(a.x, reshape(slice(a.y, 0, 0, 1), {3}),
                             reshape(slice(a.y, 0, 1), {3}));
         }}}},
      {"Losses",
       "kiln/ops/loss/loss.hpp",
       {{"cross_entropy(logits, labels)",
         [](In a) { return cross_entropy(a.x, labels(a.device)); }},
        {"mse(prediction, target)", [](In a) { return mse(a.x, a.y); }}}},
  };
}

Arguments arguments(const Device& device, DType dtype) {
  const auto numbers = [&](std::initializer_list<float> values) {
    return cast(tensor(values, {2, 3}, device), dtype);
  };
  return {device, dtype, numbers({1, 2, 1, 2, 1, 2}), numbers({2, 1, 1, 2, 2, 1})};
}

void wait_for(const AnyTensor& x) { (void)cast(x, DType::f32).to_vector(); }

std::string dtypes_of(const Operation& op) {
  std::string out;
  for (const DType dtype : {DType::f32, DType::f16, DType::i32, DType::u32, DType::boolean}) {
    try {
      wait_for(op.call(arguments(cpu::device(), dtype)));
      out += fmt::format("{}{}", out.empty() ? "" : ", ", to_string(dtype));
    } catch (const DTypeError&) {
    }
  }
  return out;
}

std::string gradient_of(const Operation& op, DType dtype) {
  if (op.creates) return "";
  if (!is_float(dtype)) return "none";
  const Device device = cpu::device().autodiff();
  Arguments a = arguments(device, DType::f32);
  a.x = a.x.require_grad();
  try {
    const AnyTensor y = op.call(a);
    if (!is_float(y.dtype())) return "none";
    wait_for(sum(y).backward().of(a.x));
    return "yes";
  } catch (const UnsupportedError&) {
    return "none";
  }
}

// Neighbours that can be told from every operation of the library.
struct Before {
  static constexpr std::string_view name = "before";
  static Expr body(Expr x) { return abs(x); }
};
struct BeforeBool {
  static constexpr std::string_view name = "before";
  static Expr body(Expr x) { return !x; }
};
struct After {
  static constexpr std::string_view name = "after";
  static Expr body(Expr x) { return abs(cast(x, DType::f32)); }
};

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

/// Whether the neighbour ran in a block with one of `own` operations.
bool joined(const DrainReport& ran, const std::string& neighbour,
            const std::vector<std::string>& own) {
  return std::ranges::any_of(ran.blocks, [&](const BlockReport& block) {
    return contains(block.ops, neighbour) &&
           std::ranges::any_of(own, [&](const auto& name) { return contains(block.ops, name); });
  });
}

/// Two columns: launches of the call alone, and which neighbours it fuses with.
std::string runs_of(const Operation& op, const Device& device, DType dtype) {
  Arguments a = arguments(device, dtype);
  device.flush();
  std::vector<std::string> own;
  std::uint64_t launches = 0;
  {
    const AnyTensor y = op.call(a);
    if (op.creates) return fmt::format("{} | ", inspect(device).launches);
    const AnyTensor after = apply(After{}, y);
    const DrainReport ran = inspect(device);
    for (const BlockReport& block : ran.blocks)
      own.insert(own.end(), block.ops.begin(), block.ops.end());
    std::erase(own, "after");
  }
  if (own.empty()) return "0 | a view";
  {
    const AnyTensor y = op.call(a);
    launches = inspect(device).launches;
  }
  a.x = dtype == DType::boolean ? apply(BeforeBool{}, a.x) : apply(Before{}, a.x);
  const AnyTensor y = apply(After{}, op.call(a));
  a.x = AnyTensor();
  const DrainReport ran = inspect(device);
  const bool before = joined(ran, "before", own);
  const bool after = joined(ran, "after", own);
  return fmt::format("{} | {}{}{}", launches, before ? "before" : "", before && after ? ", " : "",
                     after ? "after" : "");
}

std::string runtimes_of(const Operation& op, DType dtype) {
  std::string out;
  for (const Device& device : {webgpu::device(), cpu::device()}) {
    try {
      wait_for(op.call(arguments(device, dtype)));
      out += fmt::format("{}{}", out.empty() ? "" : ", ",
                         device.runtime().name().substr(0, device.runtime().name().find(':')));
    } catch (const UnsupportedError&) {
    }
  }
  return out;
}

DType first_dtype(const Operation& op) {
  const std::string dtypes = dtypes_of(op);
  return dtypes.starts_with("f32")   ? DType::f32
         : dtypes.starts_with("i32") ? DType::i32
                                     : DType::boolean;
}

std::string page() {
  std::string out =
      "# Operations\n\n"
      "What each operation of the library takes, and what becomes of it. "
      "`build/dev/bin/kiln_operations --write docs/operations.md`\n"
      "makes this page by calling each operation; a test compares. The headers say the rest: "
      "shapes, errors, examples.\n\n"
      "- **dtypes** of the tensors that are computed with; indices and labels are i32 or u32.\n"
      "- **gradient** of float tensors.\n"
      "- **launches** of a call alone, on a WebGPU adapter.\n"
      "- **fuses** with elementwise neighbours before or after it. A view copies nothing, and "
      "neighbours read through it.\n";
  for (const Family& family : families()) {
    out += fmt::format(
        "\n## {0}\n\n[{1}](../{1})\n\n| call | dtypes | gradient | launches | fuses | runtimes |\n"
        "| --- | --- | --- | --- | --- | --- |\n",
        family.title, family.header);
    for (const Operation& op : family.operations) {
      const DType dtype = first_dtype(op);
      out += fmt::format("| `{}` | {} | {} | {} | {} |\n", op.text, dtypes_of(op),
                         gradient_of(op, dtype), runs_of(op, webgpu::device().lazy(), dtype),
                         runtimes_of(op, dtype));
    }
  }
  return out;
}

int run(std::string_view mode, const std::string& path) {
  const std::string made = page();
  if (mode == "--write") {
    std::ofstream file(path);
    file << made;
    return file.flush() ? 0 : 1;
  }
  std::ifstream file(path);
  const std::string there{std::istreambuf_iterator<char>(file), {}};
  if (there == made) return 0;
  fmt::print(stderr,
             "{} is not what the operations do; see kiln_operations --write. It should be:\n{}",
             path, made);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view mode = argc == 3 ? argv[1] : "";
  if (mode != "--write" && mode != "--check") {
    fmt::print(stderr, "usage: kiln_operations --write FILE | --check FILE\n");
    return 2;
  }
  try {
    return run(mode, argv[2]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "kiln_operations: {}\n", error.what());
    return 1;
  }
}
