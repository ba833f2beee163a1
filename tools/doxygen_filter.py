#!/usr/bin/env python3
"""Prints a file as Doxygen 1.9 understands it: docs/Doxyfile names the files.

Headings get the names that GitHub gives them, with the document's name before, and links to headings are changed alike.
A comment that is for several functions is repeated before each. Attributes of WGSL, such as @group, are no commands of Doxygen's.
"""

import pathlib
import re
import sys

import check_links
import declarations


def documents(path, text):
    own = path.stem.lower()

    def heading(match):
        name = check_links.name_of(match[2])
        return f"{match[1]} {match[2]} {{#{own}-{name}}}" if match[1] != "#" else match[0]

    def link(match):
        stem = pathlib.PurePath(match[1]).stem.lower() or own
        return f"](#{stem}-{match[2]})"

    parts = re.split(r"(^```.*?^```[^\n]*$)", text, flags=re.DOTALL | re.MULTILINE)
    for i in range(0, len(parts), 2):  # between the code blocks
        parts[i] = re.sub(r"^(#{1,6})\s+(.+?)\s*$", heading, parts[i], flags=re.MULTILINE)
        parts[i] = re.sub(r"\]\(([\w./-]*\.md|)#([\w-]+)\)", link, parts[i])
    return "".join(parts)


def with_comments(text):
    """The header with a comment before every function that one is for."""
    lines = text.splitlines()
    without = {found.line: declarations.comment_of(lines, found.line) for found in declarations.declarations(text)
               if found.kind == "function" and not lines[found.line - 2].lstrip().startswith("///")}
    return "\n".join("\n".join([*without.get(number, []), line]) for number, line in enumerate(lines, start=1)) + "\n"


def code(text):
    text = with_comments(text)
    text = re.sub(r"@(group|binding|builtin|compute|workgroup_size)\b", r"\\@\1", text)
    return re.sub(r"^struct std::.*$", lambda match: f"// {match[0]}", text, flags=re.MULTILINE)


def main():
    path = pathlib.Path(sys.argv[1])
    text = path.read_text()
    print(documents(path, text) if path.suffix == ".md" else code(text), end="")


if __name__ == "__main__":
    main()
