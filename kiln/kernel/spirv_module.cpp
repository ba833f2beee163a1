#include "kiln/kernel/spirv_module.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "kiln/kernel/wgsl_evaluator.hpp"
#include "kiln/support/error.hpp"

namespace kiln {
namespace {

// Numbers of the SPIR-V specification.
constexpr std::uint32_t magic = 0x07230203;
constexpr std::size_t header_words = 5;
enum Op : std::uint32_t {
  op_execution_mode = 16,
  op_type_bool = 20,
  op_type_int = 21,
  op_type_float = 22,
  op_type_vector = 23,
  op_type_matrix = 24,
  op_type_array = 28,
  op_type_struct = 30,
  op_type_pointer = 32,
  op_constant = 43,
  op_spec_constant_true = 48,
  op_spec_constant_false = 49,
  op_spec_constant = 50,
  op_variable = 59,
  op_decorate = 71,
  op_member_decorate = 72,
  op_loop_merge = 246,
  op_selection_merge = 247
};
enum StorageClass : std::uint32_t {
  class_uniform = 2,
  class_workgroup = 4,
  class_push_constant = 9,
  class_storage_buffer = 12
};
enum Decoration : std::uint32_t {
  decoration_spec_id = 1,
  decoration_buffer_block = 3,
  decoration_non_writable = 24,
  decoration_binding = 33,
  decoration_descriptor_set = 34
};
constexpr std::uint32_t mode_local_size = 17;

using Id = std::uint32_t;

struct Size {
  std::uint64_t bytes = 0;
  std::uint64_t align = 1;
};

struct Variable {
  Id id = 0;
  Id pointer = 0;
  std::uint32_t storage = 0;
};

class Reader {
 public:
  using Constants = std::span<const std::pair<std::string, double>>;

  Reader(std::span<const std::uint32_t> words, Constants constants)
      : words_(words), constants_(constants) {}

  SpirvModule run() && {
    check_header();
    for (std::size_t at = header_words; at < words_.size();) at = read_instruction(at);
    SpirvModule module;
    for (const Variable& variable : variables_) {
      module.push_constants = module.push_constants || variable.storage == class_push_constant;
      const Id type = pointees_[variable.pointer];
      const bool old_form = variable.storage == class_uniform && buffer_blocks_.contains(type);
      if (!old_form && variable.storage != class_storage_buffer) continue;
      module.buffers.push_back(
          {sets_[variable.id], bindings_[variable.id],
           old_form && constant_members_[type].size() == members_[type] && members_[type] != 0});
    }
    check_constants();
    for (const Variable& variable : variables_) {
      if (variable.storage == class_workgroup)
        module.workgroup_bytes = saturating_add(
            module.workgroup_bytes, round_up(size_of(pointees_[variable.pointer]).bytes, 16));
    }
    module.depth = std::max<std::uint64_t>(merges_, types_);
    std::ranges::sort(module.buffers, {},
                      [](const auto& buffer) { return std::pair(buffer.set, buffer.binding); });
    return module;
  }

 private:
  void check_header() const {
    if (words_.empty()) throw KernelError("not a SPIR-V module: it is empty");
    if (words_[0] != magic) {
      throw KernelError(fmt::format("not a SPIR-V module: it begins with {:#010x}, not {:#010x}",
                                    words_[0], magic));
    }
    if (words_.size() < header_words) throw KernelError("the SPIR-V module ends in its header");
  }

  /// Reads an instruction, and gives where the next one begins.
  std::size_t read_instruction(std::size_t at) {
    const std::size_t length = words_[at] >> 16;
    if (length == 0) {
      throw KernelError(fmt::format("not a SPIR-V module: word {} is not an instruction", at));
    }
    if (length > words_.size() - at) {
      throw KernelError(fmt::format(
          "the SPIR-V module ends within an instruction: {} words at word {}, but {} are left",
          length, at, words_.size() - at));
    }
    const std::uint32_t op = words_[at] & 0xFFFF;
    read(op, words_.subspan(at + 1, length - 1), at);
    return at + length;
  }

  void read(std::uint32_t op, std::span<const std::uint32_t> args, std::size_t at) {
    const auto need = [&](std::size_t count) {
      if (args.size() >= count) return;
      throw KernelError(
          fmt::format("not a SPIR-V module: the instruction at word {} lacks operands", at));
    };
    if (op == op_loop_merge || op == op_selection_merge) ++merges_;
    if (read_type(op, args, need) || read_constant(op, args, need)) return;
    if (op == op_execution_mode) {
      need(2);
      if (args[1] == mode_local_size) need(5);
    } else if (op == op_type_struct) {
      need(1);
      ++types_;
      member_types_[args[0]].assign(args.begin() + 1, args.end());
      members_[args[0]] = args.size() - 1;
    } else if (op == op_type_pointer) {
      need(3);
      pointees_[args[0]] = args[2];
    } else if (op == op_variable) {
      need(3);
      variables_.push_back({args[1], args[0], args[2]});
    } else if (op == op_decorate) {
      need(2);
      if (args[1] == decoration_buffer_block) buffer_blocks_.insert(args[0]);
      if (args[1] == decoration_spec_id) {
        need(3);
        spec_ids_[args[0]] = args[2];
      }
      if (args[1] != decoration_binding && args[1] != decoration_descriptor_set) return;
      need(3);
      (args[1] == decoration_binding ? bindings_ : sets_)[args[0]] = args[2];
    } else if (op == op_member_decorate) {
      need(3);
      if (args[2] == decoration_non_writable) constant_members_[args[0]].insert(args[1]);
    }
  }

