#include "kiln/dispatch/cpu/finish.hpp"

#include <cstring>

namespace kiln::dispatch {

HostFinish::HostFinish(cpu::CpuRuntime& runtime, std::string_view op, const Finish* finish,
                       const TensorSpec& value, std::span<const RawTensor> results)
    : size_(size_of(value.dtype)), plain_(runtime.data_of(op, results[0].buffer)) {
  if (finish == nullptr) return;
  std::vector<Layout> layouts;
  for (const RawTensor& t : finish->inputs) layouts.push_back(t.layout.broadcast_to(value.shape));
  for (const RawTensor& t : results) layouts.push_back(t.layout);
  program_.emplace(runtime,
                   TileProgram::Call{op, finish->body, finish->params, finish->inputs, results,
                                     value.shape, layouts},
                   &value.dtype);
}

void HostFinish::apply(State& state, std::int64_t first, std::size_t n,
                       const std::byte* values) const {
  if (program_) return program_->run(*state.state_, first, n, values);
  std::byte* to = plain_ + static_cast<std::size_t>(first) * size_;
  if (to != values) std::memcpy(to, values, n * size_);
}

void HostFinish::apply_all(std::int64_t first, std::int64_t count, const std::byte* values) const {
  if (program_) return program_->run_all(first, count, values);
  std::byte* to = plain_ + static_cast<std::size_t>(first) * size_;
  if (to != values) std::memcpy(to, values, static_cast<std::size_t>(count) * size_);
}

}  // namespace kiln::dispatch
