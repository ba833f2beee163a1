#pragma once
#include <memory>

#include "kiln/dispatch/raw_tensor.hpp"

namespace kiln {

struct Storage;
class Stream;

/// A value whose shape and dtype are known, and whose elements may not be computed yet. Immutable
/// and cheap to copy. Elements that are queued are computed only if a Value of them still exists
/// when the queue runs.
class Value {
 public:
  Value() = default;
  /// Elements that exist already. Throws ShapeError where they lie outside of their buffer, and
  /// KernelError for an empty handle.
  explicit Value(const RawTensor& raw);

  [[nodiscard]] const TensorSpec& spec() const { return handle_->spec; }
  [[nodiscard]] const Shape& shape() const { return handle_->spec.shape; }
  [[nodiscard]] DType dtype() const { return handle_->spec.dtype; }
  /// Where its elements lie in their buffer, which may not exist yet.
  [[nodiscard]] const Layout& layout() const { return handle_->layout; }
  [[nodiscard]] const std::shared_ptr<Runtime>& runtime() const { return handle_->runtime; }
  /// The tensor of its elements, valid once launched work is done. Runs the queue if they are still
  /// queued. Throws the error of computing them, if there is one.
  [[nodiscard]] RawTensor raw() const;
  explicit operator bool() const { return handle_ != nullptr; }

 private:
  friend class WeakValue;
  friend class Stream;

  /// The storage may be read as long as this lives.
  struct Handle {
    Handle(std::shared_ptr<Runtime> on, Stream& queue, std::shared_ptr<Storage> elements,
           const Layout& at);
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;
    ~Handle();

    std::shared_ptr<Runtime> runtime;  ///< keeps the stream, too
    Stream& stream;
    std::shared_ptr<Storage> storage;
    Layout layout;
    TensorSpec spec;
  };
  explicit Value(std::shared_ptr<const Handle> handle) : handle_(std::move(handle)) {}
  std::shared_ptr<const Handle> handle_;
};

/// A value that this does not keep alive.
class WeakValue {
 public:
  WeakValue() = default;
  explicit WeakValue(const Value& value) : handle_(value.handle_) {}
  [[nodiscard]] Value lock() const { return Value(handle_.lock()); }

 private:
  std::weak_ptr<const Value::Handle> handle_;
};

}  // namespace kiln
