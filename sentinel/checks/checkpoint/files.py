"""Looking at checkpoints on file systems that may hang: always in children with a limit."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence

from msgspec import Struct

from sentinel.checks.checkpoint.pointer import CheckpointPointer
from sentinel.core.checkpoint_names import (
    find_missing_part,
    get_unfinished_marker_name,
    is_staging,
)
from sentinel.core.checkpoints import CheckpointRule
from sentinel.core.errors import CannotTell
from sentinel.core.text import visible
from sentinel.user_files.files import UserFiles
from sentinel.user_files.reader import FileAbsent
from sentinel.user_files.whose import Whose

MAX_ENTRIES = 200_000
"""Entries of the folder that are read: a hundred steps of two thousand ranks."""

MAX_FILES = 20_000
"""Files of one checkpoint that are compared by name; beyond that only their sum counts."""

MAX_LOOKS = 500
"""Checkpoints that are looked into in one run, while there is time; the others wait for theirs."""

_MAX_POINTER_BYTES = 4096
_MAX_INDEX_BYTES = 32 * 2**20


class CheckpointEntry(Struct, frozen=True, kw_only=True):
    """A checkpoint by its name."""

    name: str
    step: float
    changed: float  # seconds of the file server's clock
    lacks: str = ""  # what its name, or the names beside it, say is missing


class CheckpointContents(Struct, frozen=True, kw_only=True):
    """What it holds."""

    size: int  # bytes of all files
    changed: float  # when the last of them was, by the file server's clock
    marker: int | None = 1  # bytes of the marker; None where there is none
    marked: float | None = None  # when the marker was written
    files: tuple[tuple[str, int, float], ...] = ()  # path, bytes, time of change
    lacks: str = ""  # a file that others of it name and that is not there, or is empty


class CheckpointFolder:
    """The folder of checkpoints, looked at through `files`; what hangs is kept by the folder's
    path."""

    def __init__(self, path: str, match: re.Pattern[str], files: UserFiles, whose: Whose) -> None:
        self._path, self._match, self._files, self._whose = path, match, files, whose
        self.names: list[str] = []  # all that lies there, whether it fits or not

    @property
    def is_short_of_time(self) -> bool:
        """Whether so little time is left that one more look may not come to its end."""
        return self._files.seconds_left < self._files.limit

    def list_checkpoints(self) -> list[CheckpointEntry]:
        """Those that are checkpoints by their names, the highest step first; CannotTell."""
        found = self._files.list_entries(self._path, self._whose, MAX_ENTRIES)
        if len(found) > MAX_ENTRIES:
            raise CannotTell(f"{visible(self._path)} holds more than {MAX_ENTRIES} entries")
        self.names = sorted(found)
        entries = [
            e for name, changed in found.items() if (e := self._make_entry(name, changed, found))
        ]
        by_step = dict[float, list[str]]()
        for entry in entries:
            by_step.setdefault(entry.step, []).append(entry.name)
        gaps = {step: gap for step, names in by_step.items() if (gap := find_missing_part(names))}
        entries = [
            CheckpointEntry(
                name=e.name, step=e.step, changed=e.changed, lacks=f"{gaps[e.step]} is missing"
            )
            if e.step in gaps and not e.lacks
            else e
            for e in entries
        ]
        return sorted(entries, key=lambda e: (e.step, e.changed, e.name), reverse=True)

    def look_into(self, entry: CheckpointEntry, rule: CheckpointRule) -> CheckpointContents:
        """All its files, links not followed, without those that go meanwhile; CannotTell."""
        path = os.path.join(self._path, entry.name)
        try:
            size, changed, files = self._files.sum_sizes(path, self._whose, MAX_FILES)
        except FileAbsent:
            size, changed, files = 0, None, []
        marker, marked = (1, None) if not rule.marker else self._read_marker(path, rule.marker)
        return CheckpointContents(
            size=size,
            changed=entry.changed if changed is None else changed,
            marker=marker,
            marked=marked,
            files=tuple(files),
            lacks=find_missing_files(files) or self._find_missing_by_index(path, files),
        )

    def read_pointer(self, name: str) -> CheckpointPointer | None:
        """What a link or file beside the checkpoints says; None where there is none. Raises
        CannotTell."""
        path = os.path.join(self._path, name)
        try:
            target, changed = self._files.read_link(path, self._whose)
            if target:
                return CheckpointPointer(text=target, written=changed)
            found, data = self._files.read_file(path, 0, _MAX_POINTER_BYTES, self._whose)
        except FileAbsent:
            return None
        return CheckpointPointer(text=data.decode("utf-8", "replace"), written=found.mtime)

    def describe_unfit(self) -> str:
        """That there is something, and none of it fits `match`; empty where nothing is."""
        if not self.names:
            return ""
        return (
            f"none of {len(self.names)} entries fits `match` ({self._match.pattern}), such as "
            f"{visible(self.names[0])}"
        )

    def _make_entry(
        self, name: str, changed: float, there: dict[str, float]
    ) -> CheckpointEntry | None:
        match = self._match.fullmatch(name)
        if not match:
            return None
        lacks = ""
        if is_staging(name) or get_unfinished_marker_name(name) in there:
            lacks = "its name says that the save was not ended"
            if not is_staging(name):
                lacks = f"{visible(get_unfinished_marker_name(name))} lies beside it"
        try:
            return CheckpointEntry(name=name, step=float(match[1]), changed=changed, lacks=lacks)
        except (TypeError, ValueError):
            raise CannotTell(f"`match` captured no number in {visible(name)!r}") from None

    def _read_marker(self, path: str, marker: str) -> tuple[int | None, float | None]:
        """Bytes of the marker, 0 for JSON that is cut, and when it was written."""
        at = os.path.join(path, marker)
        found = self._files.file_status(at, self._whose)
        if found is None:
            return None, None
        if marker.endswith(".json") and found.regular and found.size:
            try:
                _, end = self._files.read_file(at, -1, 64, self._whose)
            except FileAbsent:
                return None, None
            if end.rstrip()[-1:] not in (b"}", b"]"):
                return 0, found.mtime
        return found.size if found.regular else 1, found.mtime

    def _find_missing_by_index(self, path: str, files: Sequence[tuple[str, int, float]]) -> str:
        """The first file that an index of Hugging Face's form names and that is not there."""
        names = {name for name, _, _ in files}
        for name, size, _ in files:
            if not name.endswith(".index.json") or size > _MAX_INDEX_BYTES:
                continue
            try:
                _, data = self._files.read_file(os.path.join(path, name), 0, size, self._whose)
                index = json.loads(data)
                wanted = set(index["weight_map"].values())
            except FileAbsent:
                continue
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
                return f"{visible(name)} is no index that can be read"
            beside = os.path.dirname(name)
            for one in sorted(one for one in wanted if isinstance(one, str)):
                if os.path.join(beside, one) not in names and len(files) < MAX_FILES:
                    return f"{visible(one)} is missing, which {visible(name)} names"
        return ""


def find_missing_files(files: Sequence[tuple[str, int, float]]) -> str:
    """What is missing by the numbers in the names, or holds no byte though it has to."""
    folders = dict[str, list[str]]()
    for path, size, _ in files:
        if size == 0 and _WEIGHTS_FILE_PATTERN.fullmatch(path):
            return f"{visible(path)} has no byte"
        folders.setdefault(os.path.dirname(path), []).append(os.path.basename(path))
    if len(files) >= MAX_FILES:
        return ""
    for names in folders.values():
        if gap := find_missing_part(names):
            return f"{gap} is missing"
    return ""


_WEIGHTS_FILE_PATTERN = re.compile(
    r".*\.(?:safetensors|pt|pth|ckpt|bin|distcp|h5|hdf5|npz|npy|nemo|msgpack|index)"
    r"|.*\.data-\d+-of-\d+",
    re.IGNORECASE,
)
