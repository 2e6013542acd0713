"""The archive of dcgmi diag's outputs: one file a run, named by level, node and time."""

from __future__ import annotations

import os
import re
import stat
from datetime import datetime, timezone

from msgspec import Struct
from msgspec.structs import replace

from sentinel import proc
from sentinel.core.clock import SECOND, Instant
from sentinel.core.errors import CannotTell
from sentinel.core.guidance import quote_command
from sentinel.core.long_lines import decode_document, decode_lines
from sentinel.core.text import shortened, visible
from sentinel.gpu import smi
from sentinel.gpu.dcgm import Blame, Outcome, Ran, Verdict, judge
from sentinel.gpu.errors import Unreadable
from sentinel.gpu.model import Inventory
from sentinel.homes import find_user_folder
from sentinel.trust import get_trusted_uids, lets_others_write

_NAME_PATTERN = re.compile(
    r"dcgmi-r([1-4])-([A-Za-z0-9][A-Za-z0-9._-]*)-([0-9]{8}T[0-9]{6}Z)\.json"
)
MAX_OUTPUT_BYTES = 64 * 2**20
READ_TIMEOUT_S = 10.0


def get_default_directory() -> str:
    """The default directory: in the home of the user who runs sentinel, which nodes share on most
    clusters."""
    return os.path.join(find_user_folder("XDG_STATE_HOME", "~/.local/state"), "sentinel", "diag")


class ArchivedOutput(Struct, frozen=True, kw_only=True):
    """One output in the archive."""

    name: str  # Name of the file.
    level: int  # Level of the test.
    node: str  # Name of the node.
    at: int  # the time in its name, epoch seconds


