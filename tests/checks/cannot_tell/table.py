"""The table of kind, source, fault and answer: made in processes of its own, shown as a page."""

import multiprocessing
import shutil
import tempfile
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from msgspec import Struct

from sentinel.checks import KINDS
from tests.checks.cannot_tell.file_cases import CASES as FILES
from tests.checks.cannot_tell.node_cases import CASES as NODES
from tests.checks.cannot_tell.slurm_cases import CASES as SLURM
from tests.checks.cannot_tell.world import DENIED, FAULTS, HANG, Case, World
from tests.lab import needs

CASES: Sequence[Case] = sorted((*SLURM, *NODES, *FILES), key=lambda case: (case.kind, case.source))
NAMES = {
    "squeue %o": "`squeue`",
    "squeue STDOUT:": "`squeue -t all`",
    "sacct --delimiter": "`sacct`",
    "ssh": "the way to the node",
    "kernel": "kernel log of the node",
    "infiniband": "/sys/class/infiniband of the node",
    "network": "/sys/class/net of the node",
    "hwmon": "/sys/class/hwmon of the node",
    "ipmi": "`ipmitool` on the node",
    "hardware": "/sys of the node",
    "smart": "`nvme` or `smartctl` on the node",
    "stalled": "tasks in state D of the node",
    "gpu_memory": "`nvidia-smi` on the node",
    "dcgm": "`ps` on the node",
    "clock": "`chronyc` or `timedatectl` on the node",
    "gpus": "`nvidia-smi` on the node",
    "gpu_use": "`nvidia-smi -d UTILIZATION` on the node",
    "steps": "cgroups of the node",
    "traffic": "/sys/class/net and vmstat of the node",
    "squeue tres-alloc": "`squeue -O`",
    "disk.1": "statfs on the node",
    "memory": "meminfo of the node",
    "stat": "statfs here",
    "o": "output of the job",
    "output": "output of `dcgmi diag`",
    "train.log": "the log",
    "folder": "the folder",
    "check_it": "the plugin",
    "site": "`command`",
    "zfs userused": "`zfs`",
    "getfattr ceph.quota.max_bytes": "`getfattr`",
}
"""Of sources, where they are not what is typed."""
AS_IT_IS = ""
NOT_TRIED = "not tried"
PAGE = Path(__file__).parents[3] / "docs" / "cannot-tell.md"
HEAD = """\
# What is said where nothing can be told

Every kind of check, with each of its sources spoilt in turn, while something is truly wrong. An answer
of ok is a fault of sentinel, but where the notes say why nobody can tell. The words: `unknown`
where it cannot tell; `warning` and `critical` where the other sources show what is wrong, or where silence
is itself the trouble (a mount that hangs, a slurmctld that does not answer).

The programs are started, read and ended as the real ones; they end with code 0 but where they are not
there, may not be started, or hang. *Cut at a record*: whole lines are missing at the end. *A newer
word*: what a later version might print.

Made by `python -m tests.checks.cannot_tell --write`; `make test` compares it.
"""


class Row(Struct, frozen=True, kw_only=True):
    """What a case answers under a fault, and the words of its worst finding."""

    case: int
    fault: str
    answer: str
    said: str = ""


def made() -> list[Row]:
    """A row for each case and fault, and one for the case as it is (AS_IT_IS)."""
    faults = (HANG, AS_IT_IS, *(f for f in FAULTS if f != HANG))  # those that wait go first
    fork = multiprocessing.get_context("fork")
    with (
        tempfile.TemporaryDirectory(prefix="cannot-tell-") as place,
        fork.Pool(8) as pool,
        fork.Pool(2, maxtasksperchild=1) as once,
    ):
        Path(place).chmod(0o755)
        jobs = [(n, fault, place) for fault in faults for n in range(len(CASES))]
        # Who gives up a right has it no more: such a process looks once, and cannot clean up.
        others = pool.map_async(_row, [job for job in jobs if job[1] != DENIED], chunksize=1)
        denied = once.map(_row, [job for job in jobs if job[1] == DENIED], chunksize=1)
        return [*others.get(), *denied]


def _row(job: tuple[int, str, str]) -> Row:
    number, fault, place = job
    case = CASES[number]
    if needs.why_no_root() and case.asked == "folder" and fault == "a hang":
        return Row(case=number, fault=fault, answer=NOT_TRIED)  # it takes a mount
    folder = Path(tempfile.mkdtemp(dir=place))
    folder.chmod(0o755)
    try:
        if fault == DENIED:  # modules are read before the right to read them is given up
            aside = folder / "aside"
            aside.mkdir()
            case.look(World(aside))
        world = World(folder, case.asked, fault)
        try:
            outcome = case.look(world)
        finally:
            world.close()
    except Exception:
        return Row(case=number, fault=fault, answer="BROKEN", said=traceback.format_exc())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    said = max(outcome.findings, key=lambda f: f.status.rank)
    text = f"{said.subject}: {said.summary}".replace(str(folder), "…")
    return Row(case=number, fault=fault, answer=said.status.value, said=text)


def wrong(rows: Sequence[Row]) -> list[str]:
    """What is said to be well and is not, and notes about what is not so."""
    found = []
    for row in rows:
        case = CASES[row.case]
        name = f"{case.kind}, {case.asked}, {row.fault or 'as it is'}"
        if row.answer == "BROKEN" or (row.answer == "ok" and row.fault not in case.believed):
            found.append(f"wrong: {name}: {row.answer}: {row.said}")
        if row.answer not in ("ok", NOT_TRIED) and row.fault in case.believed:
            found.append(f"believed for no reason any more: {name}: {row.answer}")
        if row.fault == AS_IT_IS and row.answer not in ("warning", "critical"):
            found.append(f"nothing is wrong there: {name}: {row.answer}: {row.said}")
    return found


def lines(rows: Sequence[Row]) -> dict[str, str]:
    """A line of the table by kind and source."""
    found: dict[str, str] = {}
    for number, case in enumerate(CASES):
        answers = {row.fault: row.answer for row in rows if row.case == number}
        cells = [f"{answers[f]}{' [1]' if answers[f] == 'ok' else ''}" for f in FAULTS]
        what = f"| {case.kind} | {_name(case)} | {case.truth} |"
        found[what] = f"{what} {' | '.join(cells)} |"
    return found


def _name(case: Case) -> str:
    return NAMES.get(case.asked, f"`{case.asked}`")


def page(rows: Sequence[Row]) -> str:
    """docs/cannot-tell.md."""
    titles = " | ".join(FAULTS)
    rule = "|---" * (3 + len(FAULTS)) + "|"
    notes = sorted({(c.kind, _name(c), why) for c in CASES for why in c.believed.values()})
    return "\n".join(
        [
            HEAD,
            f"| kind | source | what is wrong | {titles} |",
            rule,
            *lines(rows).values(),
            "",
            "[1] Nobody can tell:",
            "",
            *(f"- {kind}, {asked}: {why}." for kind, asked, why in notes),
            "",
        ]
    )


def sources() -> dict[str, tuple[str, ...]]:
    """What each kind declares."""
    found = {}
    for kind, place in KINDS.items():
        module, _, name = place.partition(":")
        found[kind] = getattr(import_module(module), name).SOURCES
    return found
