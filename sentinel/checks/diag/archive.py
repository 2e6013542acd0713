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
from sentinel.homes import find_user_folder

_NAME_PATTERN = re.compile(
    r"dcgmi-r([1-4])-([A-Za-z0-9][A-Za-z0-9._-]*)-([0-9]{8}T[0-9]{6}Z)\.json"
)
MAX_OUTPUT_BYTES = 64 * 2**20
READ_TIMEOUT_S = 10.0


def get_default_directory() -> str:
    """The usual place: in the home of whoever runs sentinel, which nodes see on most clusters."""
    return os.path.join(find_user_folder("XDG_STATE_HOME", "~/.local/state"), "sentinel", "diag")


class ArchivedOutput(Struct, frozen=True, kw_only=True):
    """One output; `at` is epoch seconds."""

    name: str
    level: int
    node: str
    at: int


def make_output_name(level: int, node: str, now: Instant, test: str = "") -> str:
    """`dcgmi-r2-node-0-20261120T211500Z.json`; of a test of nodes `test-cuda-node-0-….txt`."""
    moment = datetime.fromtimestamp(now.wall // SECOND, tz=timezone.utc)
    when = f"{node}-{moment:%Y%m%dT%H%M%SZ}"
    return f"test-{test}-{when}.txt" if test else f"dcgmi-r{level}-{when}.json"


def parse_output_name(name: str) -> ArchivedOutput | None:
    """What a name says; None for any other file."""
    match = _NAME_PATTERN.fullmatch(name)
    if not match:
        return None
    moment = datetime.strptime(match[3], "%Y%m%dT%H%M%SZ").replace(tzinfo=timezone.utc)
    return ArchivedOutput(name=name, level=int(match[1]), node=match[2], at=int(moment.timestamp()))


def list_outputs(directory: str) -> list[ArchivedOutput]:
    """All of them, the oldest first; none where there is no such directory. CannotTell.

    Links are left out: what they lead to is not a diagnostic's.
    """
    wanted = ["-maxdepth", "1", "-type", "f", "-name", "dcgmi-r*.json", "-print0"]
    done = _run_in_child(["find", "-H", directory, *wanted])
    if done.code and b"No such file" not in done.err:
        raise CannotTell(visible(done.err.decode("utf-8", "replace").strip()))
    names = (os.path.basename(os.fsdecode(raw)) for raw in done.out.split(b"\0") if raw)
    return sorted(filter(None, map(parse_output_name, names)), key=lambda f: (f.at, f.name))


def find_finished_runs(paths: list[str]) -> set[str]:
    """Which of these runs have left their exit code. CannotTell."""
    if not paths:
        return set()
    done = _run_in_child(["stat", "-c", "%n", "--", *(f"{path}.rc" for path in paths)])
    return {os.fsdecode(raw).removesuffix(".rc") for raw in done.out.split(b"\n") if raw}


def read_diag_verdict(path: str, level: int, gpus: int = 0) -> tuple[Verdict, Inventory | None]:
    """What a finished run proves, and the GPUs that were there. CannotTell if it is unreadable."""
    code = _read_output(f"{path}.rc").strip()
    ran = Ran(
        out=_read_output(path) or _read_output(f"{path}.err"),
        code=int(code) if code.isdigit() else None,
        level=level,
        gpus=gpus,
    )
    try:
        found = smi.parse(_read_output(f"{path}.gpus"))
    except Unreadable:
        return judge(ran), None
    return judge(ran), replace(found, attached=max(gpus, found.attached or 0))


def read_test_verdict(path: str) -> Verdict:
    """What a finished test of nodes says: its line, and its code. CannotTell if it is unreadable."""
    code, said = (
        _read_output(f"{path}.rc").strip(),
        shortened(visible(_read_output(path).strip()), 300),
    )
    known: dict[str, Outcome] = {"0": "pass", "1": "fail"}
    return Verdict(outcome=known.get(code, "inconclusive"), why=said or "it left no line")


def identify_gpu(blame: Blame, inventory: Inventory | None) -> tuple[str, str]:
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


def _read_output(path: str) -> str:
    done = _run_in_child(["cat", "--", path])
    if done.code:
        if b"No such file" in done.err:
            return ""
        raise CannotTell(visible(done.err.decode("utf-8", "replace").strip()))
    return done.out.decode("utf-8", "replace")


def _run_in_child(argv: list[str]) -> proc.Done:
    """In a child: the place may be on a file system that hangs."""
    try:
        return proc.run(argv, limit=READ_TIMEOUT_S, max_output=MAX_OUTPUT_BYTES)
    except (proc.CommandNotFound, proc.TimedOut, proc.TooMuchOutput) as error:
        raise CannotTell(f"{argv[0]} {visible(argv[-1])}: {error}") from error
