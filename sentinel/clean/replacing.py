"""Decides which steps newer ones can replace. Pure, standard library only.

A training goes on from any step that holds all that an older one held. So a step may only go if two newer
ones hold all its files, by their forms (the names with `#` in place of numbers), and as many bytes. Nothing
else is compared: an export, a milestone or an optimizer in one step says nothing about those that have none,
and a stub replaces nothing. A number that says which of several trainings in the folder it is (`lr0.01`,
`llama-7b`) stays in the form.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from sentinel.core.checkpoint_names import (
    drop_part_numbers,
    name_form,
    training_form,
)
from sentinel.core.checkpoint_series import TRAINING_NUMBER_PATTERN

WHOLE_SHARE = 0.95
"""A step replaces another if it has at least this share of its bytes. A compressed file varies."""

OTHER_MODEL_FACTOR = 10
"""A step of so many times the bytes belongs to another training: an adapter beside a full model."""

CUT_SHARE = 0.75
"""A file with less than this share of the bytes that its like has was cut: a full disk, or one full target
of it, ends a file anywhere."""

SMALL_SHARE = 0.01
"""Files of one form that have less than this share of the bytes are not counted: the random state of each
rank is written by fewer ranks after a restart."""

MAX_UNLIKE = 200
"""How many steps that nothing replaces are compared. If there are more, all older ones stay."""


MAX_TRACK_SHARE = 2 / 3
"""A number has at most so many values for each step that it is in, if it names trainings. A loss has more."""

_LABELLED_PATTERN = re.compile(
    r"(?<![A-Za-z])([A-Za-z]{1,40})[-_=.]?(\d{1,20}(?:\.\d{1,20})?(?:e-?\d{1,3})?)"
    r"|(?<![\d.])(\d{1,20}(?:\.\d{1,20})?)([A-Za-z]{0,40})"
)
_COUNTING_PATTERN = re.compile(r"(?:epoch|ep|e|iter|it|step)s?", re.IGNORECASE)
"""Words before numbers that grow within a training. One that is not here only keeps more."""


def _read_labels(name: str, step: int | None) -> dict[str, str]:
    """The numbers of a name by the word beside them, without those of parts, of epochs and of the step."""
    found = dict[str, str]()
    for at, (word, number, before, unit) in enumerate(
        _LABELLED_PATTERN.findall(drop_part_numbers(name))
    ):
        text = number or before
        if not _COUNTING_PATTERN.fullmatch(word) and not (text.isdigit() and int(text) == step):
            found[word or f"#{unit or at}"] = text
    return found


def find_track_labels(names: Iterable[tuple[str, int | None]]) -> set[str]:
    """The words whose numbers say which of several trainings an entry belongs to: several steps share a
    number, and others have another one. `names`: one of each step, with its number.

    A number without a word does so too (the day on which a training began), unless steps have no number
    of their own: then it is their clock."""
    numbers = dict[str, list[str]]()
    for name, step in names:
        for word, text in _read_labels(name, step).items():
            if step is not None or not word[1:].isdigit():
                numbers.setdefault(word, []).append(text)
    return {
        word for word, texts in numbers.items() if 1 < len({*texts}) <= MAX_TRACK_SHARE * len(texts)
    }


class StepContent:
    """What a step holds: the bytes of the files of each form, the smallest first."""

    def __init__(
        self,
        files: Iterable[tuple[str, int, float]],
        step: int | None = None,
        tracks: Collection[str] = (),
    ) -> None:
        """`files`: path, bytes and time of change (s UTC) of each file. `tracks`: the words whose numbers
        name trainings."""
        self.forms: dict[str, list[tuple[int, tuple[int, ...]]]] = {}
        for path, size, _ in sorted(files, key=lambda one: one[1]):
            numbers = [*map(int, re.findall("[0-9]+", path))]
            if step in numbers:
                numbers.remove(step)
            form = self.forms.setdefault(_content_form(path.rstrip("/"), step, tracks), [])
            form.append((size, tuple(numbers)))
        self.size = sum(map(_count_bytes, self.forms.values()))

    @property
    def names(self) -> set[str]:
        """The forms of its entries."""
        return {form.partition("/")[0] for form in self.forms}

    def without_entry_names(self) -> StepContent:
        """The same by the paths below its entries, since the name of a save in flight is another one."""
        found = StepContent(())
        for form, files in self.forms.items():
            found.forms.setdefault(form.partition("/")[2], []).extend(files)
        for files in found.forms.values():
            files.sort()
        found.size = self.size
        return found


def _content_form(path: str, step: int | None, tracks: Collection[str]) -> str:
    """The form of a path. The numbers of trainings in its first name stay as they are."""
    first, slash, below = path.partition("/")
    trainings = TRAINING_NUMBER_PATTERN.findall(first)
    if tracks:
        labels = _read_labels(first, step)
        trainings += [f"{word} {labels[word]}" for word in sorted(tracks & labels.keys())]
    return " of ".join([training_form(first), *trainings]) + slash + name_form(below)


def replaces(new: StepContent, old: StepContent, *, is_stub: bool = False) -> bool:
    """Whether a training can go on from `new` as well as from `old`: it holds as much of each form.

    `is_stub` says that `old` is known not to be whole, so that it may be much smaller.
    """
    if not new.forms.keys() >= old.forms.keys():
        return False
    size = sum(_count_bytes(new.forms[form]) for form in old.forms)
    if size < WHOLE_SHARE * old.size or (size > OTHER_MODEL_FACTOR * old.size and not is_stub):
        return False
    return all(_holds(new.forms[form], one, old.size) for form, one in old.forms.items())


_Sizes = Sequence[tuple[int, tuple[int, ...]]]
"""Bytes of each file of a form, the smallest first, and the numbers in its name without that of the step."""


def _count_bytes(files: _Sizes) -> int:
    return sum(size for size, _ in files)


def _holds(new: _Sizes, old: _Sizes, size: int) -> bool:
    """Whether the files of one form hold as much. Fewer ranks write as many bytes into fewer files. If
    ranks are missing, the bytes are fewer by their share. Of as many files none is cut, if they hold more
    than descriptions do: each is compared with that of its numbers, and with its like in size if the
    names are others."""
    held, needed = _count_bytes(new), _count_bytes(old)
    if needed and not held:
        return False
    if len(new) == len(old) and needed > (1 - WHOLE_SHARE) * size:
        by_numbers = [sorted(files, key=lambda one: one[1]) for files in (new, old)]
        if [one for _, one in by_numbers[0]] == [one for _, one in by_numbers[1]]:
            new, old = by_numbers
        return all(one >= CUT_SHARE * other for (one, _), (other, _) in zip(new, old, strict=True))
    if len(new) >= len(old) or needed < SMALL_SHARE * size:
        return True
    return held >= needed * (len(old) + len(new)) / (2 * len(old))


def find_irreplaceable(
    contents: Sequence[StepContent],
    stubs: Sequence[bool],
    unfinished: Sequence[bool],
    count: int,
) -> list[int]:
    """The positions of those that fewer than `count` newer ones replace, which stay themselves.

    `contents` are the newest first. `stubs` says which of them are known not to be whole, which replace
    nothing. The names of the `unfinished` ones are not compared.
    """
    staying, able = list[int](), list[StepContent]()
    for at, (content, is_stub) in enumerate(zip(contents, stubs, strict=True)):
        others = able
        if unfinished[at]:
            content, others = content.without_entry_names(), [one.without_entry_names() for one in able]  # fmt: skip
        replacing = (replaces(one, content, is_stub=is_stub) for one in others)
        if len(able) > MAX_UNLIKE or sum(replacing) < count:
            staying.append(at)
            if not is_stub:
                able.append(contents[at])
    return staying
