#pragma once
#include <string>
#include <string_view>

#include "kiln/dispatch/rows/row_pass.hpp"

namespace kiln::dispatch::wgsl {

/// How two numbers of a fold become one.
struct Combining {
  std::string type;
  std::string_view with;  ///< WGSL's function; "+" if they are added

  [[nodiscard]] std::string operator()(std::string_view a, std::string_view b) const;
};

/// Writes the functions that combine a number of each thread of a team, in one order for all of
/// them. Each call has its own function, and all threads of the workgroup must reach it.
class TeamFolds {
 public:
  explicit TeamFolds(const RowPass& pass) : pass_(pass) {}

  /// The call for the thread's `item`. It uses `lane` and `team`.
  std::string call(const Combining& combine, std::string_view item);
  /// The declarations of all functions, and of the workgroup memory that they use.
  [[nodiscard]] std::string declarations() const;

 private:
  [[nodiscard]] std::string place(std::string_view lane) const;

  const RowPass& pass_;
  std::string functions_;
  std::uint32_t count_ = 0;
};

}  // namespace kiln::dispatch::wgsl
