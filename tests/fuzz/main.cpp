// Random programs of all of kiln's operations, compared with numbers that are known beside it.
//
//     kiln_fuzz --device cpu --seconds 60            # seeds are printed; another run, other
//     programs kiln_fuzz --device webgpu --seed 7 --programs 1000
//
// Ends with 0 if all was right. Else it prints the first program that was not, made small, and how
// to run it again.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "fuzz/execute.hpp"
#include "fuzz/minimise.hpp"
#include "kiln/kiln.hpp"

// Of the address sanitizer, where it is linked in.
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace kiln::fuzz {
namespace {

struct Options {
  std::string device = "cpu";
  std::uint64_t seed = std::random_device()();
  std::uint64_t first = 0;
  std::uint64_t programs = 0;
  double seconds = 0;
  int steps = 24;
  int threads = 1;
  std::uint64_t variants = 1;
  double patience = 120;
  bool all_operations = false;
  bool only_minimise = false;
  bool print = false;
  Part part;
};

std::vector<Device> open_devices(const Options& options) {
  std::vector<Device> devices;
  if (options.device != "cpu") devices.push_back(webgpu::device());
  if (options.device != "webgpu") devices.push_back(cpu::device());
  return devices;
}

int device_count(const Options& options) { return options.device == "both" ? 2 : 1; }

std::uint64_t mixed(std::uint64_t seed, std::uint64_t number) {
  std::uint64_t x = seed * 0xd134'2543'de82'ef95 + number;
  x = (x ^ (x >> 30U)) * 0xbf58'476d'1ce4'e5b9;
  x = (x ^ (x >> 27U)) * 0x94d0'49bb'1331'11eb;
  return x ^ (x >> 31U);
}

Model program_of(const Options& options, std::uint64_t number) {
  const std::uint64_t variant = number % options.variants;
  const Model drawn = draw_program(mixed(options.seed, number / options.variants),
                                   device_count(options), options.steps);
  return variant == 0 ? drawn : varied(drawn, variant);
}

std::vector<std::string> arguments_of(const Options& options, std::uint64_t number) {
  return {"--device",   options.device,
          "--seed",     fmt::format("{}", options.seed),
          "--first",    fmt::format("{}", number),
          "--programs", "1",
          "--steps",    fmt::format("{}", options.steps),
          "--variants", fmt::format("{}", options.variants)};
}

/// What each thread is at, ready for when the process must start anew in the middle of it.
struct Place {
  std::vector<std::string> arguments;
  std::vector<char*> argv;
};
thread_local const Place* place = nullptr;
std::atomic<const Place*> last_place = nullptr;

/// The process as it is can no longer be trusted: another one in its place makes the program small.
void start_anew() {
  const Place* at = place != nullptr ? place : last_place.load();
  if (at == nullptr) return;
  const char said[] = "kiln_fuzz: the process was about to end; the program is made small now\n";
  (void)!write(STDERR_FILENO, said, sizeof(said) - 1);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve("/proc/self/exe", at->argv.data(), environ);
}

void catch_crashes() {
  const auto handler = [](int signal) {
    start_anew();
    ::signal(signal, SIG_DFL);
    raise(signal);
  };
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) ::signal(signal, handler);
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(start_anew);
}

std::vector<Way> ways_of(const Model& program) {
  std::vector<Way> ways{{}};
  const bool has_gradients = std::ranges::any_of(program.steps(), [](const Step& s) {
    return s.op->name == "vjp" || s.op->name == "backward";
  });
  if (has_gradients) ways.push_back({.checkpointing = Checkpointing::balanced});
  ways.push_back({.eager = true});
  if (has_gradients) ways.push_back({.eager = true, .checkpointing = Checkpointing::balanced});
  return ways;
}

/// What was found wrong, in any of the ways; empty if nothing.
std::string run_in_all_ways(const Model& program, std::span<const Device> devices, Tally& tally) {
  for (const Way& way : ways_of(program)) {
    const std::string complaint = Run(program, devices, way, tally).run();
    if (!complaint.empty()) return complaint;
  }
  return {};
}

class Session {
 public:
  explicit Session(Options options)
      : options_(std::move(options)), devices_(open_devices(options_)) {}

  int run() {
    fmt::print("kiln_fuzz --device {} --seed {}\n", options_.device, options_.seed);
    std::fflush(stdout);
    catch_crashes();
    const auto begin = std::chrono::steady_clock::now();
    std::jthread watch([this](const std::stop_token& stop) { look_for_hangs(stop); });
    std::vector<std::jthread> threads;
    for (int i = 0; i < options_.threads; ++i) threads.emplace_back([this] { work(); });
    threads.clear();
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    return report(spent.count());
  }

 private:
  void work() {
    const auto until =
        std::chrono::steady_clock::now() + std::chrono::duration<double>(options_.seconds);
    while (!failed_) {
      const std::uint64_t number = options_.first + next_++;
      if (options_.programs > 0 && number >= options_.first + options_.programs) return;
      if (options_.programs == 0 && std::chrono::steady_clock::now() >= until) return;
      const Place here = make_place(number);
      place = &here;
      last_place = &here;
      ++started_;
      const Model program = part_of(program_of(options_, number), options_.part);
      if (options_.print) fmt::print("program {}\n{}", number, to_string(program));
      const std::string complaint = run_in_all_ways(program, devices_, tally_);
      const Place* mine = &here;
      last_place.compare_exchange_strong(mine, nullptr);
      place = nullptr;
      const std::lock_guard lock(mutex_);
      for (const Step& step : program.steps()) ++ran_[step.op->name];
      if (complaint.empty()) {
        ++clean_;
      } else if (!failed_) {
        failed_ = true;
        number_ = number;
        complaint_ = complaint;
      }
    }
  }

  Place make_place(std::uint64_t number) const {
    Place made{.arguments = arguments_of(options_, number)};
    made.arguments.insert(made.arguments.begin(), "kiln_fuzz");
    made.arguments.emplace_back(options_.part.keep.empty() ? "--minimise" : "--crashed");
    for (std::string& a : made.arguments) made.argv.push_back(a.data());
    made.argv.push_back(nullptr);
    return made;
  }

  void look_for_hangs(const std::stop_token& stop) {
    std::uint64_t seen = 0;
    auto since = std::chrono::steady_clock::now();
    while (!stop.stop_requested()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      const auto now = std::chrono::steady_clock::now();
      if (started_ != seen) {
        seen = started_;
        since = now;
      }
      if (now - since > std::chrono::duration<double>(options_.patience)) {
        fmt::print(stderr, "kiln_fuzz: nothing has moved for {} s\n", options_.patience);
        std::abort();
      }
    }
  }

  int report(double seconds) {
    if (failed_) {
      fmt::print("program {}: {}\n", number_, complaint_);
      return 1;
    }
    fmt::print(
        "{} programs ran clean in {:.1f} s: {} elements compared ({} to the last bit), {} of which "
        "nothing is "
        "known, {} failures met\n",
        clean_, seconds, tally_.elements.load(), tally_.exact.load(), tally_.unknown.load(),
        tally_.failures.load());
    std::vector<std::string> missing;
    for (const Operation& op : operations()) {
      fmt::print("{:8}  {}\n", ran_[op.name], op.name);
      if (ran_[op.name] == 0 && (op.name != "to" || devices_.size() > 1))
        missing.push_back(op.name);
    }
    if (options_.all_operations && !missing.empty()) {
      fmt::print("never ran: {}\n", fmt::join(missing, ", "));
      return 2;
    }
    return 0;
  }

 public:
  [[nodiscard]] std::uint64_t failed_number() const { return number_; }

 private:
  Options options_;
  std::vector<Device> devices_;
  Tally tally_;
  std::atomic<std::uint64_t> next_ = 0;
  std::atomic<std::uint64_t> started_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  std::uint64_t clean_ = 0;
  std::uint64_t number_ = 0;
  std::string complaint_;
  std::map<std::string, std::uint64_t> ran_;
};

/// Prints the smallest part of program `number` that fails.
void show_smallest(const Options& options, std::uint64_t number) {
  const Model program = program_of(options, number);
  bool alone = false;
  const Part part = minimise(program, arguments_of(options, number), &alone);
  std::vector<std::string> again = arguments_of(options, number);
  if (alone) {
    for (const std::string& a : to_arguments(part)) again.push_back(a);
  } else {
    fmt::print("by itself it is right: what ran before it matters\n");
  }
  fmt::print("{}run it again: kiln_fuzz {}\n", to_string(part_of(program, part)),
             fmt::join(again, " "));
}

int run(const Options& options) {
  if (options.only_minimise) {
    fmt::print("program {} of seed {} ends the process, or hangs\n", options.first, options.seed);
    std::fflush(stdout);
    show_smallest(options, options.first);
    return 1;
  }
  Session session(options);
  const int code = session.run();
  std::fflush(stdout);
  if (code == 1 && options.part.keep.empty()) show_smallest(options, session.failed_number());
  return code;
}

}  // namespace
}  // namespace kiln::fuzz

