#pragma once
/// Keys: bytes that are equal exactly for what is equal.
#include <string>
#include <type_traits>

#include "kiln/support/layout.hpp"

namespace kiln::dispatch {

/// The bytes of a value that has no padding.
template <class T>
void append_bytes(std::string& key, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  key.append(reinterpret_cast<const char*>(&value),
             sizeof value);  // NOLINT: the bytes are what is wanted
}

/// The rank and the sizes.
inline void append_shape(std::string& key, const Shape& shape) {
  append_bytes(key, static_cast<char>(shape.rank()));
  key.append(reinterpret_cast<const char*>(shape.begin()),  // NOLINT: the bytes are what is wanted
             shape.size() * sizeof(std::int64_t));
}

/// Dtype and shape.
inline void append_spec(std::string& key, const TensorSpec& spec) {
  append_bytes(key, spec.dtype);
  append_shape(key, spec.shape);
}

/// Shape, strides and offset.
inline void append_layout(std::string& key, const Layout& layout) {
  append_shape(key, layout.shape);
  key.append(reinterpret_cast<const char*>(layout.strides.data()),  // NOLINT
             layout.shape.size() * sizeof(std::int64_t));
  append_bytes(key, layout.offset);
}

}  // namespace kiln::dispatch
