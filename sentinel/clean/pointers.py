"""Finds the targets of links and trackers. A run continues there, however old they are."""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress

from sentinel.clean.hints import choose_hints, may_hint
from sentinel.clean.mentions import is_about_checkpoints, is_pointing
from sentinel.clean.rules import RetentionRules
from sentinel.clean.trackers import (
    OURS,
    STATE,
    NamedThings,
    UnclearPointer,
    UnreadablePointer,
    follow_pointer,
    identity_lineage,
    is_tracker,
    leads_nowhere,
    pointer_status,
    read_description,
    read_ignored,
    read_own_words,
    read_possible_hint,
    read_possible_pointer,
    read_text_above,
)
from sentinel.clean.weight import add_needs
from sentinel.core.checkpoint_names import is_description, is_log, parse_step_numbers

_SELF_NAMED_PATTERN = re.compile(
    r"(?<![a-z0-9])(latest|last|best|lowest|highest|newest|final|keep|kept|pinned|protected)(?![a-z0-9])",
    re.IGNORECASE,
)


def find_named(fd: int, path: str, rules: RetentionRules) -> NamedThings:
    """The targets of the links and trackers directly in an open directory. Raises UnclearPointer if
    one cannot be followed."""
    found, hints = NamedThings(), list[str]()
    for name, link in _possible_pointers(fd, rules):
        if rules.is_ignored(name):
            if link or (is_tracker(name) and name != STATE):
                found.add_named(read_ignored(fd, path, name, link=link))
            continue
        if not link and not _is_pointer_name(name, rules):
            hints.append(name)
            continue
        try:
            if link or is_tracker(name):
                found.add_named(follow_pointer(fd, path, name, link=link))
            else:
                found.add_named(read_possible_pointer(fd, path, name))
        except UnclearPointer as error:
            error.remedy = f"; if it points to no checkpoint, write `ignore: [{name}]`"
            raise
    for name in choose_hints(hints):
        hint = read_possible_hint(fd, path, name, rules)
        if rules.pattern.groups and not is_log(name):
            # It is a part of the step of its own number: `steps` holds what has such parts, and tells it.
            hint.text.numbers.difference_update(parse_step_numbers(name))
        found.add_named(hint)
    return found


def _possible_pointers(fd: int, rules: RetentionRules) -> list[tuple[str, bool]]:
    """Links, and files that may be pointers by their names."""
    pointing = rules.pointing
    with os.scandir(fd) as rows:
        # Of 100,000 rows, most are known not to be pointers after the first check.
        found = [e for e in rows if pointing.get(e.name) is not False or e.is_symlink()]
    ours = [(e.name, e.is_symlink()) for e in found if not e.name.startswith(OURS)]
    return [(name, link) for name, link in ours if link or _may_point(name, rules)]


def _may_point(name: str, rules: RetentionRules) -> bool:
    """Whether a file of that name is read for the names in it. This is decided once for each name."""
    known = rules.pointing.get(name)
    if known is None:
        known = _is_pointer_name(name, rules) or (may_hint(name) and not rules.fits_name(name))
        rules.pointing[name] = known
    return known


def _is_pointer_name(name: str, rules: RetentionRules) -> bool:
    """Whether the name itself says that the file may be a pointer."""
    return (
        is_tracker(name)
        or is_pointing(name)
        or (is_about_checkpoints(name) and not rules.fits_name(name))
    )


def named_inside(fd: int, path: str) -> set[tuple[int, int]]:
    """The identities of the targets of trackers in a directory of a checkpoint. Raises
    UnreadablePointer.

    A tracker that leads nowhere names nothing, because a former best checkpoint may have been
    removed by right.
    """
    found = set[tuple[int, int]]()
    for name, link in _list_entries(fd):
        if is_tracker(name):
            try:
                found |= follow_pointer(fd, path, name, link=link).identities
            except UnreadablePointer:
                raise
            except UnclearPointer:
                continue
    return found


