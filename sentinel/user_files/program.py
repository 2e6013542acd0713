"""The child that opens files for `sentinel.user_files.reader`: it answers requests until its input
ends.

It uses the standard library only, so that it starts fast, and loads everything at the start, since
a user may not be able to read the modules. A request is one line of JSON; the answer is two
lengths, a JSON text and bytes. It reads files and never interprets their contents."""

import json
import os
import resource
import stat
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Any

from sentinel.user_files.identity import (
    FileRights,
    OpenDenied,
    RightsRequest,
    acting_as,
    decide_rights,
    describe_kind,
    open_folder,
    open_regular,
    prepare_process,
    refuse_foreign,
    user_name,
)

LENGTHS = struct.Struct(">QQ")
"""Two lengths in bytes: of the JSON text, and of the data behind it."""

GREETING = b"\n"
"""One byte that says that it has started. No limit of a file runs before that."""

MEMORY_BYTES = 2**30
"""All the memory that the child may have. A user's own file system can list names without end."""

LAST_MOMENT_S = 253_402_214_400.0
"""9999-12-31 UTC. A user may give a file any time of 64 bits (utimensat(2)), and a calendar ends."""

Answer = tuple[dict[str, Any], bytes]


def main(memory: int = MEMORY_BYTES) -> None:
    """Send the greeting, then answer each line of the input. The path in a request is absolute."""
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    prepare_process()
    sys.stdout.buffer.write(GREETING)
    sys.stdout.buffer.flush()
    for line in sys.stdin.buffer:
        told, data = answer_request(json.loads(line))
        text = json.dumps(told).encode("ascii")
        sys.stdout.buffer.write(LENGTHS.pack(len(text), len(data)) + text)
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def answer_request(asked: dict[str, Any]) -> Answer:
    """The answer to a request, or `error` and `errno` in its place. `identity`: the user whose
    rights were used, if not this process's own."""
    told: dict[str, Any] = {}
    try:
        # A file that is to be created does not exist yet, and a pattern is not a file. For both,
        # the rights on the folder count.
        path = asked["path"]
        way = os.path.dirname(path) if asked["do"] in ("newest", "create") else path
        may = decide_rights(RightsRequest(asked["user"], asked["literal"], asked["owned"]), way)
        told["identity"] = may.become_name
        with acting_as(may.identity):
            found, data = _DOES[asked["do"]](asked, may)
        return {**told, **found}, data
    except OpenDenied as error:
        return {**told, "error": str(error), "errno": 0}, b""
    except OSError as error:
        why = error.strerror or type(error).__name__
        return {**told, "error": why, "errno": error.errno or 0}, b""
    except MemoryError:
        return {**told, "error": "it takes more memory than is allowed", "errno": 0}, b""
    except (ValueError, RecursionError) as error:  # a NUL in the path, or too many nested folders
        return {**told, "error": str(error), "errno": 0}, b""


def _status_answer(asked: dict[str, Any], may: FileRights) -> Answer:
    """Facts about the file, links followed."""
    return _describe_stat(os.stat(asked["path"])), b""


def _read_answer(asked: dict[str, Any], may: FileRights) -> Answer:
    """Read at most `most` bytes of a regular file from `start` on. If `start` is -1, the last
    bytes. `inode` identifies the file, if it is known."""
    descriptor, seen = open_regular(asked["path"], may.owner)
    try:
        if asked["inode"] and asked["inode"] != _inode_text(seen):
            raise OpenDenied("another file took its place while it was read")
        start, most = asked["start"], asked["most"]
        at = start if start >= 0 else max(0, seen.st_size - most)
        parts = []
        while most > 0 and (data := os.pread(descriptor, most, at)):
            parts.append(data)
            at, most = at + len(data), most - len(data)
        return _describe_stat(seen), b"".join(parts)
    finally:
        os.close(descriptor)


def _newest_answer(asked: dict[str, Any], may: FileRights) -> Answer:
    """The path of the regular file whose name matches the shell pattern and that was written
    last."""
    folder, _, pattern = asked["path"].rpartition("/")
    newest, error = (0.0, ""), ""
    for name in _list_names(folder or "/", may):
        path = f"{folder}/{name}"
        if not fnmatchcase(name, pattern) or name.endswith(tuple(asked["endings"])):
            continue
        try:
            seen = os.stat(path)
        except OSError as failed:
            error = error or failed.strerror or ""
            continue
        if stat.S_ISREG(seen.st_mode) and path not in asked["but"]:
            newest = max(newest, (seen.st_mtime, path))
    if error and not newest[1]:
        raise OpenDenied(error)
    return {"newest": newest[1]}, b""


