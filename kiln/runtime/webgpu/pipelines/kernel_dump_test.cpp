#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "kiln/runtime/webgpu/pipelines/pipeline.hpp"
#include "kiln/runtime/webgpu/test_support.hpp"

namespace kiln::wgpu {
namespace {

using ::testing::StartsWith;

class KernelDump : public ::testing::Test {
 protected:
  Device device = webgpu::device();
  Runtime& runtime = device.runtime();
};

/// What is in the folder that the environment names while `action` runs, by extension.
template <class Action>
std::map<std::string, std::string> dumped(Action action) {
  const auto folder = std::filesystem::temp_directory_path() / "kiln_dump_test";
  std::filesystem::remove_all(folder);
  {
    const DumpsTo dumps(folder);
    action();
  }
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    EXPECT_THAT(entry.path().filename().string(), StartsWith("my-op-f32-"));
    std::stringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    EXPECT_TRUE(files.emplace(entry.path().extension().string(), text.str()).second);
  }
  std::filesystem::remove_all(folder);
  return files;
}

TEST_F(KernelDump, KernelsAreWrittenToTheFolderThatTheEnvironmentNames) {
  KernelId id = map_id("x * factor + params.n");
  id.source +=
      "override factor: f32;\nstruct Params { n: f32 }\n"
      "@group(1) @binding(2) var<uniform> params: Params;\n";
  id.constants = {{"factor", -2.5}};
  id.metadata_bytes = 16;
  id.metadata_group = 1;
  id.metadata_binding = 2;
  const auto files = dumped([&] {
    runtime.compile(id, "my op/f32");
    runtime.compile(id, "my op/f32");
  });
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files.at(".wgsl"), id.source);
  const auto layout = nlohmann::json::parse(files.at(".json"));
  EXPECT_EQ(layout, nlohmann::json::parse(R"({
    "label": "my op/f32", "entry": "main", "workgroup": [64, 1, 1],
    "bindings": [{"group": 0, "binding": 0, "read_only": true},
                 {"group": 0, "binding": 1, "read_only": false}],
    "metadata": {"bytes": 16, "immediate": false, "group": 1, "binding": 2},
    "constants": {"factor": "-2.5"}})"));
}

TEST_F(KernelDump, TheLayoutOfAKernelThatDoesNotCompileIsNotWritten) {
  const KernelId id = map_id("nothing_of_that_name");
  const auto files = dumped([&] { EXPECT_THROW(runtime.compile(id, "my op/f32"), KernelError); });
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files.at(".wgsl"), id.source);
}

/// A folder that is empty at first and gone at the end.
struct EmptyFolder {
  EmptyFolder() { std::filesystem::create_directories(path); }
  EmptyFolder(const EmptyFolder&) = delete;
  EmptyFolder& operator=(const EmptyFolder&) = delete;
  ~EmptyFolder() { std::filesystem::remove_all(path); }
  [[nodiscard]] std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> all;
    for (const auto& entry : std::filesystem::directory_iterator(path)) all.push_back(entry.path());
    std::ranges::sort(all);
    return all;
  }
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("kiln_dump_links_" + std::to_string(::getpid()));
};

TEST_F(KernelDump, FollowsNoLinkAndChangesNoFile) {
  const EmptyFolder folder;
  const KernelId id = map_id("x * 1234.5");
  {
    const DumpsTo dumps(folder.path);
    dump_kernel(id, "linked");
  }
  ASSERT_EQ(folder.files().size(), 1U);
  const std::filesystem::path place = folder.files()[0];
  const std::filesystem::path target = folder.path / "precious";
  for (const bool dangling : {false, true}) {
    std::filesystem::remove(place);
    std::filesystem::remove(target);
    if (!dangling) std::ofstream(target) << "precious";
    std::filesystem::create_symlink(target, place);
    const DumpsTo dumps(folder.path);
    dump_kernel(id, "linked");
    EXPECT_TRUE(std::filesystem::is_symlink(place));
    EXPECT_EQ(std::filesystem::exists(target), !dangling);
    EXPECT_EQ(dangling ? 8U : std::filesystem::file_size(target), 8U);
  }
}

TEST_F(KernelDump, TakesAnyLabelAndLeavesTheLaunchAlone) {
  const EmptyFolder folder;
  const KernelId id = map_id("x * 4321.5");
  const std::string labels[] = {std::string(5000, 'x'), "../../etc/x", "",
                                std::string("a\0b", 3), "\xff\xfe \n", "."};
  {
    const DumpsTo dumps(folder.path);
    for (const std::string& label : labels) {
      dump_kernel(id, label);
      dump_layout(id, label);
    }
  }
  EXPECT_EQ(folder.files().size(), 12U);
  // Where nothing can be written the kernel is compiled all the same.
  const std::filesystem::path file = folder.path / "file";
  std::ofstream(file) << "no folder";
  for (const std::filesystem::path& nowhere :
       {file, std::filesystem::path("/proc/kiln"), std::filesystem::path(std::string(9000, 'y'))}) {
    const DumpsTo dumps(nowhere);
    EXPECT_NO_THROW(runtime.compile(map_id("x * 99.5 + " + std::to_string(nowhere.native().size())),
                                    labels[0]));
  }
}

}  // namespace
}  // namespace kiln::wgpu
