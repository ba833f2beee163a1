#include "kiln/ops/loss/loss.hpp"

#include <fmt/format.h>

#include "kiln/ops/elementwise/elementwise.hpp"
#include "kiln/ops/gather/gather.hpp"
#include "kiln/ops/movement/movement.hpp"
#include "kiln/ops/reduce/reduce.hpp"
#include "kiln/ops/softmax/softmax.hpp"
#include "kiln/support/error.hpp"

namespace kiln {

AnyTensor cross_entropy(const AnyTensor& logits, const AnyTensor& labels) {
  if (logits.rank() != 2 || labels.rank() != 1 || logits.dim(0) != labels.dim(0)) {
    throw ShapeError(fmt::format("cross_entropy: takes logits [N, C] and labels [N], got {} and {}",
                                 to_string(logits.shape()), to_string(labels.shape())));
  }
  return -mean(gather(log_softmax(logits, 1), 1, unsqueeze(labels, 1)));
}

AnyTensor mse(const AnyTensor& prediction, const AnyTensor& target) {
  if (prediction.shape() != target.shape()) {
    throw ShapeError(fmt::format("mse: prediction and target must have one shape, got {} and {}",
                                 to_string(prediction.shape()), to_string(target.shape())));
  }
  const AnyTensor difference = prediction - target;
  return mean(difference * difference);
}

}  // namespace kiln
