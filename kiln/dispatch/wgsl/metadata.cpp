#include "kiln/dispatch/wgsl/metadata.hpp"

#include <fmt/format.h>

#include "kiln/dispatch/words.hpp"
#include "kiln/scalar/wgsl/wgsl.hpp"

namespace kiln::dispatch::wgsl {

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

void Metadata::add_zero_for(const std::set<std::string>& helpers) {
  zero_ = zero_ || helpers.contains(std::string(wgsl_hide));
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
  if (zero_) text += "kiln_zero: u32, ";
  if (id.metadata_immediate) return text + "}\nvar<immediate> params: KilnParams;\n";
  id.metadata_group = group;
  id.metadata_binding = binding;
  return text + fmt::format("}}\n@group({}) @binding({}) var<uniform> params: KilnParams;\n", group,
                            binding);
}

std::vector<std::uint32_t> Metadata::values() const {
  std::vector<std::uint32_t> all = named_;
  all.insert(all.end(), words_.begin(), words_.end());
  if (zero_) all.push_back(0);
  all.resize((all.size() + 3) / 4 * 4);
  return all;
}

}  // namespace kiln::dispatch::wgsl
