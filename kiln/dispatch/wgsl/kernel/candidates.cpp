#include "kiln/dispatch/wgsl/kernel/candidates.hpp"

#include <mutex>
#include <string>
#include <unordered_map>

#include "kiln/dispatch/kernel/operands.hpp"

namespace kiln::dispatch::wgsl {
namespace {

std::size_t memory_of(const Candidates& candidates) {
  std::size_t bytes = sizeof candidates;
  for (const auto& reads : candidates.reads)
    bytes += sizeof(std::vector<OperandReads>) + reads.size() * sizeof(OperandReads);
  for (const webgpu::Launch& launch : candidates.launches) {
    bytes += sizeof launch + launch.source.text().text.size() + 4 * launch.source.words().size();
    bytes += launch.declined.size() + launch.params.size() * sizeof(LaunchParam) +
             launch.scratch.size() * sizeof(Scratch);
    for (const auto& [name, value] : launch.source.variables()) bytes += name.size() + value.size();
  }
  return bytes;
}

/// The latest answers of rules on one runtime.
class Answers : public RuntimeExtension {
 public:
  explicit Answers(Runtime&) {}

  CandidatesPtr find(const std::string& key) {
    const std::lock_guard lock(mutex_);
    const auto at = answers_.find(key);
    return at == answers_.end() ? nullptr : at->second;
  }
  void add(std::string key, const CandidatesPtr& answer) {
    const std::size_t bytes = key.size() + memory_of(*answer);
    const std::lock_guard lock(mutex_);
    if (bytes_ + bytes > most_bytes) {
      answers_.clear();
      bytes_ = 0;
    }
    if (answers_.emplace(std::move(key), answer).second) bytes_ += bytes;
  }

 private:
  // Between a call and its launch lies one queue. What is launched again is prepared already.
  static constexpr std::size_t most_bytes = std::size_t{16} << 20;

  std::mutex mutex_;
  std::unordered_map<std::string, CandidatesPtr> answers_;
  std::size_t bytes_ = 0;
};

}  // namespace

CandidatesPtr candidates(Runtime& runtime, const OpTable& table, const void* op,
                         std::span<const Operand> in, std::span<const TensorSpec> out) {
  auto& answers = runtime.extension<Answers>();
  std::string key;
  append_call(key, table, op, in, out);
  if (CandidatesPtr known = answers.find(key)) return known;
  auto made = std::make_shared<Candidates>();  // outside the lock: a rule may take long
  made->launches = table.webgpu_kernel(op, renamed(table.inputs, in), operands(table.outputs, out),
                                       runtime.limits());
  for (const webgpu::Launch& launch : made->launches) {
    made->reads.push_back(launch.declined.empty() ? operand_reads(launch, table.inputs)
                                                  : std::vector<OperandReads>());
  }
  table.params(op, made->params);
  answers.add(std::move(key), made);
  return made;
}

}  // namespace kiln::dispatch::wgsl
