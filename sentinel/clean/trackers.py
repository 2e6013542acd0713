"""Reading one pointer: a link, a tracker, or a small file whose text names a checkpoint.

Trackers, as their programs write them:
- `latest`, `latest_universal`: the name of a directory (deepspeed/runtime/engine.py,
  `save_checkpoint` and `load_checkpoint`: the file is read whole and stripped);
- `latest_checkpointed_iteration.txt`: a number, or `release` (megatron/training/checkpointing.py,
  `read_metadata`; verl writes the same file beside `global_step_N`);
- `trainer_state.json`: `best_model_checkpoint`, a path as the job saw it, and from 4.50 on
  `best_global_step` (transformers/trainer_callback.py, `TrainerState.save_to_json`);
- `last_checkpoint` (detectron2's fvcore/common/checkpoint.py, `tag_last_checkpoint`), `checkpoint`
  (TensorFlow's CheckpointState) and the like, of any form: whatever such a small file mentions.

What they name is compared by device and inode. Names and numbers count as well, but only ever to
spare more: one file system that is mounted twice may have two devices.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from sentinel.clean.mentions import (
    Mentions,
    has_to_name_one,
    is_flag,
    is_log_file,
    is_structured,
    is_text,
    is_weights,
    mentions_in_json,
    mentions_in_text,
)
from sentinel.clean.weight import identity_of
from sentinel.core.checkpoint_names import parse_step_numbers

OURS = ".sentinel-"
"""How the names begin under which entries go."""

MAX_POINTER_BYTES = 4096
"""Bytes of a tracker: no path is longer (PATH_MAX, limits.h)."""

MAX_TEXT_BYTES = 1 << 20
"""Bytes of a text or JSON that are read for what they mention."""

STATE, STATE_LONGEST = "trainer_state.json", 1 << 20
"""Its keys are sorted, so what counts stands at its beginning; the history of losses follows."""

FOLLOWING = "following "
"""Begins the line on stderr that says which pointer is being followed."""

_BEST_PATTERN = re.compile(rb'"best_model_checkpoint":\s*("(?:[^"\\]|\\.)*"|null)')
_BEST_STEP_PATTERN = re.compile(rb'"best_global_step":\s*(\d+)')
_TRACKER_PATTERN = re.compile(r"\.?latest", re.IGNORECASE)


class UnclearPointer(Exception):
    """A pointer that leads nowhere, or whose text is none: its path, and what is wrong with it."""

    remedy = ""
    """What somebody may do who knows that it points to no checkpoint."""


class UnreadablePointer(UnclearPointer):
    """A pointer that cannot even be read."""


class NamedThings:
    """What pointers lead to: `identities` of it and of all directories above it, and what their
    texts mention."""

    def __init__(self, text: Mentions | None = None) -> None:
        self.identities: set[tuple[int, int]] = set()
        self.text = text or Mentions()

    def covers_entry(self, name: str, identity: tuple[int, int]) -> bool:
        """Whether an entry of the directory is meant, or may be."""
        return identity in self.identities or self.text.covers_name(name)

    def add_named(self, other: NamedThings) -> None:
        """What others lead to."""
        self.identities |= other.identities
        self.text.add_mentions(other.text)


def is_tracker(name: str) -> bool:
    """Whether a file of that name says nothing but where a run begins again."""
    return name == STATE or _TRACKER_PATTERN.match(name) is not None


def follow_pointer(fd: int, path: str, name: str, *, link: bool, root: str = "") -> NamedThings:
    """What a link or a tracker leads to; raises UnclearPointer. Its path is told first: following it may
    hang, and whoever ends this process then knows where."""
    pointer = os.path.join(path, name)
    start = root or f"/proc/self/fd/{fd}"
    with _announce_pointer(pointer):
        return (
            _follow_link(fd, pointer, name, start)
            if link
            else _read_tracker(fd, pointer, name, start)
        )


def read_possible_pointer(fd: int, path: str, name: str) -> NamedThings:
    """What a file that may be a pointer names; raises UnclearPointer where it can be nothing else and is
    not understood."""
    pointer = os.path.join(path, name)
    with _announce_pointer(pointer):
        status = pointer_status(fd, pointer)
        if not stat.S_ISREG(status.st_mode):
            return NamedThings()
        raw = _read_at_most(fd, pointer, MAX_TEXT_BYTES)
        if is_weights(name, raw[:MAX_POINTER_BYTES], status.st_size, MAX_POINTER_BYTES):
            return NamedThings()
        if is_log_file(name) and len(raw) > MAX_POINTER_BYTES:
            return NamedThings()
        text = raw[:MAX_TEXT_BYTES].decode("utf-8", "surrogateescape")
        understood = text.strip() and is_text(raw) and len(raw) <= MAX_TEXT_BYTES
        if not understood and has_to_name_one(name):
            raise UnclearPointer(
                f"{pointer}: is named like a pointer, and holds none that is understood"
            )
        there = frozenset(names_in(f"/proc/self/fd/{fd}", pointer))
        return NamedThings(mentions_in_json(text, there) or mentions_in_text(text, there))


def identity_lineage(path: str) -> set[tuple[int, int]]:
    """Which very one it is, with every directory above it; raises OSError."""
    real = os.path.realpath(path, strict=True)
    found = {identity_of(os.stat(real))}
    while real != "/":
        real = os.path.dirname(real)
        found.add(identity_of(os.stat(real)))
    return found


def leads_nowhere(error: OSError) -> bool:
    """Whether there is nothing, and not only nothing that may be seen."""
    return error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


def pointer_status(fd: int, pointer: str) -> os.stat_result:
    """What the pointer in an open directory is; raises UnclearPointer."""
    try:
        return os.stat(os.path.basename(pointer), dir_fd=fd, follow_symlinks=False)
    except OSError as error:
        raise _unread_error(pointer, error) from None


def names_in(start: str, pointer: str) -> list[str]:
    """What lies beside a pointer, without itself; raises UnreadablePointer."""
    own = os.path.basename(pointer)
    try:
        return [n for n in os.listdir(start) if n != own and not n.startswith(OURS)]
    except OSError as error:
        raise UnreadablePointer(f"{pointer}: {error.strerror}") from None


@contextmanager
def _announce_pointer(pointer: str) -> Iterator[None]:
    print(f"{FOLLOWING}{pointer}", file=sys.stderr, flush=True)  # noqa: T201
    yield
    print("followed", file=sys.stderr, flush=True)  # noqa: T201


def _read_tracker(fd: int, pointer: str, name: str, start: str) -> NamedThings:
    """What the text of a tracker names; a directory of that name is a checkpoint itself."""
    status = pointer_status(fd, pointer)
    if stat.S_ISDIR(status.st_mode):
        return NamedThings()
    if not stat.S_ISREG(status.st_mode):
        raise UnreadablePointer(f"{pointer}: is neither a file nor a link")
    if name == STATE:
        return _best_checkpoint(_read_at_most(fd, pointer, STATE_LONGEST), pointer, start)
    raw = _read_at_most(fd, pointer, MAX_TEXT_BYTES)
    if is_weights(name, raw[:MAX_POINTER_BYTES], status.st_size, MAX_POINTER_BYTES):
        return NamedThings()
    return _understand_tracker(raw, pointer, name, start)


def _understand_tracker(raw: bytes, pointer: str, name: str, start: str) -> NamedThings:
    """What a tracker's content names: JSON and configurations whatever they mention, a log
    nothing, all else one name or number that is there."""
    text = os.fsdecode(raw).strip()
    if not text and is_flag(name):
        return NamedThings()
    there = frozenset(names_in(start, pointer))
    if text[:1] in ("{", "[") and len(raw) <= MAX_TEXT_BYTES:
        if (found := mentions_in_json(text, there)) is None:
            if is_log_file(name):
                return NamedThings()
            raise UnclearPointer(f"{pointer}: is JSON that is cut or damaged")
        return NamedThings(found)
    if is_structured(name) and len(raw) <= MAX_TEXT_BYTES:
        found = mentions_in_text(text, there)
        if any(found.covers_name(other) for other in there):
            return NamedThings(found)
    try:
        if len(raw) > MAX_POINTER_BYTES:
            raise UnclearPointer(f"{pointer}: is longer than any name of a checkpoint")
        return _resolve_text(text, pointer, start, there)
    except UnclearPointer:
        if is_log_file(name):
            return NamedThings()
        raise


def _follow_link(fd: int, pointer: str, name: str, start: str) -> NamedThings:
    """What a link leads to; where that is a tracker, what its text names as well."""
    found, target = NamedThings(), f"/proc/self/fd/{fd}/{name}"
    try:
        found.text.names = set(os.readlink(name, dir_fd=fd).split("/")) - {"", ".", ".."}
        found.identities = identity_lineage(target)
        status = os.stat(target)
        around = identity_lineage(start)
    except OSError as error:
        kind = UnclearPointer if leads_nowhere(error) else UnreadablePointer
        raise kind(f"{pointer}: is a link that leads nowhere: {error.strerror}") from None
    if not is_tracker(name):
        return found
    if identity_of(status) in around:
        raise UnclearPointer(
            f"{pointer}: leads to {os.path.realpath(target)}, which is no checkpoint"
        )
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        raise UnreadablePointer(f"{pointer}: leads to what is neither a file nor a directory")
    if stat.S_ISREG(status.st_mode) and status.st_size <= MAX_POINTER_BYTES:
        with suppress(UnclearPointer, OSError):
            found.add_named(_understand_tracker(_read_target(target), pointer, name, start))
    return found


def _read_target(target: str) -> bytes:
    """What a link leads to is opened only if it is a file still: opening a device may do something."""
    at = os.open(target, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(at).st_mode):
            return b""
        with open(f"/proc/self/fd/{at}", "rb") as file:
            return file.read(MAX_POINTER_BYTES)
    finally:
        os.close(at)


def _read_at_most(fd: int, pointer: str, most: int) -> bytes:
    """One byte more than `most`, at most."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        with open(os.open(os.path.basename(pointer), flags, dir_fd=fd), "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise UnreadablePointer(f"{pointer}: is neither a file nor a link")
            return stream.read(most + 1)
    except OSError as error:
        raise _unread_error(pointer, error) from None


