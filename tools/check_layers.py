#!/usr/bin/env python3
"""Checks that every file in kiln/ includes only from its own stage and from those below.

usage: check_layers.py [repository root]
"""

import re
import sys

import checking

STAGES = ["support", "scalar", "kernel", "runtime", "dispatch", "fusion", "autodiff", "tensor", "ops", "optim", "check"]
# Folders of a stage that stand beside each other: the rest of the stage knows nothing of them but through one file.
ROOMS = {"dispatch": ["wgsl", "host"]}
DOORS = {"kiln/dispatch/backends.cpp"}
HIDDEN = {("dispatch", "wgsl")}  # rooms that no other stage looks into
UMBRELLA = "kiln/kiln.hpp"  # may include everything; nothing in kiln/ may include it
VERSION = "kiln/version.hpp"  # belongs to no stage and includes nothing of kiln
INCLUDE = re.compile(r'^\s*#\s*include\s*["<](kiln/[^">]+)[">]')


def room_of(parts):
    """The room that the file kiln/<stage>/... lies in, or None."""
    return parts[2] if len(parts) > 3 and parts[2] in ROOMS.get(parts[1], []) else None


def faults_of_include(name, included):
    """What is wrong with `#include "<included>"` in the file of that name, or None."""
    own = name.split("/")
    stage = own[1]
    if included == VERSION:
        return None
    if included == UMBRELLA:
        return "the umbrella header is for users only"
    parts = included.split("/")
    if len(parts) < 3 or parts[1] not in STAGES:
        return f"unknown stage in {included}"
    if STAGES.index(parts[1]) > STAGES.index(stage):
        return f"{stage} must not include {included}: {parts[1]} lies above it"
    room = room_of(parts)
    if room is None or name in DOORS:
        return None
    if stage != parts[1]:
        return f"{included} is for {parts[1]}/{room}/ alone" if (parts[1], room) in HIDDEN else None
    if room_of(own) != room:
        return f"{included} is for {stage}/{room}/ alone; {' and '.join(sorted(DOORS))} is the door to it"
    return None


def check(root):
    """All faults in root/kiln, as lines `file:line: what`."""
    faults = []
    files = sorted(path for end in ("hpp", "cpp", "h") for path in (root / "kiln").rglob(f"*.{end}"))
    for path in files:
        name = path.relative_to(root).as_posix()
        if name in (UMBRELLA, VERSION):
            continue
        stage = name.split("/")[1]
        if stage not in STAGES:
            faults.append(f"{name}:1: unknown stage {stage}")
            continue
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            match = INCLUDE.match(line)
            fault = match and faults_of_include(name, match.group(1))
            if fault:
                faults.append(f"{name}:{number}: {fault}")
    return len(files), faults


if __name__ == "__main__":
    sys.exit(checking.run(check, "files"))
