#!/usr/bin/env python3
"""Runs clang-tidy over kiln's sources (not its tests) within a time limit, the changed files first.

usage: tidy.py <clang-tidy> <build folder> [--seconds N] [--base REVISION] [files...]
"""

import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]


def sources():
    files = [path for folder in ("kiln", "examples") for path in sorted((ROOT / folder).rglob("*.cpp"))]
    return [path for path in files if not path.name.endswith("_test.cpp")]


def changed(base):
    command = ["git", "-C", ROOT, "diff", "--name-only", base]
    names = subprocess.run(command, capture_output=True, text=True).stdout.split()
    return {ROOT / name for name in names}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("clang_tidy")
    parser.add_argument("build")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--base", default="HEAD~1", help="files changed since then come first")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    options = parser.parse_args()

    first = changed(options.base)
    files = [path.resolve() for path in options.files] or sorted(sources(), key=lambda path: path not in first)
    deadline = time.monotonic() + options.seconds

    def check(path):
        if time.monotonic() > deadline:
            return None
        # The compile commands are the compiler's, with warning options that clang may not know.
        result = subprocess.run(
            [options.clang_tidy, "-p", options.build, "--quiet", "--extra-arg=-Wno-unknown-warning-option", path],
            capture_output=True, text=True)
        if result.returncode != 0:
            print(result.stdout + result.stderr, flush=True)
        return result.returncode == 0

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(check, files))
    faulty, left = results.count(False), results.count(None)
    print(f"tidy: {len(files) - left} of {len(files)} files checked, {faulty} with faults"
          + (f"; {left} not reached in {options.seconds:.0f} s" if left else ""))
    return 1 if faulty else 0


if __name__ == "__main__":
    sys.exit(main())
