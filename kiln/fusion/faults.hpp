#pragma once
#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace kiln::fusion {

/// Blocks of a plan that failed though each of their operations runs by itself, and why. They are
/// not tried again: their operations run one by one. Safe to use from several threads.
class BlockFaults {
 public:
  /// Notes the cause of block `n`, unless it has one.
  void add(std::size_t n, std::string cause);
  /// Whether block `n` has failed.
  [[nodiscard]] bool has(std::size_t n) const;
  /// The cause; empty if it has not failed.
  [[nodiscard]] std::string of(std::size_t n) const;

 private:
  std::atomic<bool> any_ = false;
  mutable std::mutex mutex_;
  std::map<std::size_t, std::string> causes_;
};

/// Whether a failed block is an error, because of the environment variable KILN_STRICT_FUSION.
bool faults_are_errors();

/// An Error that names the operations `ops` of a block and nests and tells why it failed.
std::exception_ptr block_error(std::string_view ops, const std::exception_ptr& cause);

/// The text of an exception.
std::string text_of(const std::exception_ptr& cause);

/// Whether the block would fail again: neither memory nor a device was missing.
bool is_lasting(const std::exception_ptr& cause);

}  // namespace kiln::fusion
