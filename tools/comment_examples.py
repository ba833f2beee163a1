#!/usr/bin/env python3
"""Makes a test program of the examples in the comments of public headers.

usage: comment_examples.py <output.cpp> <headers...>

An example is what is indented by four spaces within a comment of ///. Each becomes a test of its own, in which `device` is the
default device. A line

    ///     clamp(x, 0, 1);   // [0, 0.5, 1]

is checked: the values of the expression are those of the comment, to five digits. All other lines are compiled and run. An example with
... in it is a fragment, and only shown. Every function that a header declares must have an example.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
LINE = re.compile(r"^\s*///( {5,})(\S.*)$")
RESULT = re.compile(r"^(.*);\s*// (\[.*\])$")


def examples(path):
    """Number of the first line and lines of each example."""
    found, current = [], None
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        match = LINE.match(line)
        if match is None:
            current = None
            continue
        if current is None:
            current = (number, [])
            found.append(current)
        current[1].append(" " * (len(match[1]) - 5) + match[2])
    return found


FUNCTION = re.compile(r"^(?:inline )?\w[\w<>:]*&? (operator[^\s(]+|\w+)\(")


def without_example(path):
    """Faults: functions of the namespace without an example. A comment is for all that follows it up to the next one, or a blank line."""
    has_example = in_comment = in_detail = False
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        in_detail = (in_detail or line == "namespace detail {") and line != "}  // namespace detail"
        match = FUNCTION.match(line)
        if match and not has_example and not in_detail:
            yield f"{path.relative_to(ROOT)}:{number}: {match[1]} has no example in its comment"
        if line.startswith("///"):
            has_example = (in_comment and has_example) or LINE.match(line) is not None
        elif not line:
            has_example = False
        in_comment = line.startswith("///")


def statements(lines):
    out, open_lines = [], []
    for line in lines:
        open_lines.append(line)
        match = RESULT.match(line)
        if match:
            expression = "\n".join([*open_lines[:-1], match[1]])
            out.append(f'expect_values(({expression}), "{match[2]}");')
            open_lines = []
        elif ";" in line or line.rstrip().endswith(("{", "}")):
            out.append("\n".join(open_lines))
            open_lines = []
    return "\n".join(out + open_lines)


def program(headers):
    parts = ['// Made by tools/comment_examples.py.\n#include "tests/comment_examples.hpp"\n\nnamespace kiln {\nnamespace {\n']
    count = 0
    for header in headers:
        for number, lines in examples(header):
            if any("..." in line for line in lines):
                continue
            name = f"{re.sub(r'[^A-Za-z0-9]', '_', header.stem)}_{number}"
            parts.append(f"TEST(CommentExamples, {name}) {{\n[[maybe_unused]] const Device device = default_device();\n"
                         f'#line {number} "{header}"\n{statements(lines)}\n}}\n')
            count += 1
    parts.append("}  // namespace\n}  // namespace kiln\n")
    return count, "\n".join(parts)


def main():
    output, headers = pathlib.Path(sys.argv[1]), [ROOT / name for name in sys.argv[2:]]
    faults = [fault for header in headers for fault in without_example(header)]
    if faults:
        sys.exit("\n".join(faults))
    count, text = program(headers)
    if count == 0:
        sys.exit("comment_examples: no examples")
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text)


if __name__ == "__main__":
    main()
