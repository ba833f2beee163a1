#include <algorithm>
#include <cstring>
#include <optional>

#include "kiln/dispatch/access.hpp"
#include "kiln/dispatch/elementwise/elementwise.hpp"
#include "kiln/dispatch/host/backend.hpp"
#include "kiln/dispatch/host/combine.hpp"
#include "kiln/dispatch/host/places.hpp"
#include "kiln/dispatch/host/result_store.hpp"
#include "kiln/kernel/launch.hpp"
#include "kiln/runtime/cpu/parallel.hpp"

namespace kiln::dispatch::host {
namespace {

class HostReduction {
 public:
  HostReduction(cpu::CpuRuntime& runtime, const ReductionCall& call,
                std::span<const RawTensor> inputs, const TensorSpec& out,
                const FusedEpilogue* epilogue, std::span<const RawTensor> results)
      : call_(call),
        combiner_(call.reduction.combine, call.dtype),
        out_(out.dtype),
        kept_(inputs.size()),
        reduced_(inputs.size()) {
    std::vector<Layout> layouts;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      layouts.push_back(seen_by(call.before, i, inputs[i].layout, call.shape));
    for (int axis = 0; axis < call.shape.rank(); ++axis) {
      const bool away = call.reduction.axes[static_cast<std::size_t>(axis)];
      (away ? reduced_ : kept_).push(call.shape, axis, layouts);
      Shape& part = away ? reduced_shape_ : kept_shape_;
      axes_.emplace_back(away, part.rank());
      part.push_back(call.shape[axis]);
    }
    count_ = reduced_.count();
    choose();
    std::vector<DType> dtypes;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      std::byte* base = runtime.data_of(call.op, inputs[i].buffer) +
                        layouts[i].offset * static_cast<std::int64_t>(size_of(inputs[i].dtype));
      readers_.emplace_back(rows_ ? reduced_ : kept_, i, inputs[i].dtype, base);
      dtypes.push_back(inputs[i].dtype);
    }
    if (call.before != nullptr || call.dtype == DType::f16) {
      const TapeResult element{call.dtype, false};
      const BodyPtr& body = call.before != nullptr ? call.before : identity_body();
      before_ = prepare_tape(runtime, call.op, body, dtypes, {&element, 1});
      params_ = param_words(call.op, call.params, *before_);
    }
    epilogue_.emplace(runtime, call.op, epilogue, out, results);
  }
  HostReduction(const HostReduction&) = delete;
  HostReduction& operator=(const HostReduction&) = delete;

  void run() {
    const std::int64_t jobs = ceil_div(outputs_, block_);
    const std::int64_t work = block_ * std::max<std::int64_t>(chunk_, 1);
    const std::int64_t grain = std::max<std::int64_t>((std::int64_t{1} << 16) / work, 1);
    if (chunks_ > 1) parts_.resize(static_cast<std::size_t>(outputs_ * chunks_));
    cpu::parallel_for(jobs * chunks_, grain, [&](std::int64_t begin, std::int64_t end) {
      State state(*this);
      for (std::int64_t job = begin; job < end; ++job) run_job(state, job / chunks_, job % chunks_);
    });
    if (chunks_ == 1) return;
    State state(*this);
    for (std::int64_t job = 0; job < jobs; ++job) join_chunks(state, job);
  }

 private:
  struct State {
    explicit State(const HostReduction& of)
        : buffers((of.readers_.size() + of.places().size() + 2) * Tape::tile),
          args(of.readers_.size() + of.places().size()),
          origins(of.readers_.size()),
          partials(Tape::tile),
          epilogue(*of.epilogue_) {
      if (of.before_ != nullptr) tape.emplace(tape_of(*of.before_), of.params_);
    }
    std::optional<Tape::State> tape;
    std::vector<std::uint32_t> buffers;  ///< a tile each: inputs, elements, what is combined
    std::vector<TileArg> args;
    std::vector<std::int64_t> origins;  ///< of the inputs, along the axes not walked
    std::int64_t fixed = 0;             ///< the number of the place along those axes
    std::vector<Partial> partials;
    ResultStore::State epilogue;
  };

