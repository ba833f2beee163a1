#include "kiln/check/case_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace kiln::check {
namespace {

constexpr const char* values_row = "vs reference";
constexpr const char* rule_row = "output rule";
constexpr const char* memory_row = "memory";
constexpr const char* differences_row = "vs finite differences";
constexpr const char* checkpointing_row = "checkpointing";
constexpr const char* lazy_row = "lazy vs eager";
constexpr const char* strided_row = "from strided inputs";
constexpr const char* nan_row = "with a NaN";
constexpr const char* others_row = "with other attributes";
constexpr const char* shared_row = "of one tensor twice";

/// The precision of central differences in f32.
constexpr Tolerance of_differences{5e-3, 5e-3};

bool float_at(const CheckOptions& options, std::size_t i) {
  return i >= options.inputs.size() || !options.inputs[i].dtype ||
         is_float(*options.inputs[i].dtype);
}

bool checks_gradients(const CheckedOp& op, const CheckOptions& options) {
  return options.gradients && op.differentiable;
}

}  // namespace

void CaseCheck::declare_rows(const CheckedOp& op, const CheckOptions& options,
                             ReportBuilder& report) {
  for (const char* aspect : {values_row, rule_row, memory_row, strided_row, nan_row, lazy_row}) {
    report.row(fmt::format("forward {}", aspect));
  }
  if (!op.others.empty()) report.row(fmt::format("forward {}", others_row));
  if (!checks_gradients(op, options)) return;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    if (!float_at(options, i)) continue;
    for (const char* aspect : {values_row, differences_row, memory_row, strided_row, nan_row,
                               checkpointing_row, lazy_row}) {
      report.row(fmt::format("grad {} {}", op.inputs[i], aspect));
    }
    if (!op.others.empty()) report.row(fmt::format("grad {} {}", op.inputs[i], others_row));
  }
}

CaseCheck::CaseCheck(const CheckedOp& op, const Reference& reference, const Device& device,
                     const CheckOptions& options, DType dtype, const CheckCase& test_case,
                     ReportBuilder& report)
    : op_(op),
      reference_(reference),
      device_(device),
      options_(options),
      dtype_(dtype),
      case_(test_case),
      report_(report),
      tracked_(op.inputs.size(), false) {
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const InputValues values = i < options.inputs.size() ? options.inputs[i] : InputValues{};
    in_.push_back(random_array({case_.inputs[i], values.dtype.value_or(dtype)}, values, seed(i)));
  }
}

RowBuilder& CaseCheck::forward_row(const std::string& aspect) const {
  return report_.row("forward " + aspect);
}

RowBuilder& CaseCheck::grad_row(std::size_t i, const std::string& aspect) const {
  return report_.row(fmt::format("grad {} {}", op_.inputs[i], aspect));
}

std::string CaseCheck::output_name(std::size_t i) const {
  return i < op_.outputs.size() ? op_.outputs[i] : "out";
}

bool CaseCheck::is_float_input(std::size_t i) const { return is_float(in_[i].spec.dtype); }

bool CaseCheck::any_differentiable() const {
  return checks_gradients(op_, options_) &&
         std::ranges::any_of(values_, [](const HostArray& a) { return is_float(a.spec.dtype); });
}

Tolerance CaseCheck::forward_tolerance() const {
  return grown(dtype_ == DType::f16 ? options_.f16 : options_.f32,
               static_cast<double>(std::int64_t{case_.length}));
}

Tolerance CaseCheck::gradient_tolerance(std::size_t i) const {
  // Each product in the results contributes to the gradient of one element of the input.
  double products = 0;
  for (const HostArray& a : values_) products += static_cast<double>(a.values.size());
  products *= static_cast<double>(std::int64_t{case_.length});
  const double terms = products / std::max(1.0, static_cast<double>(in_[i].values.size()));
  return grown(dtype_ == DType::f16 ? options_.f16 : options_.f32, terms);
}

