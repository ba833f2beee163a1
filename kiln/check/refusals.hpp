#pragma once
/// Checks that an operation refuses what it must.
#include "kiln/check/checked_op.hpp"
#include "kiln/check/report_builder.hpp"

namespace kiln::check {

/// Calls the operation with each case of `options.refused`, on every route. Each call must throw an
/// Error that names the operation, before anything is read.
void check_refusals(const CheckedOp& op, const CheckOptions& options, const Device& device,
                    DType dtype, ReportBuilder& report);

}  // namespace kiln::check
