#include "kiln/check/check.hpp"

#include <fmt/format.h>

#include "kiln/check/case_check.hpp"
#include "kiln/check/refusals.hpp"
#include "kiln/runtime/cpu/cpu.hpp"
#include "kiln/runtime/webgpu/webgpu.hpp"
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
  for (const std::vector<CheckCase>& cases : {options.cases, options.refused}) {
    for (const CheckCase& c : cases) {
      if (c.inputs.size() != op.inputs.size()) {
        throw Error(fmt::format("check_op: {}: case '{}' gives {} shapes, the operation takes {}",
                                op.name, c.name, c.inputs.size(), op.inputs.size()));
      }
    }
  }
}

/// A device of another runtime, which shares no kernels with this one, if there is one.
Device other_runtime(const Device& device) {
  Device host = cpu::device();
  if (!device.same_as(host)) return host;
  for (const AdapterInfo& adapter : webgpu::adapters()) {
    if (adapter.kind == AdapterKind::discrete_gpu || adapter.kind == AdapterKind::integrated_gpu)
      return webgpu::device({.adapter = adapter.name});
  }
  return device;
}

check::Reference reference_for(const CheckedOp& op, const CheckOptions& options,
                               const Device& device, DType dtype, CheckReport& report) {
  check::Reference own = check::make_reference(op, device);
  if (op.body != nullptr) return own;
  const Device other = options.reference_device ? *options.reference_device : other_runtime(device);
  if (other.same_as(device)) {
    report.notes.push_back(fmt::format(
        "the reference was computed on {} itself: a fault of its own kernels would not show",
        to_string(device)));
    return own;
  }
  check::Reference made = check::make_reference(op, other);
  made.specs = own.specs;  // it asks for the operation's own dtypes
  check::HostArrays in;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const InputValues values = i < options.inputs.size() ? options.inputs[i] : InputValues{};
    in.push_back(
        check::random_array({options.cases[0].inputs[i], values.dtype.value_or(dtype)}, values, i));
  }
  try {
    (void)made.values(in);
    return made;
  } catch (const Error& error) {
    report.notes.push_back(
        fmt::format("the reference was computed on {} itself, as it cannot be on {}: {}",
                    to_string(device), to_string(other), error.what()));
    return own;
  }
}

void check_on(const CheckedOp& op, const CheckOptions& options, const Device& device, DType dtype,
              CheckReport& report) {
  const std::string on = options.devices.size() > 1 ? " on " + device.adapter() : "";
  check::ReportBuilder rows(fmt::format(", {}{}", to_string(dtype), on));
  check::CaseCheck::declare_rows(op, options, rows);
  const check::Reference reference = reference_for(op, options, device, dtype, report);
  bool first = true;
  std::size_t done = 0;
  for (const CheckCase& c : options.cases) {
    if (options.progress) {
      options.progress({op.name, dtype, device.adapter(), c.name, done++, options.cases.size()});
    }
    check::CaseCheck(op, reference, device, options, dtype, c, rows).run(first);
    first = false;
  }
  check::check_refusals(op, options, device, dtype, rows);
  rows.finish(report);
}

}  // namespace

CheckReport check_function(const CheckedOp& op, const CheckOptions& options) {
  require_sense(op, options);
  CheckReport report{.op = op.name};
  for (const Device& device : options.devices) {
    const Limits limits = device.limits();
    const bool has_f16 = limits.f16;
    if (limits.loop_rounds > 0) {
      report.notes.push_back(fmt::format(
          "{} gives the loops of one thread {} rounds: a kernel with longer ones has to "
          "share them among threads",
          device.adapter(), limits.loop_rounds));
    }
    std::vector<DType> dtypes = options.dtypes;
    if (dtypes.empty()) {
      dtypes = {DType::f32};
      if (has_f16) dtypes.push_back(DType::f16);
      if (!has_f16)
        report.notes.push_back(
            fmt::format("f16 was left out: {} does not have it", device.adapter()));
    }
    for (const DType dtype : dtypes) {
      if (dtype == DType::f16 && !has_f16) {
        throw Error(fmt::format("check_op: {}: f16 is asked for, but {} does not have it", op.name,
                                device.adapter()));
      }
      check_on(op, options, device, dtype, report);
    }
  }
  return report;
}

}  // namespace kiln