def make_output_name(level: int, node: str, now: Instant, test: str = "") -> str:
    """The name of an output: for example `dcgmi-r2-node-0-20261120T211500Z.json`, or
    `test-cuda-node-0-….txt` for a test of nodes."""
    moment = datetime.fromtimestamp(now.wall // SECOND, tz=timezone.utc)
    when = f"{node}-{moment:%Y%m%dT%H%M%SZ}"
    return f"test-{test}-{when}.txt" if test else f"dcgmi-r{level}-{when}.json"


def parse_output_name(name: str) -> ArchivedOutput | None:
    """Level, node and time, from the name of an output. None for any other file."""
    match = _NAME_PATTERN.fullmatch(name)
    if not match:
        return None
    moment = datetime.strptime(match[3], "%Y%m%dT%H%M%SZ").replace(tzinfo=timezone.utc)
    return ArchivedOutput(name=name, level=int(match[1]), node=match[2], at=int(moment.timestamp()))


def list_outputs(directory: str) -> list[ArchivedOutput]:
    """All outputs in the directory, the oldest first; none if there is no such directory. Raises
    CannotTell.

    Links are left out, since they may lead to other files. Files that other users put into a
    directory which everybody may write are left out too."""
    wanted = ["-maxdepth", "1", "-type", "f", "-name", "dcgmi-r*.json", "-print0"]
    done = _run_in_child(["find", "-H", directory, *_list_owner_tests(directory), *wanted])
    if done.code and b"No such file" not in done.err:
        raise CannotTell(visible(decode_lines(done.err).strip()))
    names = (os.path.basename(os.fsdecode(raw)) for raw in done.out.split(b"\0") if raw)
    return sorted(filter(None, map(parse_output_name, names)), key=lambda f: (f.at, f.name))


def find_finished_runs(paths: list[str]) -> set[str]:
    """The runs that have written their exit code. Raises CannotTell."""
    if not paths:
        return set()
    found = set[str]()
    for directory in {os.path.dirname(path) for path in paths}:
        codes = [f"{path}.rc" for path in paths if os.path.dirname(path) == directory]
        tests = ["-maxdepth", "0", *_list_owner_tests(directory), "-print0"]
        done = _run_in_child(["find", *codes, *tests])
        found |= {os.fsdecode(raw).removesuffix(".rc") for raw in done.out.split(b"\0") if raw}
    return found


def read_diag_verdict(path: str, level: int, gpus: int = 0) -> tuple[Verdict, Inventory | None]:
    """The verdict of a finished run, and the GPUs that were there (None: not known). It is
    inconclusive where others could have renamed the output. Raises CannotTell if the output cannot
    be read."""
    if doubt := describe_open_archive(os.path.dirname(path)):
        return Verdict(outcome="inconclusive", why=doubt), None
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
    """The same of a finished node test, by its line and its exit code."""
    if doubt := describe_open_archive(os.path.dirname(path)):
        return Verdict(outcome="inconclusive", why=doubt)
    code, said = (
        _read_output(f"{path}.rc").strip(),
        shortened(visible(_read_output(path).strip()), 300),
    )
    known: dict[str, Outcome] = {"0": "pass", "1": "fail"}
    return Verdict(outcome=known.get(code, "inconclusive"), why=said or "it left no line")


def identify_gpu(blame: Blame, inventory: Inventory | None) -> tuple[str, str]:
    """UUID and serial number of a blamed GPU; empty if they are not known.

    The GPU is found by the serial number that DCGM prints. If a tool hides it, by the index, which
    is NVML's in both tools as long as no GPU is lost."""
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
    tests = _list_owner_tests(os.path.dirname(path))
    argv = ["find", path, "-maxdepth", "0", *tests, "-exec", "cat", "--", "{}", "+"]
    done = _run_in_child(argv if tests else ["cat", "--", path])
    if done.code:
        if b"No such file" in done.err:
            return ""
        raise CannotTell(visible(decode_lines(done.err).strip()))
    return decode_document(done.out)


def _list_owner_tests(directory: str) -> list[str]:
    """Tests of find(1) that select trusted files. In a directory that others may write, only files
    of this user, of root and of the directory's owner count: anybody could put an output there that
    drains a node."""
    seen = _look_at_directory(directory)
    if seen is None or not lets_others_write(*seen):
        return []
    owners = [["-uid", str(one)] for one in sorted({*get_trusted_uids(), seen[1]})]
    return ["-type", "f", "(", *owners[0], *(w for o in owners[1:] for w in ("-o", *o)), ")"]


def describe_open_archive(directory: str) -> str:
    """Why no output in the directory proves anything; empty if they do. Others who may write there
    could rename an old output to another node's, unless the directory has the sticky bit. Raises
    CannotTell if it cannot be looked at."""
    seen = _look_at_directory(directory)
    if seen is None or not lets_others_write(*seen) or seen[0] & stat.S_ISVTX:
        return ""
    return (
        f"{visible(directory)}: others may write there, so its outputs prove nothing; "
        f"chmod go-w, or chmod +t, {quote_command(directory)}"
    )


def require_closed_archive(directory: str) -> None:
    """Raise CannotTell if no output in the directory proves anything."""
    if doubt := describe_open_archive(directory):
        raise CannotTell(doubt)


def _look_at_directory(directory: str) -> tuple[int, int, int] | None:
    """Mode, uid and gid; None if there is no such directory."""
    done = _run_in_child(["stat", "-L", "-c", "%f %u %g", "--", directory])
    told = decode_lines(done.out).split()
    return (int(told[0], 16), int(told[1]), int(told[2])) if len(told) == 3 else None


def _run_in_child(argv: list[str]) -> proc.Done:
    """Run a command in a child, since the directory may be on a file system that hangs. Raises
    CannotTell."""
    try:
        return proc.run(argv, limit=READ_TIMEOUT_S, max_output=MAX_OUTPUT_BYTES)
    except (proc.CommandNotFound, proc.TimedOut, proc.TooMuchOutput) as error:
        raise CannotTell(f"{argv[0]} {visible(argv[-1])}: {error}") from error
