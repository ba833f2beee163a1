#include "kiln/kernel/spirv_module.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "kiln/support/error.hpp"

namespace kiln {
namespace {

// Numbers of the SPIR-V specification.
constexpr std::uint32_t magic = 0x07230203;
constexpr std::size_t header_words = 5;
enum Op : std::uint32_t {
  op_execution_mode = 16,
  op_type_struct = 30,
  op_type_pointer = 32,
  op_variable = 59,
  op_decorate = 71,
  op_member_decorate = 72
};
enum StorageClass : std::uint32_t {
  class_uniform = 2,
  class_push_constant = 9,
  class_storage_buffer = 12
};
enum Decoration : std::uint32_t {
  decoration_buffer_block = 3,
  decoration_non_writable = 24,
  decoration_binding = 33,
  decoration_descriptor_set = 34
};
constexpr std::uint32_t mode_local_size = 17;

using Id = std::uint32_t;

struct Variable {
  Id id = 0;
  Id pointer = 0;
  std::uint32_t storage = 0;
};

class Reader {
 public:
  explicit Reader(std::span<const std::uint32_t> words) : words_(words) {}

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
    std::ranges::sort(module.buffers, {},
                      [](const auto& buffer) { return std::pair(buffer.set, buffer.binding); });
    return module;
  }

 private:
  void check_header() const {
    if (words_.empty()) throw KernelError("no SPIR-V module: it is empty");
    if (words_[0] != magic) {
      throw KernelError(
          fmt::format("no SPIR-V module: it begins with {:#010x}, not {:#010x}", words_[0], magic));
    }
    if (words_.size() < header_words) throw KernelError("the SPIR-V module ends in its header");
  }

  /// Gives where the next one begins.
  std::size_t read_instruction(std::size_t at) {
    const std::size_t length = words_[at] >> 16;
    if (length == 0) {
      throw KernelError(fmt::format("no SPIR-V module: word {} is no instruction", at));
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
          fmt::format("no SPIR-V module: the instruction at word {} lacks operands", at));
    };
    if (op == op_execution_mode) {
      need(2);
      if (args[1] == mode_local_size) need(5);
    } else if (op == op_type_struct) {
      need(1);
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
      if (args[1] != decoration_binding && args[1] != decoration_descriptor_set) return;
      need(3);
      (args[1] == decoration_binding ? bindings_ : sets_)[args[0]] = args[2];
    } else if (op == op_member_decorate) {
      need(3);
      if (args[2] == decoration_non_writable) constant_members_[args[0]].insert(args[1]);
    }
  }

  std::span<const std::uint32_t> words_;
  std::vector<Variable> variables_;
  std::map<Id, Id> pointees_;
  std::map<Id, std::size_t> members_;
  std::map<Id, std::set<std::uint32_t>> constant_members_;
  std::map<Id, std::uint32_t> sets_;
  std::map<Id, std::uint32_t> bindings_;
  std::set<Id> buffer_blocks_;
};

}  // namespace

SpirvModule read_spirv(std::span<const std::uint32_t> words) { return Reader(words).run(); }

}  // namespace kiln
