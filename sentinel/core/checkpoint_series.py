"""Finds files that one step lacks and the other steps of its folder have. Pure, standard library
only.

A form is a name with `#` in place of its numbers. The files of one form count ranks or shards, if their
numbers leave no hole: `state_#_#.bin` of llm.c, `iter_#_#_local.pt`. `clean` and `checkpoint` both use this.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sentinel.core.checkpoint_names import is_log, is_weights_file, name_form

MAX_FORMS = 200
"""If the files of a step have more forms than this, all are counted together."""

ALL_FORMS = "*"

MIN_ALIKE_STEPS = 2
"""If more steps than this have the same files, such a step counts as complete."""

MAX_COMPARED_STEPS = 4
"""With how many complete steps before it a step is compared. They are few, because the files that
trainers write change."""

SAVE_SLACK_S = 120.0
"""A file that was written more seconds after the large files is no part of the save: an evaluation,
an export."""

MAX_SAVE_S = 1800.0
"""How many seconds a save may write nothing. What is written later is no part of it."""

MIN_REWRITTEN_SHARE = 0.1
"""A later file with less than this share of the bytes of the largest is no new save: a tokenizer, a
configuration or a description that was mended."""

_NUMBER_PATTERN = re.compile("([0-9]+)")

_TRAINING_WORDS = "seed|fold|trial|run|exp|version"

_RATE_WORDS = "lr|wd|bs|dim"

TRAINING_NUMBER_PATTERN = re.compile(
    rf"(?<![a-z])(?:(?:{_TRAINING_WORDS})[-_=.]?[0-9]+"
    rf"|(?:{_RATE_WORDS})[-_=.]?[0-9]+(?:\.[0-9]+)?(?:e-?[0-9]+)?)",
    re.IGNORECASE,
)
"""`seed1`, `run-7`, `lr3e-4`: which of several trainings a name belongs to."""

SETTING_WORDS = rf"{_TRAINING_WORDS}|{_RATE_WORDS}|epoch|ep|iter|step|batch"

# A number behind one of these words names a training, or a place in one training, and not a part of
# a step.
_NO_PART_PATTERN = re.compile(
    rf"(?:{SETTING_WORDS}|layers?|heads?|(?<![a-z])[vs])[-_=.]?(?:[0-9]+[.e-]+)*$",
    re.IGNORECASE,
)
# Names that state their own number of parts, and files that a rank writes only if it has something
# to write.
NO_SERIES_PATTERN = re.compile(r"#-of-#|__#_#\.distcp")


@dataclass(frozen=True)
class FileSeries:
    """The files of one form in one step."""

    count: int
    is_dense: bool = True  # whether the numbers leave no hole
    is_from_start: bool = True  # whether they begin at 0 or 1
    are_parts: bool = True  # whether the numbers may count ranks or shards
    numbers: frozenset[tuple[int, ...]] = frozenset()  # those that differ, of each file


def find_series(names: Iterable[str]) -> dict[str, FileSeries]:
    """The files of one step by their form."""
    by_form = dict[str, list[str]]()
    for name in names:
        by_form.setdefault(name_form(name), []).append(name)
    return {form: _read_series(form, found) for form, found in by_form.items()}


def find_save_end(files: Sequence[tuple[str, int, float]], marked: float | None = None) -> float:
    """When the save of a step had ended, by its file server's clock: with its marker, else when
    nothing was written for MAX_SAVE_S after its first weights.

    `files`: path, bytes and time of change (s UTC) of each file; `marked`: that of the marker."""
    largest = max((size for _, size, _ in files), default=0)
    weights = [at for path, size, at in files if size and is_weights_file(path)]
    end = min(weights or [at for _, size, at in files if size * 2 >= largest], default=0.0)
    if marked is not None and end <= marked + SAVE_SLACK_S:
        return marked + SAVE_SLACK_S
    for at in sorted(at for _, _, at in files if at > end):
        if at > end + MAX_SAVE_S:
            break
        end = at
    return end


def leave_out_notes(
    files: Sequence[tuple[str, int, float]], end: float, usual: Collection[str]
) -> list[tuple[str, int, float]]:
    """The files without what was only laid beside them after the `end` of the save: an evaluation, a
    merge, an upload's cache, a note.

    A later file of a `usual` form (one that saves write) stays: the step is saved anew. If it is
    small, it was mended, and has the time of the save."""
    kept = [one for one in files if one[2] <= end or name_form(one[0]) in usual]
    least = MIN_REWRITTEN_SHARE * max((size for _, size, _ in kept), default=0)
    last = max((at for _, _, at in kept if at <= end), default=end)
    return [(path, size, min(at, last) if size < least else at) for path, size, at in kept]


def find_saved_series(files: Sequence[tuple[str, int, float]]) -> dict[str, FileSeries]:
    """The series of the files that the save itself wrote, by form; one of all files if there are too many
    forms.

    `files`: path, bytes and time of change (s UTC) of each file of the step."""
    largest = max((size for _, size, _ in files), default=0)
    end = max((at for _, size, at in files if size * 2 >= largest), default=0.0) + SAVE_SLACK_S
    found = find_series(path for path, _, at in files if at <= end)
    every = {ALL_FORMS: FileSeries(sum(one.count for one in found.values()))}
    return found if len(found) <= MAX_FORMS else every


def count_series(series: Mapping[str, FileSeries]) -> dict[str, int]:
    """How many files there are of each form."""
    return {form: one.count for form, one in series.items()}


def find_missing_beside(
    mine: Mapping[str, FileSeries], others: Sequence[Mapping[str, int]], *, is_smaller: bool = False
) -> str:
    """Describe files that the last complete steps all have and this step lacks; empty if it lacks
    none.

    After a restart on fewer ranks the first ranks are there, with as many bytes in all. So fewer
    files count as missing only if exactly one is missing, the numbers have a gap, or the step
    `is_smaller`.
    """
    others = [one for one in others if (ALL_FORMS in one) is (ALL_FORMS in mine)][
        -MAX_COMPARED_STEPS:
    ]
    if not (mine and others) or (len(others) < MIN_ALIKE_STEPS and not is_smaller):
        return ""
    for form in sorted(others[0]):
        least = min(one.get(form, 0) for one in others)
        found = mine.get(form, FileSeries(0))
        if found.count >= least or (is_log(form) and not is_smaller):
            continue
        if not found.count:
            return f"it has no {form}, and the others have {least}"
        is_stable = least == max(one[form] for one in others) and found.are_parts
        is_cut = found.count == least - 1 or not (found.is_dense and found.is_from_start)
        if is_smaller or (is_stable and is_cut):
            return f"it has fewer files than the others: {found.count} of {least} {form or 'it'}"
    return ""


def find_part_forms(steps: Sequence[Mapping[str, FileSeries]]) -> set[str]:
    """Forms whose numbers name the parts of a step.

    In most of the steps the numbers leave no hole, or are the same ones, such as the rates of two
    averages."""
    several = dict[str, list[FileSeries]]()
    for step in steps:
        for form, one in step.items():
            if one.count > 1 and one.are_parts:
                several.setdefault(form, []).append(one)
    return {
        form
        for form, found in several.items()
        if 2 * max(sum(s.is_dense for s in found), *Counter(s.numbers for s in found).values())
        > len(found)
    }


def find_missing_in_order(steps: Sequence[Mapping[str, FileSeries]]) -> list[str]:
    """For each step, oldest first: what it lacks that the complete steps before it have, in words.
    Empty if it lacks nothing."""
    parts = find_part_forms(steps)
    plain = [
        {form: one if form in parts else FileSeries(1) for form, one in step.items()}
        for step in steps
    ]
    counts = [count_series(step) for step in plain]
    alike = Counter(frozenset(count.items()) for count in counts)
    complete, missing = list[Mapping[str, int]](), list[str]()
    for mine, count in zip(plain, counts, strict=True):
        is_usual = alike[frozenset(count.items())] > MIN_ALIKE_STEPS
        why = "" if is_usual else find_missing_beside(mine, complete[-MAX_COMPARED_STEPS:])
        missing.append(why)
        if not why:
            complete.append(count)
    return missing


def _read_series(form: str, names: Sequence[str]) -> FileSeries:
    if len(names) == 1:
        return FileSeries(1, are_parts=not NO_SERIES_PATTERN.search(form))
    split = [_NUMBER_PATTERN.split(name) for name in names]
    if len({*map(len, split)}) > 1:  # words that are drawn count nothing
        return FileSeries(len(names), are_parts=False)
    places, from_start, varying = 1, True, list[int]()
    are_parts = not NO_SERIES_PATTERN.search(form)
    for at in range(1, len(split[0]), 2):
        numbers = {int(words[at]) for words in split}
        if len(numbers) > 1:
            varying.append(at)
            places *= max(numbers) - min(numbers) + 1
            from_start = from_start and min(numbers) <= 1
            are_parts = are_parts and not _NO_PART_PATTERN.search("".join(split[0][:at]))
    found = frozenset(tuple(int(words[at]) for at in varying) for words in split)
    return FileSeries(len(names), places == len(names), from_start, are_parts, found)
