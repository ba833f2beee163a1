#!/usr/bin/env python3
"""Tests of join_tests.py.

usage: join_tests_test.py <compiler>
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

JOIN = pathlib.Path(__file__).with_name("join_tests.py")
COMPILER = "c++"
OPEN, CLOSE = "namespace kiln {\nnamespace {\n", "}  // namespace\n}  // namespace kiln\n"


def compile_joined(*texts):
    """Joins sources 0.cpp, 1.cpp and so on of these texts, and compiles the result."""
    with tempfile.TemporaryDirectory() as folder:
        sources = [pathlib.Path(folder, f"{number}.cpp") for number in range(len(texts))]
        for source, text in zip(sources, texts):
            source.write_text(text)
        joined = pathlib.Path(folder, "joined.cpp")
        result = subprocess.run([sys.executable, JOIN, joined, *sources], capture_output=True, text=True)
        if result.returncode == 0:
            result = subprocess.run([COMPILER, "-std=c++20", "-Wall", "-Werror", "-c", joined, "-o", f"{joined}.o"],
                                    capture_output=True, text=True)
        return result


class JoinTests(unittest.TestCase):
    def test_names_of_one_source_do_not_meet_those_of_another(self):
        result = compile_joined(*(OPEN + f"struct T {{ {type} x; }};\n[[maybe_unused]] T help() {{ return {{}}; }}\n" + CLOSE
                                  for type in ("int", "float")))
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_a_function_that_is_not_used_is_still_noticed(self):
        result = compile_joined(OPEN + CLOSE, OPEN + "int help() { return 1; }\n" + CLOSE)
        self.assertIn("unused-function", result.stderr)

    def test_an_error_names_the_line_of_the_source(self):
        result = compile_joined(OPEN + CLOSE, OPEN + "int x = wrong;\n" + CLOSE)
        self.assertRegex(result.stderr, r"1\.cpp:3:\d+: error")

    def test_refuses_a_namespace_whose_end_is_not_seen(self):
        result = compile_joined(OPEN + "}\n}\n")
        self.assertEqual(result.returncode, 1)
        self.assertIn("0.cpp: 1 lines `namespace {` are ended by 0 lines", result.stderr)


if __name__ == "__main__":
    COMPILER = sys.argv.pop(1) if len(sys.argv) > 1 else COMPILER
    unittest.main()
