// Trains a network on handwritten digits, every hidden layer one fused kernel, then runs it without
// gradients.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "chart.hpp"
#include "kiln/kiln.hpp"
#include "training.hpp"

namespace {

using namespace example;
using namespace kiln;

struct Options {
  std::string adapter;
  TrainingOptions training;
  std::string svg;
  bool json = false;
};

void add_options(CLI::App& app, Options& options) {
  app.add_option("--adapter", options.adapter,
                 "Part of a WebGPU adapter's name, such as llvmpipe; KILN_DEVICE, the first "
                 "GPU or else the host unless given");
  app.add_option("--epochs", options.training.epochs, "Passes over the training images")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seed", options.training.seed, "Of the first weights and the order of images")
      ->capture_default_str();
  app.add_option("--svg", options.svg, "File for the loss curve; none is written unless given");
  app.add_flag("--json", options.json, "One JSON object on stdout and nothing else");
}

void write_curve(const std::string& path, const std::vector<Epoch>& epochs) {
  Series train{"training images", "#1f6fb4", {}};
  Series held_out{"held-out images", "#d9691e", {}};
  for (const Epoch& epoch : epochs) {
    train.values.push_back(epoch.train_loss);
    held_out.values.push_back(epoch.held_out_loss);
  }
  std::ofstream file(path);
  file << to_svg({"Handwritten digits", "epoch", "cross-entropy", {train, held_out}});
  if (!file.flush()) throw std::runtime_error(fmt::format("--svg: {} cannot be written", path));
}

void run(const Options& options) {
  const Device device =
      options.adapter.empty() ? default_device() : webgpu::device({.adapter = options.adapter});
  const Digits digits = load_digits();
  if (!options.json) {
    fmt::print("{}\n{} images to learn from, {} held out\n", to_string(device), digits.train.size(),
               digits.held_out.size());
  }
  const Trained trained = train(digits, device.autodiff(), options.training, [&](const Epoch& e) {
    if (options.json) return;
    fmt::print("epoch {:>2}/{}  loss {:.4f}  held out: loss {:.4f}, accuracy {:.1f} %\n", e.number,
               options.training.epochs, e.train_loss, e.held_out_loss, 100 * e.accuracy);
    std::fflush(stdout);
  });

  // Inference: the same function, the same weights, on a device that knows of no gradients.
  Parameters weights;
  for (const AnyTensor& p : trained.parameters) weights.push_back(p.to(device));
  const double inference = accuracy(weights, digits.held_out);
  const Epoch& last = trained.epochs.back();

  if (!options.svg.empty()) write_curve(options.svg, trained.epochs);
  if (options.json) {
    const nlohmann::ordered_json json{
        {"train_loss", last.train_loss},   {"test_accuracy", last.accuracy},
        {"inference_accuracy", inference}, {"epochs", options.training.epochs},
        {"seconds", trained.seconds},      {"launches_per_step", trained.launches_per_step}};
    fmt::print("{}\n", json.dump());
    return;
  }
  fmt::print("trained in {:.1f} s, {} launches a step\n", trained.seconds,
             trained.launches_per_step);
  fmt::print("accuracy on the held-out images: {:.2f} % in training, {:.2f} % in inference\n",
             100 * last.accuracy, 100 * inference);
  if (!options.svg.empty()) fmt::print("loss curve: {}\n", options.svg);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Learns to read handwritten digits"};
  Options options;
  add_options(app, options);
  try {
    app.parse(argc, argv);
    run(options);
    return 0;
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const std::exception& error) {
    fmt::print(stderr, "digits: {}\n", error.what());
    return 1;
  }
}