void CaseCheck::run(bool first) {
  try {
    values_ = reference_.values(in_);
  } catch (const std::exception& error) {
    forward_row(values_row).fail(case_.name, fmt::format("the reference throws: {}", error.what()));
    return;
  }
  if (!check_values(first) || case_.brief) return;
  if (any_differentiable()) {
    try {
      check_gradients();
    } catch (const std::exception& error) {
      for (std::size_t i = 0; i < in_.size(); ++i) {
        if (is_float_input(i)) {
          grad_row(i, values_row)
              .fail(case_.name, fmt::format("the reference's gradient throws: {}", error.what()));
        }
      }
      tracked_.assign(in_.size(), false);
    }
  }
  try {
    check_lazy();
    for (const Form form : {Form{Form::transposed}, Form{Form::sliced},
                            Form{Form::broadcast, false}, Form{Form::broadcast, true}}) {
      check_strided(form);
    }
    for (std::size_t i = 0; i < in_.size(); ++i) check_nan(i);
    check_shared();
    check_others();
  } catch (const std::exception& error) {
    forward_row(values_row)
        .fail(case_.name, fmt::format("the reference throws for other values: {}", error.what()));
  }
}

bool CaseCheck::check_values(bool first) {
  const Outcome outcome = execute(op_, device_, in_, {}, {});
  if (!outcome.forward_error.empty()) {
    forward_row(values_row).fail(case_.name, outcome.forward_error);
    if (outcome.wrong_spec) forward_row(rule_row).fail(case_.name, outcome.forward_error);
    return false;
  }
  memory_is_damaged_ = !outcome.memory_error.empty();
  if (memory_is_damaged_) {
    forward_row(memory_row).fail(case_.name, outcome.memory_error);
  } else {
    forward_row(memory_row).hold();
  }
  check_rule(outcome.out, first);
  if (outcome.out.size() != values_.size()) {
    forward_row(values_row)
        .fail(case_.name, fmt::format("the operation has {} results, the reference {}",
                                      outcome.out.size(), values_.size()));
    return false;
  }
  compare_all(values_row, "", outcome, values_, {});
  return std::ranges::equal(
      outcome.out, values_, {}, [](const HostArray& a) { return a.spec.shape; },
      [](const HostArray& a) { return a.spec.shape; });
}

void CaseCheck::check_rule(const HostArrays& results, bool first) {
  RowBuilder& row = forward_row(rule_row);
  std::vector<TensorSpec> given;
  for (const HostArray& a : in_) given.push_back(a.spec);
  try {
    std::vector<TensorSpec> promised;
    if (op_.output) promised = op_.output(given);
    // In f32 the reference has run already.
    std::vector<TensorSpec> expected;
    if (dtype_ == DType::f32) {
      for (const HostArray& a : values_) expected.push_back(a.spec);
    } else if (first) {
      expected = reference_.specs(given);
    }
    row.hold();
    for (std::size_t i = 0; i < results.size(); ++i) {
      const TensorSpec& said = i < promised.size() ? promised[i] : results[i].spec;
      if (said != results[i].spec) {
        row.fail(case_.name,
                 fmt::format("the rule promises {} for {}, the result is {}", to_string(said),
                             output_name(i), to_string(results[i].spec)));
      } else if (i < expected.size() && said != expected[i]) {
        row.fail(case_.name, fmt::format("{} is {}, the reference's is {}", output_name(i),
                                         to_string(said), to_string(expected[i])));
      }
    }
  } catch (const std::exception& error) {
    row.fail(case_.name, error.what());
  }
}

void CaseCheck::check_gradients() {
  seeds_ = random_seeds(values_, dtype_, seed(100));
  gradients_ = reference_.gradients(in_, seeds_);
  found_.assign(in_.size(), {});
  for (std::size_t i = 0; i < in_.size(); ++i) {
    if (is_float_input(i)) check_gradient_alone(i);
  }
  if (std::ranges::count(tracked_, true) > 1) {
    compare_all(values_row,
                "all tracked: ", execute(op_, device_, in_, seeds_, {.tracked = tracked_}), values_,
                gradients_);
  }
  for (std::size_t i = 0; i < in_.size(); ++i) {
    if (tracked_[i]) check_differences(i);
  }
  check_checkpointing();
}

void CaseCheck::check_gradient_alone(std::size_t i) {
  std::vector<bool> only(in_.size(), false);
  only[i] = true;
  const Outcome outcome = execute(op_, device_, in_, seeds_, {.tracked = only});
  compare_all(values_row, fmt::format("{} tracked alone: ", op_.inputs[i]), outcome, values_,
              gradients_);
  if (!outcome.forward_error.empty() || !outcome.backward_error.empty()) return;
  found_[i] = outcome.gradients[i];
  tracked_[i] = found_[i].spec.shape == in_[i].spec.shape;
  if (outcome.memory_error.empty()) {
    grad_row(i, memory_row).hold();
  } else if (!memory_is_damaged_) {
    grad_row(i, memory_row).fail(case_.name, outcome.memory_error);
  }
}

