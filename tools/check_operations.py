#!/usr/bin/env python3
"""Checks that docs/operations.md has every public operation of kiln/ops, and no other.

usage: check_operations.py [repository root]
"""

import pathlib
import re
import sys

FUNCTION = re.compile(r"^(?:inline )?AnyTensor (\w+)\(", re.MULTILINE)
DETAIL = re.compile(r"^namespace detail \{$.*?^\}  // namespace detail$", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| `([^`]*)` \|", re.MULTILINE)
OTHERS = {"from_raw", "from_dlpack", "tensor"}  # they take what is no tensor of kiln's


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[1]
    headers = [path for path in (root / "kiln/ops").glob("*/*.hpp") if "test" not in path.name]
    declared = {name for path in headers for name in FUNCTION.findall(DETAIL.sub("", path.read_text()))} - OTHERS - {"operator"}
    rows = ROW.findall((root / "docs/operations.md").read_text())
    listed = {name for row in rows for name in re.findall(r"(\w+)\(", row)}
    for name in sorted(declared - listed):
        print(f"docs/operations.md: {name} is missing; add it to tests/operations/main.cpp")
    for name in sorted(listed - declared):
        print(f"docs/operations.md: {name} is no function of kiln/ops")
    print(f"check_operations: {len(declared)} operations")
    return 1 if declared != listed or not declared else 0


if __name__ == "__main__":
    sys.exit(main())
