"""Folders and files of several users, for tests that root runs."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MALLORY, ALICE = 54_321, 54_322
"""Uids without a name: whose job it is, and somebody else."""

SECRET = "s3cret of somebody else\n"


@contextmanager
def shared_folder() -> Iterator[Path]:
    """A folder of root's that everybody may enter; pytest's own are root's alone."""
    folder = Path(tempfile.mkdtemp(prefix="sentinel-test-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def folder_of(uid: int, path: Path, mode: int = 0o755) -> Path:
    path.mkdir()
    os.chown(path, uid, uid)
    path.chmod(mode)
    return path


def file_of(uid: int, path: Path, text: str = SECRET, mode: int = 0o600) -> Path:
    path.write_text(text)
    os.chown(path, uid, uid)
    path.chmod(mode)
    return path
