#!/usr/bin/env python3
"""Runs the README's first program and compares what it prints with what the README says it prints.

usage: readme_output.py <program>
"""

import math
import pathlib
import re
import subprocess
import sys

README = pathlib.Path(__file__).resolve().parents[1] / "README.md"
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


def parts(text):
    """Each line's words without the device's name, and its numbers: the last digits may differ between adapters."""
    lines = [line.split(" on ")[0] for line in text.strip().splitlines()]
    return [NUMBER.sub("#", line) for line in lines], [float(n) for line in lines for n in NUMBER.findall(line)]


def main():
    said = re.search(r"It prints.*?```text\n(.*?)```", README.read_text(), re.DOTALL)
    if said is None:
        sys.exit("README.md says nowhere what its first program prints")
    printed = subprocess.run(sys.argv[1:], capture_output=True, text=True, check=True).stdout
    words, numbers = parts(printed)
    expected_words, expected = parts(said[1])
    close = len(numbers) == len(expected) and all(map(lambda a, b: math.isclose(a, b, rel_tol=1e-4), numbers, expected))
    if words != expected_words or not close:
        sys.exit(f"README.md says\n{said[1]}\nthe program prints\n{printed}")


if __name__ == "__main__":
    main()
