#!/usr/bin/env python3
"""Checks that kiln's libraries have no objects in static storage that end with the process.

Other threads may compute while it ends. So what a function keeps for good is made with new and never destroyed:
`static Table& table = *new Table;`

usage: check_statics.py nm libraries...
"""

import pathlib
import re
import subprocess
import sys

# Objects of these sources end on purpose.
ALLOWED = {
    "trace.cpp": "the trace that KILN_TRACE asks for is written when the process ends",
    "process_end.cpp": "notices that the process ends",
}
ENDS = re.compile(r"\b_*(__cxa_atexit|__cxa_thread_atexit|_tlv_atexit)\b")
OBJECT = re.compile(r"([\w.+-]+?)(\.cpp)?\.o(bj)?\b")


def sources_that_end(listing):
    """Names of the sources whose objects ask for a destructor at the end, in what `nm -A -u` prints."""
    found = set()
    for line in listing.splitlines():
        if ENDS.search(line):
            name = OBJECT.findall(line.split(" ")[0])[-1]
            found.add(name[0] + (name[1] or ".cpp"))
    return found


def faults_of(found):
    """What is wrong with these sources, and with the list above."""
    faults = [f"{name}: has an object in static storage that is destroyed when the process ends"
              for name in sorted(found - ALLOWED.keys())]
    return faults + [f"{name}: is allowed to have static objects that end, but has none" for name in sorted(ALLOWED.keys() - found)]


def main():
    nm, libraries = sys.argv[1], [path for path in sys.argv[2:] if pathlib.Path(path).suffix == ".a"]
    listing = subprocess.run([nm, "-A", "-u", *libraries], capture_output=True, text=True, check=True).stdout
    faults = faults_of(sources_that_end(listing))
    for fault in faults:
        print(fault)
    print(f"check_statics: {len(libraries)} libraries, {len(faults)} faults")
    return 1 if faults or not libraries else 0


if __name__ == "__main__":
    sys.exit(main())
