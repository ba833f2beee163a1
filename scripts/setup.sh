#!/usr/bin/env bash
# Installs what building and running kiln needs on Debian 12, Debian 13 or Ubuntu 24.04; a second run finds all of it
# there and takes a second. `scripts/setup.sh test` adds what only the checks need.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(g++ cmake ninja-build ca-certificates
          libfmt-dev libgtest-dev libgmock-dev librapidcheck-dev libbenchmark-dev libcli11-dev nlohmann-json3-dev
          libdnnl-dev libtbb-dev libhwy-dev libdlpack-dev libvulkan1 glslang-tools)
if [[ "${1:-}" == test ]]; then
  packages+=(clang-19 libclang-rt-19-dev clang-format-19 clang-tidy-19 git)
  if ! node --version &>/dev/null; then packages+=(nodejs); fi  # any Node from 18 on will do
  if ! npm --version &>/dev/null; then packages+=(npm); fi
fi
if ! python3 -m pip --version &>/dev/null; then  # any Python with pip will do
  packages+=(python3 python3-pip)
fi

is_installed() { [[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" == installed ]]; }

install_missing() {
  local missing=()
  for package in "$@"; do
    is_installed "$package" || missing+=("$package")
  done
  if ((${#missing[@]} == 0)); then return; fi

  local sudo=()
  if ((EUID != 0)); then
    if ! command -v sudo >/dev/null; then
      echo "setup: missing, and only root can install: apt-get install ${missing[*]}" >&2
      exit 1
    fi
    sudo=(sudo)
  fi
  echo "setup: installing ${missing[*]}"
  if ! { "${sudo[@]}" apt-get update -qq &&
         "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
           apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null; }; then
    echo "setup: could not install them; try: apt-get update && apt-get install ${missing[*]}" >&2
    exit 1
  fi
}

if ! command -v apt-get >/dev/null; then
  echo "setup: this is no Debian or Ubuntu. Install the like of these yourself: ${packages[*]}, and a Vulkan driver" >&2
  exit 1
fi

install_missing "${packages[@]}"
if ! python3 tools/vulkan_adapters.py >/dev/null 2>&1; then
  echo "setup: no graphics driver answers, so the software adapter is used"
  install_missing mesa-vulkan-drivers
  if ! python3 tools/vulkan_adapters.py 2>/dev/null; then
    echo "setup: even with mesa-vulkan-drivers no Vulkan adapter is found; see: VK_LOADER_DEBUG=all python3 tools/vulkan_adapters.py" >&2
    exit 1
  fi
fi

if [[ "${1:-}" == test ]] && ! npm ls --prefix tools/dawn &>/dev/null; then
  echo "setup: fetching Dawn, the other compiler of WGSL (npm package webgpu)"
  npm ci --prefix tools/dawn --ignore-scripts --no-audit --no-fund --loglevel=error
fi
