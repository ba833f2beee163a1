#include "kiln/dispatch/host/result_store.hpp"

#include <cstring>

#include "kiln/dispatch/access.hpp"

namespace kiln::dispatch::host {

ResultStore::ResultStore(cpu::CpuRuntime& runtime, std::string_view op,
                         const FusedEpilogue* epilogue, const TensorSpec& value,
                         std::span<const RawTensor> results)
    : size_(size_of(value.dtype)), plain_(runtime.data_of(op, results[0].buffer)) {
  if (epilogue == nullptr) return;
  std::vector<Layout> layouts;
  for (const RawTensor& t : epilogue->inputs)
    layouts.push_back(seen_by(*epilogue->body, layouts.size() + 1, t.layout, value.shape));
  for (const RawTensor& t : results) layouts.push_back(t.layout);
  program_.emplace(runtime,
                   ElementwiseWork{op, epilogue->body, epilogue->params, epilogue->inputs, results,
                                   value.shape, layouts},
                   &value.dtype);
}

void ResultStore::apply(State& state, std::int64_t first, std::size_t n,
                        const std::byte* values) const {
  if (program_) return program_->run(*state.state_, first, n, values);
  std::byte* to = plain_ + static_cast<std::size_t>(first) * size_;
  if (to != values) std::memcpy(to, values, n * size_);
}

void ResultStore::apply_all(std::int64_t first, std::int64_t count, const std::byte* values) const {
  if (program_) return program_->run_all(first, count, values);
  std::byte* to = plain_ + static_cast<std::size_t>(first) * size_;
  if (to != values) std::memcpy(to, values, static_cast<std::size_t>(count) * size_);
}

}  // namespace kiln::dispatch::host
