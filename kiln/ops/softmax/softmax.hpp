#pragma once
#include "kiln/autodiff/any_tensor.hpp"

namespace kiln {

/// exp(x) / sum(exp(x)) along `axis`, moved by the largest element so that nothing overflows. f32
/// or f16.
AnyTensor softmax(const AnyTensor& x, Integer axis = -1);
/// The logarithm of softmax, without the loss of precision of taking it afterwards.
AnyTensor log_softmax(const AnyTensor& x, Integer axis = -1);

}  // namespace kiln
