#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "kiln/dispatch/key.hpp"
#include "kiln/dispatch/raw_tensor.hpp"

namespace kiln::dispatch {

/// What generated kernels have in common once prepared: subclasses add how to fill in the metadata.
struct Prepared {
  virtual ~Prepared() = default;
  CompiledKernelPtr kernel;
};

/// Prepared launches of one runtime by a key that spells everything they depend on. Lives as long
/// as the runtime.
class KernelCache : public RuntimeExtension {
 public:
  explicit KernelCache(Runtime&) {}
  static KernelCache& of(Runtime& runtime) { return runtime.extension<KernelCache>(); }

  /// Finds what `key` was prepared as, or calls `make` once.
  template <class T, class Make>
  std::shared_ptr<const T> find_or(const std::string& key, Make make) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto at = entries_.find(key); at != entries_.end())
        return std::static_pointer_cast<const T>(at->second);
    }
    std::shared_ptr<const T> made = make();  // outside the lock: compiling takes long
    const std::lock_guard lock(mutex_);
    if (entries_.size() >= max_entries) entries_.clear();
    entries_.emplace(key, made);
    return made;
  }

  // An entry depends on the shapes, and keeps its kernel: a program whose shapes or kernels never
  // repeat must not fill the memory with them. What is made again finds its kernel compiled, as
  // long as the runtime has it.
  static constexpr std::size_t max_entries = 4096;

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const Prepared>> entries_;
};

}  // namespace kiln::dispatch
