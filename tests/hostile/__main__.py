"""`python -m tests.hostile`: who attacks what, how often, and whether it held. 0 when all did."""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.hostile import checkpoints, claims, commands, folders, jobs, others
from tests.hostile.health import HealthWatch
from tests.hostile.stage import Attack, Outcome, Stage, stage
from tests.lab import machine, needs

JOBS, PAGE, HOST = "her own jobs", "a connection to the page", "a shell on the host"
NODE = "root on a node"


class Row(NamedTuple):
    """One attack. `before`: what it came to at commit d826494, before any of this was mended (`--against`
    its folders; once, on a busy machine), or what was seen there by hand."""

    attacker: str
    surface: str
    attack: Attack
    before: str


Lane = Sequence[Row]
"""Attacks that are played one after another."""

ACTS: Sequence[Sequence[Lane]] = (
    (
        (
            Row(JOBS, "output is a link that flips", jobs.flip_links, "held: 7,000 flips met no window"),
            Row(JOBS, "output, log, checkpoints of 41 forms", jobs.put_forms_of_files,
                "held: whose file it is was asked"),
        ),
        (
            Row(HOST, "rows without end from a state's port", commands.serve_rows_without_end,
                "fell: 1.2 GB in 12 s, and went on"),
            Row(NODE, "texts of a node's board (IPMI)", commands.write_board_texts,
                "fell: an alert of 100,000 characters"),
            Row(HOST, "a folder where root types commands", commands.lure_commands,
                "fell: `check gpu` ran hers as root"),
        ),
        (
            Row(HOST, "names in a folder that root cleans", folders.rename_what_root_cleans,
                "not run: the row is newer"),
            Row(HOST, "links where root writes", folders.link_where_root_writes, "fell by hand: root followed them"),
            Row(HOST, "locks below a base of root's scripts", folders.hold_locks,
                "fell by hand: no script was run any more"),
            Row(HOST, "a folder of 8,000 levels (`du`)", folders.dig_where_root_adds_up,
                "not run: the row is newer"),
        ),
        (
            Row(JOBS, "names that wait for `deliver`", commands.deliver_forged_names, "not run: the row is newer"),
            Row(HOST, "programs swapped after their check", claims.swap_programs, "fell by hand: root ran hers"),
            Row(HOST, "links in an archive of diagnostics", claims.plant_in_archive,
                "fell by hand: root's file was shown"),
        ),
        (
            Row(JOBS, "`per_hour` that all share", commands.use_up_the_hour, "fell: one user's deaths used it up"),
            Row(HOST, "tasks of alice's job that are none", claims.forge_witnesses,
                "fell by hand: a variable was believed"),
            Row(JOBS, "a parent with the name of a login", claims.hide_behind_logins,
                "fell by hand: her leftovers stayed"),
            Row(HOST, "port and socket of PostgreSQL", claims.squat_postgres,
                "fell by hand: the password came in clear"),
            Row(HOST, "operators in PostgreSQL's schema", claims.create_in_schema,
                "not run: the row is newer"),
        ),
        (
            Row(JOBS, "commands that an administrator pastes", jobs.bait_administrators,
                "fell: a pasted script ran as root"),
        ),
    ),
    (
        (
            Row(JOBS, "222 busy logs beside alice's", jobs.flood_with_logs,
                "fell: alice was not told in 90 s"),
            Row(JOBS, "40 busy elements of one array", jobs.flood_with_elements, "not run: the row is newer"),
            Row(JOBS, "kill -9, restart and reload meanwhile", jobs.restart_under_attack,
                "held: told and stored in one transaction"),
        ),
    ),
    (
        (
            Row(JOBS, "folder of 100,000 checkpoints", jobs.fill_checkpoint_folder,
                "held; why was not looked into"),
            Row(JOBS, "numbers of parts, indexes of brackets", checkpoints.promise_parts,
                "fell by hand: 1.1 GB, the page stood for 7 s"),
            Row(JOBS, "names and comments", jobs.forge_names, "held: text was escaped already"),
            Row(JOBS, "names on an administrator's terminal", jobs.show_on_terminals,
                "not tried: it showed no job in time"),
            Row(JOBS, "flight recorder in a private folder", jobs.name_flight_recorders,
                "held; why was not looked into"),
            Row(JOBS, "times that no calendar holds", checkpoints.set_times,
                "fell by hand: nobody's checkpoints were seen"),
            Row(HOST, "links where root copies the state", commands.wait_at_copies, "not there: it had no `state backup`"),
        ),
    ),
    (
        (
            Row(JOBS, "200 deaths beside alice's", jobs.flood_with_deaths,
                "fell: alice was not told in 120 s"),
        ),
        (
            Row(JOBS, "signals to what reads her files", jobs.signal_readers,
                "not run: the row is newer"),
            Row(JOBS, "kernel log", others.forge_kernel_lines, "fell by hand: a name became an Xid"),
            Row(PAGE, "slow headers, streams, bodies", others.hold_connections,
                "held; slow bodies fell by hand"),
            Row(PAGE, "small bodies that unpack to gigabytes", others.unpack_bodies,
                "not run: the row is newer"),
            Row(PAGE, "pages of alice's training", others.look_as_another,
                "held; why was not looked into"),
            Row(PAGE, "quotas of other people", others.look_at_quotas, "fell: everybody saw alice's"),
            Row(PAGE, "forged and bent links", others.forge_links,
                "held: the signature was checked already"),
            Row(PAGE, "a link used again, late, by others", others.replay_links,
                "held: an alert is acknowledged once"),
            Row(PAGE, "requests without end", others.ask_without_end, "fell: the administrator was answered 429"),
            Row(HOST, "marks among the arguments of squeue", others.read_arguments,
                "not run: the row is newer"),
            Row(HOST, "names in /tmp and /dev/shm", others.squat_in_tmp,
                "fell by hand: a squatter was obeyed"),
        ),
    ),
)  # fmt: skip
"""Who has what, against which surface, on one service: act after act, the lanes of an act at once, for most
of an attack is waiting for two passes."""

