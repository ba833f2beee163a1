#!/usr/bin/env python3
"""Tests of check_layers.py."""

import unittest

import check_layers
from tree_for_test import tree


def faults(files):
    with tree(files) as root:
        return check_layers.check(root)[1]


class CheckLayers(unittest.TestCase):
    def test_accepts_own_stage_lower_stages_and_the_version(self):
        text = '#include <vector>\n#include "kiln/ops/a.hpp"\n#include "kiln/support/b.hpp"\n#include "kiln/version.hpp"\n'
        self.assertEqual(faults({"kiln/ops/relu/relu.cpp": text}), [])

    def test_names_file_and_line_of_an_upward_include(self):
        self.assertEqual(
            faults({"kiln/scalar/a.hpp": '#pragma once\n\n# include "kiln/ops/b.hpp"\n'}),
            ["kiln/scalar/a.hpp:3: scalar must not include kiln/ops/b.hpp: ops lies above it"])

    def test_refuses_an_include_of_an_unknown_stage(self):
        self.assertEqual(
            faults({"kiln/ops/a.cpp": '#include "kiln/misc/b.hpp"\n'}),
            ["kiln/ops/a.cpp:1: unknown stage in kiln/misc/b.hpp"])

    def test_refuses_a_file_in_an_unknown_stage(self):
        self.assertEqual(faults({"kiln/misc/a.cpp": ""}), ["kiln/misc/a.cpp:1: unknown stage misc"])

    def test_rooms_of_a_stage_are_reached_through_the_door_alone(self):
        text = '#include "kiln/dispatch/wgsl/a.hpp"\n'
        for name in ("kiln/dispatch/wgsl/a.cpp", "kiln/dispatch/backends.cpp"):
            self.assertEqual(faults({name: text}), [])
        for name in ("kiln/dispatch/kernel.cpp", "kiln/dispatch/host/a.hpp"):
            self.assertEqual(
                faults({name: text}),
                [f"{name}:1: kiln/dispatch/wgsl/a.hpp is for dispatch/wgsl/ alone; "
                 "kiln/dispatch/backends.cpp is the door to it"])
        self.assertEqual(
            faults({"kiln/fusion/a.cpp": text}),
            ["kiln/fusion/a.cpp:1: kiln/dispatch/wgsl/a.hpp is for dispatch/wgsl/ alone"])
        self.assertEqual(faults({"kiln/ops/a.hpp": '#include "kiln/dispatch/host/a.hpp"\n'}), [])

    def test_refuses_the_umbrella_inside_the_library_but_lets_it_include_all(self):
        self.assertEqual(faults({"kiln/kiln.hpp": '#include "kiln/check/a.hpp"\n'}), [])
        self.assertEqual(
            faults({"kiln/check/a.cpp": '#include "kiln/kiln.hpp"\n'}),
            ["kiln/check/a.cpp:1: the umbrella header is for users only"])


if __name__ == "__main__":
    unittest.main()