int main(int argc, char** argv) {
  kiln::fuzz::Options options;
  bool crashed = false;
  CLI::App app(
      "Random programs of all of kiln's operations, compared with numbers known beside it");
  app.add_option("--device", options.device, "what runs them")
      ->check(CLI::IsMember({"cpu", "webgpu", "both"}));
  app.add_option("--seed", options.seed,
                 "decides the programs; drawn and printed where it is not given");
  app.add_option("--programs", options.programs, "how many");
  app.add_option("--seconds", options.seconds, "how long, where --programs is not given");
  app.add_option("--first", options.first, "the number of the first program");
  app.add_option("--steps", options.steps, "steps of a program, at most")
      ->check(CLI::Range(1, 1000));
  app.add_option("--variants", options.variants,
                 "of each program, which differ in their numbers alone and compile nothing more")
      ->check(CLI::Range(1, 100000));
  app.add_option("--threads", options.threads, "programs at a time")->check(CLI::Range(1, 64));
  app.add_option("--patience", options.patience, "seconds after which a program hangs");
  app.add_flag("--all-operations", options.all_operations, "it is a fault if one never ran");
  app.add_flag("--print", options.print, "print each program");
  app.add_option("--keep", options.part.keep, "only these steps of each program")->delimiter(',');
  app.add_option("--fixed", options.part.fixed, "of these the results are given as numbers")
      ->delimiter(',');
  app.add_flag("--minimise", options.only_minimise,
               "make program --first small, of which it is known that it fails");
  app.add_flag("--crashed", crashed, "end with 1, for a part of a program that ended its process");
  CLI11_PARSE(app, argc, argv);
  if (crashed) return 1;
  try {
    return kiln::fuzz::run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "kiln_fuzz: {}\n", error.what());
    return 1;
  }
}
