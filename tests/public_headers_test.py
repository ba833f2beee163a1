#!/usr/bin/env python3
"""The check of public headers must notice each way in which one can be wrong."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).with_name("public_headers.py")
COMPILER = "c++"


def run(headers, sources=()):
    """The check over kiln/NAME of these texts, and kiln.hpp; `sources` are names that have a .cpp of their own."""
    with tempfile.TemporaryDirectory() as folder:
        include, source = pathlib.Path(folder, "include"), pathlib.Path(folder, "source")
        for name, text in {"kiln.hpp": "#pragma once\n", **headers}.items():
            path = include / "kiln" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for name in sources:
            path = source / "kiln" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("")
        return subprocess.run(
            [sys.executable, CHECK, "--include", include, "--source", source, "--compiler", COMPILER],
            capture_output=True, text=True)


class PublicHeaders(unittest.TestCase):
    def test_accepts_the_standard_library_and_each_other(self):
        result = run({"a.hpp": "#include <vector>  // why\n#include \"kiln/b.hpp\"\n", "b.hpp": "#include <cstdint>\n"})
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_refuses_another_library(self):
        result = run({"a.hpp": "#include <fmt/format.h>\n"}, ["a.cpp"])
        self.assertEqual(result.returncode, 1)
        self.assertIn("kiln/a.hpp:1: includes <fmt/format.h>", result.stdout)

    def test_refuses_a_header_of_the_system(self):
        self.assertIn("includes <pthread.h>", run({"a.hpp": "#include <pthread.h>\n"}, ["a.cpp"]).stdout)

    def test_refuses_a_header_that_is_not_installed(self):
        self.assertIn("includes \"kiln/b.hpp\"", run({"a.hpp": "#include \"kiln/b.hpp\"\n"}, ["a.cpp"]).stdout)

    def test_refuses_a_header_of_tests(self):
        self.assertIn("kiln/test_support.hpp is installed", run({"test_support.hpp": ""}).stdout)

    def test_refuses_a_header_that_does_not_compile_alone(self):
        self.assertIn("kiln/a.hpp does not compile alone", run({"a.hpp": "std::vector<int> x;\n"}).stdout)

    def test_refuses_a_name_of_another_library(self):
        self.assertIn("poisoned \"fmt\"", run({"a.hpp": "namespace fmt { class string_view; }\n"}).stdout)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        COMPILER = sys.argv.pop()
    unittest.main()
