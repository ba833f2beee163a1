#!/usr/bin/env python3
"""Tests of check_statics.py."""

import unittest

import check_statics

ALLOWED = "lib/libkiln_runtime.a:trace.cpp.o:    U __cxa_atexit\nlib/libkiln_runtime.a:process_end.cpp.o:    U __cxa_thread_atexit\n"


def faults(listing):
    return check_statics.faults_of(check_statics.sources_that_end(listing))


class CheckStatics(unittest.TestCase):
    def test_takes_what_is_allowed(self):
        self.assertEqual(faults(ALLOWED + "lib/libkiln_ops.a:sum.cpp.o:    U _Znwm\n"), [])

    def test_names_a_source_that_is_not(self):
        self.assertEqual(faults(ALLOWED + "lib/libkiln_ops.a:sum.cpp.o:    U __cxa_atexit\n"),
                         ["sum.cpp: has an object in static storage that is destroyed when the process ends"])

    def test_notices_when_it_sees_nothing(self):
        self.assertEqual(len(faults("")), 2)


if __name__ == "__main__":
    unittest.main()
