"""Where outputs of dcgmi diag lie: one file a run, named by level, node and time."""

from __future__ import annotations

import os
import re
from datetime import datetime, timezone

from msgspec import Struct
from msgspec.structs import replace

from sentinel import proc
from sentinel.core.clock import SECOND, Instant
from sentinel.core.errors import CannotTell
from sentinel.core.text import shortened, visible
from sentinel.gpu import smi
from sentinel.gpu.dcgm import Blame, Outcome, Ran, Verdict, judge
from sentinel.gpu.errors import Unreadable
from sentinel.gpu.model import Inventory
from sentinel.homes import own_folder

_NAME = re.compile(r"dcgmi-r([1-4])-([A-Za-z0-9][A-Za-z0-9._-]*)-([0-9]{8}T[0-9]{6}Z)\.json")
LONGEST = 64 * 2**20
LIMIT = 10.0


def usual_place() -> str:
    """The usual place: in the home of whoever runs sentinel, which nodes see on most clusters."""
    return os.path.join(own_folder("XDG_STATE_HOME", "~/.local/state"), "sentinel", "diag")


class File(Struct, frozen=True, kw_only=True):
    """One output; `at` is epoch seconds."""

    name: str
    level: int
    node: str
    at: int


def name_of(level: int, node: str, now: Instant, test: str = "") -> str:
    """`dcgmi-r2-node-0-20261120T211500Z.json`; of a test of nodes `test-cuda-node-0-….txt`."""
    moment = datetime.fromtimestamp(now.wall // SECOND, tz=timezone.utc)
    when = f"{node}-{moment:%Y%m%dT%H%M%SZ}"
    return f"test-{test}-{when}.txt" if test else f"dcgmi-r{level}-{when}.json"


def file_of(name: str) -> File | None:
    """What a name says; None for any other file."""
    match = _NAME.fullmatch(name)
    if not match:
        return None
    moment = datetime.strptime(match[3], "%Y%m%dT%H%M%SZ").replace(tzinfo=timezone.utc)
    return File(name=name, level=int(match[1]), node=match[2], at=int(moment.timestamp()))


def files(directory: str) -> list[File]:
    """All of them, the oldest first; none where there is no such directory. CannotTell.

    Links are left out: what they lead to is not a diagnostic's.
    """
    wanted = ["-maxdepth", "1", "-type", "f", "-name", "dcgmi-r*.json", "-print0"]
    done = _run(["find", "-H", directory, *wanted])
    if done.code and b"No such file" not in done.err:
        raise CannotTell(visible(done.err.decode("utf-8", "replace").strip()))
    names = (os.path.basename(os.fsdecode(raw)) for raw in done.out.split(b"\0") if raw)
    return sorted(filter(None, map(file_of, names)), key=lambda f: (f.at, f.name))


def finished(paths: list[str]) -> set[str]:
    """Which of these runs have left their exit code. CannotTell."""
    if not paths:
        return set()
    done = _run(["stat", "-c", "%n", "--", *(f"{path}.rc" for path in paths)])
    return {os.fsdecode(raw).removesuffix(".rc") for raw in done.out.split(b"\n") if raw}


def verdict(path: str, level: int, gpus: int = 0) -> tuple[Verdict, Inventory | None]:
    """What a finished run proves, and the GPUs that were there. CannotTell if it is unreadable."""
    code = _text(f"{path}.rc").strip()
    ran = Ran(
        out=_text(path) or _text(f"{path}.err"),
        code=int(code) if code.isdigit() else None,
        level=level,
        gpus=gpus,
    )
    try:
        found = smi.parse(_text(f"{path}.gpus"))
    except Unreadable:
        return judge(ran), None
    return judge(ran), replace(found, attached=max(gpus, found.attached or 0))


def tested(path: str) -> Verdict:
    """What a finished test of nodes says: its line, and its code. CannotTell if it is unreadable."""
    code, said = _text(f"{path}.rc").strip(), shortened(visible(_text(path).strip()), 300)
    known: dict[str, Outcome] = {"0": "pass", "1": "fail"}
    return Verdict(outcome=known.get(code, "inconclusive"), why=said or "it left no line")


def who(blame: Blame, inventory: Inventory | None) -> tuple[str, str]:
    """UUID and serial of a blamed GPU; empty where nobody knows.

    By serial, which DCGM prints; where either tool hides it by index, which is NVML's in both as
    long as no GPU is lost.
    """
    if inventory is None or blame.entity != "GPU":
        return "", blame.serial
    gpus = inventory.gpus
    if blame.serial and any(gpu.serial for gpu in gpus):
        return next((g.uuid for g in gpus if g.serial == blame.serial), ""), blame.serial
    if blame.index is None or not blame.index < len(gpus) == inventory.attached:
        return "", blame.serial
    gpu = gpus[blame.index]
    return gpu.uuid, gpu.serial or blame.serial


def _text(path: str) -> str:
    done = _run(["cat", "--", path])
    if done.code:
        if b"No such file" in done.err:
            return ""
        raise CannotTell(visible(done.err.decode("utf-8", "replace").strip()))
    return done.out.decode("utf-8", "replace")


def _run(argv: list[str]) -> proc.Done:
    """In a child: the place may be on a file system that hangs."""
    try:
        return proc.run(argv, limit=LIMIT, max_output=LONGEST)
    except (proc.NotFound, proc.TimedOut, proc.TooMuch) as error:
        raise CannotTell(f"{argv[0]} {visible(argv[-1])}: {error}") from error
