#!/usr/bin/env python3
"""Makes a test program of the examples in the comments of the installed headers.

usage: comment_examples.py <output.cpp>

An example is what is indented by four spaces within a comment of ///. Each becomes a test of its own, in which `device` is the
default device. What stands in the comment at the end of a line is checked:

    ///     clamp(x, 0, 1);   // [0, 0.5, 1]              the values of the expression, to five digits
    ///     to_string(DType::f16);   // "f16"             its text
    ///     Shape{2, -1};   // throws ShapeError          what it throws

All other lines are compiled and run. Structs and functions are put before the test. An example with ... in it is a fragment, and only
shown. Beside the program a file <output.cpp>.d names the headers that it was made of.
"""

import pathlib
import re
import sys

import declarations

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULT = re.compile(r'^(.*);\s*// (?:(\[.*\])|(".*")|throws (\w+))$')
DEFINITION = re.compile(r"^(?:struct|class) \w+ \{|^\w[\w:<>]*&? \w+\(const .*\) \{")


def definitions(lines):
    """The structs and functions that an example begins with, and the other lines."""
    at = 0
    while at < len(lines) and DEFINITION.match(lines[at]):
        if not lines[at].endswith("}"):
            while lines[at] not in ("}", "};"):
                at += 1
        at += 1
    return lines[:at], lines[at:]


def statements(lines):
    out, open_lines = [], []
    for line in lines:
        open_lines.append(line)
        match = RESULT.match(line)
        if match:
            expression = "\n".join([*open_lines[:-1], match[1]])
            if match[2]:
                out.append(f'expect_values(({expression}), "{match[2]}");')
            elif match[3]:
                out.append(f"expect_text(({expression}), {match[3]});")
            else:
                out.append(f"EXPECT_THROW((void)({expression}), {match[4]});")
            open_lines = []
        elif ";" in line or line.rstrip().endswith(("{", "}")):
            out.append("\n".join(open_lines))
            open_lines = []
    return "\n".join(out + open_lines)


def test(header, number, lines):
    name = f"{re.sub(r'[^A-Za-z0-9]', '_', pathlib.PurePath(header).stem)}_{number}"
    before, within = definitions(lines)
    where = f'"{ROOT / header}"'
    return (f"namespace example_{name} {{\n#line {number} {where}\n" + "\n".join(before) +
            f"\nTEST(CommentExamples, {name}) {{\n[[maybe_unused]] const Device device = default_device();\n"
            f"#line {number + len(before)} {where}\n{statements(within)}\n}}\n}}\n")


def program(headers):
    tests = [test(header, number, lines) for header in headers
             for number, lines in declarations.examples((ROOT / header).read_text().splitlines())
             if not declarations.is_fragment(lines)]
    return len(tests), "\n".join(['// Made by tools/comment_examples.py.\n#include "tests/comment_examples.hpp"\n\n'
                                  "namespace kiln {\nnamespace {\n", *tests, "}  // namespace\n}  // namespace kiln\n"])


def main():
    output, headers = pathlib.Path(sys.argv[1]), declarations.public_headers(ROOT)
    count, text = program(headers)
    if count == 0:
        sys.exit("comment_examples: no examples")
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text)
    sources = [ROOT / "cmake/KilnInstallHeaders.cmake", *(ROOT / header for header in headers)]
    output.with_name(output.name + ".d").write_text(f"{output}: " + " ".join(map(str, sources)) + "\n")


if __name__ == "__main__":
    main()
