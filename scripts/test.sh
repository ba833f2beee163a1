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
ctest --preset dev --no-tests=error --parallel 2

if [[ "${KILN_SKIP_ASAN:-0}" == 0 ]]; then
  step "build and test: address and undefined-behaviour sanitizers"
  cmake --preset asan
  cmake --build --preset asan
  ctest --preset asan --no-tests=error --label-regex program --parallel 2
fi

if [[ "${KILN_TIDY_SECONDS:-300}" != 0 ]]; then
  step "clang-tidy"
  python3 tools/tidy.py clang-tidy-19 build/dev --seconds "${KILN_TIDY_SECONDS:-300}"
fi

step "all passed"
