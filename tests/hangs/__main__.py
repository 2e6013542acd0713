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
from statistics import mean, stdev
from tempfile import mkdtemp
from typing import Any

import msgspec
from msgspec.structs import replace

from sentinel.checks.log import Log
from sentinel.checks.log.closer_look_state import (
    MIN_SUSPECT_QUIET_S,
    NEGLIGIBLE_QUIET_S,
    compute_next_pair_s,
)
from sentinel.checks.log.run import MIN_RERUN_S
from sentinel.checks.users import own_user_name
from sentinel.clock import SystemClock
from sentinel.core.model import Status
from sentinel.core.node_answers import Answer, Remote
from sentinel.core.settings import FilePath
from sentinel.core.values import Duration
from sentinel.engine.engine import MAX_SECOND_LOOKS
from sentinel.engine.pipeline import MAX_SECOND_LOOK_WAIT_S
from sentinel.nodes.connect import connect
from sentinel.nodes.settings import RemoteSettings
from sentinel.stacks.closer import choose_whole_looks
from sentinel.stacks.gather import read_answer
from sentinel.stacks.parse.model import MissedNode, NodeStacks, StacksDump
from sentinel.stacks.parse.two_looks import is_partial_look, stack_facts
from sentinel.stacks.parse.verdict import ProgressNumber, decides_after_s, join_facts
from sentinel.testing import FixedSlurm, context
from tests.checks.log.jobs import job

RANKS = 4
ODD = 2
WARM = 60.0
WARM_LOOKS = 4
"""Seconds of steps before it goes wrong, and passes: three of them have to have seen progress."""
LIMIT = 120.0
"""Seconds within which a hang has to be told."""
CALM = 170.0
"""Seconds for which what is no hang is watched."""
HUNG = ("die", "sleep", "spin", "raise", "file", "mismatch", "loader", "layer")
CALMER = ("slow", "checkpoint", "evaluation", "compilation", "debugger")
NODE = os.uname().nodename
REPLAYS = 20
EVERY = 20.0
"""Seconds from pass to pass."""
PASSES = (EVERY, 60.0)
"""Seconds from pass to pass in the replays; 60 is what the check has by default."""
TOOK, THIRD = 15.0, 13.0
"""Seconds from the begin of a pair of looks to its verdict, and for a third look."""
USUAL = 2.0
"""Seconds for which the log is quiet while it is well."""


class Row(msgspec.Struct, kw_only=True):
    """What one live run showed: seconds until it was told (None: never), in which words, and all
    looks, by pass."""

    case: str
    told: float | None = None
    words: str = ""
    looks: list[list[NodeStacks]] = []
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
                told = read_answer(answer, mark[1].decode(), node, own_user_name())
                self.looks += [told] if isinstance(told, NodeStacks) else []
        return answers

    def probe(self, *args: Any, **more: Any) -> Any:
        return self._real.probe(*args, **more)


