#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "kiln/dispatch/key.hpp"
#include "kiln/dispatch/raw_tensor.hpp"

namespace kiln::dispatch {

/// A prepared launch of a generated kernel. Subclasses add how its metadata is filled in.
struct Prepared {
  virtual ~Prepared() = default;
  CompiledKernelPtr kernel;
};

/// Prepared launches of one runtime, by a key that has everything on which they depend. It lives as
/// long as the runtime.
class KernelCache : public RuntimeExtension {
 public:
  /// The cache of a runtime; `of` makes it.
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

  // An entry depends on the shapes, and keeps its kernel. A program whose shapes or kernels never
  // repeat must not fill the memory with entries. An entry that is made again finds its kernel
  // compiled, as long as the runtime has it.
  static constexpr std::size_t max_entries = 4096;

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const Prepared>> entries_;
};

}  // namespace kiln::dispatch
