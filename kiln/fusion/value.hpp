#pragma once
#include <memory>

#include "kiln/dispatch/raw_tensor.hpp"

namespace kiln {

struct Storage;
class Stream;

/// A value whose shape and dtype are known, and whose elements may not be computed yet. Immutable
/// and cheap to copy. Elements that are queued are computed only if a Value of them still exists
/// when the queue runs. A tensor is a Value and its gradient.
///
///     const Value x = tensor({1.0, 2.0}, device).value();
///     x.shape();   // [2]
///     to_string(x.spec());   // "f32 [2]"
///     x.dtype() == DType::f32;   // [true]
///     x.layout().is_dense();   // [true]
///     x.runtime() == device.shared_runtime();   // [true]
///     bool{x};   // [true]
///     from_raw(x.raw());   // [1, 2]
class Value {
 public:
  /// An empty handle, of which nothing may be asked except operator bool.
  Value() = default;
  /// Elements that exist already. Throws ShapeError if they lie outside of their buffer, and
  /// KernelError for an empty handle.
  ///
  ///     Value(tensor({1.0, 2.0}).value().raw()).shape();   // [2]
  explicit Value(const RawTensor& raw);

  /// Shape and dtype, together and each.
  [[nodiscard]] const TensorSpec& spec() const { return handle_->spec; }
  [[nodiscard]] const Shape& shape() const { return handle_->spec.shape; }
  [[nodiscard]] DType dtype() const { return handle_->spec.dtype; }
  /// Where its elements lie in their buffer, which may not exist yet.
  [[nodiscard]] const Layout& layout() const { return handle_->layout; }
  /// The runtime that it belongs to.
  [[nodiscard]] const std::shared_ptr<Runtime>& runtime() const { return handle_->runtime; }
  /// The tensor of its elements, valid once launched work is done. Runs the queue if they are still
  /// queued. Throws the error of computing them, if there is one.
  [[nodiscard]] RawTensor raw() const;
  /// Whether it is a value, not an empty handle.
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
  /// Knows a value while somebody else keeps it.
  explicit WeakValue(const Value& value) : handle_(value.handle_) {}
  /// The value; an empty handle if nobody keeps it any more.
  [[nodiscard]] Value lock() const { return Value(handle_.lock()); }

 private:
  std::weak_ptr<const Value::Handle> handle_;
};

}  // namespace kiln
