#!/usr/bin/env python3
"""Tests of check_links.py."""

import unittest

import check_links
from tree_for_test import tree


def faults(files):
    with tree(files) as root:
        return check_links.check(root)[1]


class CheckLinks(unittest.TestCase):
    def test_takes_files_folders_headings_and_other_sites(self):
        text = "[a](docs/a.md) [b](docs) [c](docs/a.md#the-one-heading) [d](#top) [e](https://example.org/x)\n# Top\n"
        self.assertEqual(faults({"README.md": text, "docs/a.md": "## The `one` heading\n"}), [])

    def test_names_the_line_of_a_broken_link(self):
        self.assertEqual(faults({"README.md": "\n\n[a](docs/gone.md)\n"}), ["README.md:3: there is no docs/gone.md"])

    def test_finds_a_heading_that_is_gone(self):
        self.assertEqual(faults({"README.md": "[a](docs/a.md#old)", "docs/a.md": "# New\n```\n# old\n```\n"}),
                         ["README.md:1: docs/a.md has no heading #old"])

    def test_paths_in_backticks_exist(self):
        self.assertEqual(faults({"README.md": "`kiln/a.cpp` and `kiln/gone.cpp`", "kiln/a.cpp": ""}),
                         ["README.md:1: there is no kiln/gone.cpp"])

    def test_code_blocks_hold_no_links(self):
        self.assertEqual(faults({"README.md": "```cpp\nauto f = [x](int);\n```\n"}), [])


if __name__ == "__main__":
    unittest.main()