def _unread_error(pointer: str, error: OSError) -> UnclearPointer:
    """What vanishes meanwhile is not closed to anybody, but it named something."""
    kind = UnclearPointer if leads_nowhere(error) else UnreadablePointer
    return kind(f"{pointer}: cannot be read: {error.strerror}")


def _resolve_text(text: str, pointer: str, start: str, there: frozenset[str]) -> NamedThings:
    """What a tracker's text names: a number, a path from the root or from /, what names begin with,
    or a URL whose last parts are there."""
    found = NamedThings()
    if not text or not text.isprintable():
        raise UnclearPointer(f"{pointer}: holds no name of a checkpoint")
    if text.isascii() and text.isdigit():
        found.text.numbers = {int(text)}
        if not any(int(text) in parse_step_numbers(name) for name in there):
            raise UnclearPointer(f"{pointer}: names {text}, and no such checkpoint is there")
        return found
    try:
        found.identities = identity_lineage(os.path.join(start, text))
        itself = identity_of(os.stat(os.path.join(start, text))) in identity_lineage(start)
    except OSError as error:
        found.text = mentions_in_text(text, there)
        far = "/" not in text or text.startswith("/") or "://" in text
        if far and any(found.text.covers_name(name) for name in there):
            return found
        raise UnclearPointer(f"{pointer}: names {text!r}: {error.strerror}") from None
    if itself:
        raise UnclearPointer(f"{pointer}: names {text!r}, which is no checkpoint in it")
    found.text.add_name(text)
    return found


def _best_checkpoint(raw: bytes, pointer: str, start: str) -> NamedThings:
    """The best checkpoint of a trainer's state, which may be told from where the job ran: then its
    last step counts."""
    match = _BEST_PATTERN.search(raw)
    if match is None and (len(raw) > STATE_LONGEST or not raw.lstrip().startswith(b"{")):
        raise UnclearPointer(f"{pointer}: is no state of a trainer that can be read")
    try:
        text = json.loads(match[1]) if match else None
    except ValueError:
        raise UnclearPointer(f"{pointer}: is no state of a trainer that can be read") from None
    found = NamedThings()
    if step := _BEST_STEP_PATTERN.search(raw):
        found.text.numbers = {int(step[1])}
    if not text:
        return found
    last = os.path.basename(text.rstrip("/"))
    for place in (text, last, os.path.join(os.pardir, last)):
        with suppress(OSError, ValueError):
            found.identities |= identity_lineage(os.path.join(start, place))
    if not found.identities:
        raise UnclearPointer(f"{pointer}: names {text!r}, and it is not there")
    return found