  /// How many elements are moved for one that is used, by the step of the largest operand.
  static std::int64_t cost_along(const CoalescedAxes& axes) {
    std::int64_t cost = 1;
    for (std::size_t i = 0; i < axes.strides.size() && axes.rank > 0; ++i)
      cost = std::max(cost, std::min<std::int64_t>(std::abs(axes.of(i).back()), 8));
    return cost;
  }

  /// Walks the elements of each result (rows), or many results side by side (columns), whichever
  /// moves less and makes fewer, longer tiles. If there are few results, several threads share one.
  void choose() {
    outputs_ = kept_.count();
    constexpr std::int64_t overhead = 256;  // the cost of one tile, in elements
    const auto cost = [&](const CoalescedAxes& along, std::int64_t length, std::int64_t times) {
      return times * (ceil_div(length, tile_size) * overhead + length * cost_along(along));
    };
    rows_ = cost(reduced_, count_, outputs_) <= cost(kept_, outputs_, count_);
    constexpr std::int64_t work = 1 << 16;  // elements of one job
    if (rows_) {
      block_ = std::clamp<std::int64_t>(work / std::max<std::int64_t>(count_, 1), 1, tile_size);
    } else {
      block_ = std::min(tile_size, outputs_);
    }
    constexpr std::int64_t enough_jobs = 16;
    chunk_ = count_;
    if (ceil_div(outputs_, block_) < enough_jobs && count_ > 0) {
      const std::int64_t share = std::max<std::int64_t>(work / block_, 256);
      chunk_ = std::min(count_, ceil_div(share, tile_size) * tile_size);
    }
    chunks_ = count_ == 0 ? 1 : ceil_div(count_, chunk_);
  }

  void run_job(State& state, std::int64_t block, std::int64_t chunk) const {
    const std::int64_t first = block * block_;
    const std::int64_t n = std::min(block_, outputs_ - first);
    const std::int64_t begin = chunk * chunk_;
    const std::int64_t end = std::min(begin + chunk_, count_);
    std::fill_n(state.partials.begin(), n, combiner_.neutral());
    if (rows_) {
      for (std::int64_t i = 0; i < n; ++i)
        reduce_row(state, state.partials[static_cast<std::size_t>(i)], first + i, begin, end);
    } else {
      reduce_columns(state, first, static_cast<std::size_t>(n), begin, end);
    }
    if (chunks_ == 1) return store(state, first, n);
    for (std::int64_t i = 0; i < n; ++i)
      parts_[static_cast<std::size_t>((first + i) * chunks_ + chunk)] =
          state.partials[static_cast<std::size_t>(i)];
  }

  void reduce_row(State& state, Partial& to, std::int64_t output, std::int64_t begin,
                  std::int64_t end) const {
    move_origins(state, kept_, output);
    for (std::int64_t at = begin; at < end; at += tile_size) {
      const auto n = static_cast<std::size_t>(std::min(tile_size, end - at));
      combiner_.add(to, elements(state, at, n), n, at);
    }
  }

  void reduce_columns(State& state, std::int64_t first, std::size_t n, std::int64_t begin,
                      std::int64_t end) const {
    const TileKernel combine = combiner_.elementwise();
    std::uint32_t* sums = &state.buffers[(state.args.size() + 1) * Tape::tile];
    constexpr std::int64_t rounds = 256;  // after more, rounding errors of single precision add up
    for (std::int64_t at = begin; at < end;) {
      const std::int64_t stop = std::min(at + rounds, end);
      std::fill_n(sums, n, combiner_.neutral_word());
      for (; at < stop; ++at) {
        move_origins(state, reduced_, at);
        const void* values = elements(state, first, n);
        if (combine == nullptr) {
          combiner_.add_each(state.partials.data(), values, n, at);
        } else {
          const std::array<TileArg, 2> both{{{sums, false}, {values, false}}};
          combine(both.data(), sums, n);
        }
      }
      for (std::size_t i = 0; combine != nullptr && i < n; ++i)
        combiner_.add(state.partials[i], combiner_.from_word(sums[i]));
    }
  }

  void move_origins(State& state, const CoalescedAxes& axes, std::int64_t index) const {
    for (std::size_t i = 0; i < state.origins.size(); ++i)
      state.origins[i] = position(axes, i, index);
    state.fixed = index;
  }

