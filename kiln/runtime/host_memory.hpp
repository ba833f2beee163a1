#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace kiln {

/// Bytes that the machine can still give before the system ends processes for want of memory: what
/// is free or can be made free, within the limits of this process's control groups. UINT64_MAX
/// where the system does not say. `root` stands before every path, for tests.
std::uint64_t host_memory_left(const std::string& root = {});

/// Bytes of the host's memory that this process has asked for and will use. The system promises any
/// amount and ends processes when it cannot keep its word, so kiln counts what it was promised
/// before it asks for more.
class HostClaim {
 public:
  HostClaim() = default;
  /// Nothing where the machine does not have so much: then nothing is claimed. The environment
  /// variable KILN_HOST_MEMORY, in bytes or as 16G, is what all claims together may take, instead
  /// of what the system says: for machines that grow. Throws DeviceError where it is no such
  /// number.
  static std::optional<HostClaim> take(std::uint64_t bytes);
  HostClaim(HostClaim&& other) noexcept : bytes_(std::exchange(other.bytes_, 0)) {}
  HostClaim& operator=(HostClaim&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  HostClaim(const HostClaim&) = delete;
  HostClaim& operator=(const HostClaim&) = delete;
  ~HostClaim();

 private:
  explicit HostClaim(std::uint64_t bytes) : bytes_(bytes) {}

  std::uint64_t bytes_ = 0;
};

}  // namespace kiln
