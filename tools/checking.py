"""What the checkers of the repository have in common."""

import pathlib
import sys


def run(check, things):
    """A checker's main program: prints the faults in the repository that the command line names, or in this one.

    `check(root)` gives how many things it looked at, and the faults. Gives the exit status: to have looked at nothing is a
    fault, too.
    """
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1]).resolve()
    count, faults = check(root)
    for fault in faults:
        print(fault)
    print(f"{pathlib.Path(sys.argv[0]).stem}: {count} {things}, {len(faults)} faults")
    return 1 if faults or count == 0 else 0
