"""The files of this package as they are installed: which there are, whether they are those of the
installer's list (RECORD, PEP 376), and whether they are being replaced under this process.

A process that meets half of another version must blame neither the user's file nor itself."""

import os
import time
from collections.abc import Iterator, Mapping

from sentinel import LOADED_AT
from sentinel.core.errors import SentinelError
from sentinel.core.text import visible
from sentinel.proc.own_package import PACKAGE_DIR

Signature = Mapping[str, tuple[int, int]]
"""Size and time of change (ns) of each file, by its path within the package."""

RECENT_S = 60.0
"""Seconds after a change in which an installation may still be going on."""

_SITE_DIRS = ("site-packages", "dist-packages")
_DIST_INFO = ("slurm_sentinel-", ".dist-info")


class BeingReplaced(SentinelError):
    """What this process met may be half of another version, so its answer means nothing."""

    exit_code = 75
    """EX_TEMPFAIL of sysexits(3): try again."""


def require_settled_package() -> None:
    """Raise BeingReplaced if files of this package are being replaced. Call it before you blame
    somebody for what was not found."""
    why = find_replacement()
    if why:
        raise BeingReplaced(describe_replacement(why))


def describe_replacement(why: str) -> str:
    """What people are told."""
    return (
        f"the installation is being replaced: {why}; "
        "try again in a minute, and install it again if that does not help"
    )


def find_replacement() -> str:
    """Why what this process meets may be half of another version, in words. Empty if its files have
    not changed for a minute, or if they changed before it began and fit their list."""
    if not is_installed():
        return ""
    now = time.time()
    try:
        newest = max((t for t in _read_changes() if t <= now + 1), default=0.0)
    except OSError:
        return "its files are not there"
    if now - newest > RECENT_S:
        return ""
    return "its files changed after this began" if newest >= LOADED_AT else find_wrong_file()


def is_installed() -> bool:
    """Whether an installer put the package here. A checkout changes all day."""
    beside = os.path.dirname(PACKAGE_DIR)
    return os.path.basename(beside) in _SITE_DIRS or bool(list_dist_infos())


def read_signature() -> Signature | None:
    """Size and time of each file of the package; None if the files cannot be seen."""
    found: dict[str, tuple[int, int]] = {}
    try:
        for path in _walk_files(PACKAGE_DIR):
            seen = os.stat(path)
            found[os.path.relpath(path, PACKAGE_DIR)] = (seen.st_size, seen.st_mtime_ns)
    except OSError:
        return None
    return found if "__init__.py" in found else None


def find_wrong_file() -> str:
    """A file that differs from the installer's list of files, in words. Empty if all match. A
    distribution without such a list is accepted."""
    import csv  # only if something went wrong

    infos = list_dist_infos()
    if len(infos) != 1:
        return f"{len(infos)} versions are installed at once"
    try:
        with open(os.path.join(infos[0], "RECORD"), encoding="utf-8", newline="") as file:
            rows = [row for row in csv.reader(file) if row and row[0].startswith("sentinel/")]
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeError, csv.Error) as error:
        return f"its list of files cannot be read: {error}"
    wrong = (row[0] for row in rows if len(row) < 2 or not _fits_digest(row[0], row[1]))
    first = next(wrong, "") if rows else "sentinel/__init__.py"
    return f"{visible(first)} is not as it was packed" if first else ""


def _fits_digest(name: str, digest: str) -> bool:
    """Whether the file has this digest. Compiled files have none in the list: the interpreter
    writes them at any time."""
    import base64
    import hashlib

    method, _, expected = digest.partition("=")
    if method != "sha256":
        return not digest
    try:
        with open(os.path.join(os.path.dirname(PACKAGE_DIR), name), "rb") as file:
            found = hashlib.sha256(file.read()).digest()
    except OSError:
        return False
    return base64.urlsafe_b64encode(found).decode().rstrip("=") == expected


def list_dist_infos() -> list[str]:
    """The folders with metadata of this distribution, beside the package; one for each version."""
    begin, end = _DIST_INFO
    beside = os.path.dirname(PACKAGE_DIR)
    try:
        names = sorted(os.listdir(beside))
    except OSError:
        return []
    return [os.path.join(beside, n) for n in names if n.startswith(begin) and n.endswith(end)]


def _read_changes() -> Iterator[float]:
    """When each file was changed or put in its place. No installer can set this time, and archives
    do not keep it (stat(2), st_ctime)."""
    return (os.stat(path).st_ctime for path in _walk_files(PACKAGE_DIR))


def _walk_files(folder: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name != "__pycache__":
                    yield from _walk_files(entry.path)
            else:
                yield entry.path
