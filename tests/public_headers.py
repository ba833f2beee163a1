#!/usr/bin/env python3
"""Checks that installed headers need nothing but each other and the standard library.

Each #include in them must name a header of the C++20 library or an installed one. Those that no source of
kiln includes first are compiled alone, where the names of the libraries that kiln is built on are poison.
"""

import argparse
import concurrent.futures
import pathlib
import re
import subprocess
import sys

STANDARD = set("""
algorithm any array atomic barrier bit bitset charconv chrono compare complex concepts condition_variable coroutine deque
exception execution filesystem format forward_list fstream functional future initializer_list iomanip ios iosfwd iostream
istream iterator latch limits list locale map memory memory_resource mutex new numbers numeric optional ostream queue random
ranges ratio regex scoped_allocator semaphore set shared_mutex source_location span sstream stack stdexcept stop_token
streambuf string string_view strstream syncstream system_error thread tuple type_traits typeindex typeinfo unordered_map
unordered_set utility valarray variant vector version cassert cctype cerrno cfenv cfloat cinttypes climits clocale cmath
csetjmp csignal cstdarg cstddef cstdint cstdio cstdlib cstring ctime cuchar cwchar cwctype
""".split())
POISON = "fmt dnnl dnnl_memory tbb oneapi hwy wgpuCreateInstance WGPUDevice"
INCLUDE = re.compile(r"^\s*#\s*include\s*(.*?)\s*(?://.*)?$")


def foreign_includes(root, header):
    """The includes of a header that are neither the standard library's nor installed."""
    found = []
    for number, line in enumerate((root / header).read_text().splitlines(), start=1):
        match = INCLUDE.match(line)
        if not match:
            continue
        name = match.group(1)
        own = name.startswith('"kiln/') and (root / name.strip('"')).is_file()
        if not own and not (name.startswith("<") and name.strip("<>") in STANDARD):
            found.append(f"{header}:{number}: includes {name}")
    return found


def compile_alone(root, header, compiler):
    text = f'#include <version>\n#pragma GCC poison {POISON}\n#include "{header}"\n'
    command = [compiler, "-std=c++20", "-fsyntax-only", "-I.", "-x", "c++", "-"]
    result = subprocess.run(command, input=text, capture_output=True, text=True, cwd=root)  # and nowhere else
    return [] if result.returncode == 0 else [f"{header} does not compile alone:\n{result.stderr}"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--include", type=pathlib.Path, required=True, help="where headers are installed")
    parser.add_argument("--source", type=pathlib.Path, required=True, help="the repository")
    parser.add_argument("--compiler", required=True)
    options = parser.parse_args()

    headers = sorted(path.relative_to(options.include).as_posix() for path in options.include.rglob("*") if path.is_file())
    faults = [fault for header in headers for fault in foreign_includes(options.include, header)]
    faults += [f"{header} is installed" for header in headers if "test" in header or not header.endswith(".hpp")]
    alone = [h for h in headers if not (options.source / h).with_suffix(".cpp").exists()]
    if "kiln/kiln.hpp" not in alone:
        faults.append("kiln/kiln.hpp is not installed")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for found in pool.map(lambda header: compile_alone(options.include, header, options.compiler), alone):
            faults += found
    for fault in faults:
        print(fault)
    print(f"public_headers: {len(headers)} headers, {len(alone)} compiled alone, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
