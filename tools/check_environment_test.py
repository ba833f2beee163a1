#!/usr/bin/env python3
"""Tests of check_environment.py."""

import unittest

import check_environment
from tree_for_test import tree


def faults(files, listed=()):
    page = "".join(f"| `{name}` | what it does |\n" for name in listed)
    with tree({**files, check_environment.PAGE: page}) as root:
        return [fault.replace(f"{root}/", "") for fault in check_environment.check(root)[1]]


class CheckEnvironment(unittest.TestCase):
    def test_finds_what_each_kind_of_file_reads(self):
        reads = {
            "kiln/a.cpp": 'std::getenv("READ")',
            "tools/a.py": 'os.environ["READ"]',
            "tests/a.py": 'os.environ.get("READ", "")',
            "tools/a.mjs": "process.env.READ",
            "cmake/a.cmake": "$ENV{READ}",
            "scripts/a.sh": 'echo "${READ:-0}"',
            ".ci/run": "#!/usr/bin/env bash\necho $READ\n",
        }
        for path, text in reads.items():
            with self.subTest(path):
                self.assertEqual(faults({path: text}, ["READ"]), [])
                self.assertEqual(faults({path: text}),
                                 [f"docs/environment.md: READ is not listed, which {path} reads"])

    def test_what_a_script_sets_itself_is_no_input(self):
        text = "export MADE=1\nfor EACH in a b; do echo $MADE $EACH $SECONDS; done\n"
        self.assertEqual(faults({"scripts/a.sh": text}), [])

    def test_a_variable_that_has_only_a_default_is_an_input(self):
        self.assertEqual(len(faults({"scripts/a.sh": "LIMIT=${LIMITED:-3}\n"})), 1)

    def test_refuses_a_row_that_nothing_reads_and_one_that_stands_twice(self):
        self.assertEqual(faults({}, ["OLD"]), ["docs/environment.md: OLD is listed, and nothing reads it"])
        self.assertEqual(faults({"kiln/a.cpp": 'getenv("A")'}, ["A", "A"]),
                         ["docs/environment.md: A is listed twice"])

    def test_refuses_a_name_that_is_not_written_there(self):
        self.assertEqual(faults({"kiln/a.cpp": "\ngetenv(name)"}),
                         ["kiln/a.cpp:2: reads a variable whose name is not a literal"])


if __name__ == "__main__":
    unittest.main()
