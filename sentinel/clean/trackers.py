"""Reads one pointer: a link, a tracker, or a small file whose text names a checkpoint.

Trackers, as their programs write them:

- `latest`, `latest_universal`: the name of a directory (deepspeed/runtime/engine.py,
    `save_checkpoint` and `load_checkpoint`: the file is read whole and stripped);
- `latest_checkpointed_iteration.txt`: a number, or `release` (megatron/training/checkpointing.py,
    `read_metadata`; verl writes the same file beside `global_step_N`);
- `trainer_state.json`: `best_model_checkpoint`, a path as the job saw it, and from 4.50 on
    `best_global_step` (transformers/trainer_callback.py, `TrainerState.save_to_json`);
- `last_checkpoint` (detectron2's fvcore/common/checkpoint.py, `tag_last_checkpoint`), `checkpoint`
    (TensorFlow's CheckpointState) and the like, of any form: everything that such a small file
    mentions counts.

The checkpoints that they name are compared by device and inode. Names and numbers count as well,
but only to keep more entries, because one file system that is mounted twice may have two devices.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress

from sentinel.clean.hints import MAX_HINT_BYTES, read_hint
from sentinel.clean.mentions import (
    Mentions,
    has_to_name_one,
    has_weights_name,
    is_flag,
    is_log_file,
    is_structured,
    is_text,
    is_weights,
    mentions_in_bytes,
    mentions_in_json,
    mentions_in_text,
)
from sentinel.clean.rules import RetentionRules
from sentinel.clean.weight import identity_of
from sentinel.core.checkpoint_names import is_description, parse_step_numbers

OURS = ".sentinel-"
"""The beginning of the names that entries get before they are removed."""

MAX_POINTER_BYTES = 4096
"""How long a tracker may be, in bytes: no path is longer (PATH_MAX, limits.h)."""

MAX_TEXT_BYTES = 1 << 20
"""How many bytes of a text or JSON are searched for names."""

MAX_HEADER_BYTES = 1 << 16
"""How many bytes of safetensors are read for its metadata."""

STATE, STATE_LONGEST = "trainer_state.json", 1 << 20
"""The name of the trainer's state, and how many bytes of it are read. Its keys are sorted, so the
values that count are at its beginning, before the history of losses."""

FOLLOWING = "following "
"""Begins the line on stderr that says which pointer is being followed."""

_BEST_PATTERN = re.compile(rb'"best_model_checkpoint":\s*("(?:[^"\\]|\\.)*"|null)')
_BEST_STEP_PATTERN = re.compile(rb'"best_global_step":\s*(\d{1,18})\b')
_TRACKER_PATTERN = re.compile(r"\.?latest(?!_wandb_artifact_path\.txt)", re.IGNORECASE)
"""Megatron's latest_wandb_artifact_path.txt names an entity and a project (megatron/training/wandb_utils.py)."""


class UnclearPointer(Exception):
    """A pointer that leads nowhere, or whose text cannot be understood. The text has its path and
    the reason."""

    remedy = ""
    """The remedy for a person who knows that it points to no checkpoint."""


class UnreadablePointer(UnclearPointer):
    """A pointer that cannot even be read."""


class NamedThings:
    """The targets of pointers: `identities` of them and of all directories above them, and `text`,
    the names in the pointers' texts."""

    def __init__(self, text: Mentions | None = None) -> None:
        self.identities: set[tuple[int, int]] = set()
        self.text = text or Mentions()

    def covers_entry(self, name: str, identity: tuple[int, int]) -> bool:
        """Whether this entry of the directory is named, or may be."""
        return identity in self.identities or self.text.covers_name(name)

    def add_named(self, other: NamedThings) -> None:
        """Add what other pointers name."""
        self.identities |= other.identities
        self.text.add_mentions(other.text)


def is_tracker(name: str) -> bool:
    """Whether a file of that name only says from where a run continues."""
    return name == STATE or _TRACKER_PATTERN.match(name) is not None


