#!/usr/bin/env python3
"""Runs clang-tidy over the sources that a build compiles (not its tests): the changed ones for 20 minutes, then others in turn, from
another place each hour, as long as there is time. A few runs reach all.

A build that joins sources (CMAKE_UNITY_BUILD, as the preset asan does) is checked several times faster: what the
sources have in common is read once for all of a unit.

usage: tidy.py <clang-tidy> <build folder> [--seconds N] [--base REVISION] [files...]
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
MOST_SECONDS = 1200  # for changed files
# A unit of joined sources includes them.
CHECKS = "-bugprone-suspicious-include"


def units(build):
    """The translation units of the build, each with the sources that it is made of."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        unit = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if not unit.exists():  # made when it is built
            continue
        joined = unit.is_relative_to(build) and re.findall(r'#include "(.+\.cpp)"', unit.read_text())
        sources = [pathlib.Path(name).resolve() for name in joined or [unit]]
        if all(is_checked(source) for source in sources):
            found[unit] = sources
    return found


def is_checked(source):
    folders = [ROOT / "kiln", ROOT / "examples"]
    return any(source.is_relative_to(folder) for folder in folders) and not source.name.endswith("_test.cpp")


def changed(base):
    command = ["git", "-C", ROOT, "diff", "--name-only", "-z", base]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        print(f"tidy: git does not know {base}, so no file counts as changed")
        return set()
    return {ROOT / name for name in result.stdout.split("\0") if name}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("clang_tidy")
    parser.add_argument("build", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--seconds", type=float, default=600, help="nothing but changed files is begun after this time")
    parser.add_argument("--base", default="HEAD~1", help="files changed since then are checked first, for 20 minutes")
    parser.add_argument("files", nargs="*", type=lambda path: pathlib.Path(path).resolve())
    options = parser.parse_args()

    all_units = units(options.build)
    wanted = set(options.files) or set().union(*all_units.values())
    missing = wanted.difference(*all_units.values())
    if missing or not wanted:
        print(f"tidy: {options.build} compiles none of: {', '.join(map(str, missing)) or 'the sources'}")
        return 1
    always = changed(options.base) | set(options.files)
    work = [unit for unit, sources in all_units.items() if wanted & set(sources)]
    start = int(time.time() // 3600) * (len(work) // 3 + 1) % max(len(work), 1)
    work = sorted(work[start:] + work[:start], key=lambda unit: always.isdisjoint(all_units[unit]))
    begin = time.monotonic()

    def check(unit):
        limit = options.seconds if always.isdisjoint(all_units[unit]) else max(options.seconds, MOST_SECONDS)
        if time.monotonic() - begin > limit:
            return None
        # The compile commands may be another compiler's, with warning options that clang does not know.
        result = subprocess.run(
            [options.clang_tidy, "-p", options.build, "--quiet", f"--checks={CHECKS}",
             "--extra-arg=-Wno-unknown-warning-option", unit],
            capture_output=True, text=True)
        if result.returncode != 0:
            print(result.stdout + result.stderr, flush=True)
        return result.returncode == 0

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(check, work))
    count = {end: sum(len(all_units[unit]) for unit, result in zip(work, results) if result is end)
             for end in (True, False, None)}
    print(f"tidy: {count[True] + count[False]} sources checked in {len(work)} units, {results.count(False)} units with faults"
          + (f"; {count[None]} sources not reached in {options.seconds:.0f} s" if count[None] else ""))
    return 1 if count[False] else 0


if __name__ == "__main__":
    sys.exit(main())
