#pragma once
/// All checks of one case, in one dtype, on one device.
#include <optional>
#include <string>
#include <vector>

#include "kiln/check/execution.hpp"
#include "kiln/check/report_builder.hpp"

namespace kiln::check {

/// All comparisons of one case. Each `check_...` adds to its own rows. Another comparison is
/// another function, and a line in `run` and in `declare_rows`.
class CaseCheck {
 public:
  CaseCheck(const CheckedOp& op, const Reference& reference, const Device& device,
            const CheckOptions& options, DType dtype, const CheckCase& test_case,
            ReportBuilder& report);

  /// Makes the rows in order, so that a row that never compares anything is shown.
  static void declare_rows(const CheckedOp& op, const CheckOptions& options, ReportBuilder& report);

  /// `first`: whether it is the first case of this dtype, which also checks the reference's dtypes.
  void run(bool first);

 private:
  bool check_values(bool first);
  void check_rule(const HostArrays& results, bool first);
  void check_gradients();
  void check_gradient_alone(std::size_t i);
  void check_differences(std::size_t i);
  void check_checkpointing();
  void check_lazy();
  void check_strided(Form form);
  void check_nan(std::size_t i);
  void check_shared();
  void check_others();

  /// Compares all results and gradients, in the rows "forward ASPECT" and "grad NAME ASPECT".
  void compare_all(const std::string& aspect, const std::string& how, const Outcome& outcome,
                   const HostArrays& values, const HostArrays& gradients);
  [[nodiscard]] bool agrees(const Outcome& outcome, const HostArrays& values,
                            const HostArrays& gradients) const;
  /// The input that makes the result wrong when it alone is in `form`.
  [[nodiscard]] std::string culprit(Form form, const HostArrays& in, const HostArrays& seeds,
                                    const HostArrays& values, const HostArrays& gradients) const;

  [[nodiscard]] RowBuilder& forward_row(const std::string& aspect) const;
  [[nodiscard]] RowBuilder& grad_row(std::size_t i, const std::string& aspect) const;
  [[nodiscard]] std::string output_name(std::size_t i) const;
  [[nodiscard]] bool is_float_input(std::size_t i) const;
  [[nodiscard]] bool any_differentiable() const;
  [[nodiscard]] Tolerance forward_tolerance() const;
  [[nodiscard]] Tolerance gradient_tolerance(std::size_t i) const;
  [[nodiscard]] std::uint64_t seed(std::uint64_t of) const {
    return options_.seed.value() * 1000 + of;
  }

  const CheckedOp& op_;
  const Reference& reference_;
  const Device& device_;
  const CheckOptions& options_;
  DType dtype_;
  const CheckCase& case_;
  ReportBuilder& report_;

  HostArrays in_;
  HostArrays seeds_;
  HostArrays values_;          ///< the reference's
  HostArrays gradients_;       ///< the reference's
  HostArrays found_;           ///< the operation's gradients, each input tracked alone
  std::vector<bool> tracked_;  ///< inputs whose gradient can be computed
  bool memory_is_damaged_ = false;
};

}  // namespace kiln::check
