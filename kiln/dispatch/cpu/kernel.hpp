#pragma once
#include <atomic>
#include <span>
#include <vector>

#include "kiln/dispatch/cpu/finish.hpp"
#include "kiln/dispatch/cpu_kernel.hpp"
#include "kiln/dispatch/op_table.hpp"

namespace kiln::cpu {

class Sink {
 public:
  Sink(std::string_view op, const dispatch::HostFinish& finish, const std::byte* values,
       std::size_t size, std::int64_t elements)
      : op_(op), finish_(finish), values_(values), size_(size), elements_(elements) {}

  void commit(std::int64_t first, std::int64_t count);
  [[nodiscard]] bool has_commits() const { return committed_.load() != 0; }
  /// Applies the finish to all, if the kernel committed nothing. Throws KernelError if it committed
  /// some only.
  void close();

 private:
  std::string_view op_;
  const dispatch::HostFinish& finish_;
  const std::byte* values_;
  std::size_t size_;
  std::int64_t elements_;
  std::atomic<std::int64_t> committed_ = 0;
};

}  // namespace kiln::cpu

namespace kiln::dispatch {

/// Runs an operation's `cpu_kernel`; see run_kernel.
std::vector<RawTensor> run_cpu_kernel(cpu::CpuRuntime& runtime, const OpTable& table,
                                      const void* op, std::span<const RawTensor> inputs,
                                      std::span<const TensorSpec> out, const Finish* finish);

}  // namespace kiln::dispatch