def follow_pointer(fd: int, path: str, name: str, *, link: bool, root: str = "") -> NamedThings:
    """The target of a link or tracker. Raises UnclearPointer.

    The path of the pointer is printed first, because following it may hang. So whoever ends this
    process knows the reason.
    """
    pointer = os.path.join(path, name)
    start = root or f"/proc/self/fd/{fd}"
    with _announce_pointer(pointer):
        return (
            _follow_link(fd, pointer, name, start)
            if link
            else _read_tracker(fd, pointer, name, start)
        )


def read_possible_pointer(fd: int, path: str, name: str) -> NamedThings:
    """The names in a file that may be a pointer. Raises UnclearPointer if it must be one and cannot
    be understood."""
    pointer = os.path.join(path, name)
    with _announce_pointer(pointer):
        status = pointer_status(fd, pointer)
        if not stat.S_ISREG(status.st_mode):
            return NamedThings()
        raw = _read_at_most(fd, pointer, MAX_TEXT_BYTES)
        if (named := _read_weights(raw, status.st_size, fd, pointer)) is not None:
            return named
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


def read_possible_hint(fd: int, path: str, name: str, rules: RetentionRules) -> NamedThings:
    """The names of checkpoints beside it in a small text file. Empty if it cannot be read."""
    pointer = os.path.join(path, name)
    with _announce_pointer(pointer), suppress(UnclearPointer):
        status = pointer_status(fd, pointer)
        if stat.S_ISREG(status.st_mode) and 0 < status.st_size <= MAX_HINT_BYTES:
            there = frozenset(names_in(f"/proc/self/fd/{fd}", pointer))
            return NamedThings(read_hint(_read_at_most(fd, pointer, MAX_HINT_BYTES), there, rules))
    return NamedThings()


def read_text_above(
    fd: int, path: str, name: str, rules: RetentionRules, there: frozenset[str]
) -> Mentions:
    """The entries of the root that a small text in the directory above it names. Empty if it cannot be read, or
    if not everybody may read it: what is kept would tell what it holds."""
    pointer = os.path.join(path, name)
    with suppress(UnclearPointer):
        status = pointer_status(fd, pointer)
        may_read = status.st_mode & stat.S_IROTH or status.st_uid == os.geteuid()
        if stat.S_ISREG(status.st_mode) and may_read and 0 < status.st_size <= MAX_HINT_BYTES:
            return read_hint(_read_at_most(fd, pointer, MAX_HINT_BYTES), there, rules)
    return Mentions()


def read_description(fd: int, path: str, name: str) -> dict[str, bool]:
    """The words and parts of paths in a description of at most 1 MiB, or in another text of 64 KiB, without
    lone numbers: False for those that only say from where a run was resumed. Empty if it cannot be read."""
    pointer = os.path.join(path, name)
    announced = _announce_pointer(pointer) if is_description(name) else nullcontext()
    with announced, suppress(UnclearPointer):
        status = pointer_status(fd, pointer)
        most = MAX_TEXT_BYTES if is_description(name) else MAX_HINT_BYTES
        if stat.S_ISREG(status.st_mode) and 0 < status.st_size <= most:
            return _find_words(_read_at_most(fd, pointer, most))
    return {}


def read_own_words(fd: int, path: str, name: str) -> dict[str, bool]:
    """The same of the beginning of an entry: of a description, or of safetensors up to the first tensor."""
    if is_description(name) or name.endswith(".safetensors"):
        with suppress(UnclearPointer):
            raw = _read_at_most(fd, os.path.join(path, name), MAX_HEADER_BYTES)
            return _find_words(raw.partition(b'"dtype"')[0])
    return {}


def _find_words(raw: bytes) -> dict[str, bool]:
    resumed, others = _part_resumed(os.fsdecode(raw))
    return dict.fromkeys(resumed, False) | dict.fromkeys(others, True)