void CaseCheck::check_differences(std::size_t i) {
  const Slopes slopes =
      differences(reference_, in_, seeds_, i, options_.difference_samples, seed(200 + i));
  const Tolerance own = gradient_tolerance(i);
  const Tolerance tolerance{own.absolute + of_differences.absolute,
                            own.relative + of_differences.relative};
  for (std::size_t k = 0; k < slopes.elements.size(); ++k) {
    const auto element = static_cast<std::size_t>(slopes.elements[k]);
    const Comparison c = compare({{Shape{1}, dtype_}, {found_[i].values[element]}},
                                 {{Shape{1}, DType::f32}, {slopes.values[k]}}, tolerance);
    grad_row(i, differences_row)
        .add(case_.name, op_.inputs[i], in_[i].spec.shape, c, slopes.elements[k]);
  }
}

void CaseCheck::check_checkpointing() {
  if (std::ranges::count(tracked_, true) == 0) return;
  Setup setup{.tracked = tracked_, .in_a_chain = true};
  const Outcome keep = execute(op_, device_, in_, seeds_, setup);
  setup.checkpointing = Checkpointing::balanced;
  const Outcome balanced = execute(op_, device_, in_, seeds_, setup);
  for (std::size_t i = 0; i < in_.size(); ++i) {
    if (!tracked_[i]) continue;
    RowBuilder& row = grad_row(i, checkpointing_row);
    const std::string error =
        keep.forward_error + keep.backward_error + balanced.forward_error + balanced.backward_error;
    if (!error.empty()) {
      row.fail(case_.name, error);
    } else {
      row.add(case_.name, fmt::format("balanced, against keep: {}", op_.inputs[i]),
              balanced.gradients[i], keep.gradients[i], gradient_tolerance(i));
    }
  }
}

/// Compares the operation fused with neighbours with the operation run on its own.
void CaseCheck::check_lazy() {
  Setup setup{.in_a_chain = true, .mode = Setup::Mode::eager};
  if (std::ranges::count(tracked_, true) > 0) setup.tracked = tracked_;
  const Outcome eager = execute(op_, device_, in_, seeds_, setup);
  setup.mode = Setup::Mode::lazy;
  const Outcome lazy = execute(op_, device_, in_, seeds_, setup);
  const std::string error = eager.forward_error + eager.backward_error;
  if (!error.empty()) {
    forward_row(lazy_row).fail(case_.name, "eager: " + error);
    return;
  }
  compare_all(lazy_row, "", lazy, eager.out, eager.gradients);
}

void CaseCheck::check_strided(Form form) {
  const auto takes = [&](const HostArray& a) { return has_form(a.spec.shape, form); };
  if (std::ranges::none_of(in_, takes)) return;
  HostArrays in;
  HostArrays seeds;
  for (const HostArray& a : in_) in.push_back(seen_through(a, form));
  for (const HostArray& a : seeds_) seeds.push_back(seen_through(a, form));
  const bool gradients = std::ranges::count(tracked_, true) > 0;
  const bool anew = form.kind == Form::broadcast;
  const HostArrays values = anew ? reference_.values(in) : values_;
  const HostArrays expected = anew && gradients ? reference_.gradients(in, seeds) : gradients_;
  Setup setup{.forms = std::vector<Form>(in.size(), form), .seed_form = form};
  if (gradients) setup.tracked = tracked_;
  const Outcome outcome = execute(op_, device_, in, seeds, setup);
  const std::string how = agrees(outcome, values, expected)
                              ? "inputs" + to_string(form)
                              : culprit(form, in, seeds, values, expected);
  compare_all(strided_row, how + ": ", outcome, values, expected);
}

std::string CaseCheck::culprit(Form form, const HostArrays& in, const HostArrays& seeds,
                               const HostArrays& values, const HostArrays& gradients) const {
  Setup setup;
  if (std::ranges::count(tracked_, true) > 0) setup.tracked = tracked_;
  for (std::size_t i = 0; i < in.size(); ++i) {
    setup.forms.assign(in.size(), {});
    setup.forms[i] = form;
    if (!agrees(execute(op_, device_, in, seeds, setup), values, gradients))
      return op_.inputs[i] + to_string(form);
  }
  setup.forms.clear();
  setup.seed_form = form;
  if (!agrees(execute(op_, device_, in, seeds, setup), values, gradients)) {
    return "the incoming gradient" + to_string(form);
  }
  return "inputs together" + to_string(form);
}

