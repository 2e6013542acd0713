"""The evidence of one moment, kept in a folder of its own: who restarts a job destroys it."""

from __future__ import annotations

import gzip
import os
import pwd
import re
import shutil
import struct
import time
from collections.abc import Iterable

import msgspec

from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.text import shortened, visible, visible_lines
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.job import StackTarget, job_log_path
from sentinel.stacks.parse import StacksDump, dump_headline, dump_lines, group_ranks
from sentinel.stacks.recordings import FoundRecordings
from sentinel.user_files.files import UserFiles
from sentinel.user_files.whose import Whose

MAX_BUNDLES_KEPT = 100
"""Folders that are kept; the oldest go."""
TAIL = 256 * 1024
"""Bytes of the end of the job's log."""
LOOK = 5.0
"""Seconds for one look at the log, which may lie where nothing answers."""

_OURS = re.compile(r"job-[0-9_+]+-([0-9]{8}T[0-9]{6}Z)(?:-[0-9]+)?")


class EvidenceNotSaved(SentinelError):
    """The evidence could not be written; it was seen all the same."""

    exit_code = 73


def save_bundle(
    folder: str,
    client: SlurmClient,
    target: StackTarget,
    dump: StacksDump,
    recorded: FoundRecordings | None = None,
) -> str:
    """Write what is known into a new folder below `folder`; its path. Raises EvidenceNotSaved.
    `recorded`: the flight recorder's dumps."""
    try:
        place = _make_folder(folder, dump)
        _write_text(place, "stacks.txt", "\n".join(dump_lines(dump)))
        _write_compressed(place, "stacks.json.gz", msgspec.json.encode(dump_as_plain(dump)))
        if recorded and recorded.standstill_words:
            _write_text(
                place,
                "flight-recorder.txt",
                f"{recorded.standstill_words}\n{visible(recorded.place)}",
            )
            data = msgspec.json.encode(recorded)
            _write_compressed(place, "flight-recorder.json.gz", data)
        _write_text(
            place, "job.txt", _ask_or_say_why(client, "scontrol", "show", "job", target.job.job_id)
        )
        _write_text(
            place,
            "steps.txt",
            _ask_or_say_why(client, "scontrol", "show", "step", target.job.job_id),
        )
        _write_text(
            place,
            "nodes.txt",
            _ask_or_say_why(client, "scontrol", "show", "node", target.job.nodes),
        )
        _write_text(place, "log.txt", _job_log_end(client, target))
        for name in ("ras", "kernel", "gpus"):
            if told := _join_node_texts(dump, name):
                _write_text(place, f"{name}.txt", told)
        _write_text(place, "index.txt", _index_text(place, dump, recorded))
        share_with_owner(
            place, dump.user, (*(n for n in CONTENTS if n not in PRIVATE), "index.txt")
        )
        _remove_old_bundles(folder)
    except OSError as error:
        raise EvidenceNotSaved(
            f"the evidence was not saved in {visible(folder)}: {error.strerror}"
        ) from error
    return place


CONTENTS = {
    "stacks.txt": "where every rank stands, odd ones first",
    "stacks.json.gz": "the same with all threads and workers, for programs",
    "flight-recorder.txt": "which rank is missing in which collective, by PyTorch's dumps",
    "flight-recorder.json.gz": "the dumps themselves, for programs",
    "ras.txt": "what NCCL's RAS says of all ranks",
    "kernel.txt": "the end of each node's kernel log, from warnings on",
    "gpus.txt": "what nvidia-smi says of each node's GPUs",
    "job.txt": "scontrol show job",
    "steps.txt": "scontrol show step",
    "nodes.txt": "scontrol show node",
    "log.txt": "the end of the job's output",
}
"""Files of a folder, in the order in which people read them."""
PRIVATE = ("kernel.txt",)
"""Not for the job's owner: many sites keep the kernel's log from users (kernel.dmesg_restrict), as it
tells of others' processes."""
NODES = 4 * 2**20
"""Characters of one kind that are kept of all nodes together."""


def _join_node_texts(dump: StacksDump, name: str) -> str:
    parts = [(n.node, visible_lines(getattr(n, name))) for n in dump.nodes if getattr(n, name)]
    return shortened("\n".join(f"== {node}\n{text}" for node, text in parts), NODES)


def _index_text(place: str, dump: StacksDump, recorded: FoundRecordings | None) -> str:
    """What was seen, and what each file holds; a file that is not there was not to be had."""
    when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(dump.at))
    first = recorded.standstill_words if recorded else ""
    there = {name: os.path.getsize(os.path.join(place, name)) for name in os.listdir(place)}
    rows = [f"{n:24} {there[n]:>10}  {what}" for n, what in CONTENTS.items() if n in there]
    none = [n for n in CONTENTS if n not in there]
    return "\n".join(
        [
            f"job {dump.job} ({visible(dump.name)}) of {visible(dump.user)}, {when}",
            *([f"flight recorder: {first}"] if first else []),
            dump_headline(dump),
            "",
            *rows,
            *(["", f"not to be had: {', '.join(none)}"] if none else []),
        ]
    )