def _part_resumed(text: str) -> tuple[list[str], list[str]]:
    """The words of keys such as `resume_from` with their values, and all others."""
    resumed, others = list[str](), list[str]()
    was_key = is_marked = False
    for token in re.findall(r"[^\s,{}=]+|=", text):
        if token in (":", "="):
            is_marked = True
            continue
        key, colon, value = token.partition(":")
        name = key.strip("\"'").rpartition("-")[2]
        is_key = name.isidentifier() and "resume" in name.lower()
        is_value = was_key and is_marked
        (resumed if is_key or is_value else others).extend(_list_words(token))
        was_key, is_marked = is_key and not is_value and not value, bool(colon)
    return resumed, others


def _list_words(text: str) -> Iterator[str]:
    for word in re.findall(r"/?[^\s\"',:/]+", text):
        if not word.isdigit():
            yield word.removeprefix("/")


def read_ignored(fd: int, path: str, name: str, *, link: bool) -> NamedThings:
    """The entries whose names or numbers stand in a link or tracker that `ignore` names. Empty if it
    cannot be read. Whoever follows the advice of a message loses nothing by it."""
    pointer = os.path.join(path, name)
    with _announce_pointer(pointer), suppress(UnclearPointer, OSError):
        raw = os.fsencode(os.readlink(name, dir_fd=fd)) if link else b""
        if not link and stat.S_ISREG(pointer_status(fd, pointer).st_mode):
            raw = _read_at_most(fd, pointer, MAX_POINTER_BYTES)
        if is_text(raw) and len(raw) <= MAX_POINTER_BYTES:
            text, there = (
                raw.decode("utf-8", "replace"),
                frozenset(names_in(f"/proc/self/fd/{fd}", pointer)),
            )
            return NamedThings(mentions_in_json(text, there) or mentions_in_text(text, there))
    return NamedThings()


def identity_lineage(path: str) -> set[tuple[int, int]]:
    """The identities of the path's target and of every directory above it. Raises OSError."""
    real = os.path.realpath(path, strict=True)
    found = {identity_of(os.stat(real))}
    while real != "/":
        real = os.path.dirname(real)
        found.add(identity_of(os.stat(real)))
    return found


def leads_nowhere(error: OSError) -> bool:
    """Whether the error means that nothing is there, and not only that it may not be seen."""
    return error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


def pointer_status(fd: int, pointer: str) -> os.stat_result:
    """The status of a pointer in an open directory, without following it. Raises UnclearPointer."""
    try:
        return os.stat(os.path.basename(pointer), dir_fd=fd, follow_symlinks=False)
    except OSError as error:
        raise _unread_error(pointer, error) from None


def names_in(start: str, pointer: str) -> list[str]:
    """The names beside a pointer, without its own. Raises UnreadablePointer."""
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
    """The names in the text of a tracker. Empty for a directory, which is a checkpoint itself."""
    status = pointer_status(fd, pointer)
    if stat.S_ISDIR(status.st_mode):
        return NamedThings()
    if not stat.S_ISREG(status.st_mode):
        raise UnreadablePointer(f"{pointer}: is neither a file nor a link")
    if name == STATE:
        return _best_checkpoint(_read_at_most(fd, pointer, STATE_LONGEST), pointer, start)
    raw = _read_at_most(fd, pointer, MAX_TEXT_BYTES)
    if (named := _read_weights(raw, status.st_size, fd, pointer)) is not None:
        return named
    return _understand_tracker(raw, pointer, name, start)


def _read_weights(raw: bytes, size: int, fd: int, pointer: str) -> NamedThings | None:
    """The names in a file with weights or in another binary format. None if it is no such file, or
    may be a damaged one.

    A file that is not longer than a path may be a tracker: `latest.t7`, `latest.pt`.
    """
    name, small = os.path.basename(pointer), len(raw) <= MAX_POINTER_BYTES
    sure = is_weights(name, raw[:MAX_POINTER_BYTES], size, MAX_POINTER_BYTES)
    if sure and not small:
        return NamedThings()
    if not (sure or (small and has_weights_name(name) and not is_text(raw))):
        return None
    found = mentions_in_bytes(raw, names_in(f"/proc/self/fd/{fd}", pointer))
    return NamedThings(found) if sure or found.names else None


