#pragma once
#include <atomic>
#include <exception>
#include <memory>
#include <vector>

#include "kiln/fusion/record.hpp"

namespace kiln {

/// Elements that are, or will be, in device memory. Handles and queued work share it; the memory is
/// freed when neither uses it any more.
struct Storage {
  enum class State : std::uint8_t { queued, ready, failed };

  DType dtype = DType::f32;
  Shape shape;                               ///< as computed: dense
  std::uint64_t bytes = 0;                   ///< it has, or will have, at least
  std::atomic<State> state = State::queued;  ///< what follows is written before it changes
  BufferPtr buffer;                          ///< of `ready`
  std::exception_ptr error;                  ///< of `failed`
  std::atomic<int> handles = 0;              ///< while 0 nobody outside the stream can read it
  // How the drain that runs knows it.
  std::uint64_t batch = 0;
  std::int32_t number = -1;
  bool held = false;  ///< somebody could read it when the drain began

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
  struct Input {
    StoragePtr storage;
    Layout layout;
  };
  OpRecord record;
  std::vector<Input> in;
  std::vector<StoragePtr> out;
};

}  // namespace kiln
