// Reading while a queue runs: refused on every thread that works for the queue; others wait.
#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

#include "kiln/autodiff/test_support.hpp"
#include "kiln/runtime/cpu/cpu.hpp"
#include "kiln/runtime/queue_run.hpp"
#include "kiln/tensor/apply.hpp"

namespace kiln {
namespace {

using test::make_wave;
using test::message_of;
using test::values;
using ::testing::HasSubstr;

struct Square {
  static constexpr std::string_view name = "square";
  static Expr body(Expr x) { return x * x; }
};

/// Copies its input; before that it calls what the test asks for.
struct Calls {
  static constexpr std::string_view name = "calls";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  static std::function<void()>& call() {
    static std::function<void()> function;
    return function;
  }
  static TensorSpec output(const TensorSpec& x) { return x; }
  static void cpu_kernel(const cpu::Input& x, const cpu::Output& out) {
    call()();
    cpu::copy(x, out.raw());
  }
};

AnyTensor input() { return make_wave({5}, 0, DType::f32, cpu::device().lazy()); }

/// Calls `f` on one thread that is not the caller's, by parallel_for; false where there is none.
bool on_another_thread(const std::function<void()>& f) {
  if (cpu::threads() < 2) return false;
  std::mutex mutex;
  std::condition_variable changed;
  const auto caller = std::this_thread::get_id();
  bool called = false;
  cpu::parallel_for(64, 1, [&](std::int64_t, std::int64_t) {
    std::unique_lock lock(mutex);
    if (std::this_thread::get_id() == caller) {
      changed.wait_for(lock, std::chrono::seconds(5), [&] { return called; });
    } else if (!std::exchange(called, true)) {
      changed.notify_all();
      lock.unlock();
      f();
    }
  });
  return called;
}

TEST(QueueReads, OfAKernelOnAnyOfItsThreadsAreAnErrorAndNoHang) {
  const AnyTensor x = input();
  for (const bool elsewhere : {false, true}) {
    AnyTensor other;
    std::string refused;
    Calls::call() = [&] {
      const auto read = [&] {
        refused = message_of<Error>([&] { (void)other.to_vector(); });
        (void)other.to_vector();
      };
      if (!elsewhere) return read();
      if (!on_another_thread(read)) throw Error("no other thread");
    };
    const AnyTensor y = apply(Calls{}, x);
    other = apply(Square{}, x);  // behind it in the queue
    const std::string text = message_of<Error>([&] { (void)y.to_vector(); });
    if (text == "no other thread") continue;
    EXPECT_THAT(text, HasSubstr("a rule may not read tensors"));
    EXPECT_THAT(refused, HasSubstr("a rule may not read tensors"));
    EXPECT_EQ(values(other), values(apply(Square{}, x)));
  }
}

TEST(QueueReads, OfWhatIsThereAlreadyAreFineInAKernel) {
  const AnyTensor x = input();
  std::vector<float> seen;
  Calls::call() = [&] {
    if (!on_another_thread([&] { seen = x.to_vector(); })) seen = x.to_vector();
  };
  EXPECT_EQ(apply(Calls{}, x).to_vector(), values(x));
  EXPECT_EQ(seen, values(x));
}

TEST(QueueReads, OfAnUnrelatedThreadWait) {
  const AnyTensor x = input();
  std::mutex mutex;
  std::condition_variable changed;
  bool inside = false;
  bool reads = false;
  Calls::call() = [&] {
    std::unique_lock lock(mutex);
    inside = true;
    changed.notify_all();
    changed.wait(lock, [&] { return reads; });
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // so that the reader waits, mostly
  };
  const AnyTensor y = apply(Calls{}, x);
  std::vector<float> got;
  std::thread reader([&, mine = apply(Square{}, x)] {
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return inside; });
      reads = true;
    }
    changed.notify_all();
    got = mine.to_vector();
  });
  EXPECT_EQ(y.to_vector(), values(x));
  reader.join();
  EXPECT_EQ(got, values(apply(Square{}, x)));
}

TEST(QueueReads, AnUnrelatedLoopOfSeveralThreadsMayRead) {
  const AnyTensor x = input();
  std::vector<std::vector<float>> got(8);
  cpu::parallel_for(8, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      got[static_cast<std::size_t>(i)] = apply(Square{}, x).to_vector();
  });
  for (const auto& each : got) EXPECT_EQ(each, values(apply(Square{}, x)));
}

/// x times `factor`: another kernel for each. While a queue runs, its rule calls what the test
/// asks for. Before that it throws: what a rule answers is kept, so the queue would not ask again.
struct Times {
  static constexpr std::string_view name = "times";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  int factor = 1;

  static std::function<void()>& call() {
    static std::function<void()> function;
    return function;
  }
  static TensorSpec output(const TensorSpec& x) { return x; }
  [[nodiscard]] webgpu::Launch webgpu_kernel(const Operand&, const Operand& out) const {
    if (QueueRun::current() == nullptr) throw Error("times: not now");
    call()();
    return {.source = KernelSource::wgsl(R"({{ bindings }}
@compute @workgroup_size({{ workgroup_size_x }})
fn main(@builtin(global_invocation_id) at: vec3<u32>) {
  if (at.x < params.count) { store_out(at.x, x[at.x] * )" +
                                         std::to_string(factor) + "); }\n}\n"),
            .workgroup = {64, 1, 1},
            .params = {{"count", out.shape().elements()}},
            .grid = {ceil_div(out.shape().elements(), 64), 1, 1}};
  }
};

TEST(WgslQueueReads, OfKnownKernelsDoNotWaitForOneThatAnotherThreadMakes) {
  const test::LenientFusion lenient;  // the rule throws while the planner asks, and not later
  const AnyTensor x = make_wave({5}, 0, DType::f32, test::device().lazy());
  const std::vector<float> squares = values(apply(Square{}, x));
  for (const int held_up : {1, 2}) {  // by the planner first, then for the launch
    std::promise<void> inside;
    std::promise<void> gate;
    int asked = 0;
    Times::call() = [&, open = gate.get_future().share()] {
      if (++asked != held_up) throw Error("times: not now");
      inside.set_value();
      open.wait();
    };
    auto theirs =
        std::async(std::launch::async, [&] { return values(apply(Times{2 + held_up}, x)); });
    inside.get_future().wait();
    auto ours = std::async(std::launch::async, [&] { return values(apply(Square{}, x)); });
    EXPECT_EQ(ours.wait_for(std::chrono::seconds(20)), std::future_status::ready);  // or a failure
    gate.set_value();
    EXPECT_EQ(ours.get(), squares);
    EXPECT_EQ(theirs.get()[1], values(x)[1] * static_cast<float>(2 + held_up));
  }
}

}  // namespace
}  // namespace kiln