def dump_as_plain(dump: StacksDump) -> dict[str, object]:
    """What `--json` prints and stacks.json.gz holds: groups first, then every process."""
    return {
        "job": dump.job,
        "name": visible(dump.name),
        "user": dump.user,
        "at": dump.at,
        "seconds": dump.seconds,
        "summary": dump_headline(dump),
        "ended": dump.ended,
        "groups": msgspec.to_builtins(group_ranks(dump)),
        "missed": {m.node: m.why for m in dump.missed},
        "nodes": msgspec.to_builtins(dump.nodes),
    }


def _make_folder(folder: str, dump: StacksDump) -> str:
    if not os.path.isdir(folder):
        os.makedirs(folder, mode=0o700)
        os.chmod(folder, 0o711)  # noqa: S103 - an owner gets to a folder whose name was told; nobody lists it
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(dump.at))
    base = os.path.join(folder, f"job-{dump.job}-{stamp}")
    for number in range(100):
        place = f"{base}-{number}" if number else base
        try:
            os.mkdir(place, 0o700)
        except FileExistsError:
            continue
        return place
    raise FileExistsError(17, "too many of the same second", base)


def _write_text(place: str, name: str, text: str) -> None:
    with os.fdopen(
        _open_new_file(place, name), "w", encoding="utf-8", errors="backslashreplace"
    ) as file:
        file.write(text.rstrip("\n") + "\n")


def _write_compressed(place: str, name: str, data: bytes) -> None:
    """A job of a thousand ranks has a hundred megabytes of stacks, most of them alike."""
    with os.fdopen(_open_new_file(place, name), "wb") as file:
        file.write(gzip.compress(data, 6))


def _open_new_file(place: str, name: str) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    return os.open(os.path.join(place, name), flags, 0o600)


def _ask_or_say_why(client: SlurmClient, *argv: str) -> str:
    try:
        return visible_lines(client.ask_slurm(*argv).decode("utf-8", "backslashreplace"))
    except CannotTell as error:
        return f"not known: {error}"


def _job_log_end(client: SlurmClient, target: StackTarget) -> str:
    try:
        path = job_log_path(client, target.job)
        whose = Whose(user=target.job.user, owned=True)
        text = UserFiles(LOOK, LOOK, {}).read_tail(path, TAIL, whose, target.job.started)
    except CannotTell as error:
        return f"not known: {error}"
    if text is None:
        return f"not known: there is no {visible(path)}"
    return f"{visible(path)}\n{visible_lines(text)}"


def _remove_old_bundles(folder: str) -> None:
    mine = [match for name in os.listdir(folder) if (match := _OURS.fullmatch(name))]
    for match in sorted(mine, key=lambda match: match[1])[:-MAX_BUNDLES_KEPT]:
        shutil.rmtree(os.path.join(folder, match[0]), ignore_errors=True)


# Evidence that the job's owner may read, and nobody else but who keeps it.
#
# By an entry of a POSIX access list, so that the owner can change or remove nothing: what is kept
# by root is read by root again. The form: posix_acl_xattr.h of Linux; where a file system has no
# such lists (NFSv4, or a mount without `acl`) the evidence stays with who keeps it.


_NAME = "system.posix_acl_access"
_OWNER, _USER, _GROUP, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x10, 0x20
_NOBODY = 0xFFFFFFFF
_READ, _WRITE, _ENTER = 4, 2, 1


def share_with_owner(place: str, user: str, names: Iterable[str]) -> bool:
    """Let the user read these files of the folder; whether that was possible. One's own need nothing,
    and a user that this host does not know gets nothing."""
    try:
        uid = pwd.getpwnam(user).pw_uid
    except KeyError:
        return False
    if uid == os.geteuid():
        return True
    try:
        for name in names:
            path = os.path.join(place, name)
            if os.path.lexists(path):
                _grant_reading(path, uid, _READ)
        _grant_reading(place, uid, _READ | _ENTER)
    except OSError:
        return False
    return True


def _grant_reading(path: str, uid: int, may: int) -> None:
    own = may | _WRITE
    entries = ((_OWNER, own, _NOBODY), (_USER, may, uid), (_GROUP, 0, _NOBODY), (_MASK, may, _NOBODY), (_OTHER, 0, _NOBODY))  # fmt: skip
    data = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    os.setxattr(path, _NAME, data, follow_symlinks=False)
