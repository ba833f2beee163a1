#pragma once
/// Calls into other libraries while the process ends.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <new>

namespace kiln {

/// A stretch in which this thread may call a library that has state of its own: a driver, oneTBB,
/// oneDNN.
///
/// The rule at the end of the process: when it begins to end, before the libraries do, no thread
/// comes in any more, those inside are waited for, and devices finish what was submitted. What is
/// left is never released: the libraries may be gone by then, and the system takes it back. The
/// thread that ends the process gets a DeviceError; others sleep, since the process is about to be
/// gone and nobody may catch what they would throw. They get the error, too, where the process does
/// not go: it may be waiting for them.
class LibrarySection {
 public:
  /// Throws DeviceError once the process ends.
  LibrarySection();
  /// The same, but not open then; for destructors, and for work that can do without the library.
  explicit LibrarySection(std::nothrow_t) noexcept;
  LibrarySection(const LibrarySection&) = delete;
  LibrarySection& operator=(const LibrarySection&) = delete;
  ~LibrarySection();
  explicit operator bool() const { return depth_ > 0; }

  /// For work that another thread may do for one that is inside and waits for it. It is let in even
  /// when the process ends.
  class Helper {
   public:
    explicit Helper(const LibrarySection& of) : Helper(of.depth_) {}
    explicit Helper(int depth);  ///< that of the section
    Helper(const Helper&) = delete;
    Helper& operator=(const Helper&) = delete;
    ~Helper();

   private:
    int before_;
  };
  /// How many stretches end after this one, itself included: its thread's and those it helps.
  [[nodiscard]] int depth() const { return depth_; }

 private:
  int depth_ = 0;
  bool outermost_ = false;
};

/// Has `finish` run when the process begins to end and no thread is inside. Threads are waited for
/// as long as the longest `patience` of all calls; without any for 120 s.
///
/// Where main returns or the main thread calls std::exit, it begins before every handler at exit.
/// Where another thread calls it, before the handlers that were there when a Library last changed.
void at_process_end(void (*finish)(), std::chrono::milliseconds patience);

/// A library that registers handlers at exit when it likes, such as destructors of its statics.
class Library {
 public:
  /// Call it where the library may have loaded something, or made its first statics. Cheap.
  void may_have_changed() noexcept;

 private:
  std::atomic<std::uint64_t> calls_ = 0;
};

}  // namespace kiln