def names_needed(
    fd: int, path: str, there: frozenset[str], *, deep: bool = False
) -> dict[str, bool]:
    """The names in `there` that stand in texts directly in a directory of a checkpoint, as the
    base of an adapter does (adapter_config.json, https://github.com/huggingface/peft, src/peft/config.py;
    hyperparameters.yaml of LitGPT): False for one that the run was only resumed from. If the directory is
    `deep`, only descriptions are read, because chunks of arrays lie there."""
    found = dict[str, bool]()
    names = _list_texts(fd)
    described = [name for name in names if is_description(name)]
    for name in {*described, *choose_hints([] if deep else names)}:
        add_needs(found, _choose_needed(read_description(fd, path, name), there))
    return found


def names_needed_by_file(fd: int, path: str, name: str, there: frozenset[str]) -> dict[str, bool]:
    """The same of a file that is an entry itself: the metadata of safetensors name a base too
    (`ss_sd_model_name`, https://github.com/kohya-ss/sd-scripts)."""
    words = read_own_words(fd, path, name)
    words.pop(name, None)
    return _choose_needed(words, there)


def _choose_needed(words: dict[str, bool], there: frozenset[str]) -> dict[str, bool]:
    return {word: base for word, base in words.items() if word in there}


def named_beside(path: str, rules: RetentionRules) -> NamedThings:
    """The targets of links and trackers in the directory above, and the entries that small texts there name in
    full. Those that cannot be read are left out, because most files there do not concern this root."""
    above, found = os.path.dirname(path), NamedThings()
    with suppress(OSError):
        fd = os.open(above, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            for name, link in _list_entries(fd):
                if link or is_tracker(name):
                    with suppress(UnclearPointer):
                        found.identities |= follow_pointer(fd, above, name, link=link).identities
            there = frozenset(os.listdir(path))
            for name in choose_hints(_list_texts(fd)):
                found.text.names |= read_text_above(fd, above, name, rules, there).names & there
        finally:
            os.close(fd)
    return found


def named_by(pointer: str, path: str) -> NamedThings:
    """The target of one pointer in another place. It is a link, or a tracker whose text is relative
    to the root at `path` or to its own directory. Raises UnclearPointer."""
    above, name = os.path.split(pointer.rstrip("/"))
    try:
        fd = os.open(above, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise UnreadablePointer(f"{pointer}: {error.strerror}") from None
    try:
        link = stat.S_ISLNK(pointer_status(fd, pointer.rstrip("/")).st_mode)
        try:
            return follow_pointer(fd, above, name, link=link, root=path)
        except UnreadablePointer:
            raise
        except UnclearPointer:
            return follow_pointer(fd, above, name, link=link)
    finally:
        os.close(fd)


def link_identities(fd: int, link: str, where: str) -> set[tuple[int, int]]:
    """The identities of the target of a link in a checkpoint, and of all directories above the
    target. Empty if the link leads nowhere. Raises UnreadablePointer."""
    try:
        return identity_lineage(f"/proc/self/fd/{fd}/{link}")
    except OSError as error:
        if leads_nowhere(error):
            return set()
        raise UnreadablePointer(f"{where}: cannot be followed: {error.strerror}") from None


def names_itself(name: str) -> bool:
    """Whether its name says why it stays: a trainer continues from last.ckpt (Lightning), *-last (NeMo) and
    checkpoint_best.pt (fairseq), and 1000_keep (DINOv3) is a copy that its own retention leaves."""
    return _SELF_NAMED_PATTERN.search(name) is not None


def _list_entries(fd: int) -> list[tuple[str, bool]]:
    with os.scandir(fd) as found:
        return [(e.name, e.is_symlink()) for e in found if not e.name.startswith(OURS)]


def _list_texts(fd: int) -> list[str]:
    """The files that may be texts and are no trackers. Where something is mounted is not asked."""
    with os.scandir(fd) as found:
        names = [e.name for e in found if e.is_file(follow_symlinks=False)]
    return [n for n in names if may_hint(n) and not (is_tracker(n) or n.startswith(OURS))]
