#pragma once
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/dispatch/epilogue.hpp"
#include "kiln/dispatch/kernel/fusable.hpp"
#include "kiln/dispatch/wgsl/kernel/load_places.hpp"
#include "kiln/dispatch/wgsl/metadata.hpp"
#include "kiln/dispatch/wgsl/reads.hpp"
#include "kiln/dispatch/wgsl/store_text.hpp"
#include "kiln/kernel/launch.hpp"
#include "kiln/scalar/infer.hpp"

namespace kiln::dispatch::wgsl {

/// How the text of a kernel reads an operand. A function of the kernel's own counts as none of
/// these, and neither does one that belongs to another operand: load_x4 is the load of `x4`.
struct OperandReads {
  bool array = false;   ///< it names the array, or the launch's epilogue does
  bool layout = false;  ///< it asks for strides: NAME_stride, NAME_offset, or NAME_batch of those
  bool load = false;    ///< it calls load_NAME
  bool load_four = false;  ///< load_NAME4
  bool at = false;         ///< load_NAME_at
  bool at_four = false;    ///< load_NAME_at4
  bool down_four = false;  ///< load_NAME_down4
  bool matrix = false;     ///< NAME_matrix or NAME_move

  [[nodiscard]] bool by_number() const { return load || load_four; }
  [[nodiscard]] bool by_coordinates() const { return at || at_four || down_four; }
  /// Whether it reads through any generated load.
  [[nodiscard]] bool loads() const { return by_number() || by_coordinates(); }
  /// Whether nothing but the generated loads needs the array.
  [[nodiscard]] bool loads_alone() const { return loads() && !array && !layout; }
};

/// The same for each of these operands. Comments and members do not count: `group.x` is no `x`.
std::vector<OperandReads> operand_reads(const webgpu::Launch& launch,
                                        std::span<const std::string_view> names);

/// How the kernel loads an operand that it reads so.
Loads loads_of(const webgpu::Launch& launch, std::string_view name, const OperandReads& reads);

/// Appends everything of the producers on which a prepared kernel depends. That has the bodies'
/// addresses, so keep them with the key.
void append_key(std::string& key, std::span<const FusedProducer> producers);

/// The loads of one operand: `load_NAME(index)` gives the element with that number in dense order,
/// `load_NAME4(index)` four elements from a multiple of four on. `load_NAME_at(...)` finds it by
/// coordinates, `load_NAME_at4` and `load_NAME_down4` four along the last axis or the one before.
/// They read the operand where it lies, or compute its elements from those of other tensors.
class OperandLoad {
 public:
  /// `producer` may be null, and must outlive this. `number` is that of the operand; names that the
  /// text needs begin with it. `vec4`: the array is one of vec4 anyway. `out` is the shape whose
  /// matrices NAME_matrix counts.
  OperandLoad(std::string_view op, std::size_t number, const Operand& operand,
              const OperandReads& reads, const FusedProducer* producer, bool vec4,
              const Shape& out);

  /// Declares the arrays that are read, with binding numbers from `next` on.
  [[nodiscard]] std::string declare(KernelId& id, std::uint32_t group, std::uint32_t& next) const;
  /// Adds the numbers of the launch, and gives the word of the first run-time scalar.
  std::size_t add_numbers(Metadata& metadata) const;
  /// The functions. `helpers` gets those that the text calls.
  [[nodiscard]] std::string functions(std::set<std::string>& helpers) const;
  [[nodiscard]] bool has_producer() const { return producer_ != nullptr; }
  /// The dtypes inside the producer's body.
  [[nodiscard]] const BodyTypes& types() const { return types_; }

 private:
  [[nodiscard]] std::string name(std::string_view rest) const;
  [[nodiscard]] bool is_quad(std::size_t i) const;
  [[nodiscard]] std::string element(std::size_t i, int lane, bool four) const;
  template <class Element>
  [[nodiscard]] std::string result(const Element& element) const;
  [[nodiscard]] std::string four_elements() const;
  [[nodiscard]] std::string four_along(int axis) const;
  [[nodiscard]] std::string by_number() const;
  [[nodiscard]] std::string by_coordinates() const;
  [[nodiscard]] std::string compute(std::set<std::string>& helpers) const;

  std::string_view op_;
  std::size_t number_;
  std::string operand_;
  DType dtype_;
  OperandReads wanted_;
  const FusedProducer* producer_;
  BodyTypes types_;
  std::optional<Reads> reads_;        ///< none for a dense operand, whose element is at its number
  std::optional<LoadPlaces> places_;  ///< of loads by coordinates
  std::vector<StoredArray> arrays_;
};

}  // namespace kiln::dispatch::wgsl
