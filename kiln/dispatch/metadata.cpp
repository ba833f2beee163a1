#include "kiln/dispatch/metadata.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>

#include "kiln/support/error.hpp"

namespace kiln::dispatch {

std::size_t Metadata::add(std::string_view name, std::string_view type, std::uint32_t word) {
  members_ += fmt::format("{}: {}, ", name, type);
  named_.push_back(word);
  return named_.size() - 1;
}

std::size_t Metadata::add_words(std::span<const std::int64_t> words) {
  const std::size_t first = words_.size();
  for (const std::int64_t w : words) words_.push_back(word_of_size("metadata", w));
  return first;
}

std::string Metadata::word(std::size_t index) { return fmt::format("params.kiln_w{}", index); }

std::string Metadata::word_at(std::size_t first, std::size_t count, std::string_view d) {
  if (count == 0) return "0u";
  std::string text = word(first);
  for (std::size_t i = 1; i < count; ++i)
    text = fmt::format("select({}, {}, {} == {}u)", text, word(first + i), d, i);
  return text;
}

std::string Metadata::declare(const Limits& limits, std::uint32_t group, std::uint32_t binding,
                              KernelId& id) const {
  if (empty()) return {};
  id.metadata_bytes = static_cast<std::uint32_t>(values().size() * 4);
  id.metadata_immediate = id.metadata_bytes <= limits.immediate_bytes;
  std::string text = fmt::format("struct KilnParams {{ {}", members_);
  for (std::size_t i = 0; i < words_.size(); ++i) text += fmt::format("kiln_w{}: u32, ", i);
  if (id.metadata_immediate) return text + "}\nvar<immediate> params: KilnParams;\n";
  id.metadata_group = group;
  id.metadata_binding = binding;
  return text + fmt::format("}}\n@group({}) @binding({}) var<uniform> params: KilnParams;\n", group,
                            binding);
}

std::vector<std::uint32_t> Metadata::values() const {
  std::vector<std::uint32_t> all = named_;
  all.insert(all.end(), words_.begin(), words_.end());
  all.resize((all.size() + 3) / 4 * 4);
  return all;
}

std::uint32_t word_of(std::string_view op, double value, DType dtype) {
  if (!is_float(dtype) && dtype != DType::boolean) {
    const double low = dtype == DType::i32 ? std::numeric_limits<std::int32_t>::min() : 0;
    const double high = dtype == DType::i32 ? std::numeric_limits<std::int32_t>::max()
                                            : std::numeric_limits<std::uint32_t>::max();
    if (value != std::trunc(value) || value < low || value > high) {
      throw DTypeError(fmt::format("{}: the number {} is no {}; cast the tensor first", op, value,
                                   to_string(dtype)));
    }
  }
  switch (dtype) {
    case DType::f32:
      return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    // Kernels compute in f32, but the number must be the one an f16 tensor would hold.
    case DType::f16:
      return std::bit_cast<std::uint32_t>(static_cast<float>(float16(static_cast<float>(value))));
    case DType::i32:
      return static_cast<std::uint32_t>(static_cast<std::int32_t>(value));
    case DType::u32:
      return static_cast<std::uint32_t>(value);
    case DType::boolean:
      return value != 0 ? 1 : 0;
  }
  return 0;
}

std::uint32_t word_of_size(std::string_view op, std::int64_t size) {
  if (size < 0 || size > std::numeric_limits<std::uint32_t>::max()) {
    throw ShapeError(fmt::format("{}: kernels count with 32 bits, {} does not fit", op, size));
  }
  return static_cast<std::uint32_t>(size);
}

}  // namespace kiln::dispatch
