#include "kiln/dispatch/wgsl/elementwise_kernel.hpp"

#include <algorithm>

namespace kiln::dispatch::wgsl {
namespace {

bool is_quad(Access4 access) { return access == Access4::quad || access == Access4::linear_quad; }

class Source {
 public:
  Source(const ElementwiseLaunch& call, const BodyTypes& types, std::uint32_t workgroup)
      : call_(call), types_(types), view_(call.view), workgroup_(workgroup) {}

  KernelId run(const Limits& limits) && {
    const std::string arrays = declare_arrays();
    Metadata metadata;
    each_number(call_, types_, 0, [&](auto name, std::string_view type, std::uint32_t word) {
      metadata.add(name(), type, word);
    });
    const std::string params =
        metadata.declare(limits, 0, static_cast<std::uint32_t>(id_.bindings.size()), id_);
    std::set<std::string> helpers;
    const std::string body = body_function(helpers);
    id_.workgroup = {workgroup_, 1, 1};
    id_.trusted = true;  // every index is below a size that the operands were laid out for
    id_.source = fmt::format(
        "{}{}{}{}{}"
        "@compute @workgroup_size({})\n"
        "fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: "
        "vec3<u32>,\n"
        "        @builtin(local_invocation_id) local: vec3<u32>) {{\n"
        "  let i = ((group.y * groups.x + group.x) * {}u + local.x) * {}u;\n"
        "  if (i >= params.n) {{ return; }}\n{}{}}}\n",
        uses_half() ? "enable f16;\n" : "", arrays, params, wgsl_helpers(helpers), body, workgroup_,
        workgroup_ * static_cast<std::uint32_t>(call_.steps), view_.width, coordinates(),
        main_body());
    return std::move(id_);
  }

 private:
  bool uses_half() const {
    const auto half = [](const RawTensor& t) { return t.dtype == DType::f16; };
    return std::ranges::any_of(call_.inputs, half) || std::ranges::any_of(call_.outputs, half);
  }

  std::string declare(Access access, const std::string& name, std::size_t operand, DType dtype) {
    const std::string_view type = wgsl_storage_type(dtype);
    const std::string element =
        is_quad(view_.access[operand]) ? fmt::format("vec4<{}>", type) : std::string(type);
    const auto binding = static_cast<std::uint32_t>(id_.bindings.size());
    id_.bindings.push_back({0, binding, access});
    return fmt::format("@group(0) @binding({}) var<storage, {}> {}: array<{}>;\n", binding,
                       access == Access::read ? "read" : "read_write", name, element);
  }

  std::string declare_arrays() {
    std::string text;
    for (std::size_t i = 0; i < call_.inputs.size(); ++i) {
      if (!call_.is_overwritten(i))
        text += declare(Access::read, array_of(i), i, call_.inputs[i].dtype);
    }
    for (std::size_t r = 0; r < call_.outputs.size(); ++r) {
      const std::size_t operand = call_.inputs.size() + r;
      text += declare(Access::read_write, array_of(operand), operand, call_.outputs[r].dtype);
    }
    return text;
  }

  /// The array that an operand lies in: x0, x1, ... of inputs, y0, y1, ... of outputs.
  std::string array_of(std::size_t operand) const {
    if (call_.is_overwritten(operand)) return fmt::format("y{}", call_.overwritten_by[operand]);
    const std::size_t inputs = call_.inputs.size();
    return operand < inputs ? fmt::format("x{}", operand) : fmt::format("y{}", operand - inputs);
  }

  /// The scalar function, from stored elements to stored results.
  std::string body_function(std::set<std::string>& helpers) const {
    std::string fields;
    std::string parameters;
    std::vector<std::string> loaded;
    for (std::size_t i = 0; i < call_.inputs.size(); ++i) {
      const DType dtype = call_.inputs[i].dtype;
      parameters += fmt::format("{}v{}: {}", i == 0 ? "" : ", ", i, wgsl_storage_type(dtype));
      loaded.push_back(wgsl_load(dtype, fmt::format("v{}", i)));
    }
    const WgslBody printed = print_wgsl(call_.op, *call_.body, types_, loaded, "params.p", "t");
    helpers.insert(printed.helpers.begin(), printed.helpers.end());
    std::string results;
    for (std::size_t r = 0; r < call_.outputs.size(); ++r) {
      const DType dtype = call_.outputs[r].dtype;
      fields += fmt::format("y{}: {}, ", r, wgsl_storage_type(dtype));
      results += (r == 0 ? "" : ", ") + wgsl_store(types_.roots[r], dtype, printed.results[r]);
    }
    return fmt::format(
        "struct Results {{ {}}}\nfn compute({}) -> Results {{\n{}  return Results({});\n}}\n",
        fields, parameters, printed.statements, results);
  }

