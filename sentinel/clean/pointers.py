"""What links and trackers lead to: a run begins there again, however old it is.

Trackers, as their programs write them:
- `latest`, `latest_universal`: the name of a directory (deepspeed/runtime/engine.py,
  `save_checkpoint` and `load_checkpoint`: the file is read whole and stripped);
- `latest_checkpointed_iteration.txt`: a number, or `release` (megatron/training/checkpointing.py,
  `read_metadata`; verl writes the same file beside `global_step_N`);
- `trainer_state.json`: `best_model_checkpoint`, a path as the job saw it
  (transformers/trainer_callback.py, `TrainerState.save_to_json`);
- `last_checkpoint` (detectron2's fvcore/common/checkpoint.py, `tag_last_checkpoint`), `checkpoint`
  (TensorFlow's CheckpointState) and the like, of any form: whatever such a small file mentions.

What they name is compared by device and inode. Names count as well, but only ever to spare more:
one file system that is mounted twice may have two devices.
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

OURS = ".sentinel-"
"""How the names begin under which entries go."""

LONGEST = 4096
"""Bytes of a tracker: no path is longer (PATH_MAX, limits.h)."""

STATE, STATE_LONGEST = "trainer_state.json", 1 << 20
"""Its keys are sorted, so what counts stands at its beginning; the history of losses follows."""

FOLLOWING = "following "
"""Begins the line on stderr that says which pointer is being followed."""

_BEST = re.compile(rb'"best_model_checkpoint":\s*("(?:[^"\\]|\\.)*"|null)')
_TRACKER = re.compile(r"\.?latest", re.IGNORECASE)
_ITSELF = re.compile(r"(?<![a-z0-9])(latest|last|best)(?![a-z0-9])", re.IGNORECASE)
_HINT = re.compile(
    r"[^0-9]*(?<![a-z0-9])(last|best|current|newest|resume|checkpoint)(?![a-z0-9])[^0-9]*",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\s\"'`,;:=/()\[\]{}<>]+")
_NOWHERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_ARCHIVE = b"PK\x03\x04"
"""How a file of torch.save() begins: `latest.pt` is a checkpoint itself."""


class Unclear(Exception):
    """A pointer that leads nowhere, or whose text is none: its path, and what is wrong with it."""


class Unreadable(Unclear):
    """A pointer that cannot even be read."""


class Named:
    """What pointers lead to: `identities` of it and of all directories above it, the `names` in
    their texts, and `numbers` of checkpoints."""

    def __init__(self) -> None:
        self.identities: set[tuple[int, int]] = set()
        self.names: set[str] = set()
        self.numbers: set[int] = set()

    def covers(self, name: str, identity: tuple[int, int]) -> bool:
        """Whether an entry of the directory is meant, or may be."""
        return (
            identity in self.identities
            or name in self.names
            or not self.numbers.isdisjoint(_numbers(name))
        )

    def add(self, other: Named) -> None:
        """What others lead to."""
        self.identities |= other.identities
        self.names |= other.names
        self.numbers |= other.numbers


def named(fd: int, path: str) -> Named:
    """What the links and trackers directly in an open directory lead to; raises Unclear where one
    cannot be followed."""
    found = Named()
    for name, link in _rows(fd):
        if link or _is_tracker(name):
            found.add(_one(fd, path, name, link=link))
        elif _HINT.fullmatch(name):
            found.names |= _mentioned(fd, os.path.join(path, name))
    return found


def named_inside(fd: int, path: str) -> set[tuple[int, int]]:
    """What the trackers in a directory of a checkpoint lead to, by identity alone. One that leads nowhere names
    nothing: a checkpoint that was the best once may be gone by right. Raises Unreadable."""
    found = set[tuple[int, int]]()
    for name, link in _rows(fd):
        if _is_tracker(name):
            try:
                found |= _one(fd, path, name, link=link).identities
            except Unreadable:
                raise
            except Unclear:
                continue
    return found


def named_beside(path: str) -> set[tuple[int, int]]:
    """What links and trackers in the directory above lead to, as far as that can be seen: most of
    what lies there is no business of the root's."""
    above, found = os.path.dirname(path), set[tuple[int, int]]()
    with suppress(OSError):
        fd = os.open(above, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            for name, link in _rows(fd):
                if link or _is_tracker(name):
                    with suppress(Unclear):
                        found |= _one(fd, above, name, link=link).identities
        finally:
            os.close(fd)
    return found


def named_by(pointer: str, path: str) -> Named:
    """What one pointer elsewhere leads to: a link, or a tracker whose text counts from the root at
    `path` or from its own directory. Raises Unclear."""
    above, name = os.path.split(pointer.rstrip("/"))
    try:
        fd = os.open(above, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise Unreadable(f"{pointer}: {error.strerror}") from None
    try:
        link = stat.S_ISLNK(_status(fd, pointer.rstrip("/")).st_mode)
        try:
            return _one(fd, above, name, link=link, root=path)
        except Unreadable:
            raise
        except Unclear:
            return _one(fd, above, name, link=link)
    finally:
        os.close(fd)


def led_to(fd: int, link: str, where: str) -> set[tuple[int, int]]:
    """What a link somewhere in a checkpoint leads to; nothing where that is not there. Raises
    Unreadable."""
    try:
        return _lineage(f"/proc/self/fd/{fd}/{link}")
    except OSError as error:
        if error.errno in _NOWHERE:
            return set()
        raise Unreadable(f"{where}: cannot be followed: {error.strerror}") from None


def names_itself(name: str) -> bool:
    """Whether a trainer begins there again by that very name: last.ckpt (Lightning), *-last
    (NeMo), checkpoint_best.pt (fairseq)."""
    return _ITSELF.search(name) is not None


def unfinished(name: str, fd: int) -> bool:
    """Whether who wrote it did not end: Orbax has another name until then
    (orbax/checkpoint/_src/path/step.py), NeMo a marker beside it
    (nemo/utils/callbacks/nemo_model_checkpoint.py)."""
    if ".orbax-checkpoint-tmp" in name:
        return True
    stem = name.removesuffix(".nemo").removesuffix(".ckpt").removesuffix("-EMA")
    with suppress(OSError):
        os.stat(f"{stem}-unfinished", dir_fd=fd, follow_symlinks=False)
        return True
    return False


def _rows(fd: int) -> list[tuple[str, bool]]:
    with os.scandir(fd) as found:
        return [(e.name, e.is_symlink()) for e in found if not e.name.startswith(OURS)]


def _is_tracker(name: str) -> bool:
    return name == STATE or _TRACKER.match(name) is not None


def _one(fd: int, path: str, name: str, *, link: bool, root: str = "") -> Named:
    """What one of them leads to. Its path is told first: following it may hang, and whoever ends
    this process then knows where."""
    pointer = os.path.join(path, name)
    start = root or f"/proc/self/fd/{fd}"
    with _following(pointer):
        return _linked(fd, pointer, name, start) if link else _told(fd, pointer, name, start)


@contextmanager
def _following(pointer: str) -> Iterator[None]:
    print(f"{FOLLOWING}{pointer}", file=sys.stderr, flush=True)  # noqa: T201
    yield
    print("followed", file=sys.stderr, flush=True)  # noqa: T201


def _mentioned(fd: int, pointer: str) -> set[str]:
    """All words of a small file: any of them may be a name, and none has to be."""
    with _following(pointer):
        status = _status(fd, pointer)
        if not stat.S_ISREG(status.st_mode) or status.st_size > LONGEST:
            return set()
        return set(_WORD.findall(os.fsdecode(_read(fd, pointer, LONGEST))))


def _told(fd: int, pointer: str, name: str, start: str) -> Named:
    """What the text of a tracker names; a directory of that name is a checkpoint itself."""
    status = _status(fd, pointer)
    if stat.S_ISDIR(status.st_mode):
        return Named()
    if not stat.S_ISREG(status.st_mode):
        raise Unreadable(f"{pointer}: is neither a file nor a link")
    if name == STATE:
        return _best(_read(fd, pointer, STATE_LONGEST), pointer, start)
    raw = _read(fd, pointer, LONGEST)
    if len(raw) > LONGEST:
        if raw.startswith(_ARCHIVE):
            return Named()
        raise Unclear(f"{pointer}: is longer than any name of a checkpoint")
    return _resolved(os.fsdecode(raw).strip(), pointer, start)


def _linked(fd: int, pointer: str, name: str, start: str) -> Named:
    """What a link leads to; where that is a tracker, what its text names as well."""
    found, target = Named(), f"/proc/self/fd/{fd}/{name}"
    try:
        found.names = _components(os.readlink(name, dir_fd=fd))
        found.identities = _lineage(target)
        status = os.stat(target)
        around = _lineage(start)
    except OSError as error:
        kind = Unclear if error.errno in _NOWHERE else Unreadable
        raise kind(f"{pointer}: is a link that leads nowhere: {error.strerror}") from None
    if not _is_tracker(name):
        return found
    if identity_of(status) in around:
        raise Unclear(f"{pointer}: leads to {os.path.realpath(target)}, which is no checkpoint")
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        raise Unreadable(f"{pointer}: leads to what is neither a file nor a directory")
    if stat.S_ISREG(status.st_mode) and status.st_size <= LONGEST:
        with suppress(Unclear, OSError):
            found.add(_resolved(os.fsdecode(_text(target)).strip(), pointer, start))
    return found


def _text(target: str) -> bytes:
    """What a link leads to is opened only if it is a file still: opening a device may do something."""
    at = os.open(target, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(at).st_mode):
            return b""
        with open(f"/proc/self/fd/{at}", "rb") as file:
            return file.read(LONGEST)
    finally:
        os.close(at)


def _status(fd: int, pointer: str) -> os.stat_result:
    try:
        return os.stat(os.path.basename(pointer), dir_fd=fd, follow_symlinks=False)
    except OSError as error:
        raise _unread(pointer, error) from None


def _read(fd: int, pointer: str, most: int) -> bytes:
    """One byte more than `most`, at most."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        with open(os.open(os.path.basename(pointer), flags, dir_fd=fd), "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise Unreadable(f"{pointer}: is neither a file nor a link")
            return stream.read(most + 1)
    except OSError as error:
        raise _unread(pointer, error) from None


def _unread(pointer: str, error: OSError) -> Unclear:
    """What vanishes meanwhile is not closed to anybody, but it named something."""
    kind = Unclear if error.errno in _NOWHERE else Unreadable
    return kind(f"{pointer}: cannot be read: {error.strerror}")


def _resolved(text: str, pointer: str, start: str) -> Named:
    """What a tracker's text names: a number, or a path from the root or from /."""
    found = Named()
    if not text or not text.isprintable():
        raise Unclear(f"{pointer}: holds no name of a checkpoint")
    if text.isascii() and text.isdigit():
        found.numbers = {int(text)}
        if not any(int(text) in _numbers(name) for name in _names(start, pointer)):
            raise Unclear(f"{pointer}: names {text}, and no such checkpoint is there")
        return found
    try:
        found.identities = _lineage(os.path.join(start, text))
        itself = identity_of(os.stat(os.path.join(start, text))) in _lineage(start)
    except OSError as error:
        raise Unclear(f"{pointer}: names {text!r}: {error.strerror}") from None
    if itself:
        raise Unclear(f"{pointer}: names {text!r}, which is no checkpoint in it")
    found.names = _components(text)
    return found


def _best(raw: bytes, pointer: str, start: str) -> Named:
    """The best checkpoint of a trainer's state, which may be told from where the job ran: then its
    last step counts."""
    match = _BEST.search(raw)
    if match is None and (len(raw) > STATE_LONGEST or not raw.lstrip().startswith(b"{")):
        raise Unclear(f"{pointer}: is no state of a trainer that can be read")
    try:
        text = json.loads(match[1]) if match else None
    except ValueError:
        raise Unclear(f"{pointer}: is no state of a trainer that can be read") from None
    if not text:
        return Named()
    found, last = Named(), os.path.basename(text.rstrip("/"))
    for place in (text, last, os.path.join(os.pardir, last)):
        with suppress(OSError, ValueError):
            found.identities |= _lineage(os.path.join(start, place))
    if not found.identities:
        raise Unclear(f"{pointer}: names {text!r}, and it is not there")
    return found


def _names(start: str, pointer: str) -> list[str]:
    try:
        return [name for name in os.listdir(start) if not name.startswith(OURS)]
    except OSError as error:
        raise Unreadable(f"{pointer}: {error.strerror}") from None


def _numbers(name: str) -> set[int]:
    """All numbers that stand in a name: iter_0000123, global_step_123, epoch=1-step=123."""
    return {int(digits) for digits in re.findall("[0-9]+", name)}


def _components(text: str) -> set[str]:
    return set(text.split("/")) - {"", ".", ".."}


def _lineage(path: str) -> set[tuple[int, int]]:
    """Which very one it is, with every directory above it; raises OSError."""
    real = os.path.realpath(path, strict=True)
    found = {identity_of(os.stat(real))}
    while real != "/":
        real = os.path.dirname(real)
        found.add(identity_of(os.stat(real)))
    return found


# What an entry weighs, how old it is, and which very one it is: from what stat(2) says.


class Weight:
    """What an entry holds: bytes that its end frees, whether there is any byte in it, how many
    entries, when a file in it (`written`) and anything in it (`at`) was last changed; `held`: why
    it cannot be removed; `named`: a pointer leads into it; `leads`: where links in it lead."""

    def __init__(self, found: os.stat_result) -> None:
        folder = stat.S_ISDIR(found.st_mode)
        # A file with other names stays on disk.
        self.size = found.st_blocks * 512 if folder or found.st_nlink <= 1 else 0
        self.filled = not folder and found.st_size > 0
        self.entries, self.held = 1, ""
        self.named, self.leads = False, set[tuple[int, int]]()
        self.at = changed(found)
        self.written = 0.0 if folder else self.at

    def add(self, inner: Weight) -> None:
        """What lies below it."""
        self.size += inner.size
        self.filled = self.filled or inner.filled
        self.entries += inner.entries
        self.at, self.written = max(self.at, inner.at), max(self.written, inner.written)
        self.held = self.held or inner.held
        self.named = self.named or inner.named
        self.leads |= inner.leads


def changed(found: os.stat_result) -> float:
    """When a file was last written or otherwise changed (s UTC). The change time counts too: a copy
    that keeps its old dates (cp -p, rsync -a, tar) is as young as it is."""
    return max(found.st_mtime, found.st_ctime)


def identity_of(found: os.stat_result) -> tuple[int, int]:
    """Which very one it is, whatever its name."""
    return found.st_dev, found.st_ino
