#include "data.hpp"

#include <numeric>
#include <random>
#include <span>
#include <utility>

#include "digits_csv.hpp"

namespace example {

Images Images::pick(const std::vector<std::size_t>& places, std::size_t begin,
                    std::size_t end) const {
  Images picked;
  for (std::size_t i = begin; i < end; ++i) {
    const auto image = std::span(pixels).subspan(places[i] * pixels_per_image, pixels_per_image);
    picked.pixels.insert(picked.pixels.end(), image.begin(), image.end());
    picked.labels.push_back(labels[places[i]]);
  }
  return picked;
}

Digits load_digits() {
  constexpr std::size_t columns = pixels_per_image + 1;
  static_assert(std::size(digits_csv) % columns == 0);
  constexpr std::size_t count = std::size(digits_csv) / columns;
  Images all;
  for (std::size_t i = 0; i < count; ++i) {
    const auto row = std::span(digits_csv).subspan(i * columns, columns);
    for (const unsigned char ink : row.first(pixels_per_image)) {
      all.pixels.push_back(static_cast<float>(ink) / 16);
    }
    all.labels.push_back(row.back());
  }
  const std::vector<std::size_t> order = shuffled(count, 0);
  return {all.pick(order, count / 5, count), all.pick(order, 0, count / 5)};
}

std::vector<std::size_t> shuffled(std::size_t count, std::uint64_t seed) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  // By hand, because standard libraries differ in how std::shuffle uses a generator.
  std::mt19937_64 random(seed);
  for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  return order;
}

}  // namespace example
