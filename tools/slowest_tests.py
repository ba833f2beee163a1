#!/usr/bin/env python3
"""Prints the ten tests that took longest, from the file that `ctest --output-junit` writes.

usage: slowest_tests.py <file>
"""

import sys
import xml.etree.ElementTree


def main():
    cases = xml.etree.ElementTree.parse(sys.argv[1]).getroot().iter("testcase")
    times = sorted(((float(case.get("time")), case.get("name")) for case in cases), reverse=True)
    print(f"{sum(time for time, _ in times):.0f} s of tests; the slowest:")
    for time, name in times[:10]:
        print(f"{time:8.1f} s  {name}")


if __name__ == "__main__":
    main()
