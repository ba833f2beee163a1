#pragma once
/// What the test program that tools/comment_examples.py makes of comments uses.
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "kiln/fusion/stream.hpp"
#include "kiln/kiln.hpp"

namespace kiln {

/// The device is opened once. Files that examples write go to a folder that ends with the program.
class Surroundings : public testing::Environment {
 public:
  void SetUp() override {
    std::filesystem::create_directory(path_);
    std::filesystem::current_path(path_);
    device_ = default_device();
  }
  void TearDown() override {
    device_.reset();
    std::filesystem::current_path(path_.parent_path());
    std::filesystem::remove_all(path_);
  }

 private:
  std::optional<Device> device_;
  std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / ("kiln_examples_" + std::to_string(getpid()));
};
inline const testing::Environment* const surroundings =
    testing::AddGlobalTestEnvironment(new Surroundings);

/// The numbers of a text such as "[1, 2.5, nan]"; brackets and commas only separate them.
inline std::vector<double> numbers_of(std::string_view text) {
  std::string plain(text);
  for (char& c : plain) {
    if (c == '[' || c == ']' || c == ',') c = ' ';
  }
  std::vector<double> numbers;
  std::istringstream words(plain);
  for (std::string word; words >> word;) {
    if (word == "true" || word == "false") {
      numbers.push_back(word == "true" ? 1 : 0);
    } else {
      numbers.push_back(std::stod(word));
    }
  }
  return numbers;
}

inline std::vector<double> values_of(const AnyTensor& x) {
  const std::vector<float> values = cast(x, DType::f32).to_vector();
  return {values.begin(), values.end()};
}
inline std::vector<double> values_of(const Shape& shape) {
  std::vector<double> sizes;
  for (int axis = 0; axis < shape.rank(); ++axis) sizes.push_back(static_cast<double>(shape[axis]));
  return sizes;
}

inline std::vector<double> values_of(const std::string& text) { return numbers_of(text); }
template <class T>
std::vector<double> values_of(const std::vector<T>& values) {
  return {values.begin(), values.end()};
}
template <class T>
  requires(std::is_arithmetic_v<T> || std::same_as<T, float16>)
std::vector<double> values_of(T number) {
  return {static_cast<double>(number)};
}

inline void expect_text(std::string_view found, std::string_view said) { EXPECT_EQ(found, said); }

template <class T>
void expect_values(const T& found, std::string_view said) {
  const std::vector<double> values = values_of(found);
  const std::vector<double> expected = numbers_of(said);
  ASSERT_EQ(values.size(), expected.size()) << said;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(values[i])) << values[i] << " instead of " << said;
    } else if (std::isinf(expected[i])) {
      EXPECT_EQ(values[i], expected[i]) << said;
    } else {
      EXPECT_NEAR(values[i], expected[i], 1e-5 * std::max(1.0, std::abs(expected[i]))) << said;
    }
  }
}

}  // namespace kiln
