#pragma once
/// Keys: bytes that are equal exactly for what is equal.
#include <string>

#include "kiln/dispatch/kernel_cache.hpp"
#include "kiln/support/layout.hpp"

namespace kiln::fusion {

using dispatch::append_bytes;

inline void append_shape(std::string& key, const Shape& shape) {
  append_bytes(key, static_cast<char>(shape.rank()));
  key.append(reinterpret_cast<const char*>(shape.begin()),  // NOLINT: the bytes are what is wanted
             shape.size() * sizeof(std::int64_t));
}

inline void append_spec(std::string& key, const TensorSpec& spec) {
  append_bytes(key, spec.dtype);
  append_shape(key, spec.shape);
}

inline void append_layout(std::string& key, const Layout& layout) {
  append_shape(key, layout.shape);
  key.append(reinterpret_cast<const char*>(layout.strides.data()),  // NOLINT
             layout.shape.size() * sizeof(std::int64_t));
  append_bytes(key, layout.offset);
}

}  // namespace kiln::fusion
