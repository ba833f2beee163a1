#include "training.hpp"

#include <algorithm>
#include <chrono>

#include "kiln/kiln.hpp"

namespace example {

using namespace kiln;

namespace {

using Clock = std::chrono::steady_clock;

AnyTensor pixels_of(const Images& images, const Device& device) {
  return tensor(images.pixels, {images.size(), pixels_per_image}, device);
}

AnyTensor loss_of(const Parameters& parameters, const Images& images, const Device& device) {
  return cross_entropy(logits(parameters, pixels_of(images, device)),
                       tensor(images.labels, {images.size()}, device));
}

/// The parameters where they are, outside of any gradient graph.
Parameters plain(const Parameters& parameters) {
  Parameters copies;
  for (const AnyTensor& p : parameters) copies.push_back(p.to(p.device().plain()));
  return copies;
}

/// Training in progress: parameters, and the optimiser's memory of them.
class Trainer {
 public:
  Trainer(const Images& images, const Device& device, const TrainingOptions& options)
      : images_(images),
        device_(device),
        options_(options),
        adam_({.learning_rate = options.learning_rate}),
        parameters_(make_parameters(options.seed, device)) {}

  /// One pass over all images; gives the mean loss.
  double run_epoch(int number) {
    const auto count = static_cast<std::size_t>(images_.size());
    const auto batch = static_cast<std::size_t>(options_.batch);
    const auto order =
        shuffled(count, options_.seed * 1'000'003 + static_cast<std::uint64_t>(number));
    std::vector<std::pair<Reading<float>, double>>
        losses;  // being read: no step waits for the one before
    for (std::size_t begin = 0; begin < count; begin += batch) {
      const Images some = images_.pick(order, begin, std::min(begin + batch, count));
      losses.emplace_back(step(some).read(), static_cast<double>(some.size()));
    }
    double total = 0;
    for (auto& [loss, size] : losses) total += static_cast<double>(loss.get()[0]) * size;
    return total / static_cast<double>(count);
  }

  [[nodiscard]] const Parameters& parameters() const { return parameters_; }
  [[nodiscard]] std::uint64_t launches_per_step() const { return launches_; }

 private:
  AnyTensor step(const Images& images) {
    const std::uint64_t before = device_.runtime().counters().launches;
    AnyTensor loss = loss_of(parameters_, images, device_);
    const Gradients gradients = loss.backward();
    loss = loss.detach();  // ends the graph, and with it what was kept for backward
    parameters_ = adam_.step(parameters_, gradients);
    device_.flush();
    launches_ = device_.runtime().counters().launches - before;
    return loss;
  }

  const Images& images_;
  Device device_;
  TrainingOptions options_;
  Adam adam_;
  Parameters parameters_;
  std::uint64_t launches_ = 0;
};

}  // namespace

Trained train(const Digits& digits, const Device& device, const TrainingOptions& options,
              const std::function<void(const Epoch&)>& progress) {
  const Clock::time_point start = Clock::now();
  Trainer trainer(digits.train, device, options);
  Trained trained;
  for (int number = 1; number <= options.epochs; ++number) {
    Epoch epoch{.number = number, .train_loss = trainer.run_epoch(number)};
    const Parameters now = plain(trainer.parameters());
    epoch.held_out_loss = static_cast<double>(loss_of(now, digits.held_out, device.plain()).item());
    epoch.accuracy = accuracy(trainer.parameters(), digits.held_out);
    trained.epochs.push_back(epoch);
    progress(epoch);
  }
  trained.parameters = trainer.parameters();
  trained.launches_per_step = trainer.launches_per_step();
  trained.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return trained;
}

double accuracy(const Parameters& parameters, const Images& images) {
  const AnyTensor scores = logits(parameters, pixels_of(images, parameters.front().device()));
  const auto guesses = argmax(scores, 1).to_vector<std::int32_t>();
  double right = 0;
  for (std::size_t i = 0; i < guesses.size(); ++i) right += guesses[i] == images.labels[i] ? 1 : 0;
  return right / static_cast<double>(images.size());
}

}  // namespace example