void CaseCheck::check_nan(std::size_t i) {
  if (!is_float_input(i) || in_[i].values.empty()) return;
  HostArrays in = in_;
  const std::size_t element = seed(300 + i) % in[i].values.size();
  in[i].values[element] = std::numeric_limits<double>::quiet_NaN();
  const HostArrays values = reference_.values(in);
  Setup setup;
  HostArrays gradients;
  if (std::ranges::count(tracked_, true) > 0) {
    setup.tracked = tracked_;
    gradients = reference_.gradients(in, seeds_);
  }
  const std::string where =
      op_.inputs[i] + index_text(in[i].spec.shape, static_cast<std::int64_t>(element));
  compare_all(nan_row, fmt::format("NaN at {}: ", where), execute(op_, device_, in, seeds_, setup),
              values, gradients);
}

void CaseCheck::check_shared() {
  for (std::size_t a = 0; a < in_.size(); ++a) {
    for (std::size_t b = a + 1; b < in_.size(); ++b) {
      if (in_[a].spec != in_[b].spec) continue;
      HostArrays in = in_;
      in[b] = in[a];
      Setup setup{.shared = std::pair(a, b)};
      HostArrays gradients;
      if (tracked_[a] && tracked_[b]) {
        setup.tracked = tracked_;
        gradients = reference_.gradients(in, seeds_);
        for (std::size_t k = 0; k < gradients[a].values.size(); ++k) {
          gradients[a].values[k] += gradients[b].values[k];
        }
        gradients[b] = gradients[a];
      }
      const std::string how =
          fmt::format("one tensor as {} and {}: ", op_.inputs[a], op_.inputs[b]);
      compare_all(shared_row, how, execute(op_, device_, in, seeds_, setup), reference_.values(in),
                  gradients);
      return;
    }
  }
}

/// Runs it with other Params and attributes, and then again as given: no earlier value may be kept.
void CaseCheck::check_others() {
  Setup setup;
  if (std::ranges::count(tracked_, true) > 0) setup.tracked = tracked_;
  const auto look = [&](const CheckedOp& op, const Reference& reference, const std::string& how) {
    const HostArrays values = reference.values(in_);
    const HostArrays seeds =
        setup.tracked.empty() ? HostArrays{} : random_seeds(values, dtype_, seed(100));
    const HostArrays gradients =
        setup.tracked.empty() ? HostArrays{} : reference.gradients(in_, seeds);
    compare_all(others_row, how, execute(op, device_, in_, seeds, setup), values, gradients);
  };
  for (std::size_t i = 0; i < op_.others.size(); ++i)
    look(op_.others[i], reference_.others[i], op_.others[i].difference + ": ");
  if (!op_.others.empty()) look(op_, reference_, "as given, again: ");
}

void CaseCheck::compare_all(const std::string& aspect, const std::string& how,
                            const Outcome& outcome, const HostArrays& values,
                            const HostArrays& gradients) {
  if (!outcome.forward_error.empty()) {
    forward_row(aspect).fail(case_.name, how + outcome.forward_error);
    return;
  }
  for (std::size_t i = 0; i < std::min(values.size(), outcome.out.size()); ++i) {
    forward_row(aspect).add(case_.name, how + output_name(i), outcome.out[i], values[i],
                            forward_tolerance());
  }
  for (std::size_t i = 0; i < outcome.tracked.size(); ++i) {
    if (!outcome.tracked[i]) continue;
    if (!outcome.backward_error.empty()) {
      grad_row(i, aspect).fail(case_.name, how + outcome.backward_error);
    } else {
      grad_row(i, aspect).add(case_.name, how + op_.inputs[i], outcome.gradients[i], gradients[i],
                              gradient_tolerance(i));
    }
  }
}

bool CaseCheck::agrees(const Outcome& outcome, const HostArrays& values,
                       const HostArrays& gradients) const {
  if (!outcome.forward_error.empty() || !outcome.backward_error.empty()) return false;
  const auto same = [](const HostArray& a, const HostArray& b, Tolerance tolerance) {
    return a.spec.shape == b.spec.shape && compare(a, b, tolerance).pass();
  };
  for (std::size_t i = 0; i < outcome.out.size(); ++i) {
    if (!same(outcome.out[i], values[i], forward_tolerance())) return false;
  }
  for (std::size_t i = 0; i < outcome.tracked.size(); ++i) {
    if (outcome.tracked[i] && !same(outcome.gradients[i], gradients[i], gradient_tolerance(i)))
      return false;
  }
  return true;
}

}  // namespace kiln::check
