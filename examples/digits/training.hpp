#pragma once
#include <cstdint>
#include <functional>

#include "data.hpp"
#include "model.hpp"

namespace example {

struct TrainingOptions {
  int epochs = 20;
  int batch = 64;
  double learning_rate = 2e-3;
  std::uint64_t seed = 1;  ///< of the first parameters and of the order of images
};

/// How things stand after an epoch. Losses are means over images.
struct Epoch {
  int number = 0;  ///< from 1
  double train_loss = 0;
  double held_out_loss = 0;
  double accuracy = 0;  ///< on the held-out images, from 0 to 1
};

struct Trained {
  Parameters parameters;
  std::vector<Epoch> epochs;
  double seconds = 0;
  std::uint64_t launches_per_step = 0;
};

/// Trains with Adam; `device` has autodiff. `progress` sees every epoch as it ends.
Trained train(const Digits& digits, const kiln::Device& device, const TrainingOptions& options,
              const std::function<void(const Epoch&)>& progress);

/// The part of the images that are recognised, from 0 to 1, computed where the parameters are.
double accuracy(const Parameters& parameters, const Images& images);

}  // namespace example
