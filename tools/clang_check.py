#!/usr/bin/env python3
"""Parses kiln's sources and examples with Clang, and fails on any of its warnings.

usage: clang_check.py <clang++> <build folder> [--jobs N]

The build folder was built with another compiler: its compile commands are taken, and its generated headers. Headers of the
standard library and of fmt are parsed once, into a precompiled one.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
SYSTEM = re.compile(r"^#include (<(?:[a-z_0-9]+|fmt/[a-z]+\.h)>)", re.MULTILINE)


def sources(build):
    """Each source once, with the words of its command that say how it is read."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        inside = any(path.is_relative_to(ROOT / folder) for folder in ("kiln", "examples"))
        if inside and not path.name.endswith("_test.cpp"):
            words = shlex.split(entry["command"].replace("-isystem ", "-isystem"))
            keep = ("-I", "-D", "-std", "-W", "-isystem")
            found[path] = [word for word in words if word.startswith(keep) and word != "-Werror"]
    return found


def ordered(words):
    return list(dict.fromkeys(words))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("compiler")
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()

    begin = time.monotonic()
    found = sources(options.build)
    # One set of macros for all, or the precompiled header fits none.
    macros = ordered(word for words in found.values() for word in words if word.startswith("-D"))
    folders = ordered(word for words in found.values() for word in words if word.startswith(("-I", "-isystem")))
    # Warnings that only GCC has are in the commands, too.
    always = [options.compiler, "-Werror", "-Wno-unknown-warning-option", *macros]

    def run(command):
        result = subprocess.run(command, capture_output=True, text=True)
        if result.stderr:
            print(result.stderr, end="", flush=True)
        return result.returncode == 0

    with tempfile.TemporaryDirectory() as folder:
        some = next(iter(found.values()), [])
        flags = [word for word in some if not word.startswith(("-I", "-D", "-isystem"))]

        header = pathlib.Path(folder) / "system.hpp"
        texts = [path.read_text() for path in (ROOT / "kiln").rglob("*.?pp") if "test" not in path.name]
        header.write_text("".join(f"#include {name}\n" for name in sorted({n for text in texts for n in SYSTEM.findall(text)})))
        if not run([*always, *flags, *folders, "-x", "c++-header", header, "-o", f"{header}.pch"]):
            return 1

        def check(item):
            path, words = item
            own = [word for word in words if not word.startswith("-D")]
            return path, run([*always, *own, *folders, "-include-pch", f"{header}.pch", "-fsyntax-only", path])

        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            failed = [path for path, fine in pool.map(check, found.items()) if not fine]
    print(f"clang_check: {len(found)} files, {len(failed)} with faults, {time.monotonic() - begin:.0f} s")
    return 1 if failed or not found else 0


if __name__ == "__main__":
    sys.exit(main())
