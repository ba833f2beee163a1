#pragma once
#include <atomic>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include "kiln/fusion/record.hpp"

namespace kiln {

/// Elements that are, or will be, in device memory. Handles and queued work share it. The memory is
/// freed when none of them uses it any more.
struct Storage {
  enum class State : int { queued, ready, failed };

  DType dtype = DType::f32;
  Shape shape;                               ///< as computed: dense
  std::uint64_t bytes = 0;                   ///< the least that it has, or will have
  std::atomic<State> state = State::queued;  ///< changes once, after the next two were written
  BufferPtr buffer;                          ///< of `ready`
  std::exception_ptr error;                  ///< of `failed`
  std::atomic<int> handles = 0;              ///< while it is 0, only queued work can read it
  bool held = false;  ///< a handle existed when a drain took the operation that makes it

  // Notes of drains, guarded by the queue's lock.
  std::uint64_t drain = 0;  ///< that has taken the operation that makes it; 0: none
  bool waits = false;       ///< the operation is in the queue and needs what another drain makes
  std::uint64_t asked = 0;  ///< the drain that wrote the next two
  bool runs = false;        ///< what that drain runs reads it
  bool stays = false;       ///< what it leaves in the queue reads it
  // Guarded by the lock of plans.
  std::uint64_t batch = 0;  ///< the drain that wrote the next one
  std::int32_t number = -1;

  /// Whether the elements are not there yet and have not failed.
  [[nodiscard]] bool queued() const {
    return state.load(std::memory_order_acquire) == State::queued;
  }
  /// The elements are there, or failed. Each may be called once, and only one of them.
  void publish(BufferPtr elements) {
    buffer = std::move(elements);
    state.store(State::ready, std::memory_order_release);
  }
  void fail(std::exception_ptr cause) {
    error = std::move(cause);
    state.store(State::failed, std::memory_order_release);
  }
};
using StoragePtr = std::shared_ptr<Storage>;

/// One queued operation.
struct QueuedOp {
  /// An operand.
  struct Input {
    StoragePtr storage;
    Layout layout;
    std::int32_t number = -1;  ///< of the storage in the drain that runs it
  };
  enum class Fate : std::uint8_t { dropped, runs, stays };

  OpRecord record;
  std::vector<Input> in;
  std::vector<StoragePtr> out;
  std::thread::id by = std::this_thread::get_id();  ///< who queued it
  std::int32_t first_out = -1;  ///< the number of its first result; the others follow
  std::uint8_t left = 0;        ///< how many drains left it to the thread that queued it
  Fate fate = Fate::dropped;    ///< in the drain that looked at it last
  bool waits = false;           ///< in that drain: whether it reads what another drain makes
};

}  // namespace kiln
