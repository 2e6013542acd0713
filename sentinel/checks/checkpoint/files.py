"""Reads checkpoints on file systems that may hang. So each question is asked in a child process
with a time limit."""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sentinel.checks.checkpoint.named_files import NamedFiles, compare_index, compare_metadata
from sentinel.checks.checkpoint.pointer import CheckpointPointer
from sentinel.checks.text_child import TextReader
from sentinel.clean.mentions import has_weights_name, name_beginnings
from sentinel.core.checkpoint_names import (
    drop_words,
    find_demanded_words,
    get_unfinished_marker_name,
    is_log,
    is_staging,
    is_weights_file,
    name_form,
)
from sentinel.core.checkpoint_parts import find_missing_part
from sentinel.core.checkpoint_series import (
    MAX_SAVE_S,
    MIN_ALIKE_STEPS,
    FileSeries,
    find_missing_in_order,
    find_part_forms,
    find_save_end,
    find_series,
    leave_out_notes,
)
from sentinel.core.checkpoints import CheckpointRule
from sentinel.core.errors import CannotTell
from sentinel.core.text import visible
from sentinel.user_files.files import UserFiles
from sentinel.user_files.reader import FileAbsent
from sentinel.user_files.whose import Whose

MAX_ENTRIES = 200_000
"""How many entries a folder may hold, and files a checkpoint: a hundred steps with two thousand ranks each.
What holds more cannot be judged."""

MAX_LOOKS = 500
"""How many checkpoints are looked into in one run, if the time is enough. The others wait for a
later run."""

_LAST_CHAR = "\U0010ffff"
_MAX_POINTER_BYTES = 4096
_MAX_INDEX_BYTES = 32 * 2**20

MAX_COMPARED_NAMES, _QUESTION_COST = 10_000_000, 5_000
"""Names of files that the indexes of one checkpoint are compared with, all together. The question about one
index costs as much as so many: an index for each of two thousand ranks is not too much."""


class CheckpointEntry(Struct, frozen=True, kw_only=True):
    """An entry of the folder whose name is that of a checkpoint."""

    name: str  # Its file or directory.
    step: float  # The number in its name.
    changed: float  # seconds of the file server's clock
    lacks: str = ""  # why its name or the names beside it show that it is not complete


class CheckpointContents(Struct, frozen=True, kw_only=True):
    """The contents of a checkpoint."""

    size: int  # bytes of all files
    changed: float  # when the newest of them was changed, by the file server's clock
    marker: int | None = 1  # bytes of the marker; None if it does not exist
    marked: float | None = None  # when the marker was written
    files: tuple[tuple[str, int, float], ...] = ()  # path, bytes, time of change
    end: float = 0.0  # when its save had ended, by that clock
    forms: frozenset[str] = frozenset()  # forms of the names that the save wrote
    # a file that is missing or empty, although the names of others show that it belongs here
    lacks: str = ""
    # files of weights without a byte, if nothing in the checkpoint says whether that is right
    empty: tuple[str, ...] = ()

    def without_notes(self, usual: Collection[str]) -> CheckpointContents:
        """The contents without what was laid beside them later, also in size and time. `usual`: forms
        of names that saves write."""
        files = leave_out_notes(self.files, self.end, usual)
        if files == [*self.files]:
            return self
        return replace(
            self,
            files=tuple(files),
            size=sum(size for _, size, _ in files),
            changed=max(at for _, _, at in files),
        )


