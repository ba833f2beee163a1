#!/usr/bin/env bash
# Builds the two worked examples and runs them, from a bare machine on.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh
cmake --preset release
cmake --build --preset release --target matmul_bias_relu digits

export NODEVICE_SELECT=1  # or a Mesa layer looks for a display and complains on stderr
build/release/bin/matmul_bias_relu --shape 1 256 256 256
build/release/bin/digits --svg build/release/digits_loss.svg
