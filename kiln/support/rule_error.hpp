#pragma once
/// Exceptions from code that the library calls: none loses its text, and each gets the operation's
/// name.
#include <exception>
#include <string_view>
#include <utility>

#include "kiln/support/error.hpp"

namespace kiln {

/// For a catch block: the exception that is being handled, as an Error. An Error stays as it is.
/// Another exception is nested in an Error that begins with `op` and `rule` (left out if empty) and
/// has its text; std::rethrow_if_nested returns it. std::bad_alloc becomes an OutOfMemoryError.
std::exception_ptr named_exception(std::string_view op, std::string_view rule);

/// Calls `f`, the rule `rule` of operation `op`. Whatever it throws is thrown as an Error.
///
///     in_rule("my_op", "output", [] { return std::vector<int>().at(1); });   // throws Error
template <class F>
decltype(auto) in_rule(std::string_view op, std::string_view rule, F&& f) {
  try {
    return std::forward<F>(f)();
  } catch (...) {
    std::rethrow_exception(named_exception(op, rule));
  }
}

}  // namespace kiln