def _understand_tracker(raw: bytes, pointer: str, name: str, start: str) -> NamedThings:
    """The names in the content of a tracker. In JSON and configurations everything counts that they
    mention. A log that is not understood names nothing. Any other text must be one name or number
    that exists."""
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
    """The target of a link. If that is a tracker file, also the names in its text."""
    found, target = NamedThings(), f"/proc/self/fd/{fd}/{name}"
    try:
        found.text.names = set(os.readlink(name, dir_fd=fd).split("/")) - {"", ".", ".."}
        found.identities = identity_lineage(target)
        status = os.stat(target)
        around = identity_lineage(start)
        may_read = _may_read_target(fd, name, status)
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
    if stat.S_ISREG(status.st_mode) and not may_read:
        raise UnreadablePointer(f"{pointer}: is a link of one user to a file of another")
    if stat.S_ISREG(status.st_mode) and status.st_size <= MAX_POINTER_BYTES:
        raw = _read_target(target, pointer, status)
        with suppress(UnclearPointer, OSError):
            found.add_named(_understand_tracker(raw, pointer, name, start))
    return found


def _may_read_target(fd: int, name: str, target: os.stat_result) -> bool:
    """Whether the text behind a link may be read.

    If a link belongs to another user than the folder's owner, root reads only a text of that other
    user. Otherwise the entries that are kept would show which words are in the text. If it may not
    be read, nothing is removed, because the step that the text names is not known.
    """
    link = os.stat(name, dir_fd=fd, follow_symlinks=False)
    return link.st_uid in {0, os.geteuid(), os.fstat(fd).st_uid, target.st_uid}


def _read_target(target: str, pointer: str, seen: os.stat_result) -> bytes:
    """Read the target of a link, if it is the file that was seen: who may read that was decided, and
    opening a device may have effects. Raises UnreadablePointer."""
    try:
        at = os.open(target, os.O_PATH | os.O_CLOEXEC)
    except OSError as error:
        raise _unread_error(pointer, error) from None
    try:
        if not os.path.samestat(os.fstat(at), seen):
            raise UnreadablePointer(f"{pointer}: was replaced while it was read")
        # Whoever holds a lease on it (fcntl(2)) would keep who opens it waiting.
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
        with open(os.open(f"/proc/self/fd/{at}", flags), "rb") as file:
            return file.read(MAX_POINTER_BYTES)
    except OSError as error:
        raise _unread_error(pointer, error) from None
    finally:
        os.close(at)


def _read_at_most(fd: int, pointer: str, most: int) -> bytes:
    """Read at most one byte more than `most`."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        with open(os.open(os.path.basename(pointer), flags, dir_fd=fd), "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise UnreadablePointer(f"{pointer}: is neither a file nor a link")
            return stream.read(most + 1)
    except OSError as error:
        raise _unread_error(pointer, error) from None


def _unread_error(pointer: str, error: OSError) -> UnclearPointer:
    """The error for a pointer that cannot be read. A pointer that vanished meanwhile is not
    unreadable, but it named something."""
    kind = UnclearPointer if leads_nowhere(error) else UnreadablePointer
    return kind(f"{pointer}: cannot be read: {error.strerror}")


def _resolve_text(text: str, pointer: str, start: str, there: frozenset[str]) -> NamedThings:
    """The names in the text of a tracker: a number, a path from the root or from /, the beginning
    of names, or a URL whose last parts exist here. Raises UnclearPointer."""
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
        # A path relative to the job's directory, in an object store, or as Python prints it.
        if re.split(r"[/'\"()\s]+", text.rstrip("/'\")"))[-1] in there:
            return found
        raise UnclearPointer(f"{pointer}: names {text!r}: {error.strerror}") from None
    if itself:
        raise UnclearPointer(f"{pointer}: names {text!r}, which is no checkpoint in it")
    found.text.add_name(text)
    return found


def _best_checkpoint(raw: bytes, pointer: str, start: str) -> NamedThings:
    """The best checkpoint in a trainer's state. Its path may be the one that the job saw. Then the
    last part of the path counts."""
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
