#!/usr/bin/env python3
"""Keeps the code in the documents equal to the files it comes from.

In a document,

    <!-- snippet examples/a/b.cpp -->                   the whole file
    <!-- snippet examples/a/b.cpp: struct Silu -->      from the line with that text to the end of its block
    <!-- snippet examples/a/b.cpp: save ... backward --> from the line with one text to the end of the block of the other

stands before a fenced block, whose content it owns.

    tools/snippets.py --check docs/*.md README.md    fails where a block is not what its file says
    tools/snippets.py --write docs/*.md README.md    puts it right
"""
import argparse
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"(<!-- snippet ([^\s:]+)(?:: (.+?))? -->\n```(\w*)\n)(.*?)(^```$)", re.DOTALL | re.MULTILINE)


def find(lines, text, start, where):
    for number in range(start, len(lines)):
        if text in lines[number]:
            return number
    sys.exit(f"{where}: no line has '{text}'")


def end_of_block(lines, begin):
    """The last line of the statement or block that begins there."""
    depth = 0
    for number in range(begin, len(lines)):
        code = lines[number].split("//")[0]
        depth += sum(code.count(c) for c in "({[") - sum(code.count(c) for c in ")}]")
        if depth <= 0 and code.rstrip().endswith((";", "}")):
            return number
    return len(lines) - 1


def extract(path, selector):
    lines = (ROOT / path).read_text().splitlines()
    if selector is None:
        return "\n".join(lines) + "\n"
    if " ... " in selector:
        first, last = selector.split(" ... ")
        begin = find(lines, first, 0, path)
        end = end_of_block(lines, find(lines, last, begin, path))
    else:
        begin = find(lines, selector, 0, path)
        end = end_of_block(lines, begin)
    return textwrap.dedent("\n".join(lines[begin : end + 1])) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--check", action="store_true")
    mode.add_argument("--write", action="store_true")
    parser.add_argument("documents", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    stale = []
    snippets = 0
    for document in options.documents:
        old = document.read_text()
        new = BLOCK.sub(lambda m: m[1] + extract(m[2], m[3]) + m[6], old)
        snippets += len(BLOCK.findall(old))
        if old.count("<!-- snippet ") != len(BLOCK.findall(old)):
            sys.exit(f"{document}: a snippet comment is not followed by a fenced block")
        if new == old:
            continue
        if options.write:
            document.write_text(new)
        else:
            stale.append(str(document))
    if stale:
        sys.exit(f"not what the code says: {', '.join(stale)}; run tools/snippets.py --write {' '.join(stale)}")
    print(f"{snippets} snippets are what the code says")


if __name__ == "__main__":
    main()
