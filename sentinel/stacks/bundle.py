"""The evidence of one moment, kept in a folder of its own: who restarts a job destroys it."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import time
from collections.abc import Sequence

import msgspec

from sentinel import proc
from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.text import visible, visible_lines
from sentinel.proc.owned import tail_of
from sentinel.slurm.client import Client
from sentinel.slurm.job import Target, log_path
from sentinel.stacks.parse import Dump, grouped, headline, lines
from sentinel.stacks.recordings import Found

KEPT = 100
"""Folders that are kept; the oldest go."""
TAIL = 256 * 1024
"""Bytes of the end of the job's log."""
LOOK = 5.0
"""Seconds for one look at the log, which may lie where nothing answers."""

_OURS = re.compile(r"job-[0-9_+]+-([0-9]{8}T[0-9]{6}Z)(?:-[0-9]+)?")


class NotSaved(SentinelError):
    """The evidence could not be written; it was seen all the same."""

    exit_code = 73


def save(
    folder: str, client: Client, target: Target, dump: Dump, recorded: Found | None = None
) -> str:
    """Write what is known into a new folder below `folder`; its path. Raises NotSaved.
    `recorded`: the flight recorder's dumps."""
    try:
        place = _place(folder, dump)
        _write(place, "stacks.txt", "\n".join(lines(dump)))
        _write_packed(place, "stacks.json.gz", msgspec.json.encode(plain(dump)))
        if recorded and recorded.words:
            _write(place, "flight-recorder.txt", f"{recorded.words}\n{visible(recorded.place)}")
            data = msgspec.json.encode(recorded)
            _write_packed(place, "flight-recorder.json.gz", data)
        _write(place, "job.txt", _told(client, "scontrol", "show", "job", target.job.job_id))
        _write(place, "steps.txt", _told(client, "scontrol", "show", "step", target.job.job_id))
        _write(place, "nodes.txt", _told(client, "scontrol", "show", "node", target.job.nodes))
        _write(place, "log.txt", _log(client, target))
        _forget_old(folder)
    except OSError as error:
        raise NotSaved(
            f"the evidence was not saved in {visible(folder)}: {error.strerror}"
        ) from error
    return place


def plain(dump: Dump) -> dict[str, object]:
    """What `--json` prints and stacks.json.gz holds: groups first, then every process."""
    return {
        "job": dump.job,
        "name": visible(dump.name),
        "user": dump.user,
        "at": dump.at,
        "seconds": dump.seconds,
        "summary": headline(dump),
        "ended": dump.ended,
        "groups": msgspec.to_builtins(grouped(dump)),
        "missed": {m.node: m.why for m in dump.missed},
        "nodes": msgspec.to_builtins(dump.nodes),
    }


def _place(folder: str, dump: Dump) -> str:
    os.makedirs(folder, mode=0o700, exist_ok=True)
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


def _write(place: str, name: str, text: str) -> None:
    with os.fdopen(_new(place, name), "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text.rstrip("\n") + "\n")


def _write_packed(place: str, name: str, data: bytes) -> None:
    """A job of a thousand ranks has a hundred megabytes of stacks, most of them alike."""
    with os.fdopen(_new(place, name), "wb") as file:
        file.write(gzip.compress(data, 6))


def _new(place: str, name: str) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    return os.open(os.path.join(place, name), flags, 0o600)


def _told(client: Client, *argv: str) -> str:
    try:
        return visible_lines(client.ask(*argv).decode("utf-8", "backslashreplace"))
    except CannotTell as error:
        return f"not known: {error}"


def _log(client: Client, target: Target) -> str:
    try:
        path = log_path(client, target.job)
        text = tail_of(path, TAIL, target.job.user, _look, target.job.started)
    except CannotTell as error:
        return f"not known: {error}"
    if text is None:
        return f"not known: there is no {visible(path)}"
    return f"{visible(path)}\n{visible_lines(text)}"


def _look(argv: Sequence[str]) -> proc.Done:
    return proc.run(argv, limit=LOOK, env={**os.environ, "LC_ALL": "C"})


def _forget_old(folder: str) -> None:
    mine = [match for name in os.listdir(folder) if (match := _OURS.fullmatch(name))]
    for match in sorted(mine, key=lambda match: match[1])[:-KEPT]:
        shutil.rmtree(os.path.join(folder, match[0]), ignore_errors=True)