ROWS = [row for act in ACTS for lane in act for row in lane]

WATCHED = (HOST, "/proc of sentinel and its children", "held: 375,000 reads met nothing")
ANSWERED = ("all of these", "/healthz within a second", "held; a line of `=` froze it by hand")


class Table:
    """What is printed, a row when it is known; `failed` are the rows that did not hold."""

    def __init__(self) -> None:
        self.failed, self._turn = list[str](), threading.Lock()

    def show_row(
        self, who: str, surface: str, before: str, outcome: Outcome, seconds: float = 0.0
    ) -> None:
        harm = outcome.harm if outcome.tries or outcome.harm else ["nothing was tried"]
        held = "held" if not harm else "NOT HELD: " + "; ".join(harm)
        with self._turn:
            row = f"{who:25} {surface:38} {outcome.tries:7,} {seconds:4.0f} s  {before:44} {held}"
            self.failed += [row] if harm else []
            print(row, flush=True)


def play_lane(made: Stage, watch: HealthWatch, table: Table, lane: Lane) -> None:
    """One attack after another; one that breaks did not hold."""
    for row in lane:
        began = time.monotonic()
        watch.paused = row.attack is jobs.restart_under_attack
        try:
            outcome = row.attack(made)
        except (Exception, SystemExit) as error:
            outcome = Outcome(0, [f"{type(error).__name__}: {str(error)[:500]}"])
        finally:
            watch.paused = False
        table.show_row(row.attacker, row.surface, row.before, outcome, time.monotonic() - began)


def play(folder: Path, only: str = "", against: str = "") -> int:
    """Play all of it, print the table, and say how many rows did not hold."""
    table = Table()
    with stage(folder, against) as made:
        watch, processes = HealthWatch(made), others.ProcessWatch(made)
        # One pool to the end: a service that an attack has started dies with the thread that did it.
        with ThreadPoolExecutor(max(map(len, ACTS))) as pool:
            for act in ACTS:
                lanes = [
                    [r for r in lane if any(w in r.surface for w in only.split("|"))]
                    for lane in act
                ]
                list(pool.map(lambda lane: play_lane(made, watch, table, lane), lanes))
        table.show_row(*WATCHED, processes.end())
        table.show_row(*ANSWERED, watch.end())
        if leaks := made.leaks():
            table.show_row("all of these", "secrets", "", Outcome(1, leaks))
        if table.failed and made.service:
            print("sentinel's own words:", *made.service.err.splitlines()[-15:], sep="\n    ")
    # Last: who reads the end of a log sees them first.
    print(*table.failed, sep="\n")
    return len(table.failed)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument(
        "--only", default="", help="those whose surface has these words; several: A|B"
    )
    parser.add_argument("--against", default="", metavar="PYTHONPATH",
                        help="folders of another sentinel and of what it needs")  # fmt: skip
    args = parser.parse_args()
    if missing := needs.why_no_lab():
        print(f"cannot start: {missing}", file=sys.stderr)
        return 69
    machine.own_mounts()
    print(f"{'attacker has':25} {'surface':38} {'tries':>7} {'time':>6}  {'at d826494':44} held")
    with tempfile.TemporaryDirectory(prefix="hostile-", ignore_cleanup_errors=True) as name:
        return int(bool(play(Path(name), args.only, args.against)))


if __name__ == "__main__":
    sys.exit(main())
