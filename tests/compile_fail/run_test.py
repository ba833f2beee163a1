#!/usr/bin/env python3
"""The driver itself must notice each way in which a case can be wrong."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

DRIVER = pathlib.Path(__file__).with_name("run.py")
COMPILER = "c++"


def run(text, *options):
    with tempfile.TemporaryDirectory() as folder:
        case = pathlib.Path(folder) / "case.cpp"
        case.write_text(text)
        return subprocess.run(
            [sys.executable, DRIVER, "--compiler", COMPILER, *options, case], capture_output=True, text=True)


class Driver(unittest.TestCase):
    def test_accepts_the_expected_error(self):
        result = run('// expect: two is not three\nstatic_assert(2 == 3, "two is not three");\n')
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_accepts_a_file_that_says_it_compiles(self):
        self.assertEqual(run("// compiles\nint x;\n").returncode, 0)

    def test_refuses_another_error(self):
        result = run('// expect: two is not three\nstatic_assert(2 == 3, "no");\n')
        self.assertEqual(result.returncode, 1)
        self.assertIn("fails without saying /two is not three/", result.stdout)

    def test_refuses_when_only_one_of_two_expectations_is_met(self):
        result = run('// expect: first\n// expect: second\nstatic_assert(false, "first");\n')
        self.assertIn("fails without saying /second/", result.stdout)

    def test_refuses_a_case_that_compiles(self):
        self.assertIn("compiles, but must not", run("// expect: anything\nint x;\n").stdout)

    def test_refuses_a_case_without_expectation(self):
        self.assertIn("needs either", run("int x = nothing;\n").stdout)

    def test_accepts_errors_on_exactly_the_marked_lines(self):
        self.assertEqual(run("int a;\nint x = nothing;  // error\nint y = b;  // error\n").returncode, 0)

    def test_refuses_a_marked_line_that_compiles(self):
        result = run("int x = nothing;  // error\nint y;  // error\n")
        self.assertIn("[] too many, [2] too few", result.stdout)

    def test_refuses_an_error_on_another_line(self):
        result = run("int x = nothing;  // error\nint y = b;\n")
        self.assertIn("[2] too many, [] too few", result.stdout)

    def test_refuses_a_broken_file_that_says_it_compiles(self):
        self.assertIn("must compile, but", run("// compiles\nint x = nothing;\n").stdout)

    def test_precompiles_a_header(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "two.hpp").write_text("#pragma once\nconstexpr int two = 2;\n")
            text = '#include "two.hpp"\nstatic_assert(two == %d, "no");\n'
            options = ["--include", folder, "--precompile", "two.hpp"]
            self.assertEqual(run("// compiles\n" + text % 2, *options).returncode, 0)
            self.assertEqual(run("// expect: no\n" + text % 3, *options).returncode, 0)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        COMPILER = sys.argv.pop()
    unittest.main()