  [[nodiscard]] std::span<const int> places() const {
    return before_ == nullptr ? std::span<const int>() : tape_of(*before_).places();
  }

  /// The coordinates of n elements along an axis, from number `first` of the walked axes on.
  TileArg place(const State& state, int axis, std::int64_t first, std::size_t n,
                std::uint32_t* buffer) const {
    const auto [reduced, number] = axes_[static_cast<std::size_t>(axis)];
    if (reduced == rows_)
      return place_tile(rows_ ? reduced_shape_ : kept_shape_, number, first, n, buffer);
    return place_tile(rows_ ? kept_shape_ : reduced_shape_, number, state.fixed, 1, buffer);
  }

  /// n elements to be combined, as they are computed on.
  const void* elements(State& state, std::int64_t first, std::size_t n) const {
    std::uint32_t* buffer = state.buffers.data();
    for (std::size_t i = 0; i < readers_.size(); ++i) {
      state.args[i] = readers_[i].read(state.origins[i], first, n, buffer);
      buffer += Tape::tile;
    }
    for (std::size_t i = 0; i < places().size(); ++i) {
      state.args[readers_.size() + i] = place(state, places()[i], first, n, buffer);
      buffer += Tape::tile;
    }
    if (before_ != nullptr) {
      void* result = buffer;
      tape_of(*before_).run(*state.tape, state.args, {&result, 1}, n);
      return buffer;
    }
    if (!state.args[0].uniform) return state.args[0].data;
    tile_kernels().copy(state.args.data(), buffer, n);
    return buffer;
  }

  void join_chunks(State& state, std::int64_t block) const {
    const std::int64_t first = block * block_;
    const std::int64_t n = std::min(block_, outputs_ - first);
    for (std::int64_t i = 0; i < n; ++i) {
      Partial all = combiner_.neutral();
      for (std::int64_t c = 0; c < chunks_; ++c)
        combiner_.add(all, parts_[static_cast<std::size_t>((first + i) * chunks_ + c)]);
      state.partials[static_cast<std::size_t>(i)] = all;
    }
    store(state, first, n);
  }

  void store(State& state, std::int64_t first, std::int64_t n) const {
    auto* values = reinterpret_cast<std::byte*>(state.buffers.data());  // NOLINT: bytes of any
    const std::size_t size = size_of(out_);
    for (std::int64_t i = 0; i < n; ++i) {
      const auto at = static_cast<std::size_t>(i);
      combiner_.store(state.partials[at], call_.reduction.scale, out_, values + at * size);
    }
    epilogue_->apply(state.epilogue, first, static_cast<std::size_t>(n), values);
  }

  const ReductionCall& call_;
  Combiner combiner_;
  DType out_;
  CoalescedAxes kept_;
  CoalescedAxes reduced_;
  Shape kept_shape_;
  Shape reduced_shape_;
  std::vector<std::pair<bool, int>> axes_;  ///< of each: whether it is reduced; its number there
  std::vector<TileReader> readers_;         ///< along the reduced axes (rows), or the kept ones
  std::shared_ptr<const PreparedTape> before_;
  std::vector<std::uint32_t> params_;
  std::optional<ResultStore> epilogue_;
  bool rows_ = true;
  std::int64_t outputs_ = 0;
  std::int64_t count_ = 0;  ///< elements of one result
  std::int64_t block_ = 1;  ///< results of one job
  std::int64_t chunk_ = 0;  ///< elements of each in one job
  std::int64_t chunks_ = 1;
  mutable std::vector<Partial> parts_;  ///< each written by one job
};

}  // namespace

void run_reduction(const std::shared_ptr<Runtime>& runtime, const ReductionCall& call,
                   std::span<const RawTensor> inputs, const TensorSpec& out,
                   const FusedEpilogue* epilogue, std::span<const RawTensor> results) {
  cpu::CpuRuntime& host = *cpu::host(*runtime);
  host.run(call.op, [&] { HostReduction(host, call, inputs, out, epilogue, results).run(); });
}

}  // namespace kiln::dispatch::host
