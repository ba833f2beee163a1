#include "kiln/support/rule_error.hpp"

#include <fmt/format.h>

#include <new>

namespace kiln {
namespace {

/// Throws an E with `text`, which nests the exception that is being handled.
template <class E>
[[noreturn]] void wrap(std::string_view op, std::string_view rule, std::string_view text) {
  std::throw_with_nested(E(fmt::format("{}: {}{}{}", op, rule, rule.empty() ? "" : ": ", text)));
}

}  // namespace

std::exception_ptr named_exception(std::string_view op, std::string_view rule) {
  try {
    try {
      throw;
    } catch (const Error&) {
      throw;
    } catch (const std::bad_alloc& error) {
      wrap<OutOfMemoryError>(op, rule, error.what());
    } catch (const std::exception& error) {
      wrap<Error>(op, rule, error.what());
    } catch (...) {
      wrap<Error>(op, rule, "an exception was thrown that is not a std::exception");
    }
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace kiln
