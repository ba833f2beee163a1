#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "examples/digits/chart.hpp"
#include "examples/digits/training.hpp"
#include "kiln/kiln.hpp"

namespace example {

using namespace kiln;

namespace {

using ::testing::Each;
using ::testing::HasSubstr;

const auto ignore = [](const Epoch&) {};

TEST(DigitsData, IsWholeAndAFifthOfItIsHeldOut) {
  const Digits digits = load_digits();
  EXPECT_EQ(digits.train.size() + digits.held_out.size(), 1797);
  EXPECT_EQ(digits.held_out.size(), 1797 / 5);
  for (const Images* images : {&digits.train, &digits.held_out}) {
    ASSERT_EQ(images->pixels.size(), images->labels.size() * pixels_per_image);
    EXPECT_THAT(images->pixels, Each(::testing::AllOf(::testing::Ge(0), ::testing::Le(1))));
    for (std::int32_t digit = 0; digit < classes; ++digit) {
      EXPECT_GT(std::ranges::count(images->labels, digit), images->size() / 20) << digit;
    }
  }
}

TEST(DigitsData, IsShuffledAlikeOnEveryMachine) {
  const auto order = shuffled(1000, 1);
  auto sorted = order;
  std::ranges::sort(sorted);
  std::vector<std::size_t> all(1000);
  std::iota(all.begin(), all.end(), std::size_t{0});
  EXPECT_EQ(sorted, all);
  EXPECT_NE(order, all);
  EXPECT_EQ(order, shuffled(1000, 1));
  EXPECT_NE(order, shuffled(1000, 2));
}

TEST(DigitsTraining, LowersTheLossAndRepeatsItselfExactly) {
  const Digits digits = load_digits();
  const Device device = default_device().autodiff();
  const TrainingOptions options{.epochs = 2};
  const Trained once = train(digits, device, options, ignore);
  const Trained again = train(digits, device, options, ignore);
  ASSERT_EQ(once.epochs.size(), 2U);
  EXPECT_LT(once.epochs[1].train_loss, once.epochs[0].train_loss);
  EXPECT_LT(once.epochs[1].held_out_loss, once.epochs[0].held_out_loss);
  EXPECT_GT(once.launches_per_step, 0U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(once.epochs[i].train_loss, again.epochs[i].train_loss);
    EXPECT_EQ(once.epochs[i].accuracy, again.epochs[i].accuracy);
  }
}

TEST(DigitsTraining, AQueuedStepIsAtMostTwoFifthsOfTheLaunches) {
  const Digits digits = load_digits();
  const auto launches = [&](const Device& device) {
    return train(digits, device.autodiff(), {.epochs = 1}, ignore).launches_per_step;
  };
  // Less is fused where an adapter binds no more buffers than all do.
  const std::uint64_t halves = default_device().limits().storage_buffers > 8 ? 5 : 4;
  EXPECT_LE(halves * launches(default_device().lazy()), 2 * launches(default_device().eager()));
}

TEST(DigitsTraining, HoldsNoGraphBeyondAStep) {
  const Digits digits = load_digits();
  const Device device = default_device().autodiff();
  const auto in_use = [&] { return device.runtime().counters().bytes_in_use; };
  std::uint64_t first = 0;
  train(digits, device, {.epochs = 3}, [&](const Epoch& epoch) {
    if (epoch.number == 1) first = in_use();
    EXPECT_EQ(in_use(), first);
  });
}

TEST(DigitsTraining, ReachesNineteenInTwentyAndInferenceAgrees) {
  const Digits digits = load_digits();
  const Device device = default_device();
  const Trained trained = train(digits, device.autodiff(), {}, ignore);
  EXPECT_GE(trained.epochs.back().accuracy, 0.95);
  Parameters weights;
  for (const AnyTensor& p : trained.parameters) weights.push_back(p.to(device));
  EXPECT_EQ(accuracy(weights, digits.held_out), trained.epochs.back().accuracy);
}

TEST(Chart, ShowsItsWordsAndLines) {
  const std::string svg =
      to_svg({"a < b", "x axis", "y axis", {{"one line", "#123456", {3, 2, 1}}}});
  for (const char* part :
       {"a &lt; b", "x axis", "y axis", "one line", "stroke=\"#123456\"", "polyline"}) {
    EXPECT_THAT(svg, HasSubstr(part));
  }
  EXPECT_THAT(to_svg({"empty", "x", "y", {}}), HasSubstr("</svg>"));
}

/// The program, run in an empty folder of its own.
class DigitsProgram : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "digits-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] int run(const std::string& arguments) const {
    std::error_code none;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", none);
    const std::string program = none ? KILN_PROGRAM : (self.parent_path() / "digits").string();
    return std::system(
        ("cd '" + folder_.string() + "' && '" + program + "' " + arguments + " >out").c_str());
  }
  [[nodiscard]] std::vector<std::string> written() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      names.push_back(entry.path().filename().string());
    std::erase(names, "out");
    return names;
  }
  [[nodiscard]] std::string printed() const {
    std::ifstream file(folder_ / "out");
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(DigitsProgram, WritesNoFileUnlessToldTo) {
  EXPECT_EQ(run("--epochs 1"), 0);
  EXPECT_THAT(written(), ::testing::IsEmpty());
}

TEST_F(DigitsProgram, WritesTheCurveWhereItIsToldToAndSaysSo) {
  EXPECT_EQ(run("--epochs 1 --svg curve.svg"), 0);
  EXPECT_THAT(written(), ::testing::ElementsAre("curve.svg"));
  EXPECT_THAT(printed(), HasSubstr("loss curve: curve.svg"));
}

}  // namespace
}  // namespace example
