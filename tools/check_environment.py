#!/usr/bin/env python3
"""Checks that docs/environment.md lists every environment variable that the repository reads, and no other.

usage: check_environment.py [repository root]
"""

import pathlib
import re
import sys

import checking

PAGE = "docs/environment.md"
FOLDERS = ["kiln", "examples", "tests", "benchmarks", "tools", "scripts", "cmake", ".ci", ".github"]
NAME = r"([A-Za-z_][A-Za-z0-9_]*)"
# How each kind of file reads a variable. Names that a shell script sets, or that bash sets, are no input.
READS = {
    (".cpp", ".hpp", ".h"): re.compile(r"\bgetenv\(\s*(?:\"" + NAME + r"\"|([^)]*))"),
    (".py",): re.compile(r"os\.(?:environ(?:\.get\(|\[)|getenv\()\s*(?:[\"']" + NAME + r"[\"']|([^)\]]*))"),
    (".mjs", ".js"): re.compile(r"process\.env(?:\." + NAME + r"|\[([^\]]*))"),
    (".cmake", ".txt"): re.compile(r"\$ENV\{" + NAME),
    (".sh",): re.compile(r"\$\{?([A-Z][A-Z0-9_]*)"),
}
BASH = {"BASH_SOURCE", "EUID", "OSTYPE", "PWD", "RANDOM", "SECONDS"}
ROW = re.compile(r"^\| `" + NAME + r"`", re.MULTILINE)


def set_in_shell(text):
    """Names that a shell script gives a value to before anybody else could."""
    assigned = re.findall(r"(?:^|[;&({]|\b(?:export|local|readonly)|\bfor)\s*" + NAME + r"(?:\+?=|\s+in\b)", text, re.MULTILINE)
    declared = re.findall(r"\b(?:mapfile|read)\b[^\n;]*?\s" + NAME + r"\s*(?:<|$)", text, re.MULTILINE)
    return set(assigned) | set(declared)


def kind_of(path):
    head = path.read_bytes()[:64]
    if not path.suffix and head.startswith(b"#!") and b"sh" in head.split(b"\n")[0]:
        return ".sh"
    return path.suffix


def reads_of(path):
    """Names that the file reads, and faults: a name that is not written there cannot be checked."""
    kind = kind_of(path)
    for suffixes, pattern in READS.items():
        if kind not in suffixes:
            continue
        text = path.read_text()
        names, faults = set(), []
        for match in pattern.finditer(text):
            if match[1]:
                names.add(match[1])
            else:
                line = text.count("\n", 0, match.start()) + 1
                faults.append(f"{path}:{line}: reads a variable whose name is not a literal")
        if kind == ".sh":
            names -= set_in_shell(text) | BASH
        return names, faults
    return set(), []


def check(root):
    faults = []
    readers = {}
    own = pathlib.Path(__file__).resolve()
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if not path.is_file() or "node_modules" in path.parts or "target" in path.parts:
                continue
            if path.resolve() in (own, own.with_name("check_environment_test.py")):
                continue
            names, unreadable = reads_of(path)
            faults += unreadable
            for name in names:
                readers.setdefault(name, path.relative_to(root))
    page = (root / PAGE).read_text() if (root / PAGE).exists() else ""
    listed = ROW.findall(page)
    for name in sorted(set(readers) - set(listed)):
        faults.append(f"{PAGE}: {name} is not listed, which {readers[name]} reads")
    for name in sorted(set(listed) - set(readers)):
        faults.append(f"{PAGE}: {name} is listed, and nothing reads it")
    for name in sorted({name for name in listed if listed.count(name) > 1}):
        faults.append(f"{PAGE}: {name} is listed twice")
    return len(readers), faults


if __name__ == "__main__":
    sys.exit(checking.run(check, "variables"))
