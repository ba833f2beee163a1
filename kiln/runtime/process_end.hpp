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
/// The rule for the end of the process, which begins before the libraries end. From then on no
/// thread may enter, the threads inside are waited for, and devices finish what was submitted. What
/// is left is never released: the libraries may be gone by then, and the system takes it back. The
/// thread that ends the process gets a DeviceError. Other threads sleep, since nobody might catch
/// what they throw in a process that is about to be gone. They get the error, too, if the process
/// does not end, since it may be waiting for them.
class LibrarySection {
 public:
  /// Throws DeviceError if the process has begun to end.
  LibrarySection();
  /// The same, but it does not throw: it is not open then. It is for destructors, and for work that
  /// can do without the library.
  explicit LibrarySection(std::nothrow_t) noexcept;
  LibrarySection(const LibrarySection&) = delete;
  LibrarySection& operator=(const LibrarySection&) = delete;
  ~LibrarySection();
  explicit operator bool() const { return depth_ > 0; }

  /// For a thread that does work for a thread inside, which waits for it. It may enter even when
  /// the process ends.
  class Helper {
   public:
    explicit Helper(const LibrarySection& of) : Helper(of.depth_) {}
    explicit Helper(int depth);  ///< the depth of the section
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

/// Registers `finish`, which runs when the process begins to end and no thread is inside. Threads
/// are waited for as long as the longest `patience` of all calls, without any for 120 s.
///
/// If main returns or the main thread calls std::exit, the end begins before every handler at exit.
/// If another thread calls std::exit, it begins before the handlers that were there when a Library
/// last changed.
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
