#pragma once
/// Sums up the findings of many runs in a few rows.
#include <deque>
#include <string>
#include <vector>

#include "kiln/check/host_array.hpp"

namespace kiln::check {

/// One row while it is being made: the worst element of all cases so far.
class RowBuilder {
 public:
  explicit RowBuilder(std::string name) : name_(std::move(name)) {}

  /// Adds a comparison of `what`, such as "lhs as a slice: out".
  void add(const std::string& test_case, const std::string& what, const HostArray& actual,
           const HostArray& expected, Tolerance tolerance);
  /// Adds elements of an array and the slopes that were found there.
  void add(const std::string& test_case, const std::string& what, const Shape& shape,
           const Comparison& comparison, std::int64_t index);
  /// A case failed in a way that is not a number.
  void fail(const std::string& test_case, const std::string& why);
  /// A case passed in a way that is not a number.
  void hold() { anything_ = true; }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] CheckRow finish() const;

 private:
  void note_failure(const std::string& test_case);

  std::string name_;
  bool anything_ = false;
  bool explained_ = false;  ///< the detail is a text, not the worst element
  double excess_ = -1;
  CheckRow row_;
  std::vector<std::string> failed_;  ///< cases
};

/// The rows of one device and dtype, in the order in which they are first asked for.
class ReportBuilder {
 public:
  explicit ReportBuilder(std::string suffix) : suffix_(std::move(suffix)) {}
  /// The row of a name such as "forward vs reference", to which the dtype is added.
  RowBuilder& row(const std::string& name);
  void finish(CheckReport& report) const;

 private:
  std::string suffix_;
  std::deque<RowBuilder> rows_;
};

}  // namespace kiln::check