@contextmanager
def training(
    case: str, python: str, folder: Path, number: int, count: int = RANKS
) -> Iterator[None]:
    """Its ranks, as torchrun would have started them in a job of that number, and a stand-in for
    `scontrol listpids` that names them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = {
        **os.environ, "SLURM_JOB_ID": str(number), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
        "WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count), "GROUP_RANK": "0",
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
        for rank in range(count)
    ]
    tools, path = folder / "tools", os.environ["PATH"]
    tools.mkdir(exist_ok=True)
    rows = "".join(f"echo {rank.pid} {number} 0 {n} {n}\n" for n, rank in enumerate(ranks))
    (tools / "scontrol").write_text(f"#!/bin/sh\n{rows}")
    (tools / "scontrol").chmod(0o755)
    os.environ["PATH"] = f"{tools}:{path}"
    try:
        yield
    finally:
        os.environ["PATH"] = path
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
        id=str(number),
        job_id=str(number),
        name=case,
        user=own_user_name(),
        started=int(began),
        nodes=NODE,
    )
    check = Log(
        job=case,
        path=FilePath(folder / "log"),
        progress=re.compile(r"iteration (\d+)"),
        trial=Duration(0),
    )
    broke = breaks = None  # when it has gone wrong, and is to: between two passes
    coming, more = time.monotonic(), 0  # the pass in its time; runs since that the check asked for
    while True:
        now = time.monotonic()
        if breaks is None and case == "compilation":
            breaks = now
        elif breaks is None and (folder / "log").stat().st_size:
            breaks = now + max(WARM, WARM_LOOKS * every) + random.uniform(0, every)
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
        if remote.looks:
            row.looks.append(remote.looks)
            remote.looks = []
        if row.told is not None or done:
            return row
        ended = time.monotonic()
        if (
            report.again is not None
            and more < MAX_SECOND_LOOKS
            and report.again <= MAX_SECOND_LOOK_WAIT_S
        ):
            more, wake = more + 1, ended + report.again
        else:
            coming += every * max(1, ceil((ended - coming) / every))
            more, wake = 0, coming
        if broke is None and breaks is not None and breaks <= wake:
            time.sleep(max(0.0, breaks - ended))
            (folder / "go").touch()
            broke = time.monotonic()
        time.sleep(max(0.0, wake - time.monotonic()))


# -- what watching costs the training itself -------------------------------------------------


def step_time(python: str, minutes: float, spell: float, number: int) -> str:
    """Steps of a training that uses every core, in turns of so many seconds with one pass of the check
    and without, in pairs whose order is drawn: the mean of their ratios, with its standard error."""
    folder, spells = Path(mkdtemp(prefix="hang-busy-")), list[tuple[float, float, bool]]()
    log = folder / "log"
    log.write_text("")
    dice, memory = random.Random(number), None
    with training("busy", python, folder, number, os.cpu_count() or 1):
        until = time.monotonic() + WARM
        while not log.stat().st_size:
            if time.monotonic() > until:
                raise SystemExit(
                    f"no step within {WARM:.0f} s: {(folder / 'err0').read_text()[-400:]}"
                )
            time.sleep(0.5)
        time.sleep(20.0)
        running = job(
            id=str(number),
            job_id=str(number),
            name="busy",
            user=own_user_name(),
            started=int(time.time()),
        )
        check = Log(job="busy", path=FilePath(log), progress=re.compile(r"iteration (\d+)"))
        for _ in range(ceil(minutes * 60 / spell / 2)):
            for watched in dice.sample((True, False), 2):
                began, until = time.time(), time.monotonic() + spell
                if watched:
                    ctx = context(
                        FixedSlurm(jobs=[running]),
                        SystemClock().now(),
                        remote=Recorded(),
                        memory=memory,
                        limit=60.0,
                    )
                    memory = msgspec.json.decode(msgspec.json.encode(check.run(ctx).memory))
                time.sleep(max(0.0, until - time.monotonic()))
                spells.append((began, time.time(), watched))
    ends = [float(line.rpartition(" ")[2]) for line in log.read_text().splitlines()]
    shutil.rmtree(folder, ignore_errors=True)
    means = [_mean_step(ends, began, ended) for began, ended, _ in spells]
    pairs = [
        (means[n], means[n + 1]) if spells[n][2] else (means[n + 1], means[n])
        for n in range(0, len(means), 2)
    ]
    ratios = [on / off for on, off in pairs]
    middle, spread = mean(ratios), stdev(ratios) / len(ratios) ** 0.5
    each = mean(off for _, off in pairs)
    return (
        f"{len(ends)} steps of {1000 * each:.1f} ms in {len(pairs)} pairs of {spell:.0f} s: with a pass"
        f" every {spell:.0f} s they take {middle:.4f} +- {spread:.4f} times as long"
    )


def _mean_step(ends: Sequence[float], began: float, ended: float) -> float:
    inside = [at for at in ends if began <= at <= ended]
    return (inside[-1] - inside[0]) / (len(inside) - 1)


# -- the same again, with looks that are worse than they were ------------------------------


def replayed(row: Row, seed: int, every: float) -> tuple[bool, bool]:
    """Whether the looks of the first two minutes still say the truth, and blame the right rank or
    nobody, with every third look but the first of a pass worse than it was: a rank that was not read,
    the look before once more, counters that are missing, a stack that is torn or another rank's, no
    answer at all. They are taken when the check would take them, at a pass in so many seconds and
    where it asks for one before."""
    dice = random.Random(f"{row.case} {seed}")
    passes = [*map(_dumps, row.looks)]
    found, lacks = None, 0.0
    coming = dice.uniform(0, every)  # the first pass after it went wrong
    coming += every if coming <= max(NEGLIGIBLE_QUIET_S, USUAL) else 0.0
    still, more = max(MIN_SUSPECT_QUIET_S, coming), int(coming < MIN_SUSPECT_QUIET_S)
    while passes and not found and still + TOOK <= LIMIT:
        taken, took = _taken(passes[0], dice), TOOK
        if len(taken) > 2:
            took += THIRD
        passes = passes[1:] or passes
        pair = choose_whole_looks(taken)
        number = ProgressNumber(quiet=still + took, usual=USUAL, moved=row.case == "slow")
        verdict = join_facts(seen := stack_facts(*pair), number)
        found = verdict if verdict.is_sure and still + took <= LIMIT else None
        due = compute_next_pair_s(lacks or still, took, decides_after_s(seen, number))
        lacks = still if is_partial_look(*pair) and not lacks else 0.0
        ended, due = still + took, 0.0 if lacks else due
        more, still = more + 1, max(ended + MIN_RERUN_S, due)
        if more > MAX_SECOND_LOOKS or still - ended > MAX_SECOND_LOOK_WAIT_S:
            coming += every * ceil((max(ended, due) - coming) / every)
            more, still = 0, coming
    return (found is not None) == (row.case in HUNG), found is None or found.ranks == (ODD,)


def _taken(looks: Sequence[StacksDump], dice: random.Random) -> Sequence[StacksDump]:
    """Those of one pass. Where none was recorded a third is the second as it was, once more."""
    first, second, *more = looks
    taken = [first, _worsened(first, second, dice)]
    if is_partial_look(*taken):
        taken.append(_worsened(taken[1], more[0] if more else second, dice))
    return taken


FAULTS = ("dropped", "late", "no counters", "torn", "lies", "no answer")


def _worsened(before: StacksDump, look: StacksDump, dice: random.Random) -> StacksDump:
    how = dice.choice((*["as it was"] * 12, *FAULTS))
    if how == "no answer":
        return StacksDump(job="1", missed=(MissedNode(NODE, "no answer"),))
    return {"late": before, "as it was": look}.get(how) or _worse(look, how, dice)


def _worse(dump: StacksDump, how: str, dice: random.Random) -> StacksDump:
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


def _dumps(looks: Sequence[NodeStacks]) -> list[StacksDump]:
    return [StacksDump(job="1", nodes=(look,)) for look in looks]


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
    asked.add_argument(
        "--step-time", type=float, metavar="MINUTES", help="what watching costs a training's steps"
    )
    args = asked.parse_args()
    if args.step_time:
        print(step_time(args.python, args.step_time, args.every, random.randrange(10**6, 10**7)))
        return
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
    replays = {e: [replayed(row, seed, e) for seed in range(REPLAYS)] for e in PASSES}
    truly = ", ".join(f"{sum(t for t, _ in r)} at {e:.0f} s" for e, r in replays.items())
    blamed = sum(not b for r in replays.values() for _, b in r)
    truth = "hung" if row.case in HUNG else "no alarm"
    told = "never" if row.told is None else f"after {row.told:.0f} s"
    right = "right" if row.right else "WRONG"
    named = row.case in (*HUNG, "slow")
    who = "" if not named else f", culprit {'named' if row.culprit else 'NOT named'}"
    return (
        f"{row.case:12} {truth:9} told {told:12} {right}{who}; of {REPLAYS} replays right"
        f" {truly} a pass, wrongly blamed {blamed};"
        f" looks {sum(map(len, row.looks))}: {row.words or row.seen[-1]}"
    )


if __name__ == "__main__":
    main()