def _entries_answer(asked: dict[str, Any], may: FileRights) -> Answer:
    """Name and time of change of the entries of the folder that are not links: at most `most` and
    one more."""
    descriptor = open_folder(asked["path"], may.owner)
    try:
        found: dict[str, float] = {}
        for name in os.listdir(descriptor):
            with suppress(FileNotFoundError):
                seen = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                if not stat.S_ISLNK(seen.st_mode):
                    found[name] = _clamp_moment(seen.st_mtime)
            if len(found) > asked["most"]:
                break
        return {"entries": found}, b""
    finally:
        os.close(descriptor)


def _total_answer(asked: dict[str, Any], may: FileRights) -> Answer:
    """Bytes of the file, or of all files below the folder, and when the last of them was changed;
    no link is followed. `files`: path below the folder, bytes and time of change of up to `most`
    files."""
    seen = os.stat(asked["path"], follow_symlinks=False)
    refuse_foreign(seen, may.owner)
    size, changed, listed = 0, None, list[tuple[str, int, float]]()
    below = _files_below(asked["path"]) if stat.S_ISDIR(seen.st_mode) else iter((("", seen),))
    for name, one in below:
        if stat.S_ISREG(one.st_mode):
            size, changed = size + one.st_size, max(changed or one.st_mtime, one.st_mtime)
            if len(listed) < asked["most"]:
                listed.append((name, one.st_size, one.st_mtime))
    listed = [(name, length, _clamp_moment(at)) for name, length, at in listed]
    changed = None if changed is None else _clamp_moment(changed)
    return {"size": size, "changed": changed, "files": listed}, b""


def _link_answer(asked: dict[str, Any], may: FileRights) -> Answer:
    """The target of a link as it is written, and when it was made; `target` is empty if the path is
    not a link."""
    seen = os.stat(asked["path"], follow_symlinks=False)
    refuse_foreign(seen, may.owner)
    target = os.readlink(asked["path"]) if stat.S_ISLNK(seen.st_mode) else ""
    return {"target": target, "changed": _clamp_moment(seen.st_mtime)}, b""


def _files_below(path: str) -> Iterator[tuple[str, os.stat_result]]:
    for folder, _, names, descriptor in os.fwalk(path, onerror=_raise_unless_gone):
        for name in names:
            with suppress(FileNotFoundError):
                found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                yield os.path.relpath(os.path.join(folder, name), path), found


def _create_answer(asked: dict[str, Any], may: FileRights) -> Answer:
    """Create a new file of one line. No link is followed, not even on the way to it."""
    folder, _, name = asked["path"].rpartition("/")
    descriptor = os.open(folder or "/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        here = os.readlink(f"/proc/self/fd/{descriptor}")
        if os.path.join(here, "") != os.path.join(folder, ""):
            raise OpenDenied(f"it is in {here} by a link or .. on the way; name that")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(name, flags, 0o666, dir_fd=descriptor)
        try:
            os.write(file, asked["line"].encode("utf-8", "backslashreplace") + b"\n")
        finally:
            os.close(file)
        return {}, b""
    finally:
        os.close(descriptor)


_DOES: dict[str, Callable[[dict[str, Any], FileRights], Answer]] = {
    "status": _status_answer,
    "read": _read_answer,
    "newest": _newest_answer,
    "entries": _entries_answer,
    "total": _total_answer,
    "link": _link_answer,
    "create": _create_answer,
}


def _list_names(folder: str, may: FileRights) -> list[str]:
    descriptor = open_folder(folder, may.owner)
    try:
        return os.listdir(descriptor)
    finally:
        os.close(descriptor)


def _describe_stat(seen: os.stat_result) -> dict[str, Any]:
    return {
        "kind": describe_kind(seen),
        "regular": stat.S_ISREG(seen.st_mode),
        "size": seen.st_size,
        "inode": _inode_text(seen),
        "mtime": _clamp_moment(seen.st_mtime),
        "owner": user_name(seen.st_uid),
        "uid": str(seen.st_uid),
    }


def _clamp_moment(seconds: float) -> float:
    return min(max(seconds, 0.0), LAST_MOMENT_S)


def _inode_text(seen: os.stat_result) -> str:
    return f"{seen.st_dev}:{seen.st_ino}"


def _raise_unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error
