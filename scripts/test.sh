#!/usr/bin/env bash
# Checks everything, from a bare machine on: what CI runs, and what to run before a change is handed in.
#   KILN_SKIP_ASAN=1       leaves out the build with Clang and the sanitizers
#   KILN_SKIP_TSAN=1       leaves out what runs under the thread sanitizer
#   KILN_TIDY_SECONDS=600  clang-tidy checks other files than the changed ones as long (150); 0 leaves it out
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s (%d s so far)\n' "$*" "$SECONDS"; }

under=()  # the command that tests run under
# run_tests <preset> [options of ctest...]
run_tests() {
  local results=$PWD/build/$1/tests.xml
  "${under[@]}" ctest --preset "$1" --no-tests=error --parallel 2 --output-junit "$results" "${@:2}"
  python3 tools/slowest_tests.py "$results"
}

step "set-up"
scripts/setup.sh test

step "layers"
python3 tools/check_layers.py

step "format"
mapfile -d '' files < <(find kiln examples tests benchmarks \( -name '*.hpp' -o -name '*.cpp' -o -name '*-inl.h' \) -print0)
if ! clang-format-19 --dry-run -Werror "${files[@]}"; then
  echo "To put it right: find kiln examples tests benchmarks -name '*.[ch]pp' -o -name '*-inl.h' | xargs clang-format-19 -i" >&2
  exit 1
fi

step "build"
cmake --preset suite
cmake --build --preset suite

step "test"
export KILN_DUMP_KERNELS=$PWD/build/suite/kernels  # of everything that follows, for Dawn
rm -rf "$KILN_DUMP_KERNELS"
run_tests suite

step "test: what every WebGPU adapter has, and no more"
KILN_PORTABLE=1 run_tests suite \
  --tests-regex '^(kiln_(dispatch|fusion|tensor|ops_(gather|softmax|reduce|movement))|rms_norm)_tests$'
unset KILN_DUMP_KERNELS

step "the kernels of those tests, in Dawn"
node --test tools/dawn/check_wgsl_test.mjs >build/suite/check_wgsl_test.log || { cat build/suite/check_wgsl_test.log; exit 1; }
node tools/dawn/check_wgsl.mjs build/suite/kernels

if [[ "${KILN_SKIP_ASAN:-0}" == 0 ]]; then
  step "build: Clang, with the address and undefined-behaviour sanitizers"
  cmake --preset asan -D CMAKE_CXX_COMPILER=clang++-19
  cmake --build --preset asan

  step "test: Clang, with the address and undefined-behaviour sanitizers"
  run_tests asan --label-regex "program|cpu"
fi

if [[ "${KILN_SKIP_TSAN:-0}" == 0 ]]; then
  step "threads: the runtimes and the queue under the thread sanitizer"
  cmake --preset tsan
  cmake --build --preset tsan --target kiln_runtime_tests kiln_fusion_tests
  # GCC's thread sanitizer does not start where addresses are more random than this.
  if (($(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 28) > 28)); then
    if ! setarch -R true 2>/dev/null; then
      echo "threads: addresses are too random: run sysctl vm.mmap_rnd_bits=28 on the host, or set KILN_SKIP_TSAN=1" >&2
      exit 1
    fi
    under=(setarch -R)
  fi
  # It overflows where calls nest deeply, and its own memory grows.
  GTEST_FILTER='-CompileThread.*:Uploads.ThatAreDroppedAtOnceDoNotPileUp' \
    run_tests tsan --tests-regex '^kiln_(runtime|fusion)_tests(_cpu)?$'
  under=()
fi

if [[ "${KILN_TIDY_SECONDS:-150}" != 0 ]]; then
  step "clang-tidy"
  tidied=build/suite
  if [[ "${KILN_SKIP_ASAN:-0}" == 0 ]]; then tidied=build/asan; fi  # compiled by Clang
  python3 tools/tidy.py clang-tidy-19 "$tidied" --seconds "${KILN_TIDY_SECONDS:-150}"
fi

step "all passed"