  /// Types other than structs and pointers.
  template <class Need>
  bool read_type(std::uint32_t op, std::span<const std::uint32_t> args, Need need) {
    if (op == op_type_bool) {
      need(1);
      sizes_[args[0]] = {4, 4};
      scalars_[args[0]] = "bool";
    } else if (op == op_type_int || op == op_type_float) {
      need(op == op_type_int ? 3 : 2);
      sizes_[args[0]] = {args[1] / 8, args[1] / 8};
      const bool is_signed = op == op_type_int && args[2] != 0;
      if (args[1] == 32)
        scalars_[args[0]] = op == op_type_float ? "f32" : is_signed ? "i32" : "u32";
    } else if (op == op_type_vector || op == op_type_matrix) {
      need(3);
      const Size part = size_of(args[1]);
      const std::uint64_t stride = round_up(part.bytes, part.align);
      sizes_[args[0]] = {
          args[2] * (op == op_type_vector ? part.bytes : stride),
          op == op_type_vector ? (args[2] == 3 ? 4 : args[2]) * part.bytes : part.align};
    } else if (op == op_type_array) {
      need(3);
      ++types_;
      arrays_[args[0]] = {args[1], args[2]};
    } else {
      return false;
    }
    return true;
  }

  template <class Need>
  bool read_constant(std::uint32_t op, std::span<const std::uint32_t> args, Need need) {
    if (op == op_spec_constant_true || op == op_spec_constant_false) {
      need(2);
      values_[args[1]] = {args[0], op == op_spec_constant_true ? 1U : 0U};
    } else if (op == op_constant || op == op_spec_constant) {
      need(3);
      values_[args[1]] = {args[0], args[2]};
    } else {
      return false;
    }
    return true;
  }

  void check_constants() const {
    for (const auto& [name, value] : constants_) {
      const auto found = std::ranges::find_if(
          spec_ids_, [&](const auto& entry) { return std::to_string(entry.second) == name; });
      if (found == spec_ids_.end())
        throw KernelError(fmt::format("constant '{}' is set, but the module has no such id", name));
      const auto constant = values_.find(found->first);
      const auto type =
          constant == values_.end() ? scalars_.end() : scalars_.find(constant->second.type);
      if (type == scalars_.end()) continue;  // 16 or 64 bits wide
      if (!holds(type->second, value)) {
        throw KernelError(fmt::format("constant '{}' is {}, which its type {} cannot hold", name,
                                      value, type->second));
      }
    }
  }

  /// The value of a constant; a specialisation constant has the launch's value.
  [[nodiscard]] std::uint64_t count_of(Id id) const {
    if (const auto spec = spec_ids_.find(id); spec != spec_ids_.end()) {
      for (const auto& [name, value] : constants_) {
        if (name == std::to_string(spec->second)) return static_cast<std::uint64_t>(value);
      }
    }
    const auto found = values_.find(id);
    if (found == values_.end()) {
      throw KernelError(
          "an array in workgroup memory must have a constant for its size, not an expression");
    }
    return found->second.word;
  }

  // A type is made of earlier types. Only a pointer can refer to a later one, and it is no part.
  [[nodiscard]] Size size_of(Id type, int depth = 0) const {
    if (depth > 100) throw KernelError("the types of workgroup memory nest more than 100 deep");
    if (const auto found = sizes_.find(type); found != sizes_.end()) return found->second;
    if (const auto array = arrays_.find(type); array != arrays_.end()) {
      const Size part = size_of(array->second.first, depth + 1);
      return {saturating_multiply(round_up(part.bytes, part.align), count_of(array->second.second)),
              part.align};
    }
    Size all;
    if (const auto members = member_types_.find(type); members != member_types_.end()) {
      for (const Id member : members->second) {
        const Size part = size_of(member, depth + 1);
        all = {saturating_add(round_up(all.bytes, part.align), part.bytes),
               std::max(all.align, part.align)};
      }
    }
    return {round_up(all.bytes, all.align), all.align};
  }

  struct Value {
    Id type = 0;
    std::uint32_t word = 0;  ///< the lowest 32 bits
  };

  std::span<const std::uint32_t> words_;
  Constants constants_;
  std::map<Id, Size> sizes_;
  std::map<Id, std::string_view> scalars_;
  std::map<Id, std::pair<Id, Id>> arrays_;  // element and length
  std::map<Id, std::vector<Id>> member_types_;
  std::map<Id, Value> values_;
  std::map<Id, std::uint32_t> spec_ids_;
  std::uint64_t merges_ = 0;
  std::uint64_t types_ = 0;
  std::vector<Variable> variables_;
  std::map<Id, Id> pointees_;
  std::map<Id, std::size_t> members_;
  std::map<Id, std::set<std::uint32_t>> constant_members_;
  std::map<Id, std::uint32_t> sets_;
  std::map<Id, std::uint32_t> bindings_;
  std::set<Id> buffer_blocks_;
};

}  // namespace

SpirvModule read_spirv(std::span<const std::uint32_t> words,
                       std::span<const std::pair<std::string, double>> constants) {
  return Reader(words, constants).run();
}

}  // namespace kiln
