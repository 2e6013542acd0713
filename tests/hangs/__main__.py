"""Runs each case live, watched by the log check as a service would, and prints verdict × truth.

Every look is recorded; then each recording is judged again with looks that were dropped, came late
or lie. Times are real, so it takes two to five minutes a case.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from math import ceil
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import msgspec
from msgspec.structs import replace

from sentinel.checks.log import Log
from sentinel.checks.log.suspicion import SHORTEST, next_pair
from sentinel.checks.users import me
from sentinel.clock import SystemClock
from sentinel.core.model import Status
from sentinel.core.settings import FilePath
from sentinel.core.values import Duration
from sentinel.nodes.connect import connect
from sentinel.nodes.model import Answer, Remote
from sentinel.nodes.settings import RemoteSettings
from sentinel.stacks.gather import read_answer
from sentinel.stacks.parse.looks import facts, partial
from sentinel.stacks.parse.model import Dump, Missed, NodeStacks
from sentinel.stacks.parse.verdict import Number, joined, ripe
from sentinel.testing import FixedSlurm, context
from tests.checks.log.jobs import job

RANKS = 4
ODD = 2
WARM = 60.0
"""Seconds of steps before it goes wrong."""
LIMIT = 120.0
"""Seconds within which a hang has to be told."""
CALM = 170.0
"""Seconds for which what is no hang is watched."""
HUNG = ("die", "sleep", "spin", "raise", "file", "mismatch", "loader")
CALMER = ("slow", "checkpoint", "evaluation", "compilation", "debugger")
NODE = os.uname().nodename
REPLAYS = 20
EVERY = 20.0
"""Seconds from pass to pass."""
TOOK = 15.0
"""Seconds from the begin of a pair of looks to its verdict."""
USUAL = 2.0
"""Seconds for which the log is quiet while it is well."""


class Row(msgspec.Struct, kw_only=True):
    """What one live run showed: seconds until it was told (None: never), in which words, and all
    looks; `late` is the interval of the check."""

    case: str
    told: float | None = None
    words: str = ""
    looks: list[NodeStacks] = []
    seen: list[str] = []

    @property
    def right(self) -> bool:
        if self.case in CALMER:
            return self.told is None
        return self.told is not None and self.told <= LIMIT

    @property
    def culprit(self) -> bool:
        return f"rank {ODD} " in (self.words or "".join(self.seen))


class Recorded:
    """The way to this host, remembering what it answered."""

    def __init__(self) -> None:
        self._real: Remote = connect(RemoteSettings(via="local"))
        self.looks: list[NodeStacks] = []

    def run(
        self, nodes: Sequence[str], argv: Sequence[str], *, limit: float, stdin: bytes = b""
    ) -> Mapping[str, Answer]:
        answers = self._real.run(nodes, argv, limit=limit, stdin=stdin)
        if mark := re.search(rb"^mark=(\w+)$", stdin, re.MULTILINE):
            for node, answer in answers.items():
                told = read_answer(answer, mark[1].decode(), node, me())
                self.looks += [told] if isinstance(told, NodeStacks) else []
        return answers

    def probe(self, *args: Any, **more: Any) -> Any:
        return self._real.probe(*args, **more)


@contextmanager
def training(case: str, python: str, folder: Path, number: int) -> Iterator[None]:
    """Its ranks, as torchrun would have started them in a job of that number."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = {
        **os.environ, "SLURM_JOB_ID": str(number), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
        "WORLD_SIZE": str(RANKS), "LOCAL_WORLD_SIZE": str(RANKS), "GROUP_RANK": "0",
        "OMP_NUM_THREADS": "1", "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }  # fmt: skip
    program = str(Path(__file__).parent / "program.py")
    ranks = [
        subprocess.Popen(
            [python, program, case, str(folder)],
            env={**env, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=(folder / f"err{rank}").open("w"),
            start_new_session=True,
        )
        for rank in range(RANKS)
    ]
    try:
        yield
    finally:
        for rank in ranks:
            with suppress(ProcessLookupError):
                os.killpg(rank.pid, signal.SIGKILL)
        for rank in ranks:
            rank.wait()


def live(case: str, python: str, every: float, number: int) -> Row:
    """One training, from its start until it was told, or long enough."""
    folder = Path(mkdtemp(prefix=f"hang-{case}-"))
    log = folder / "log"
    log.write_text("")
    # What is withheld is let go first: nobody can end a process that waits for it.
    with (
        training(case, python, folder, number),
        mounted(folder) if case == "file" else nullcontext(),
    ):
        row = _watched(case, folder, every, number)
    shutil.rmtree(folder, ignore_errors=True)
    return row


@contextmanager
def mounted(folder: Path) -> Iterator[None]:
    """A file system below the folder in which an open never ends."""
    from tests.lab.fuse import Fuse

    fuse = Fuse(folder / "mount")
    try:
        fuse.hold("open")
        yield
    finally:
        fuse.close()


def _watched(case: str, folder: Path, every: float, number: int) -> Row:
    remote, row, memory = Recorded(), Row(case=case), {}
    clock, began = SystemClock(), time.time()
    running = job(
        id=str(number), job_id=str(number), name=case, user=me(), started=int(began), nodes=NODE
    )
    check = Log(
        job=case,
        path=FilePath(folder / "log"),
        progress=re.compile(r"iteration (\d+)"),
        trial=Duration(0),
    )
    broke = first = None
    while True:
        now = time.monotonic()
        first = first or (now if case == "compilation" or (folder / "log").stat().st_size else None)
        warm = 0.0 if case == "compilation" else WARM
        if broke is None and first is not None and now - first >= warm:
            (folder / "go").touch()
            broke = now
        ctx = context(
            FixedSlurm(jobs=[running]), clock.now(), remote=remote, memory=memory, limit=60.0
        )
        report = check.run(ctx)
        memory = msgspec.json.decode(msgspec.json.encode(report.memory))
        finding = report.findings[0]
        print(f"{now - (broke or now):.0f} {finding.summary}", file=sys.stderr)
        row.seen.append(f"{now - (broke or now):.0f} {finding.status.value}: {finding.summary}")
        done = broke is not None and time.monotonic() - broke > (
            CALM if case in CALMER else 2 * LIMIT
        )
        if finding.status is Status.CRITICAL and broke is not None:
            row.told, row.words = time.monotonic() - broke, finding.summary
        if row.told is not None or done:
            row.looks = remote.looks
            return row
        time.sleep(max(0.0, every - (time.monotonic() - now)))


# -- the same again, with looks that are worse than they were ------------------------------


def replayed(row: Row, seed: int) -> tuple[bool, bool]:
    """Whether the looks of the first two minutes still say the truth, and blame the right rank or
    nobody, with every third pair worse than it was: a rank that was not read, a look that is the one
    before once more, counters that are missing, a stack that is torn or another rank's, no answer at
    all. Pairs are taken when the check would take them, at a pass every 20 seconds."""
    dice = random.Random(f"{row.case} {seed}")
    pairs = [*zip(map(_dump, row.looks[::2]), map(_dump, row.looks[1::2]), strict=False)]
    found, lacks = None, 0.0
    still = SHORTEST + dice.uniform(0, EVERY)
    while pairs and not found and still + TOOK <= LIMIT:
        how = dice.choice((*["as it was"] * 12, *FAULTS))
        pair = _worsened(pairs[0], how, dice)
        pairs = pairs[1:] or pairs
        number = Number(quiet=still + TOOK, usual=USUAL, moved=row.case == "slow")
        verdict = joined(seen := facts(*pair), number)
        found = verdict if verdict.sure else None
        due = next_pair(lacks or still, TOOK, ripe(seen, number))
        lacks = still if partial(*pair) and not lacks else 0.0
        due = 0.0 if lacks else due
        still += EVERY * max(1, ceil((due - still) / EVERY))
    return (found is not None) == (row.case in HUNG), found is None or found.ranks == (ODD,)


FAULTS = ("dropped", "late", "no counters", "torn", "lies", "no answer")


def _worsened(pair: Sequence[Dump], how: str, dice: random.Random) -> Sequence[Dump]:
    if how == "late":
        return pair[1], pair[1]
    if how == "no answer":
        return pair[0], Dump(job="1", missed=(Missed(NODE, "no answer"),))
    return pair if how == "as it was" else (pair[0], _worse(pair[1], how, dice))


def _worse(dump: Dump, how: str, dice: random.Random) -> Dump:
    (node,) = dump.nodes
    worst = dice.randrange(len(node.processes))
    changes: dict[str, dict[str, Any]] = {
        "dropped": {"threads": (), "why": "no answer"},
        "torn": {"threads": (), "why": "torn"},
        "no counters": {"spent": None},
        "lies": {"threads": dice.choice(node.processes).threads},
    }
    processes = [
        replace(p, **changes[how]) if n == worst else p for n, p in enumerate(node.processes)
    ]
    return replace(dump, nodes=(replace(node, processes=tuple(processes)),))


def _dump(look: NodeStacks) -> Dump:
    return Dump(job="1", nodes=(look,))


# -- all of them ---------------------------------------------------------------------------


def main() -> None:
    asked = argparse.ArgumentParser(prog="python -m tests.hangs", description=__doc__)
    asked.add_argument("cases", nargs="*", default=[*HUNG, *CALMER])
    asked.add_argument("--python", default=sys.executable, help="an interpreter with torch")
    asked.add_argument("--times", type=int, default=1)
    asked.add_argument("--every", type=float, default=EVERY, help="seconds between two passes")
    asked.add_argument("--save", type=Path, help="a folder for the recordings")
    asked.add_argument(
        "--replay", type=Path, help="judge the recordings of that folder, start nothing"
    )
    args = asked.parse_args()
    for path in sorted(args.replay.glob("*.json")) if args.replay else ():
        row = msgspec.json.decode(path.read_bytes(), type=Row)
        print(_line(row), flush=True)
    if args.replay:
        return
    number = random.randrange(10**6, 10**7)
    for case in args.cases:
        for time_ in range(args.times):
            number += 1
            row = live(case, args.python, args.every, number)
            if args.save:
                args.save.mkdir(exist_ok=True)
                (args.save / f"{case}-{time_}.json").write_bytes(msgspec.json.encode(row))
            print(_line(row), flush=True)


def _line(row: Row) -> str:
    replays = [replayed(row, seed) for seed in range(REPLAYS)]
    truly, blamed = (sum(one) for one in zip(*replays, strict=True))
    truth = "hung" if row.case in HUNG else "no alarm"
    told = "never" if row.told is None else f"after {row.told:.0f} s"
    right = "right" if row.right else "WRONG"
    named = row.case in (*HUNG, "slow")
    who = "" if not named else f", culprit {'named' if row.culprit else 'NOT named'}"
    return (
        f"{row.case:12} {truth:9} told {told:12} {right}{who}; replays {truly} of {REPLAYS},"
        f" nobody wrongly blamed in {blamed};"
        f" looks {len(row.looks)}: {row.words or row.seen[-1]}"
    )


if __name__ == "__main__":
    main()
