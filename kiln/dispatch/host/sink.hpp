#pragma once
#include <atomic>
#include <string_view>

#include "kiln/dispatch/host/cpu_kernel.hpp"
#include "kiln/dispatch/host/result_store.hpp"

namespace kiln::cpu {

class Sink {
 public:
  Sink(std::string_view op, const dispatch::host::ResultStore& store, const std::byte* values,
       std::size_t size, std::int64_t elements)
      : op_(op), store_(store), values_(values), size_(size), elements_(elements) {}

  void commit(std::int64_t first, std::int64_t count);
  [[nodiscard]] bool has_commits() const { return committed_.load() != 0; }
  /// Applies the epilogue to everything if the kernel committed nothing. Throws KernelError if it
  /// committed only a part.
  void close();

 private:
  std::string_view op_;
  const dispatch::host::ResultStore& store_;
  const std::byte* values_;
  std::size_t size_;
  std::int64_t elements_;
  std::atomic<std::int64_t> committed_ = 0;
};

}  // namespace kiln::cpu
