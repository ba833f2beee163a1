#!/usr/bin/env python3
"""Checks that docs/operations.md has every public operation of kiln/ops, and no other.

usage: check_operations.py [repository root]
"""

import re
import sys

import checking

FUNCTION = re.compile(r"^(?:inline )?AnyTensor (\w+)\(", re.MULTILINE)
DETAIL = re.compile(r"^namespace detail \{$.*?^\}  // namespace detail$", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| `([^`]*)` \|", re.MULTILINE)
OTHERS = {"from_raw", "from_dlpack", "tensor"}  # they take what is no tensor of kiln's


def check(root):
    headers = [path for path in (root / "kiln/ops").glob("*/*.hpp") if "test" not in path.name]
    declared = {name for path in headers for name in FUNCTION.findall(DETAIL.sub("", path.read_text()))} - OTHERS - {"operator"}
    rows = ROW.findall((root / "docs/operations.md").read_text())
    listed = {name for row in rows for name in re.findall(r"(\w+)\(", row)}
    faults = [f"docs/operations.md: {name} is missing; add it to tests/operations/main.cpp" for name in sorted(declared - listed)]
    faults += [f"docs/operations.md: {name} is no function of kiln/ops" for name in sorted(listed - declared)]
    return len(declared), faults


if __name__ == "__main__":
    sys.exit(checking.run(check, "operations"))
