#!/usr/bin/env bash
# Checks everything, from a bare machine on: what CI runs, and what to run before a change is handed in.
#   KILN_SKIP_ASAN=1       leaves the sanitizer build out
#   KILN_TIDY_SECONDS=300  time that clang-tidy may take, changed files first; 0 leaves it out
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s (%d s so far)\n' "$*" "$SECONDS"; }

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

step "build and test: dev"
cmake --preset dev
cmake --build --preset dev
export KILN_DUMP_KERNELS=$PWD/build/dev/kernels  # of everything that follows, for Dawn
rm -rf "$KILN_DUMP_KERNELS"
ctest --preset dev --no-tests=error --parallel 2

step "test: what every WebGPU adapter has, and no more"
KILN_PORTABLE=1 ctest --preset dev --no-tests=error --parallel 2 \
  --tests-regex '^(kiln_(dispatch|fusion|tensor|ops_(gather|softmax|reduce|movement))|rms_norm)_tests$'
unset KILN_DUMP_KERNELS

step "the kernels of those tests, in Dawn"
node --test tools/dawn/check_wgsl_test.mjs >build/dev/check_wgsl_test.log || { cat build/dev/check_wgsl_test.log; exit 1; }
node tools/dawn/check_wgsl.mjs build/dev/kernels

step "Clang: the library and the examples, without making anything"
python3 tools/clang_check.py clang++-19 build/dev

if [[ "${KILN_SKIP_ASAN:-0}" == 0 ]]; then
  step "build and test: address and undefined-behaviour sanitizers"
  cmake --preset asan
  cmake --build --preset asan
  ctest --preset asan --no-tests=error --label-regex "program|cpu" --parallel 2
fi

if [[ "${KILN_TIDY_SECONDS:-300}" != 0 ]]; then
  step "clang-tidy"
  python3 tools/tidy.py clang-tidy-19 build/dev --seconds "${KILN_TIDY_SECONDS:-300}"
fi

step "all passed"
