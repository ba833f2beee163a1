#include "kiln/dispatch/elementwise/split.hpp"

#include <algorithm>
#include <numeric>

#include "kiln/scalar/compose.hpp"

namespace kiln::dispatch {
namespace {

bool same(const RawTensor& a, const RawTensor& b) {
  return a.buffer == b.buffer && a.dtype == b.dtype && a.layout == b.layout;
}

/// For each input the number of the first input that is the same tensor, read in the same way.
std::vector<std::size_t> firsts(const Body& body, std::span<const RawTensor> inputs) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    std::size_t first = 0;
    while (!same(inputs[i], inputs[first]) || body.indexed[i] != body.indexed[first]) ++first;
    out.push_back(first);
  }
  return out;
}

BodyPtr body_of(const Body& whole, std::span<const std::size_t> first, const BodyPart& part) {
  std::vector<std::int32_t> roots;
  for (const std::size_t r : part.results) roots.push_back(whole.roots[r]);
  const BodyPtr needed = make_body(*whole.graph, whole.inputs, whole.params, roots);
  Composer composer;
  std::vector<std::int32_t> in;
  for (const std::size_t i : first) {
    const auto at = std::ranges::find(part.inputs, i);
    in.push_back(
        at == part.inputs.end() ? -1 : composer.input(static_cast<int>(at - part.inputs.begin())));
  }
  std::vector<int> params(static_cast<std::size_t>(whole.params));
  std::iota(params.begin(), params.end(), 0);
  const std::vector<std::int32_t> results = composer.copy(*needed, in, params);
  return composer.finish(static_cast<int>(part.inputs.size()), whole.params, results);
}

}  // namespace

std::vector<BodyPart> split(const BodyPtr& body, std::span<const RawTensor> inputs,
                            std::size_t most) {
  const std::vector<std::size_t> first = firsts(*body, inputs);
  std::vector<BodyPart> parts;
  for (std::size_t r = 0; r < body->roots.size(); ++r) {
    std::vector<std::size_t> used;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (body->uses(r, static_cast<int>(i))) used.push_back(first[i]);
    }
    const auto with = [&](const BodyPart& part) {
      std::vector<std::size_t> both = part.inputs;
      both.insert(both.end(), used.begin(), used.end());
      std::ranges::sort(both);
      both.erase(std::ranges::unique(both).begin(), both.end());
      return both;
    };
    if (parts.empty() || with(parts.back()).size() + parts.back().results.size() + 1 > most)
      parts.emplace_back();
    parts.back().inputs = with(parts.back());
    parts.back().results.push_back(r);
  }
  for (BodyPart& part : parts) part.body = body_of(*body, first, part);
  return parts;
}

}  // namespace kiln::dispatch
