#!/usr/bin/env python3
"""Tests built_objects.py, with a compiler that writes one word."""

import json
import pathlib
import shlex
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).with_name("built_objects.py")
OUTPUT = "kiln/kiln/CMakeFiles/kiln_x.dir/x.cpp.o"


class BuiltObjects(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        root = pathlib.Path(self.folder.name).resolve()
        self.build, self.user = root / "build", root / "user"
        self.compiler = root / "compiler"
        self.write(self.compiler, "#!/bin/sh\nwhile [ $1 != -o ]; do shift; done\necho compiled >$2\n").chmod(0o755)
        self.write(self.build / OUTPUT.removeprefix("kiln/"), "built\n")
        for folder in (self.build / "kiln", self.user / "kiln/kiln"):
            self.write(folder / "generated/x_wgsl.hpp", "a kernel")
            self.write(folder / "CMakeFiles/kiln_x.dir/x.cpp", '#include "x.hpp"')
        (self.user / OUTPUT).parent.mkdir(parents=True, exist_ok=True)
        command = self.command(self.build, "-O1 -g1 -D_GLIBCXX_ASSERTIONS -Wall -DX", "kiln/")
        (self.build / "compile_commands.json").write_text(json.dumps([{"command": shlex.join(command)}]))

    @staticmethod
    def write(path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def command(self, root, options, prefix="kiln/kiln/"):
        """What compiles x.cpp in the build, or in the user's project."""
        output = f"{prefix}CMakeFiles/kiln_x.dir/x.cpp.o"
        source = f"{root}/{prefix}CMakeFiles/kiln_x.dir/x.cpp"
        return [str(self.compiler), *options.split(), f"-I{root}/{prefix}generated", "-o", output, "-c", source]

    def result(self, options, command=None):
        """What the user's project gets: "built" or "compiled"."""
        command = command or self.command(self.user, options)
        subprocess.run([sys.executable, SCRIPT, self.build, "", "--", *command], cwd=self.user, check=True, capture_output=True)
        return (self.user / command[command.index("-o") + 1]).read_text().strip()

    def test_takes_what_was_compiled_alike(self):
        self.assertEqual(self.result("-DX"), "built")
        self.assertEqual(self.result("-O2 -Wextra -DX -MD -MT x -MF x.d"), "built")
        self.assertTrue((self.user / "x.d").is_file())

    def test_compiles_under_other_options(self):
        for options in ("", "-DY", "-DX -DY", "-DX -fPIC", "-DX -std=c++23", "-DX -Iother"):
            self.assertEqual(self.result(options), "compiled", options)

    def test_compiles_another_source_text(self):
        self.write(self.user / "kiln/kiln/CMakeFiles/kiln_x.dir/x.cpp", '#include "y.hpp"')
        self.assertEqual(self.result("-DX"), "compiled")

    def test_compiles_with_other_generated_headers(self):
        header = self.user / "kiln/kiln/generated/x_wgsl.hpp"
        header.write_text("another kernel")
        self.assertEqual(self.result("-DX"), "compiled")
        header.unlink()
        self.assertEqual(self.result("-DX"), "compiled")

    def test_compiles_what_was_not_built(self):
        (self.build / OUTPUT.removeprefix("kiln/")).unlink()
        self.assertEqual(self.result("-DX"), "compiled")

    def test_compiles_what_is_the_users(self):
        command = [str(self.compiler), "-o", "main.o", "-c", "main.cpp"]
        self.assertEqual(self.result("", command), "compiled")

    def test_fails_as_the_compiler_does(self):
        command = ["false", "-o", "main.o", "-c", "main.cpp"]
        run = subprocess.run([sys.executable, SCRIPT, self.build, "--", *command], cwd=self.user, capture_output=True)
        self.assertEqual(run.returncode, 1)


if __name__ == "__main__":
    unittest.main()
