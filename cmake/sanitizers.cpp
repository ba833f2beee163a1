// Linked into every program of a sanitizer build. Graphics drivers are not built with the sanitizers,
// leak a little, and are unloaded before leaks are looked for, so that nothing could name them.

#include <unistd.h>

namespace {

const pid_t started = getpid();

}  // namespace

extern "C" {

// Keeps drivers loaded: reports can then say which library a frame is in.
int dlclose(void* /*library*/) { return 0; }

const char* __lsan_default_suppressions();  // NOLINT(bugprone-reserved-identifier)
const char* __lsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier)
  return "leak:libvulkan\nleak:libgallium\nleak:libLLVM\nleak:libnvidia\n";
}

// A forked child has none of its parent's threads, so that what they hold would seem lost.
int __lsan_is_turned_off();  // NOLINT(bugprone-reserved-identifier)
int __lsan_is_turned_off() {  // NOLINT(bugprone-reserved-identifier)
  return getpid() != started ? 1 : 0;
}

const char* __lsan_default_options();  // NOLINT(bugprone-reserved-identifier)
const char* __lsan_default_options() {  // NOLINT(bugprone-reserved-identifier)
  return "print_suppressions=0";
}

const char* __tsan_default_suppressions();  // NOLINT(bugprone-reserved-identifier)
const char* __tsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier)
  return "race:libvulkan_lvp.so\nrace:libgallium\nrace:libLLVM\nrace:libwgpu_native\nmutex:libvulkan\n"
         "race:libtbb.so\n";  // it hands tasks over in ways that only an instrumented build of it would show
}

}  // extern "C"
