#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace kiln {

/// One thing that was checked, over all cases.
struct CheckRow {
  /// "forward vs reference, f32", "grad lhs vs finite differences, f16", ...: `forward` or `grad`
  /// and the input, what was compared, the dtype, and the adapter where there are several.
  std::string name;
  /// Of the worst element: the one furthest above, or closest to, its tolerance. Relative to the
  /// larger of the two numbers. Infinite where one is NaN, or where there is nothing to compare.
  double max_abs = 0;
  double max_rel = 0;
  bool pass = true;
  std::int64_t compared = 0;  ///< elements
  /// Case, input and index of the worst element with both values, or what went wrong.
  std::string detail{};
};

/// What check_op found.
///
///     const CheckReport report = {.op = "my_op", .rows = {{.name = "forward", .pass = false}}};
///     report.passed();   // [false]
///     std::cout << report.table();
struct CheckReport {
  std::string op;
  std::vector<CheckRow> rows;
  std::vector<std::string> notes{};  ///< what was left out, and why

  /// Whether every row passed, and there is one.
  [[nodiscard]] bool passed() const;
  /// All rows as text, for people.
  [[nodiscard]] std::string table() const;
};

}  // namespace kiln
