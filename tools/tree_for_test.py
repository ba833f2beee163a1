"""A repository for the tests of checkers."""

import contextlib
import pathlib
import tempfile


@contextlib.contextmanager
def tree(files):
    """A folder with these files, by path and text."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder).resolve()
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        yield root
