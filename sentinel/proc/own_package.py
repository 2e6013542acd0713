"""Checks whether the files of this package are still those that this process was started from.

A helper program is a new interpreter that loads the files that are on the disk now. After an
upgrade they are another version, which may not understand this process's requests."""

import os
import re
import sys
from collections.abc import Sequence
from functools import cache

from sentinel import __version__
from sentinel.core.lazy_pattern import lazy_pattern
from sentinel.proc.errors import CommandNotFound

PACKAGE_DIR = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_INIT_FILE = os.path.join(PACKAGE_DIR, "__init__.py")
_VERSION_PATTERN = lazy_pattern(r'^__version__ = "([^"\n]+)"', re.MULTILINE)
_ISOLATED = ["-I", "-S", "-c"]


PROGRAM_FILES = (
    "actions/clean_up.sh", "checks/diag/job.sh", "checks/fs/tap.py", "checks/log/witness.sh",
    "nodes/cgroups.sh", "nodes/host.sh", "nodes/probe.sh", "nodes/waits.sh", "proc/append.py", "stacks/stacks.sh",
)  # fmt: skip
"""Programs whose text is given to another shell or interpreter."""


class OtherVersion(CommandNotFound):
    """The helper program on the disk is not of this process's version, so it was not started."""


@cache
def read_program_file(name: str) -> str:
    """The text of one of PROGRAM_FILES. It is read once, so after an upgrade it is still this
    version's. Raises OSError."""
    with open(os.path.join(PACKAGE_DIR, name), encoding="ascii") as file:
        return file.read()


def require_own_helper(argv: Sequence[str]) -> None:
    """Raise OtherVersion if the command is a helper program of this package in another version."""
    if argv[0] == sys.executable and _is_helper(argv):
        require_own_package()


def require_own_package() -> None:
    """Raise OtherVersion if another version, or none, is at the place of this package."""
    seen = _stat_init_file()
    if seen is not None and seen == _BEGUN_WITH:
        return
    version = read_version_on_disk()
    if version != __version__:
        there = f"sentinel {version}" if version else "no sentinel"
        raise OtherVersion(
            f"there is {there} where sentinel {__version__} was started from: its helper programs "
            "wait for a restart"
        )


def read_version_on_disk() -> str:
    """The version of the package on the disk; empty if it cannot be read."""
    try:
        with open(_INIT_FILE, encoding="utf-8", errors="replace") as file:
            found = _VERSION_PATTERN.search(file.read(65536))
    except OSError:
        return ""
    return found[1] if found else ""


def _is_helper(argv: Sequence[str]) -> bool:
    """Whether the command starts a module of this package. Not a user's program in the same
    interpreter, nor a program whose whole text is given to it."""
    if list(argv[1:4]) == _ISOLATED:
        return len(argv) > 4 and "from sentinel." in argv[4]
    return list(argv[1:2]) == ["-m"] and argv[2].startswith("sentinel.")


def _stat_init_file() -> tuple[int, int] | None:
    try:
        found = os.stat(_INIT_FILE)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


_BEGUN_WITH = _stat_init_file()
