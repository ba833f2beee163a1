#include "kiln/fusion/value.hpp"

#include "kiln/fusion/stream.hpp"

namespace kiln {

Value::Handle::Handle(std::shared_ptr<Runtime> on, Stream& queue, StoragePtr elements,
                      const Layout& at)
    : runtime(std::move(on)),
      stream(queue),
      storage(std::move(elements)),
      layout(at),
      spec{at.shape, storage->dtype} {
  storage->handles.fetch_add(1, std::memory_order_relaxed);
  stream.handle_made();
}

Value::Handle::~Handle() {
  storage->handles.fetch_sub(1, std::memory_order_acq_rel);
  stream.handle_gone();
}

Value::Value(const RawTensor& raw) {
  dispatch::require_inside([] { return "tensor"; }, raw);
  auto storage = std::make_shared<Storage>();
  storage->dtype = raw.dtype;
  storage->shape = raw.shape();
  storage->bytes = raw.buffer->size();
  storage->publish(raw.buffer);
  handle_ = std::make_shared<const Handle>(raw.runtime, Stream::of(*raw.runtime),
                                           std::move(storage), raw.layout);
}

RawTensor Value::raw() const {
  handle_->stream.settle(*handle_->storage);
  return {handle_->runtime, handle_->storage->buffer, dtype(), handle_->layout};
}

}  // namespace kiln
