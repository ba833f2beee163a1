#pragma once
/// What happens to exceptions out of code that the library calls: none loses its text, and each has
/// the operation's name.
#include <exception>
#include <string_view>
#include <utility>

#include "kiln/support/error.hpp"

namespace kiln {

/// For a catch block: the exception that is handled, as an Error. One already stays as it is. Of
/// another the Error begins with `op` and `rule` (left out where empty), has its text, and nests it
/// (std::rethrow_if_nested gives it back); std::bad_alloc is an OutOfMemoryError.
std::exception_ptr named_exception(std::string_view op, std::string_view rule);

/// Calls `f`, the rule `rule` of operation `op`. What it throws is thrown as an Error.
///
///     in_rule(Op::name, "webgpu_kernel", [&] { return op.webgpu_kernel(x, out); });
template <class F>
decltype(auto) in_rule(std::string_view op, std::string_view rule, F&& f) {
  try {
    return std::forward<F>(f)();
  } catch (...) {
    std::rethrow_exception(named_exception(op, rule));
  }
}

}  // namespace kiln