class CheckpointFolder:
    """The folder of checkpoints, read through `files`. `files` keeps the child processes that hang,
    by the path that they read."""

    def __init__(self, path: str, match: re.Pattern[str], files: UserFiles, whose: Whose) -> None:
        self._path, self._match, self._files, self._whose = path, match, files, whose
        self._demanded = find_demanded_words(match.pattern)
        self.names: list[str] = []  # all names in the folder, whether they match or not
        self.part_forms: set[str] = set()  # forms of names whose numbers count the parts of a step

    @property
    def is_short_of_time(self) -> bool:
        """Whether the time that is left is less than one question may take."""
        return self._files.seconds_left < self._files.limit

    def list_checkpoints(self) -> list[CheckpointEntry]:
        """The entries whose names match, highest step first. Raises CannotTell."""
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
        gaps: dict[float, str] = {
            step: gap for step, names in by_step.items() if (gap := find_missing_part(names))
        }
        series = find_step_series(entries)
        self.part_forms = find_part_forms([*series.values()])
        missing = find_missing_forms(series, entries) | {
            step: f"{gap} is missing" for step, gap in gaps.items()
        }
        entries = [
            CheckpointEntry(name=e.name, step=e.step, changed=e.changed, lacks=lacks)
            if not e.lacks and (lacks := missing.get(e.step, ""))
            else e
            for e in entries
        ]
        return sorted(entries, key=lambda e: (e.step, e.changed, e.name), reverse=True)

    def look_into(self, entry: CheckpointEntry, rule: CheckpointRule) -> CheckpointContents:
        """The sizes and times of the files in the entry. Links are not followed, and files that are
        deleted meanwhile are left out. Raises CannotTell."""
        path = os.path.join(self._path, entry.name)
        try:
            size, changed, files = self._files.sum_sizes(path, self._whose, MAX_ENTRIES + 1)
        except FileAbsent:
            size, changed, files = 0, None, []
        if len(files) > MAX_ENTRIES:
            raise CannotTell(f"{visible(path)} holds more than {MAX_ENTRIES} files to compare")
        marker, marked = (1, None) if not rule.marker else self._read_marker(path, rule.marker)
        end = find_save_end(files, marked)
        forms = frozenset(name_form(name) for name, _, at in files if at <= end)
        own = [one for one in files if name_form(one[0]) in forms]
        named, others, lacks = self._read_indices(path, own)
        if gap := find_missing_part(name for name, _, _ in own if name not in others):
            lacks = lacks or f"{gap} is missing"
        elif not (rule.marker or rule.latest):
            lacks = lacks or find_unfinished(name for name, _, _ in own)
        empty = [
            name
            for name, size, _ in own
            if not (size or name in others or is_log(name))
            and (is_weights_file(name) or has_weights_name(name))
        ]
        if hollow := next((name for name in empty if name in named), ""):
            lacks = f"{visible(hollow)} has no byte"
        return CheckpointContents(
            size=size,
            changed=entry.changed if changed is None else changed,
            marker=marker,
            marked=marked,
            files=tuple(files),
            end=end,
            forms=forms,
            lacks=lacks,
            empty=tuple(empty),
        )

    def read_pointer(self, name: str) -> CheckpointPointer | None:
        """The target of the link `name`, or the text of the file `name`, in the folder. None if
        neither exists. Raises CannotTell."""
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
        """A text that none of the entries matches `match`. Empty if the folder has no entries. It
        is only called if none matches."""
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
        staging = is_staging(drop_words(name, self._demanded))
        if staging or get_unfinished_marker_name(name) in there:
            lacks = "its name says that the save was not ended"
            if not staging:
                lacks = f"{visible(get_unfinished_marker_name(name))} lies beside it"
        try:
            return CheckpointEntry(name=name, step=float(match[1]), changed=changed, lacks=lacks)
        except (TypeError, ValueError):
            raise CannotTell(f"`match` captured no number in {visible(name)!r}") from None

    def _read_marker(self, path: str, marker: str) -> tuple[int | None, float | None]:
        """The bytes of the marker, and when it was written. The bytes are 0 if it is JSON that is
        cut, and 1 if it is no regular file. Both are None if it does not exist."""
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

    def _read_indices(
        self, path: str, files: Sequence[tuple[str, int, float]]
    ) -> tuple[set[str], set[str], str]:
        """Which files an index in the form of Hugging Face names, or torch DCP's metadata; and which others
        have the form of these. A rank of DCP without items writes an empty file, which is not named
        (torch/distributed/checkpoint/filesystem.py, write_data).

        A text about the first file that is named and not there, or about an index that cannot be read.
        Raises CannotTell if there are too many indexes."""
        named, others, lacks = set[str](), set[str](), list[str]()
        names, told_of = sorted(name for name, _, _ in files), list[tuple[str, int, slice]]()
        for name, size, _ in files:
            folder, own = os.path.split(name)
            if size <= _MAX_INDEX_BYTES and (own.endswith(".index.json") or own == ".metadata"):
                below = f"{folder}/" if folder else ""
                ends = bisect_left(names, below), bisect_left(names, f"{below}{_LAST_CHAR}")
                told_of.append((name, size, slice(*ends)))
        costs = (max(part.stop - part.start, _QUESTION_COST) for _, _, part in told_of)
        if sum(costs) > MAX_COMPARED_NAMES:
            raise CannotTell(f"{visible(path)} holds {len(told_of)} indexes, too many to compare")
        for name, size, part in told_of:
            folder = os.path.dirname(name)
            try:
                told = self._ask_about(
                    path, name, size, [one[len(folder) + bool(folder) :] for one in names[part]]
                )
            except FileAbsent:
                continue
            if told:
                named.update(os.path.join(folder, one) for one in told[0])
                others.update(os.path.join(folder, one) for one in told[1])
                lacks += [f"{visible(told[2])} is missing, which {visible(name)} names"][
                    : len(told[2])
                ]
            elif name.endswith(".json"):
                lacks.append(f"{visible(name)} is no index that can be read")
        return named, others, next(iter(lacks), "")

    def _ask_about(
        self, path: str, name: str, size: int, there: Sequence[str]
    ) -> NamedFiles | None:
        """What that file says of those beside and below it (`there`). A child reads it, because a user chose what
        stands there: 32 MiB of brackets are 1.3 GB of lists, and of names seconds. Raises FileAbsent or
        CannotTell."""
        _, data = self._files.read_file(os.path.join(path, name), 0, size, self._whose)
        compare = compare_index if name.endswith(".json") else compare_metadata
        with TextReader(in_child=True, total_s=self._files.seconds_left) as reader:
            return reader.ask(os.path.join(path, name), compare, NamedFiles | None, data, there)


