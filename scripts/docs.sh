#!/usr/bin/env bash
# Builds the reference: API pages of the headers and the documents, in build/docs/html. Fails on a broken link or reference.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v doxygen >/dev/null; then
  echo "docs: doxygen is missing; on Debian and Ubuntu: apt-get install doxygen" >&2
  exit 1
fi
python3 tools/check_links.py
python3 tools/check_operations.py
mkdir -p build/docs
doxygen docs/Doxyfile
echo "docs: build/docs/html/index.html"
