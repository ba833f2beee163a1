#!/usr/bin/env python3
"""Checks that code which must not compile does not, and says why.

Each case is a C++ file. A line `// expect: <regex>` states what the compiler must say (several such
lines must all be met); a line `// compiles` states instead that the file is fine, which guards a
case against failing for another reason than the one it is about. A file of many cases marks each
line that must not compile with `// error` at its end: there must be an error on every one of them,
and on no other line.

With --precompile, the header that the cases include first is compiled once for all of them.
"""

import argparse
import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tempfile


def compiler_command(compiler, includes):
    return [compiler, "-std=c++20", "-fdiagnostics-color=never"] + [f"-I{path}" for path in includes]


def precompile(header, command, includes, folder):
    """Compiles the header into the folder, which must be searched first. Compilers that do not look for it there lose nothing."""
    source = next(path / header for path in map(pathlib.Path, includes) if (path / header).is_file())
    target = pathlib.Path(folder) / f"{header}.gch"
    target.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(command + ["-w", "-x", "c++-header", str(source), "-o", str(target)], check=True)


def check(case, command):
    """Returns what is wrong with the case, or None."""
    text = case.read_text()
    expected = re.findall(r"^// expect: (.+)$", text, re.MULTILINE)
    must_compile = re.search(r"^// compiles$", text, re.MULTILINE) is not None
    marked = {number for number, line in enumerate(text.splitlines(), start=1) if line.endswith("// error")}
    if must_compile + bool(expected) + bool(marked) != 1:
        return "needs either lines `// expect: <regex>`, lines that end with `// error`, or the line `// compiles`"
    result = subprocess.run(command + ["-fsyntax-only", str(case)], capture_output=True, text=True)
    if must_compile:
        return None if result.returncode == 0 else "must compile, but:\n" + result.stderr
    if result.returncode == 0:
        return "compiles, but must not"
    if marked:
        told = {int(line) for line in re.findall(rf"^{re.escape(str(case))}:(\d+):\d+: error:", result.stderr, re.MULTILINE)}
        if told != marked:
            return f"errors on lines {sorted(told - marked)} too many, {sorted(marked - told)} too few:\n" + result.stderr
    for regex in expected:
        if not re.search(regex, result.stderr):
            return f"fails without saying /{regex}/:\n" + result.stderr
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--precompile", metavar="HEADER")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("cases", nargs="+", type=pathlib.Path)
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        command = compiler_command(options.compiler, [folder] + options.include)
        if options.precompile:
            precompile(options.precompile, command, options.include, folder)
        faults = list(pool.map(lambda case: check(case, command), options.cases))
    for case, fault in zip(options.cases, faults):
        print(f"{case.name}: {fault or 'ok'}")
    failed = sum(fault is not None for fault in faults)
    print(f"{len(faults)} cases, {failed} wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
