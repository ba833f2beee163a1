#!/usr/bin/env bash
# Builds the two worked examples and runs them, from a bare machine on.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh
cmake --preset release
cmake --build --preset release --target matmul_bias_relu digits rms_norm

export NODEVICE_SELECT=1  # or a Mesa layer looks for a display and complains on stderr
for device in webgpu cpu; do  # the kernel in WGSL on the best adapter, the one in C++ on the host
  KILN_DEVICE=$device build/release/bin/matmul_bias_relu --shape 1 256 256 256
done
build/release/bin/rms_norm  # an operation whose one kernel is in WGSL, on both
build/release/bin/digits --svg build/release/digits_loss.svg
