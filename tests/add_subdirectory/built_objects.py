#!/usr/bin/env python3
"""A compiler launcher that takes an object of kiln from a build that is there already.

usage: built_objects.py <build of kiln> [<launcher>] -- <compile command>

The project that is built has added kiln as the folder `kiln`. The object is taken if the build has one of the same source
text, compiled by the same command with the same generated headers. Then compiling it again would show nothing new. Of the
command, what a project chooses for all of its code may differ: optimisation, debug information, warnings, assertions.
Everything else is compiled.
"""

import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

CHOSEN = ("-O", "-g", "-W", "-D_GLIBCXX_ASSERTIONS")
OF_DEPENDENCIES = ("-MT", "-MF")  # with a value each


def essence(command):
    """The command without what may differ."""
    kept = []
    words = iter(command)
    for word in words:
        if word in OF_DEPENDENCIES:
            next(words)
        elif word != "-MD" and not word.startswith(CHOSEN):
            kept.append(word)
    return kept


def after(option, command):
    return command[command.index(option) + 1] if option in command[:-1] else ""


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def built_object(build, command):
    """The object that stands for the command's, or why there is none."""
    here = os.getcwd()
    output = after("-o", command)
    if not output.startswith("kiln/"):
        return None, "no part of kiln"
    there = [word.replace(f"{here}/kiln/", f"{build}/") for word in command]
    there[there.index("-o") + 1] = output.removeprefix("kiln/")
    theirs = build / after("-o", there)
    commands = (shlex.split(entry["command"]) for entry in json.loads((build / "compile_commands.json").read_text()))
    theirs_by = next((command for command in commands if after("-o", command) == after("-o", there)), None)
    if theirs_by is None or not theirs.is_file():
        return None, "not built"
    if essence(there) != essence(theirs_by):
        return None, f"another command: {shlex.join(theirs_by)}"
    source, their_source = (pathlib.Path(after("-c", c)) for c in (command, there))
    if source.read_bytes() != their_source.read_bytes():
        return None, "another source text"
    for mine, other in zip(command, there):
        if mine != other and mine.startswith("-I") and files(pathlib.Path(mine[2:])) != files(pathlib.Path(other[2:])):
            return None, f"other headers in {mine[2:]}"
    return theirs, None


def main():
    split = sys.argv.index("--")
    build, *launcher = filter(None, sys.argv[1:split])  # an empty launcher is none
    command = sys.argv[split + 1:]
    found, reason = built_object(pathlib.Path(build), command)
    if found is None:
        print(f"compiled ({reason}): {after('-o', command)}")
        return subprocess.run(launcher + command).returncode
    shutil.copy(found, after("-o", command))
    if "-MF" in command:
        pathlib.Path(after("-MF", command)).write_text(f"{after('-o', command)}:\n")
    print(f"taken from {found}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
