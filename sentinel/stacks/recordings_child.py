"""The program that reads flight recordings, with the rights of the job's user."""

from __future__ import annotations

import os
import re
import resource
import sys
import time
from collections.abc import Iterator, Sequence

import msgspec

from sentinel.core.errors import CannotTell
from sentinel.stacks.parse.flight_recorder import MOST, Recording, read_recording
from sentinel.stacks.recordings import (
    FILES,
    MEMORY,
    TOGETHER,
    FoundRecordings,
    RecordingsOrder,
)
from sentinel.user_files.identity import (
    OpenDenied,
    RightsRequest,
    become_user,
    decide_rights,
    open_regular,
    prepare_process,
)

_NUMBERED = re.compile(r"(.*?)([0-9]{1,7})(\.(json|pkl|pickle))?")


def main() -> None:
    """Read the order from stdin, and write the result to stdout.

    The job chose the places, so everything is listed, read and unpacked with the rights of its
    user.
    """
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=RecordingsOrder)
    prepare_process()
    asked = RightsRequest(order.user, literal=not order.user, owned=bool(order.user))
    try:
        may = decide_rights(asked, os.path.dirname(order.places[0]))
        become_user(may.identity)
    except (OpenDenied, OSError) as error:
        sys.exit(str(error))
    sys.stdout.buffer.write(msgspec.json.encode(_find_recordings(order, may.owner)))


def _find_recordings(order: RecordingsOrder, owner: int | None) -> FoundRecordings:
    deadline = time.monotonic() + order.limit
    refused: dict[str, str] = {}
    files: list[tuple[float, int, str]] = []
    numbered = list(_numbered_files(order.places, owner))
    for path, rank in numbered[:FILES]:
        try:
            look = os.stat(path)
        except OSError as error:
            refused[path] = error.strerror or type(error).__name__
            continue
        if look.st_mtime >= order.since:
            files.append((look.st_mtime, rank, path))
    newest = max((at for at, _, _ in files), default=0.0)
    fresh = sorted((one for one in files if one[0] >= newest - TOGETHER), reverse=True)
    ranks: dict[int, Recording] = {}
    unread = max(0, len(numbered) - FILES)
    for _, rank, path in fresh:
        if time.monotonic() > deadline:
            unread += 1
        elif rank not in ranks:
            try:
                ranks[rank] = read_recording(_read_dump_file(path, owner), rank)
            except (CannotTell, MemoryError) as error:
                refused[path] = str(error) or "refused: it asks for more memory than there is"
    return FoundRecordings(
        recordings=tuple(ranks[rank] for rank in sorted(ranks)),
        refused=refused,
        older=len(files) - len(fresh),
        unread=unread,
        at=newest,
        place=fresh[0][2] if fresh else "",
    )


def _numbered_files(places: Sequence[str], owner: int | None) -> Iterator[tuple[str, int]]:
    """The paths of dumps, each with the rank at the end of its name. A folder that cannot be listed
    is left out."""
    for place in dict.fromkeys(places):
        folder, _, start = place.rpartition("/")
        try:
            names = os.listdir(folder or "/")
        except OSError:
            continue
        for name in names:
            match = _NUMBERED.fullmatch(name)
            path = os.path.join(folder, name)
            if not match or (start and match[1] != start) or _is_foreign(path, owner):
                continue
            yield path, int(match[2])


def _is_foreign(path: str, owner: int | None) -> bool:
    """Whether even the file's name must not be shown. A link counts as owned by its creator."""
    if owner is None:
        return False
    try:
        return os.lstat(path).st_uid != owner
    except OSError:
        return True


def _read_dump_file(path: str, owner: int | None) -> bytes:
    try:
        descriptor, _ = open_regular(path, owner)
        with open(descriptor, "rb") as file:
            return file.read(MOST + 1)
    except OSError as error:
        raise CannotTell(error.strerror or type(error).__name__) from None
    except OpenDenied as error:
        raise CannotTell(str(error)) from None