  std::string coordinates() const {
    if (view_.rank == 0) return {};
    std::string text = "  var rest = i;\n";
    for (int axis = view_.rank - 1; axis > 0; --axis) {
      text += fmt::format("  let c{0} = rest % params.d{0};\n  rest = rest / params.d{0};\n", axis);
    }
    return text + "  let c0 = rest;\n";
  }

  /// Where the operand's element for the first of the step's results is.
  std::string position(std::size_t operand, int step) const {
    if (view_.access[operand] == Access4::single) return fmt::format("params.o{}", operand);
    if (!has_coordinates(view_.access[operand]))
      return fmt::format("i{} + params.o{}", step, operand);
    std::string text = fmt::format("params.o{}", operand);
    for (int axis = 0; axis < view_.rank; ++axis)
      text += fmt::format(" + c{0} * params.s{1}_{0}", axis, operand);
    return text;
  }

  /// The element for the step's result `lane`.
  std::string element(std::size_t operand, int step, int lane) const {
    const std::string array = array_of(operand);
    switch (view_.access[operand]) {
      case Access4::single:
      case Access4::repeat:
        return fmt::format("{}[at{}_{}]", array, operand, step);
      case Access4::linear:
        return fmt::format("{}[at{}_{} + {}u]", array, operand, step, lane);
      case Access4::strided:
        return fmt::format("{0}[at{1}_{4} + {2}u * params.s{1}_{3}]", array, operand, lane,
                           view_.rank - 1, step);
      case Access4::quad:
      case Access4::linear_quad:
        return fmt::format("q{}_{}[{}]", operand, step, lane);
    }
    return {};
  }

  /// The first of the results that each of the thread's steps makes. All loads come before the
  /// first store, so that they are on their way together; a step past the end loads what is there.
  std::string firsts(std::uint32_t workgroup) const {
    if (call_.steps == 1) return "  let i0 = i;\n";
    std::string text;
    for (int step = 0; step < call_.steps; ++step) {
      text += fmt::format("  let i{0} = min(i + {1}u, params.n - {2}u);\n", step,
                          static_cast<std::uint32_t>(step * view_.width) * workgroup, view_.width);
    }
    return text;
  }

  std::string loads(int step) const {
    std::string text;
    for (std::size_t i = 0; i < view_.access.size(); ++i) {
      text += fmt::format("  let at{}_{} = {};\n", i, step, position(i, step));
      if (i < call_.inputs.size() && is_quad(view_.access[i]))
        text += fmt::format("  let q{0}_{1} = {2}[at{0}_{1} / 4u];\n", i, step, array_of(i));
    }
    return text;
  }

  std::string results(int step) const {
    std::string text;
    for (int lane = 0; lane < view_.width; ++lane) {
      std::string arguments;
      for (std::size_t i = 0; i < call_.inputs.size(); ++i)
        arguments += (i == 0 ? "" : ", ") + element(i, step, lane);
      text += fmt::format("  let z{}_{} = compute({});\n", lane, step, arguments);
    }
    return text;
  }

  std::string stores(int step) const {
    std::string text;
    for (std::size_t r = 0; r < call_.outputs.size(); ++r) {
      const std::size_t operand = call_.inputs.size() + r;
      if (is_quad(view_.access[operand])) {
        text += fmt::format(
            "  y{0}[at{1}_{2} / 4u] = vec4<{3}>(z0_{2}.y{0}, z1_{2}.y{0}, z2_{2}.y{0}, "
            "z3_{2}.y{0});\n",
            r, operand, step, wgsl_storage_type(call_.outputs[r].dtype));
        continue;
      }
      for (int lane = 0; lane < view_.width; ++lane)
        text += fmt::format("  {} = z{}_{}.y{};\n", element(operand, step, lane), lane, step, r);
    }
    if (step == 0) return text;
    return fmt::format("  if (i + {}u < params.n) {{\n{}  }}\n",
                       static_cast<std::uint32_t>(step * view_.width) * workgroup_, text);
  }

  std::string main_body() const {
    std::string text = firsts(workgroup_);
    for (int step = 0; step < call_.steps; ++step) text += loads(step);
    for (int step = 0; step < call_.steps; ++step) text += results(step);
    for (int step = 0; step < call_.steps; ++step) text += stores(step);
    return text;
  }

  const ElementwiseLaunch& call_;
  const BodyTypes& types_;
  const CoalescedView& view_;
  std::uint32_t workgroup_;
  KernelId id_;
};

}  // namespace

KernelId elementwise_kernel(const ElementwiseLaunch& call, const BodyTypes& types,
                            const Limits& limits, std::uint32_t workgroup) {
  return Source(call, types, workgroup).run(limits);
}

}  // namespace kiln::dispatch::wgsl
