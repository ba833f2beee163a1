#include "kiln/dispatch/wgsl/elementwise/elementwise_kernel.hpp"

#include <set>

#include "kiln/dispatch/wgsl/store.hpp"

namespace kiln::dispatch::wgsl {
namespace {

class ElementwiseText {
 public:
  ElementwiseText(const ElementwiseLaunch& call, const BodyTypes& types, std::uint32_t workgroup)
      : call_(call), types_(types), view_(call.view), workgroup_(workgroup) {}

  KernelId run(const Limits& limits) && {
    const std::string arrays = declare_arrays();
    Metadata metadata;
    each_number(call_, types_, 0, [&](auto name, std::string_view type, std::uint32_t word) {
      metadata.add(name(), type, word);
    });
    std::set<std::string> helpers;
    const std::string body = body_function(helpers);
    metadata.add_zero_for(helpers);
    const std::string params =
        metadata.declare(limits, 0, static_cast<std::uint32_t>(id_.bindings.size()), id_);
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
        enable_f16(arrays), arrays, params, wgsl_helpers(helpers), body, workgroup_,
        workgroup_ * static_cast<std::uint32_t>(call_.steps), view_.width,
        coordinates("i", "", view_.rank), main_body());
    return std::move(id_);
  }

 private:
  std::string declare(Access access, std::size_t operand, DType dtype) {
    return declare_array(id_, 0, static_cast<std::uint32_t>(id_.bindings.size()), access,
                         {array_of(operand), dtype, is_quad(view_.access[operand])});
  }

  std::string declare_arrays() {
    std::string text;
    for (std::size_t i = 0; i < call_.inputs.size(); ++i) {
      if (!call_.is_overwritten(i)) text += declare(Access::read, i, call_.inputs[i].dtype);
    }
    for (std::size_t r = 0; r < call_.outputs.size(); ++r) {
      const std::size_t operand = call_.inputs.size() + r;
      text += declare(Access::read_write, operand, call_.outputs[r].dtype);
    }
    return text;
  }

  /// The array that an operand lies in: x0, x1, ... of inputs, y0, y1, ... of outputs.
  std::string array_of(std::size_t operand) const {
    if (call_.is_overwritten(operand)) return fmt::format("y{}", call_.overwritten_by[operand]);
    const std::size_t inputs = call_.inputs.size();
    return operand < inputs ? fmt::format("x{}", operand) : fmt::format("y{}", operand - inputs);
  }

  std::string body_function(std::set<std::string>& helpers) const {
    std::vector<DType> inputs;
    for (const RawTensor& t : call_.inputs) inputs.push_back(t.dtype);
    std::vector<DType> outputs;
    for (const RawTensor& t : call_.outputs) outputs.push_back(t.dtype);
    return compute_function({call_.op, *call_.body, types_, "params.p", inputs, outputs}, helpers);
  }

  /// Where the operand's element for the first of the step's results is.
  std::string position(std::size_t operand, int step) const {
    if (view_.access[operand] == Access4::single) return fmt::format("params.o{}", operand);
    if (!has_coordinates(view_.access[operand]))
      return fmt::format("i{} + params.o{}", step, operand);
    std::string text = fmt::format("params.o{}", operand);
    for (std::size_t axis = 0; axis < view_.rank; ++axis) text += wgsl::step("", operand, axis);
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
        arguments +=
            (i == 0 ? "" : ", ") + wgsl_load(call_.inputs[i].dtype, element(i, step, lane));
      text += fmt::format("  let z{}_{} = kiln_compute({});\n", lane, step, arguments);
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
  return ElementwiseText(call, types, workgroup).run(limits);
}

}  // namespace kiln::dispatch::wgsl
