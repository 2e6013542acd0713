"""Decides which steps newer ones can replace. Pure, standard library only.

A training goes on from any step that holds all that an older one held. So a step may only go if two newer
ones hold all its files, by their forms (the names with `#` in place of numbers), and as many bytes. Nothing
else is compared: an export, a milestone or an optimizer in one step says nothing about those that have none,
and a stub replaces nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from sentinel.core.checkpoint_names import is_log, is_staging, name_form
from sentinel.core.checkpoint_series import TRAINING_NUMBER_PATTERN

WHOLE_SHARE = 0.95
"""A step replaces another if it has at least this share of its bytes. A compressed file varies."""

OTHER_MODEL_FACTOR = 10
"""A step of so many times the bytes belongs to another training: an adapter beside a full model."""

SMALL_SHARE = 0.01
"""Files of one form that have less than this share of the bytes are not counted: the random state of each
rank is written by fewer ranks after a restart."""

LATE_S = 1800.0
"""A file that was written more seconds after the large files is no part of the save."""

MAX_UNLIKE = 200
"""How many steps that nothing replaces are compared. If there are more, all older ones stay."""


class FormContent(NamedTuple):
    """The files of one form in a step."""

    files: int
    size: int  # bytes of all of them


class StepContent:
    """What a step holds: how many files and bytes of each form."""

    def __init__(self, files: Iterable[tuple[str, int, float]]) -> None:
        """`files`: path, bytes and time of change (s UTC) of each file."""
        named = ((path.rstrip("/"), size, at) for path, size, at in files)
        listed = [
            one for one in named if not (is_log(os.path.basename(one[0])) or _is_passing(one[0]))
        ]
        largest = max((size for _, size, _ in listed), default=0)
        end = max((at for _, size, at in listed if size * 2 >= largest), default=0.0) + LATE_S
        self.forms: dict[str, FormContent] = {}
        for path, size, at in listed:
            if at <= end:
                count, total = self.forms.get(form := _content_form(path), FormContent(0, 0))
                self.forms[form] = FormContent(count + 1, total + size)

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(one.size for one in self.forms.values())

    def drop_notes(self, steps_with_form: Mapping[str, int]) -> None:
        """Leave out what no other step has, if it is small. `steps_with_form` counts the steps."""
        alone = [form for form in self.forms if steps_with_form[form] == 1]
        size = self.size
        if sum(self.forms[form].size for form in alone) <= (1 - WHOLE_SHARE) * size:
            for form in alone:
                del self.forms[form]


def _content_form(path: str) -> str:
    """The form of a path. The numbers of trainings (`seed1`) in its first name stay as they are."""
    trainings = TRAINING_NUMBER_PATTERN.findall(path.partition("/")[0])
    return " of ".join([name_form(path), *trainings])


def _is_passing(path: str) -> bool:
    """Whether a file in a step has the name of one that was not ended."""
    return "/" in path and is_staging(os.path.basename(path))


def replaces(new: StepContent, old: StepContent, *, is_stub: bool = False) -> bool:
    """Whether a training can go on from `new` as well as from `old`: it holds as much of each form.

    `is_stub` says that `old` is known not to be whole, so that it may be much smaller.
    """
    if not new.forms.keys() >= old.forms.keys():
        return False
    size = sum(new.forms[form].size for form in old.forms)
    if size < WHOLE_SHARE * old.size or (size > OTHER_MODEL_FACTOR * old.size and not is_stub):
        return False
    return all(_holds(new.forms[form], one, old.size) for form, one in old.forms.items())


def _holds(new: FormContent, old: FormContent, size: int) -> bool:
    """Whether the files of one form hold as much. Fewer ranks write as many bytes into fewer files. If
    ranks are missing, the bytes are fewer by their share."""
    if old.size and not new.size:
        return False
    if new.files >= old.files or old.size < SMALL_SHARE * size:
        return True
    return new.size >= old.size * (old.files + new.files) / (2 * old.files)


def find_irreplaceable(
    contents: Sequence[StepContent | None], stubs: Sequence[bool], count: int
) -> list[int]:
    """The positions of those that fewer than `count` newer ones replace, which stay themselves.

    `contents` are the newest first. None is one whose content is not known. `stubs` says which of them
    are known not to be whole. Those replace nothing.
    """
    staying, able = list[int](), list[StepContent]()
    for at, (content, is_stub) in enumerate(zip(contents, stubs, strict=True)):
        if (
            content is None
            or len(able) > MAX_UNLIKE
            or sum(replaces(one, content, is_stub=is_stub) for one in able) < count
        ):
            staying.append(at)
            if content is not None and not is_stub:
                able.append(content)
    return staying
