#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace kiln {

/// Bytes that the machine can still give before the system ends processes for lack of memory: what
/// is free or can be made free, within the limits of this process's control groups. UINT64_MAX if
/// the system does not say. `root` is put before every path, for tests.
std::uint64_t host_memory_left(const std::string& root = {});

/// Bytes of the host's memory that this process has asked for and will use. The system grants any
/// amount, and ends processes when it runs out. So kiln counts what it was granted before it asks
/// for more.
class HostClaim {
 public:
  HostClaim() = default;
  /// Nothing if the machine does not have so much; then nothing is claimed. The environment
  /// variable KILN_HOST_MEMORY, in bytes or as 16G, replaces what the system says as the limit of
  /// all claims together, for machines that can grow. Throws DeviceError if it is not such a
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
