// Runs the program as its users do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "kiln/runtime/default_device.hpp"

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The program lies beside this one, wherever both were carried.
std::string program() {
  std::error_code none;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", none);
  return none ? KILN_PROGRAM : (self.parent_path() / "matmul_bias_relu").string();
}

struct Ended {
  int status = 0;
  std::string out;
};

/// `channel` is what is read: "2>/dev/null" for stdout, "2>&1 >/dev/null" for stderr.
Ended run(const std::string& arguments, const std::string& channel = "2>/dev/null") {
  Ended result;
  FILE* pipe = popen(("'" + program() + "' " + arguments + " " + channel).c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("popen failed");
  std::array<char, 4096> part{};
  while (const std::size_t n = std::fread(part.data(), 1, part.size(), pipe)) {
    result.out.append(part.data(), n);
  }
  const int status = pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

/// The lines that the program wrote. Drivers write others: Mesa does where XDG_RUNTIME_DIR is
/// unset.
std::vector<std::string> own_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream all(text);
  for (std::string line; std::getline(all, line);) {
    if (line.starts_with("matmul_bias_relu: ")) lines.push_back(line);
  }
  return lines;
}

TEST(MatmulBiasReluProgram, PrintsOneJsonObject) {
  const Ended result = run("--shape 2 20 30 40 --broadcast-lhs --iters 2 --json");
  ASSERT_EQ(result.status, 0);
  const auto json = nlohmann::json::parse(result.out);  // throws if anything else was printed
  EXPECT_EQ(json.size(), 6U);
  EXPECT_EQ(json["runtime"], kiln::default_device().runtime().name());
  EXPECT_EQ(json["dtype"], "f32");
  EXPECT_NE(json["adapter"], "");
  EXPECT_THAT(json["shape"], ElementsAre(2, 20, 30, 40));
  std::set<std::string> checked;
  for (const auto& check : json["checks"]) {
    EXPECT_EQ(check.size(), 4U);
    EXPECT_TRUE(check["pass"].get<bool>()) << check;
    EXPECT_TRUE(check["max_abs"].is_number() && check["max_rel"].is_number()) << check;
    const auto name = check["name"].get<std::string>();
    for (const char* start : {"forward", "grad lhs", "grad rhs", "grad bias"}) {
      if (name.starts_with(start)) checked.insert(start);
    }
  }
  EXPECT_THAT(checked, ElementsAre("forward", "grad bias", "grad lhs", "grad rhs"));
  std::vector<std::string> timed;
  for (const auto& timing : json["timings"]) {
    EXPECT_EQ(timing.size(), 4U);
    EXPECT_GT(timing["seconds"].get<double>(), 0);
    EXPECT_GT(timing["gflops"].get<double>(), 0);
    EXPECT_GE(timing["launches"].get<int>(), 1);
    timed.push_back(timing["name"]);
  }
  EXPECT_THAT(timed,
              ElementsAre("custom", "custom + backward", "custom tiled", "custom tiled + backward",
                          "plain", "plain + backward", "matmul", "matmul + backward"));
}

TEST(MatmulBiasReluProgram, SaysInOneLineWhatIsWrongAndExitsWithOne) {
  for (const auto& [arguments, message] : {
           std::pair{"--adapter nonesuch", "no adapter whose name contains \"nonesuch\""},
           std::pair{"--shape 1 2 3", "--shape"},
           std::pair{"--shape 1 -2 3 4", "sizes must not be negative"},
           std::pair{"--shape 1 1 1 9000000000000000000", "matmul_bias_relu: "},
           std::pair{"--dtype f64", "--dtype"},
       }) {
    const Ended result = run(arguments, "2>&1 >/dev/null");
    EXPECT_EQ(result.status, 1) << arguments;
    const std::vector<std::string> said = own_lines(result.out);
    ASSERT_EQ(said.size(), 1U) << result.out;
    EXPECT_THAT(said.front(), HasSubstr(message));
  }
}

}  // namespace