def find_unfinished(paths: Iterable[str]) -> str:
    """A text about a file whose name says that its writing was not ended, such as `.metadata.tmp` of torch
    DCP, and whose ended one is not beside it. Empty if there is none. Hidden folders are caches."""
    there = {*paths}
    unended = (
        path
        for path in sorted(there)
        if is_staging(os.path.basename(path))
        and "/." not in f"/{os.path.dirname(path)}"
        and not any(one in there and one != path for one in name_beginnings(path))
    )
    return next((f"{visible(path)} says that the save was not ended" for path in unended), "")


def find_missing_forms(
    series: Mapping[float, Mapping[str, FileSeries]], entries: Sequence[CheckpointEntry]
) -> dict[float, str]:
    """For each step that lacks files which the steps saved before it have: those files, in
    words."""
    changed = dict[float, float]()
    for entry in entries:
        changed[entry.step] = max(changed.get(entry.step, 0.0), entry.changed)
    steps = sorted(series, key=lambda step: (changed[step], step))
    missing = find_missing_in_order([series[step] for step in steps])
    return {step: why for step, why in zip(steps, missing, strict=True) if why}


def find_step_series(entries: Sequence[CheckpointEntry]) -> dict[float, dict[str, FileSeries]]:
    """The names of each step by their forms. Entries that were written long after the save began
    are left out."""
    saved = dict[float, list[CheckpointEntry]]()
    for entry in entries:
        if not entry.lacks:
            saved.setdefault(entry.step, []).append(entry)
    return {
        step: find_series(e.name for e in found if e.changed < first + MAX_SAVE_S)
        for step, found in saved.items()
        for first in [min(e.changed for e in found)]
    }


def find_alike_empty(
    mine: Collection[str], others: Sequence[tuple[Collection[str], Collection[str]]]
) -> set[str]:
    """Those of the empty files `mine` that have no byte in any other checkpoint either, and lie in two
    at least. `others` are the empty files and all files of each."""
    return {
        path
        for path in mine
        if sum(path in empty for empty, _ in others) >= MIN_ALIKE_STEPS
        and not any(path in files and path not in empty for empty, files in others)
    }
