#include "kiln/fusion/faults.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <new>
#include <utility>

#include "kiln/support/error.hpp"

namespace kiln::fusion {

void BlockFaults::add(std::size_t n, std::string cause) {
  const std::lock_guard lock(mutex_);
  causes_.emplace(n, std::move(cause));
  any_.store(true, std::memory_order_release);
}

bool BlockFaults::has(std::size_t n) const {
  if (!any_.load(std::memory_order_acquire)) return false;
  const std::lock_guard lock(mutex_);
  return causes_.contains(n);
}

std::string BlockFaults::of(std::size_t n) const {
  const std::lock_guard lock(mutex_);
  const auto found = causes_.find(n);
  return found == causes_.end() ? std::string() : found->second;
}

bool faults_are_errors() {
  const char* text = std::getenv("KILN_STRICT_FUSION");  // NOLINT(concurrency-mt-unsafe): only read
  return text != nullptr && !std::string_view(text).empty() && std::string_view(text) != "0";
}

std::exception_ptr block_error(std::string_view ops, const std::exception_ptr& cause) {
  try {
    try {
      std::rethrow_exception(cause);
    } catch (...) {
      std::throw_with_nested(Error(fmt::format(
          "stream: the block {} failed, though each of its operations runs by itself, which "
          "KILN_STRICT_FUSION does not allow: {}",
          ops, text_of(cause))));
    }
  } catch (...) {
    return std::current_exception();
  }
}

std::string text_of(const std::exception_ptr& cause) {
  try {
    std::rethrow_exception(cause);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception was thrown that is not a std::exception";
  }
}

bool is_lasting(const std::exception_ptr& cause) {
  try {
    std::rethrow_exception(cause);
  } catch (const OutOfMemoryError&) {
    return false;
  } catch (const DeviceError&) {
    return false;
  } catch (const std::bad_alloc&) {
    return false;
  } catch (const std::exception& error) {
    const auto* named = dynamic_cast<const std::nested_exception*>(&error);
    return named == nullptr || named->nested_ptr() == nullptr || is_lasting(named->nested_ptr());
  } catch (...) {
    return true;
  }
}

}  // namespace kiln::fusion
