#!/usr/bin/env python3
"""Checks that links between the documents, and the files that they name, exist.

usage: check_links.py [repository root]

A link may name a file, a folder, or a heading (`architecture.md#glossary`). Text in backticks that looks like a path of this
repository must be one, too. Links to other sites are not followed.
"""

import re
import sys

import checking

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)
PATH = re.compile(r"`((?:kiln|docs|tools|scripts|examples|tests|benchmarks|cmake)/[\w./-]*)`")


def name_of(heading):
    """The name of a heading, as GitHub makes it."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")


def anchors(text):
    """The names of a document's headings."""
    names, seen = set(), {}
    for heading in HEADING.findall(FENCE.sub("", text)):
        name = name_of(heading)
        count = seen.get(name, 0)
        seen[name] = count + 1
        names.add(f"{name}-{count}" if count else name)
    return names


def blanked(text):
    """The text without its code blocks, with the same line numbers."""
    return FENCE.sub(lambda match: "\n" * match[0].count("\n"), text)


def faults_of(root, document):
    text = blanked(document.read_text())
    where = document.relative_to(root)
    for match in LINK.finditer(text):
        target = match[1]
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (document.parent / name).resolve() if name else document
        line = text.count("\n", 0, match.start()) + 1
        if not path.exists():
            yield f"{where}:{line}: there is no {target}"
        elif anchor and (path.suffix != ".md" or anchor not in anchors(path.read_text())):
            yield f"{where}:{line}: {name or where} has no heading #{anchor}"
    for match in PATH.finditer(text):
        if not (root / match[1]).exists():
            yield f"{where}:{text.count(chr(10), 0, match.start()) + 1}: there is no {match[1]}"


def check(root):
    documents = sorted([*root.glob("*.md"), *(root / "docs").glob("**/*.md"), *(root / "examples").glob("**/*.md")])
    return len(documents), [fault for document in documents for fault in faults_of(root, document)]


if __name__ == "__main__":
    sys.exit(checking.run(check, "documents"))
