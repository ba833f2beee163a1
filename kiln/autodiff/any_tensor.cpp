#include "kiln/autodiff/any_tensor.hpp"

#include <fmt/format.h>

#include <utility>

#include "kiln/autodiff/gradients.hpp"
#include "kiln/autodiff/node.hpp"
#include "kiln/dispatch/elementwise/elementwise.hpp"
#include "kiln/support/error.hpp"

namespace kiln {

Device AnyTensor::device() && { return std::as_const(*this).device(); }
const Device& AnyTensor::device() const& {
  if (!device_) throw Error("tensor: this is an empty handle; assign a tensor to it first");
  return *device_;
}

const Value& AnyTensor::value() const {
  if (!value_) throw Error("tensor: this is an empty handle; assign a tensor to it first");
  return value_;
}

std::future<std::vector<std::byte>> AnyTensor::read_bytes(DType dtype) const {
  if (dtype != this->dtype()) {
    throw DTypeError(fmt::format("to_vector: asked for {}, but the tensor is {}; cast it first",
                                 to_string(dtype), to_string(spec())));
  }
  const RawTensor dense = dispatch::make_dense(value().raw());
  return dense.runtime->read(dense.buffer, 0, dispatch::bytes_of(dense.spec()));
}

void AnyTensor::require_one_element() const {
  if (shape().elements() != 1)
    throw ShapeError(fmt::format("item: needs exactly one element, got {}", to_string(shape())));
}

AnyTensor AnyTensor::require_grad() const {
  if (!device().has_autodiff()) {
    throw UnsupportedError(
        fmt::format("require_grad: the tensor is on {} without autodiff; make it on "
                    "device.autodiff(), or move it there with to()",
                    to_string(device())));
  }
  if (!is_float(dtype())) {
    throw DTypeError(
        fmt::format("require_grad: only f32 and f16 tensors have gradients, this one is {}",
                    to_string(spec())));
  }
  if (node_ != nullptr && node_->rule != nullptr) {
    throw UnsupportedError(
        fmt::format("require_grad: the tensor is the result of '{}' on tracked tensors; mark the "
                    "leaves it comes from, or detach() it first",
                    node_->op));
  }
  return node_ != nullptr ? *this
                          : NodeAccess::make(value_, *device_, make_leaf(spec(), *device_), 0);
}

Gradients AnyTensor::backward() const {
  if (!tracked()) {
    throw UnsupportedError(fmt::format(
        "backward: the tensor {} does not depend on any tensor marked with require_grad()",
        to_string(spec())));
  }
  if (shape().elements() != 1) {
    throw ShapeError(
        fmt::format("backward: needs exactly one element, got {}; sum it, or use vjp with seeds",
                    to_string(shape())));
  }
  const AnyTensor seed(full(device(), spec(), 1), device().plain());
  return vjp({this, 1}, {&seed, 1});
}

AnyTensor AnyTensor::to(const Device& device) const {
  if (device.same_as(this->device())) {
    if (!device.has_autodiff() || node_ == nullptr) return {value(), device};
    return NodeAccess::make(value(), device, node_, slot_);
  }
  if (tracked()) {
    throw UnsupportedError(
        fmt::format("to: a tracked tensor cannot move from {} to {}; detach() it first",
                    to_string(this->device()), to_string(device)));
  }
  const std::vector<std::byte> bytes = read_bytes(dtype()).get();
  const RawTensor moved = dispatch::allocate("to", device.shared_runtime(), spec());
  device.runtime().write(moved.buffer, 0, bytes);
  return {Value(moved), device};
}

void refuse_rank(int expected, const Shape& shape, const std::source_location& where) {
  throw ShapeError(fmt::format("{}:{}: a tensor of rank {} is needed here, got {}",
                               where.file_name(), where.line(), expected, to_string(shape)));
}

}  // namespace kiln
