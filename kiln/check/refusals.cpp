#include "kiln/check/refusals.hpp"

#include <fmt/format.h>

#include "kiln/ops/create/create.hpp"
#include "kiln/runtime/cpu/cpu.hpp"
#include "kiln/support/error.hpp"

namespace kiln::check {
namespace {

struct Route {
  std::string name;
  Device device;
  bool tracked = false;
};

std::vector<Route> routes_to(const Device& device, bool differentiable) {
  std::vector<Route> routes{{"queued", device.lazy()},
                            {"eager", device.eager()},
                            {"with the fallback", device.lazy().fallback()}};
  // With the fallback an operation without a kernel in C++ runs its reference.
  if (!device.same_as(cpu::device()))
    routes.push_back({"with the fallback on the host", cpu::device().fallback()});
  if (differentiable) routes.push_back({"tracked", device.lazy().autodiff(), true});
  return routes;
}

/// What is wrong with how the operation refuses; empty if it is right.
std::string fault_of(const CheckedOp& op, const std::vector<AnyTensor>& in) {
  std::vector<AnyTensor> out;
  try {
    out = op.run(in);
  } catch (const Error& error) {
    const std::string message = error.what();
    if (message.find(op.name) != std::string::npos) return {};
    return "was refused without the operation's name: " + message;
  } catch (const std::exception& error) {
    return fmt::format("was refused with an exception that is not a kiln::Error: {}", error.what());
  }
  try {
    for (const AnyTensor& t : out) (void)download(t);
  } catch (const std::exception& error) {
    return fmt::format("was refused when the result was read, not in the call: {}", error.what());
  }
  return "was not refused";
}

}  // namespace

void check_refusals(const CheckedOp& op, const CheckOptions& options, const Device& device,
                    DType dtype, ReportBuilder& report) {
  if (options.refused.empty()) return;
  RowBuilder& row = report.row("refusals");
  for (const CheckCase& c : options.refused) {
    for (const Route& route : routes_to(device, op.differentiable)) {
      std::vector<AnyTensor> in;
      for (std::size_t i = 0; i < c.inputs.size(); ++i) {
        const InputValues values = i < options.inputs.size() ? options.inputs[i] : InputValues{};
        const AnyTensor t = zeros(c.inputs[i], values.dtype.value_or(dtype), route.device);
        in.push_back(route.tracked && is_float(t.dtype()) ? t.require_grad() : t);
      }
      const std::string fault = fault_of(op, in);
      if (fault.empty()) {
        row.hold();
      } else {
        row.fail(c.name, fmt::format("{}: {}", route.name, fault));
      }
    }
  }
}

}  // namespace kiln::check
