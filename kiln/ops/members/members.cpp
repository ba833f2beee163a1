/// The operations that a tensor has as members: each calls the function of its name.
#include "kiln/ops/compare/compare.hpp"
#include "kiln/ops/movement/movement.hpp"
#include "kiln/ops/reduce/reduce.hpp"

namespace kiln {

AnyTensor AnyTensor::sum(const AxisList& axes, Flag keepdim) const {
  return kiln::sum(*this, axes, keepdim);
}
AnyTensor AnyTensor::mean(const AxisList& axes, Flag keepdim) const {
  return kiln::mean(*this, axes, keepdim);
}
AnyTensor AnyTensor::max(const AxisList& axes, Flag keepdim) const {
  return kiln::max(*this, axes, keepdim);
}
AnyTensor AnyTensor::min(const AxisList& axes, Flag keepdim) const {
  return kiln::min(*this, axes, keepdim);
}
AnyTensor AnyTensor::argmax(Integer axis, Flag keepdim) const {
  return kiln::argmax(*this, axis, keepdim);
}
AnyTensor AnyTensor::argmin(Integer axis, Flag keepdim) const {
  return kiln::argmin(*this, axis, keepdim);
}
AnyTensor AnyTensor::reshape(std::initializer_list<Integer> shape) const {
  return kiln::reshape(*this, shape);
}
AnyTensor AnyTensor::reshape(const Shape& shape) const { return kiln::reshape(*this, shape); }
AnyTensor AnyTensor::permute(std::initializer_list<Integer> axes) const {
  return kiln::permute(*this, axes);
}
AnyTensor AnyTensor::transpose() const { return kiln::transpose(*this); }
AnyTensor AnyTensor::transpose(Integer axis_a, Integer axis_b) const {
  return kiln::transpose(*this, axis_a, axis_b);
}
AnyTensor AnyTensor::squeeze(const AxisList& axes) const { return kiln::squeeze(*this, axes); }
AnyTensor AnyTensor::unsqueeze(Integer axis) const { return kiln::unsqueeze(*this, axis); }
AnyTensor AnyTensor::broadcast_to(const Shape& shape) const {
  return kiln::broadcast_to(*this, shape);
}
AnyTensor AnyTensor::cast(DType dtype) const { return kiln::cast(*this, dtype); }

}  // namespace kiln
