#include "kiln/support/dtype.hpp"

namespace kiln {

std::string_view to_string(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "f32";
    case DType::f16:
      return "f16";
    case DType::i32:
      return "i32";
    case DType::u32:
      return "u32";
    case DType::boolean:
      return "bool";
  }
  return "unknown";
}

}  // namespace kiln
