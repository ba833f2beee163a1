#pragma once
/// Tensors in and out of other libraries without a copy, by DLPack: the struct that NumPy, PyTorch,
/// JAX and MLX exchange arrays with. Include <dlpack/dlpack.h> to look into it.
#include "kiln/autodiff/any_tensor.hpp"
#include "kiln/runtime/cpu/cpu.hpp"

struct DLManagedTensor;

namespace kiln {

/// The elements of a tensor on the cpu device for another library, without a copy; views keep their
/// strides. Waits until they are computed. The taker calls the deleter once, on any thread. The
/// elements live until then, even without `x`. They must not be written to, since tensors share
/// them. kiln does not overwrite them, either.
///
///     DLManagedTensor* given = to_dlpack(tensor({1.0, 2.0}, cpu::device()));
///     from_dlpack(given);   // [1, 2]
///
/// Throws DeviceError for a tensor of another device (move it with to()), UnsupportedError for a
/// tracked one (detach() it), DTypeError for bool, of which DLPack has one byte and kiln 32 bits
/// (cast it), and the error of computing the elements, if there is one.
[[nodiscard]] DLManagedTensor* to_dlpack(const AnyTensor& x);

/// The elements of another library's array as a tensor, where they lie in the host's memory:
/// float32, float16, int32 or uint32, with any strides that are not negative, of rank up to 8.
/// `device` is cpu::device() or an adjusted copy of it.
///
/// The deleter is called once, on any thread, when the last tensor over the elements is gone and no
/// queued operation reads them any more. It may call kiln: if a queue is running, it is called when
/// the queue is done. What it throws is lost. Until then nobody may write to the elements; kiln
/// does not.
///
///     DLManagedTensor* array = to_dlpack(tensor({1.0, 2.0}, cpu::device()));  // or theirs
///     from_dlpack(array) * 2;   // [2, 4]
///
/// If it throws, nothing was taken: the array is still the caller's, and its deleter was not
/// called. Throws DTypeError for other element types, DeviceError for memory of another kind and
/// for another `device`, ShapeError for negative sizes or strides, a rank above 8 and more than
/// 2^32 elements, UnsupportedError for a null pointer and for an address that is no multiple of an
/// element's size.
[[nodiscard]] AnyTensor from_dlpack(DLManagedTensor* managed, const Device& device = cpu::device());

}  // namespace kiln
