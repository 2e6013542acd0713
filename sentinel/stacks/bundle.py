"""Stores the evidence of one moment in a folder of its own, because a restart of the job destroys
it."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import time
from collections import Counter

import msgspec

from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.long_lines import decode_document
from sentinel.core.text import shortened, visible, visible_lines
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.job import StackTarget, job_log_path
from sentinel.stacks.owner_access import share_with_owner
from sentinel.stacks.parse import StacksDump, dump_headline, dump_lines, group_ranks
from sentinel.stacks.recordings import FoundRecordings
from sentinel.user_files.files import UserFiles
from sentinel.user_files.whose import Whose

MAX_BUNDLES_KEPT = 100
"""How many folders are kept. If there are more, the oldest of the user with the most is removed."""
TAIL = 256 * 1024
"""How many bytes at the end of the job's log are stored."""
LOOK = 5.0
"""Seconds for one access to the log, because its file system may hang."""

_OURS = re.compile(r"job-[0-9_+]+-([0-9]{8}T[0-9]{6}Z)(?:-[0-9]+)?")


class EvidenceNotSaved(SentinelError):
    """The stacks were taken, but the evidence could not be written."""

    exit_code = 73


def save_bundle(
    folder: str,
    client: SlurmClient,
    target: StackTarget,
    dump: StacksDump,
    recorded: FoundRecordings | None = None,
) -> str:
    """Write everything that is known into a new folder below `folder`. Returns its path. Raises
    EvidenceNotSaved. `recorded` are the flight recorder's dumps."""
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
"""Files that the job's owner may not read. Many sites hide the kernel's log from users
(kernel.dmesg_restrict), because it is also about processes of others."""
NODES = 4 * 2**20
"""How many characters of one kind are stored for all nodes together."""


def _join_node_texts(dump: StacksDump, name: str) -> str:
    parts = [(n.node, visible_lines(getattr(n, name))) for n in dump.nodes if getattr(n, name)]
    return shortened("\n".join(f"== {node}\n{text}" for node, text in parts), NODES)


def _index_text(place: str, dump: StacksDump, recorded: FoundRecordings | None) -> str:
    """The result, and the content of each file. Files that could not be made are named too."""
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
    """The content of `--json` and stacks.json.gz: groups first, then every process."""
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
    """Write compressed data. A job of a thousand ranks has a hundred megabytes of stacks, most of
    them alike."""
    with os.fdopen(_open_new_file(place, name), "wb") as file:
        file.write(gzip.compress(data, 6))


def _open_new_file(place: str, name: str) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    return os.open(os.path.join(place, name), flags, 0o600)


def _ask_or_say_why(client: SlurmClient, *argv: str) -> str:
    try:
        return visible_lines(decode_document(client.ask_slurm(*argv)))
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
    """Remove the oldest folders of the user with the most, so that the hung jobs of one user do not
    push out the evidence of another."""
    names = [name for name in os.listdir(folder) if _OURS.fullmatch(name)]
    kept = sorted(names, key=lambda name: _OURS.sub(r"\1", name))
    if len(kept) <= MAX_BUNDLES_KEPT:
        return
    owners = {name: _read_owner(os.path.join(folder, name)) for name in kept}
    counts = Counter(owners.values())
    while len(kept) > MAX_BUNDLES_KEPT:
        oldest = max(kept, key=lambda name: counts[owners[name]])
        kept.remove(oldest)
        counts[owners[oldest]] -= 1
        shutil.rmtree(os.path.join(folder, oldest), ignore_errors=True)


def _read_owner(place: str) -> str:
    """The user of the job that the folder is about, from its index. Empty if the index does not say
    it."""
    try:
        with open(os.path.join(place, "index.txt"), encoding="utf-8", errors="replace") as file:
            return file.readline().rpartition(" of ")[2].partition(",")[0]
    except OSError:
        return ""
