#pragma once
#include <memory>

#include "kiln/dispatch/raw_tensor.hpp"

namespace kiln {

struct Storage;
class Stream;

/// A value: its shape and dtype are known, its elements may be on their way. Immutable and cheap to
/// copy. Elements are computed as long as a Value of them exists; those that nobody can read any
/// more never are.
class Value {
 public:
  Value() = default;
  /// Elements that exist already. Throws ShapeError where they lie outside of their buffer, and
  /// KernelError for an empty handle.
  explicit Value(const RawTensor& raw);

  [[nodiscard]] const TensorSpec& spec() const { return handle_->spec; }
  [[nodiscard]] const Shape& shape() const { return handle_->spec.shape; }
  [[nodiscard]] DType dtype() const { return handle_->spec.dtype; }
  /// Where its elements lie, in whatever buffer that will be.
  [[nodiscard]] const Layout& layout() const { return handle_->layout; }
  [[nodiscard]] const std::shared_ptr<Runtime>& runtime() const { return handle_->runtime; }
  /// Where its elements are, or will be once launched work is done. Runs what is queued if it must.
  /// Throws what went wrong on the way to them.
  [[nodiscard]] RawTensor raw() const;
  explicit operator bool() const { return handle_ != nullptr; }

 private:
  friend class WeakValue;
  friend class Stream;

  /// While it lives somebody may read the storage.
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

/// Does not keep the value; gives it back while somebody else does.
class WeakValue {
 public:
  WeakValue() = default;
  explicit WeakValue(const Value& value) : handle_(value.handle_) {}
  [[nodiscard]] Value lock() const { return Value(handle_.lock()); }

 private:
  std::weak_ptr<const Value::Handle> handle_;
};

}  // namespace kiln
