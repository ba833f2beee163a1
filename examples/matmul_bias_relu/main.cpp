// Checks the operation, then times it beside the same thing in plain operations.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "checks.hpp"
#include "timing.hpp"

namespace {

using namespace example;
using namespace kiln;

struct Options {
  std::vector<std::int64_t> shape{1, 512, 512, 512};
  bool broadcast_lhs = false;
  DType dtype = DType::f32;
  std::string adapter;
  int iterations = 0;
  bool json = false;
};

void add_options(CLI::App& app, Options& options) {
  app.add_option("--shape", options.shape,
                 "Sizes: lhs [B, M, K] times rhs [B, K, N]; 1 512 512 512 unless given")
      ->expected(4)
      ->type_name("B M K N");
  app.add_flag("--broadcast-lhs", options.broadcast_lhs, "One lhs for all of the batch");
  app.add_option_function<std::string>(
         "--dtype",
         [&](const std::string& name) { options.dtype = name == "f16" ? DType::f16 : DType::f32; },
         "f32 or f16; f32 unless given")
      ->check(CLI::IsMember({"f32", "f16"}))
      ->type_name("f32|f16");
  app.add_option("--adapter", options.adapter,
                 "Part of a WebGPU adapter's name, such as llvmpipe; KILN_DEVICE, the first "
                 "GPU or else the host unless given");
  app.add_option("--iters", options.iterations,
                 "Calls queued before the device is waited for; chosen unless given")
      ->check(CLI::PositiveNumber);
  app.add_flag("--json", options.json, "One JSON object on stdout and nothing else");
}

Sizes sizes_of(const Options& options) {
  const auto& s = options.shape;
  if (std::ranges::any_of(s, [](std::int64_t size) { return size < 0; })) {
    throw ShapeError(fmt::format("--shape: sizes must not be negative, got {} {} {} {}", s[0], s[1],
                                 s[2], s[3]));
  }
  return {s[0], s[1], s[2], s[3], options.broadcast_lhs};
}

Device open_device(const Options& options) {
  const Device device =
      options.adapter.empty() ? default_device() : webgpu::device({.adapter = options.adapter});
  if (options.dtype == DType::f16 && !device.limits().f16) {
    throw DeviceError(fmt::format("--dtype f16: {} has no f16", to_string(device)));
  }
  return device;
}

std::string spelled(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.2f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.2f} s", seconds);
}

void print_tables(const std::vector<CheckReport>& checks, const std::vector<Timing>& timings) {
  for (const CheckReport& report : checks) fmt::print("{}\n", report.table());
  fmt::print("{:<24}{:>14}{:>12}{:>10}\n", "", "time a call", "GFLOP/s", "launches");
  for (const Timing& t : timings) {
    if (t.fault.empty()) {
      fmt::print("{:<24}{:>14}{:>12.1f}{:>10}\n", t.name, spelled(t.seconds), t.gflops, t.launches);
    } else {
      fmt::print("{:<24}  no figure: {}\n", t.name, t.fault);
    }
  }
}

nlohmann::ordered_json json_of(const Options& options, const Device& device,
                               const std::vector<CheckReport>& checks,
                               const std::vector<Timing>& timings) {
  nlohmann::ordered_json json{
      {"adapter", device.adapter()},       {"runtime", device.runtime().name()},
      {"dtype", to_string(options.dtype)}, {"shape", options.shape},
      {"checks", nlohmann::json::array()}, {"timings", nlohmann::json::array()}};
  for (const CheckReport& report : checks) {
    for (const CheckRow& row : report.rows) {
      json["checks"].push_back({{"name", fmt::format("{}, {}", row.name, report.op)},
                                {"max_abs", row.max_abs},
                                {"max_rel", row.max_rel},
                                {"pass", row.pass}});
    }
  }
  for (const Timing& t : timings) {
    if (!t.fault.empty()) continue;
    json["timings"].push_back(
        {{"name", t.name}, {"seconds", t.seconds}, {"gflops", t.gflops}, {"launches", t.launches}});
  }
  return json;
}

/// Says what is being checked, where a person looks on.
void show_progress(const CheckProgress& at) {
  if (isatty(STDERR_FILENO) == 0) return;
  fmt::print(stderr, "\r\033[Kchecking {}, {}: case {} of {}, {}", at.op, to_string(at.dtype),
             at.done + 1, at.total, at.test_case);
}

/// False if a check failed or a result was wrong.
bool run(const Options& options) {
  const Sizes sizes = sizes_of(options);
  const Device device = open_device(options);
  if (!options.json) {
    fmt::print("{}\n{} [{}, {}, {}] x [{}, {}, {}]\n\n", to_string(device),
               to_string(options.dtype), sizes.broadcast_lhs ? 1 : sizes.b, sizes.m, sizes.k,
               sizes.b, sizes.k, sizes.n);
    fmt::print("checking both operations; their kernels are compiled on the way ...\n");
    std::fflush(stdout);
  }
  const std::vector<CheckReport> checks = check_operations(device, options.dtype, show_progress);
  if (isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\r\033[K");
  if (!options.json) {
    fmt::print("timing them ...\n\n");
    std::fflush(stdout);
  }
  std::vector<Timing> timings;
  const TimingOptions timing{sizes, options.dtype, device, options.iterations};
  for (const Candidate& candidate : candidates()) {
    for (const bool backward : {false, true}) {
      timings.push_back(time_call(candidate, backward, timings.size() + 1, timing));
    }
  }
  if (options.json) {
    fmt::print("{}\n", json_of(options, device, checks, timings).dump());
  } else {
    print_tables(checks, timings);
  }
  return std::ranges::all_of(checks, &CheckReport::passed) &&
         std::ranges::all_of(timings, [](const Timing& t) { return t.fault.empty(); });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"relu(lhs * rhs + bias) as one kernel: checked, and timed"};
  Options options;
  add_options(app, options);
  try {
    app.parse(argc, argv);
    return run(options) ? 0 : 1;
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const std::exception& error) {
    fmt::print(stderr, "matmul_bias_relu: {}\n", error.what());
    return 1;
  }
}
