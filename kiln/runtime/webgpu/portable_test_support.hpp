#pragma once
/// For tests of what a kernel becomes where the adapter has no more than every adapter has.
#include <cstdlib>
#include <string>

#include "kiln/runtime/webgpu/webgpu.hpp"

namespace kiln::wgpu {

/// Opens a device while KILN_PORTABLE is `text`.
inline Device opened_where_portable_is(const char* text) {
  const char* before = std::getenv("KILN_PORTABLE");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("KILN_PORTABLE", text, 1);
  Device device = webgpu::device();
  ::setenv("KILN_PORTABLE", kept.c_str(), 1);
  return device;
}

inline Device portable_device() { return opened_where_portable_is("1"); }

}  // namespace kiln::wgpu
