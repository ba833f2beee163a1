#pragma once
/// For the tests beside it: buffers of floats, and small kernels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "kiln/runtime/device.hpp"
#include "kiln/runtime/webgpu/webgpu.hpp"
#include "kiln/support/error.hpp"

namespace kiln::wgpu {

template <class T>
BufferPtr upload(Runtime& runtime, const std::vector<T>& values) {
  BufferPtr buffer = runtime.allocate(values.size() * sizeof(T));
  runtime.write(buffer, 0, std::as_bytes(std::span(values)));
  return buffer;
}

template <class T>
std::vector<T> values_of(const std::vector<std::byte>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

template <class T = float>
std::vector<T> download(Runtime& runtime, const BufferPtr& buffer, std::size_t count,
                        std::uint64_t offset = 0) {
  return values_of<T>(runtime.read(buffer, offset, count * sizeof(T)).get());
}

/// `y[i] = <expression of x and i>` over the whole of both buffers, in f32.
inline KernelId map_id(const std::string& expression) {
  KernelId id;
  id.source =
      "@group(0) @binding(0) var<storage, read> input: array<f32>;\n"
      "@group(0) @binding(1) var<storage, read_write> output: array<f32>;\n"
      "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) at: vec3<u32>) {\n"
      "  let i = at.x;\n"
      "  if (i >= min(arrayLength(&input), arrayLength(&output))) { return; }\n"
      "  let x = input[i];\n"
      "  output[i] = " +
      expression +
      ";\n"
      "}\n";
  id.workgroup = {64, 1, 1};
  id.bindings = {{0, 0, Access::read}, {0, 1, Access::read_write}};
  return id;
}

inline void launch_map(Runtime& runtime, const CompiledKernelPtr& kernel, const BufferPtr& from,
                       const BufferPtr& to) {
  const std::array<Binding, 2> bindings = {Binding{from}, Binding{to}};
  const auto groups = static_cast<std::uint32_t>((to->size() / 4 + 63) / 64);
  runtime.launch(kernel, bindings, {}, {groups, 1, 1});
}

/// While it lives, compiled kernels are written to the folder; then where they were before.
class DumpsTo {
 public:
  explicit DumpsTo(const std::filesystem::path& folder) {
    if (const char* set = std::getenv("KILN_DUMP_KERNELS")) before_ = set;
    ::setenv("KILN_DUMP_KERNELS", folder.c_str(), 1);
  }
  DumpsTo(const DumpsTo&) = delete;
  DumpsTo& operator=(const DumpsTo&) = delete;
  ~DumpsTo() {
    if (before_) {
      ::setenv("KILN_DUMP_KERNELS", before_->c_str(), 1);
    } else {
      ::unsetenv("KILN_DUMP_KERNELS");
    }
  }

 private:
  std::optional<std::string> before_;
};

/// Runs `action` and gives the message of the error it throws; fails the test if it throws no E.
template <class E, class Action>
std::string message_of(Action&& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another exception: " << error.what();
    return {};
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

}  // namespace kiln::wgpu
