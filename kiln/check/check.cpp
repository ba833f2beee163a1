#include "kiln/check/check.hpp"

#include <fmt/format.h>

#include "kiln/check/case_check.hpp"
#include "kiln/support/error.hpp"

namespace kiln {
namespace {

void require_sense(const CheckedOp& op, const CheckOptions& options) {
  if (!op.run || (!op.reference && op.body == nullptr)) {
    throw Error(
        fmt::format("check_op: {}: both the operation and its reference are needed", op.name));
  }
  if (options.devices.empty())
    throw Error(fmt::format("check_op: {}: the options name no device", op.name));
  if (options.cases.empty())
    throw Error(fmt::format("check_op: {}: the options name no case", op.name));
  for (const CheckCase& c : options.cases) {
    if (c.inputs.size() != op.inputs.size()) {
      throw Error(fmt::format("check_op: {}: case '{}' gives {} shapes, the operation takes {}",
                              op.name, c.name, c.inputs.size(), op.inputs.size()));
    }
  }
}

void check_on(const CheckedOp& op, const CheckOptions& options, const Device& device, DType dtype,
              CheckReport& report) {
  const std::string on = options.devices.size() > 1 ? " on " + device.adapter() : "";
  check::ReportBuilder rows(fmt::format(", {}{}", to_string(dtype), on));
  check::CaseCheck::declare_rows(op, options, rows);
  const check::Reference reference = check::make_reference(op, device);
  bool first = true;
  for (const CheckCase& c : options.cases) {
    check::CaseCheck(op, reference, device, options, dtype, c, rows).run(first);
    first = false;
  }
  rows.finish(report);
}

}  // namespace

CheckReport check_function(const CheckedOp& op, const CheckOptions& options) {
  require_sense(op, options);
  CheckReport report{.op = op.name};
  for (const Device& device : options.devices) {
    const bool has_f16 = device.limits().f16;
    std::vector<DType> dtypes = options.dtypes;
    if (dtypes.empty()) {
      dtypes = {DType::f32};
      if (has_f16) dtypes.push_back(DType::f16);
      if (!has_f16)
        report.notes.push_back(fmt::format("f16 was left out: {} has none", device.adapter()));
    }
    for (const DType dtype : dtypes) {
      if (dtype == DType::f16 && !has_f16) {
        throw Error(fmt::format("check_op: {}: f16 is asked for, and {} has none", op.name,
                                device.adapter()));
      }
      check_on(op, options, device, dtype, report);
    }
  }
  return report;
}

}  // namespace kiln
