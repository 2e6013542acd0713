"""What is shown is what is stored; what is not known is not made up."""

import asyncio
from collections.abc import Sequence

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from sentinel.alerting.orders import Author, acknowledge_alert
from sentinel.alerting.settings import Match
from sentinel.alerting.silences import Ack, Silence, match_exactly
from sentinel.core.clock import shift_instant
from sentinel.core.model import Batch, CheckRun, Key, Status
from sentinel.core.text import natural_sort_key
from sentinel.slurm.drain_reasons import REASON_CLASSES, classify_reason
from sentinel.status import last_seen
from sentinel.status.collect import read_status_inputs
from sentinel.status.folding import fold_alerts
from sentinel.status.last_seen import CheckLook, NodeLook, group_nodes
from sentinel.status.machine_room import index_nodes
from sentinel.status.metrics import compute_pace
from sentinel.status.node_states import (
    STATES_WORST_FIRST,
    get_state_word,
)
from sentinel.status.plot import MAX_LINE_POINTS, choose_ticks, thin_points
from sentinel.status.types import CheckFact, JobFact, NodesFact
from sentinel.status.view_model import build_facts, make_action_fact
from sentinel.store.memory import MemoryStore
from sentinel.testing import ALL_SEEN, START
from sentinel.web.grid import CELL, choose_grid_columns, draw_node_grid, find_cell_index
from sentinel.web.views import _build_overview_context
from tests.actions.test_announcements import record
from tests.web.scenery import KINDS, alert, around, disk, nodes, progress, scene, store


def test_alerts_stand_in_the_order_in_which_they_matter() -> None:
    """Firing before pending, unanswered before answered, worse before better, older first."""
    rows = [
        alert(1, "warn", Status.WARNING),
        alert(2, "crit"),
        replace(alert(3, "pend"), firing=False),
        alert(4, "acked"),
        alert(5, "older"),
        alert(6, "blind", Status.UNKNOWN),
    ]
    state = store(rows)
    state.put_ack(Ack(alert="00000004", at=START, who="ann"))
    told = build_facts(read_status_inputs(state, around(), START)).alerts
    names = [a.subject for a in told]
    assert names == ["older", "crit", "blind", "warn", "acked", "pend"]
    assert told[4].acknowledged_by == "ann"


def test_what_was_run_is_shown_as_a_shell_would_run_it() -> None:
    """A reason is one word: whoever pastes the line runs nothing that stands in it."""
    argv = ("scontrol", "update", "NodeName=n1", "Reason=Xid 79; $(reboot)")
    assert make_action_fact(record(commands=(argv, ("scancel", "7")))).commands == (
        "scontrol update NodeName=n1 'Reason=Xid 79; $(reboot)'",
        "scancel 7",
    )


def test_a_silence_is_shown_until_it_ends() -> None:
    """On the alert, and in the list; not a moment longer."""
    state = store([alert(1, "gpu00001")])
    ends = shift_instant(START, 3600).wall
    match = match_exactly(alert(1, "gpu00001").key)
    state.put_silence(Silence(id="s", match=match, starts=START.wall, ends=ends, who="bob"))
    for seconds, there in ((0.0, True), (3599.0, True), (3600.0, False)):
        f = build_facts(read_status_inputs(state, around(), shift_instant(START, seconds)))
        assert bool(f.silences) is there
        assert (f.alerts[0].silenced_until is not None) is there


def test_a_state_in_which_nothing_ran_yet_shows_that() -> None:
    """No check is fine that has not run; no node is there that nobody asked for."""
    f = build_facts(read_status_inputs(MemoryStore(), around(), START))
    assert {c.status for c in f.checks} == {None}
    assert (f.nodes_seen, f.nodes, f.disks, f.jobs, f.alerts) == (None, (), (), (), ())


def test_a_forecast_grows_shorter_while_nothing_is_measured() -> None:
    """Ten hours foreseen an hour ago are nine; never less than none."""
    state = store([])
    for hours, left in ((0, 10.0), (1, 9.0), (20, 0.0)):
        [d] = build_facts(
            read_status_inputs(state, around(), shift_instant(START, 3600.0 * hours))
        ).disks
        assert d.full_in_s == left * 3600


def test_of_many_the_worst_stand_first() -> None:
    """The overview and `status` show twelve file systems: not the first twelve that are fine."""
    kinds = {f"disk-{n}": "fs" for n in range(20)}
    bad = {"disk-17": Status.CRITICAL, "disk-19": Status.UNKNOWN}
    memory = {
        last_seen.make_check_key(name): to_builtins(
            CheckLook(at=START, findings=(replace(disk(), status=bad.get(name, Status.OK)),))
        )
        for name in kinds
    }
    state = MemoryStore()
    state.take_lead("x", START)
    state.commit(Batch(at=START, memory=memory))
    told = [d.check for d in build_facts(read_status_inputs(state, around(kinds), START)).disks]
    assert told[:4] == ["disk-17", "disk-19", "disk-0", "disk-1"]


def test_checks_that_cannot_see_are_among_those_that_are_shown() -> None:
    """The overview has room for sixty; the others stay in the order of the file."""
    rows = tuple(CheckFact(name=f"c{n:02}", kind="fs", blind=n == 70) for n in range(80))
    checks = asyncio.run(_build_overview_context(replace(scene(), checks=rows)))["checks"]
    assert [c.name for c in checks[:3]] == ["c70", "c00", "c01"]


def test_a_silence_is_worded_as_it_is_typed() -> None:
    """Alternatives, labels, nodes of a reservation; one that fits all says so."""
    state = store([])
    ends = shift_instant(START, 3600).wall
    matches = {
        "check=fs node=n1,n2 rack=7": Match(check="fs", node=["n1", "n2"], labels={"rack": "7"}),
        "kind=job 2 nodes": Match(kind="job"),
        "everything": Match(),
    }
    for text, match in matches.items():
        nodes = frozenset(("a", "b")) if "2 nodes" in text else None
        state.put_silence(Silence(id=text, match=match, starts=START.wall, ends=ends, nodes=nodes))
    assert {
        s.id: s.match for s in build_facts(read_status_inputs(state, around(), START)).silences
    } == {text: text for text in matches}


def test_a_blind_run_leaves_what_was_seen_before() -> None:
    """With its own age; and the check says for how long it has been blind."""
    state = store([replace(alert(1, ""), key=replace(alert(1, "").key, check="scratch"))])
    state.take_lead("x", START)
    run = CheckRun(
        check="scratch",
        kind="fs",
        at=START,
        status=Status.UNKNOWN,
        summary="no",
        duration=1,
        blind=True,
    )
    state.commit(Batch(at=START, runs=(run,)))
    f = build_facts(read_status_inputs(state, around(), START))
    assert f.disks[0].used_percent == 87.5
    assert next(c for c in f.checks if c.name == "scratch").blind_s == 120.0


BLIND = CheckRun(
    check="progress",
    kind="log",
    at=shift_instant(START, 40),
    status=Status.UNKNOWN,
    summary="squeue: Slurm does not answer",
    duration=1,
    blind=True,
)


@pytest.mark.parametrize(
    ("after", "run", "why"),
    [
        (59.0, None, ""),
        (89.0, None, ""),
        (3600.0, None, "not checked since 08:00 UTC"),
        (41.0, BLIND, "squeue: Slurm does not answer"),
        (3600.0, BLIND, "squeue: Slurm does not answer"),
        (41.0, replace(BLIND, blind=False, at=START), ""),
        (41.0, replace(BLIND, at=START), ""),
    ],
)
def test_what_nobody_sees_now_is_not_told_as_current(
    after: float, run: CheckRun | None, why: str
) -> None:
    """Slurm is dead, or the service is: no training runs well, whatever it did when it was seen."""
    state = store([alert(1, "gpu00001")])
    state.take_lead("x", START)
    state.commit(Batch(at=START, runs=(run,) if run else ()))
    f = build_facts(read_status_inputs(state, around(), shift_instant(START, after)))
    [one] = [j for j in f.jobs if j.check == "progress"]
    assert (one.stale, one.seen) == (why, START.wall / 1e6)
    assert one.status is (Status.UNKNOWN if why else Status.OK)
    assert (one.rate is None, one.quiet_s is None) == (bool(why), bool(why))
    late = after > 1000
    assert {d.stale for d in f.disks} == {OVERDUE if late else ""}
    assert {d.status for d in f.disks} == {Status.UNKNOWN if late else Status.WARNING}
    assert {a.stale for a in f.alerts} == {OVERDUE if late else ""}
    overdue = {c.name for c in f.checks if c.stale}
    assert overdue == ({c.name for c in f.checks} if late else set())
    assert {c.status for c in f.checks if c.stale} <= {Status.UNKNOWN}
    assert bool(f.nodes_trouble) is late


OVERDUE = "not checked since 08:00 UTC"


@pytest.mark.parametrize(
    ("after", "stale"),
    [
        (61.0, ""),
        (300.0, ""),
        (899.0, ""),
        (1100.0, "not checked since 08:00 UTC; next check 08:20 UTC"),
    ],
)
def test_between_the_passes_of_a_chain_nothing_is_stale(after: float, stale: str) -> None:
    """A check of every minute that a chain calls every ten is current until the next pass is late; its
    next run is that pass, by the clock."""
    state = store([])
    state.take_lead("x", START)
    run = replace(BLIND, blind=False, at=START, status=Status.OK, summary="")
    state.commit(Batch(at=START, runs=(run,)))
    f = build_facts(
        read_status_inputs(state, around(pass_every=600.0), shift_instant(START, after))
    )
    check = next(c for c in f.checks if c.name == "progress")
    assert check.stale == stale
    assert check.next == (START.wall / 1e6 // 600 + 1 + (after > 600)) * 600


@pytest.mark.parametrize(("quiet", "hangs"), [(1190.0, False), (1200.0, True), (None, False)])
def test_who_stands_still_for_longer_than_the_limit_makes_no_steps(
    quiet: float | None, hangs: bool
) -> None:
    """Where looks are far apart, the last minutes still hold steps: a row of a hang tells no pace."""
    state = store([])
    seen = progress()
    found = replace(seen, values={**seen.values, "quiet_seconds": quiet})
    look = to_builtins(CheckLook(at=START, findings=(found,)))
    state.commit(Batch(at=START, memory={last_seen.make_check_key("progress"): look}))
    f = build_facts(read_status_inputs(state, around(), START))
    [one] = [j for j in f.jobs if j.check == "progress"]
    assert one.rate == 0 if hangs else one.rate


def test_a_row_of_a_training_tells_one_age() -> None:
    """Of a look 45 s ago: `moved` and the sentence."""
    values = {**progress().values, "quiet_seconds": 240.0}
    found = replace(progress(), values=values, summary="no progress for 4m, still at 9")
    state = store([])
    look = to_builtins(CheckLook(at=START, findings=(found,)))
    state.commit(Batch(at=START, memory={last_seen.make_check_key("progress"): look}))
    f = build_facts(read_status_inputs(state, around(), shift_instant(START, 45.0)))
    told = [(j.quiet_s, j.summary) for j in f.jobs if j.check == "progress"]
    assert told == [(285.0, "no progress for 4m 45s, still at 9")]


def test_nothing_is_called_calm_before_it_was_looked_at() -> None:
    """No alert beside checks that never ran, are blind or stale, or beside an alert that waits."""
    state = store([])
    more = around({**KINDS, "new": "fs", "newer": "fs"})
    assert build_facts(read_status_inputs(state, more, START)).calm_summary == (
        "no alerts (2 checks not run yet)",
        False,
    )
    state.take_lead("x", START)
    well = [replace(BLIND, check=name, blind=False, at=START, status=Status.OK) for name in KINDS]
    state.commit(Batch(at=START, runs=tuple(well)))
    assert build_facts(read_status_inputs(state, around(), START)).calm_summary == (
        "no alerts",
        True,
    )
    late = build_facts(read_status_inputs(state, around(), shift_instant(START, 9000.0)))
    assert late.calm_summary == ("no alerts (4 cannot tell now)", False)


def test_nodes_that_slurm_does_not_tell_of_say_why() -> None:
    """With Slurm's own words where there are some."""
    state = store([])
    state.take_lead("x", START)
    dead = NodeLook(at=START, groups=group_nodes(nodes()), trouble="sinfo: no answer")
    state.commit(Batch(at=START, memory={last_seen.NODES_KEY: to_builtins(dead)}))
    assert (
        build_facts(read_status_inputs(state, around(), START)).nodes_trouble == "sinfo: no answer"
    )


def test_numbers_that_are_none_are_not_shown() -> None:
    """A plugin may say NaN or infinity; neither is a size nor a time."""
    odd = {"used_percent": float("nan"), "free_bytes": float("inf"), "size_bytes": True}
    state = store([])
    state.take_lead("x", START)
    look = CheckLook(at=START, findings=(replace(disk(), values=odd),))
    state.commit(Batch(at=START, memory={last_seen.make_check_key("scratch"): to_builtins(look)}))
    [d] = build_facts(read_status_inputs(state, around(), START)).disks
    assert (d.used_percent, d.free_bytes, d.size_bytes) == (None, None, None)


def every(seconds: float, values: Sequence[float]) -> list[tuple[float, float]]:
    return [(n * seconds, value) for n, value in enumerate(values)]


@pytest.mark.parametrize(
    ("points", "rate"),
    [
        (every(60, [*range(0, 250, 10), *[240] * 5]), 0.0),
        (every(30, [*range(0, 1000, 10), *[990] * 60]), 0.0),
        (every(30, [*range(0, 6000, 100), *range(5900, 5930, 2)]), 2 / 30),
        (every(60, [0, 0, 0, 0, 0, 50, 50, 50, 50, 50, 100, 100, 100, 100, 100, 150]), 50 / 300),
        # Dead or hung for ten looks, resumed at its checkpoint: what it does now.
        (every(30, [*range(0, 200, 10), *[190] * 10, *range(200, 240, 10)]), 1 / 3),
        ([(0, 0), (30, 10), (60, 20), (900, 30)], None),
        (every(60, [*range(0, 250, 10), float("nan"), float("inf")]), 1 / 6),
        ([], None),
        ([(0, 5)], None),
        ([(0, 5), (0, 9)], None),
        ([(0, 0), (60, 30)], 0.5),
        ([(0, 900), (60, 0), (120, 30)], 0.5),
        ([(0, 5), (60, 5)], 0.0),
    ],
)
def test_a_pace_is_of_the_last_minutes_since_the_last_restart(
    points: list[tuple[float, float]], rate: float | None
) -> None:
    """A number that falls is another run; what stands still has no speed, however fast it was; a
    log that says its step every few minutes has one."""
    told = compute_pace([(shift_instant(START, t), v) for t, v in points])
    assert told == (None if rate is None else pytest.approx(rate))


@pytest.mark.parametrize(
    ("state", "flags", "word"),
    [
        ("IDLE", (), "idle"),
        ("IDLE", ("DRAIN",), "drained"),
        ("MIXED", ("DRAIN",), "draining"),
        ("ALLOCATED", ("DRAIN", "COMPLETING"), "draining"),
        ("IDLE", ("COMPLETING", "DRAIN"), "draining"),
        ("DOWN", ("DRAIN",), "down"),
        ("IDLE", ("NOT_RESPONDING",), "down"),
        ("IDLE", ("REBOOT_ISSUED", "DRAIN"), "rebooting"),
        ("IDLE", ("MAINTENANCE", "RESERVED"), "maint"),
        ("ALLOCATED", ("COMPLETING",), "completing"),
        ("FUTURE", (), "unknown"),
    ],
)
def test_a_state_has_the_word_that_sinfo_has(state: str, flags: tuple[str, ...], word: str) -> None:
    """sinfo(1): drained is idle and drained, draining has something on it."""
    assert get_state_word(state, flags) == word
    assert word in STATES_WORST_FIRST


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("", "none"),
        ("Kill task failed", "kill_task_failed"),
        ("Not responding", "not_responding"),
        ("sentinel: Xid 79 on GPU3", "sentinel"),
        ("Xid 79", "gpu"),
        ("Prolog error", "prolog_epilog"),
        ("Low RealMemory (reported:1 < 100.00% of configured:2)", "memory"),
        ("NHC: check_fs_mount: /gpfs not mounted", "file_system"),
        ("NHC: watchdog", "health_check"),
        ("RMA 4711", "hardware"),
        ("Xid 79 : Not responding", "gpu"),
        ("Action:Replace : Not responding : reboot issued", "hardware"),
        ("openib retry exceeded", "network"),
        ("bad vibes", "other"),
    ],
)
def test_a_reason_is_of_one_class(reason: str, word: str) -> None:
    """Few words, whatever people write."""
    assert classify_reason(reason) == word
    assert word in REASON_CLASSES


def group(state: str, nodes: str, count: int) -> NodesFact:
    return NodesFact(state=state, nodes=nodes, count=count)


@pytest.mark.parametrize(
    ("rate", "words"),
    [(None, "–"), (0.001, "0.06"), (0.1, "6"), (1.6583, "99.5"), (1.67, "100"), (49.4, "2,964")],
)
def test_a_pace_is_told_in_steps_a_minute(rate: float | None, words: str) -> None:
    """Never with an exponent: nobody reads 2.96e+03 at three in the morning."""
    one = JobFact(
        check="log", kind="log", subject="x", status=Status.OK, summary="", seen=0.0, rate=rate
    )
    assert one.pace == words


def test_the_grid_has_a_cell_for_each_node_in_the_order_of_their_names() -> None:
    """n2 before n10; a node that is in two groups has the worse state."""
    found = index_nodes([group("idle", "n[1-3,10]", 4), group("down", "n2", 1)])
    states = [(name, g.state) for name, g in found.items()]
    assert states == [("n1", "idle"), ("n2", "down"), ("n3", "idle"), ("n10", "idle")]
    assert natural_sort_key("a2b") < natural_sort_key("a10b")


def test_ten_thousand_nodes_are_drawn_in_a_few_kilobytes() -> None:
    """And every point of the picture is of one of them, or of none."""
    states = ["idle"] * 10_000
    assert len(draw_node_grid(states)) < 5000
    width = choose_grid_columns(10_000)
    assert find_cell_index(10_000, 0, 0) == 0
    assert find_cell_index(10_000, width * CELL - 1, 0) == width - 1
    assert find_cell_index(10_000, 0, CELL) == width
    assert find_cell_index(10_000, width * CELL, 0) is None
    assert find_cell_index(10_000, 0, 10_000 // width * CELL) is None
    assert find_cell_index(5, 5 * CELL, 0) is None


def test_a_plot_keeps_peaks_and_has_a_bounded_number_of_points() -> None:
    """A disk that was full for one minute in two weeks was full."""
    points = [(float(n), 99.0 if n == 7777 else 50.0) for n in range(20_000)]
    kept = thin_points(points)
    assert len(kept) <= 2 * MAX_LINE_POINTS
    assert max(v for _, v in kept) == 99.0


@pytest.mark.parametrize(
    ("low", "high"),
    [(0.0, 100.0), (5e12, 5e12), (5e12, 5e12 + 1), (0.0, 0.0), (1e-6, 3e-6), (79_000.0, 79_354.0),
     (-1.0, -1.0), (-3.0, 7.0), (0.0, 5e-324), (1e300, 1.2e300)],
)  # fmt: skip
def test_an_axis_has_a_few_round_numbers_that_differ(low: float, high: float) -> None:
    """Flat, tiny and constant series too; a free space of one byte more or less is no cliff."""
    found = choose_ticks(low, high)
    assert 2 <= len(found) <= 7
    assert found[0] <= low <= high <= found[-1]
    assert found[0] >= 0 or low < 0
    assert found[-1] - found[0] >= 0.019 * max(abs(low), abs(high))
    assert len({f"{n:.4g}" for n in found}) == len(found)


def test_a_look_is_bounded_and_keeps_the_worst() -> None:
    """A thousand subjects make no large state; what was written otherwise is read as nothing."""
    from sentinel.alerting.observations import RunOutcome
    from sentinel.core.model import Finding, Report

    odd = {"n": 2**70, "list": [1], "ok": 1.5, "text": "x"}
    many = [
        Finding(subject=str(n), status=Status.OK, summary="fine", values=odd)
        for n in range(1000)  # type: ignore[arg-type]
    ]
    many.append(Finding(subject="bad", status=Status.CRITICAL, summary="x" * 5000))
    itself = Finding(subject="", status=Status.OK, summary="ran")
    outcome = RunOutcome(
        check="c",
        kind="fs",
        itself=itself,
        report=Report(coverage=ALL_SEEN, findings=tuple(many)),
        seconds=1,
    )
    written = last_seen.encode_looks([outcome, replace(outcome, check="blind", report=None)], START)
    assert list(written) == [last_seen.make_check_key("c")]
    look = last_seen.decode_check_look(written[last_seen.make_check_key("c")])
    assert look is not None
    assert (look.findings[0].subject, len(look.findings), look.left_out) == (
        "bad",
        last_seen.MAX_FINDINGS,
        801,
    )
    assert dict(look.findings[1].values) == {"ok": 1.5, "text": "x"}
    assert last_seen.decode_check_look({"at": "other"}) is None
    assert last_seen.decode_check_look({}) is None


def test_what_was_looked_at_goes_through_every_store_as_it_is() -> None:
    """The shape that is written is the shape that is read."""
    look = CheckLook(at=START, findings=(disk(),))
    assert last_seen.decode_check_look(to_builtins(look)) == look
    assert scene([]).disks[0].path == "/scratch"


def test_alike_alerts_are_one_line_with_their_count() -> None:
    """Xid 79 on 20 GPUs of 10 nodes is one row; what says something else is another."""
    rows = [
        alert(
            n,
            f"GPU-{n:x}b",
            summary=f"GPU-{n:x}b on gpu{n // 2:05}: Xid 79 at {n}:00",
            labels={"node": f"gpu{n // 2:05}"},
        )
        for n in range(20)
    ]
    rows += [alert(30, "gpu00001"), alert(31, "gpu00002", Status.WARNING)]
    told = fold_alerts(build_facts(read_status_inputs(store(rows), around(), START)).alerts)
    assert [(fold.count, fold.nodes) for fold in told] == [(1, 1), (20, 10), (1, 1)]
    assert told[1].more == "and 19 more like it on 10 nodes"
    assert told[0].more == ""


def test_a_training_that_stands_still_has_a_line_of_its_own() -> None:
    """However alike they are: each is somebody's night."""
    rows = [replace(alert(n, f"u{n}/llm"), kind="job") for n in range(18)]
    told = fold_alerts(build_facts(read_status_inputs(store(rows), around(), START)).alerts)
    assert [fold.count for fold in told] == [1] * 18


def test_the_alerts_of_an_incident_are_one_row_behind_its_cause() -> None:
    """As bad as the worst of them; alike incidents share the row. What somebody has stands apart,
    and a training that stands still has a row of its own, before all of them."""
    rows = [replace(alert(30, "llm"), kind="job", incident=f"{0:08x}")]
    for n in (0, 1):
        node = {"labels": {"node": f"gpu{n:05}"}, "incident": f"{10 * n:08x}"}
        down = {"key": Key("h100-prod", "nodes", f"gpu{n:05}"), "summary": f"gpu{n:05} is down"}
        rows.append(alert(10 * n, f"gpu{n:05}", Status.WARNING, **down, **node))
        rows += [alert(10 * n + g, f"GPU-{n}{g}", summary=f"lost bus {g}", **node) for g in (1, 2)]
    state = store(rows)
    seen = build_facts(read_status_inputs(state, around(), START))
    told = fold_alerts(seen.alerts)
    assert [(fold.first.check, fold.count) for fold in told] == [("drained", 1), ("nodes", 6)]
    assert told[1].more == "and 1 more like it on 2 nodes, and 4 more of these incidents"
    assert told[1].tone is Status.CRITICAL
    assert sorted(told[1].incidents) == ["00000000", "0000000a"]
    assert sorted(a.id for fold in told for a in fold.rows) == sorted(a.id for a in seen.alerts)
    assert [(i.incident, i.alerts, i.trainings) for i in seen.incidents] == [
        ("00000000", 4, ("llm",)),
        ("0000000a", 3, ()),
    ]
    acked = acknowledge_alert(state.read_alerts(), rows[2].id, Author("ann", "cli"), START)
    state.put_ack(acked)
    told = fold_alerts(build_facts(read_status_inputs(state, around(), START)).alerts)
    assert [fold.count for fold in told] == [1, 5, 1]
    assert told[-1].first.acknowledged_by == "ann"


def test_the_next_pass_is_not_told_one_slot_late() -> None:
    """A run is written some seconds after its pass began by the clock. The pass of the current slot may
    still come within a minute."""
    state = store([])
    state.take_lead("x", START)
    written = shift_instant(START, 42)
    run = replace(BLIND, blind=False, at=written, status=Status.OK, summary="")
    state.commit(Batch(at=written, runs=(run,)))
    began = START.wall / 1e6
    for after, coming in ((300, 600), (630, 600), (700, 1200)):
        f = build_facts(
            read_status_inputs(state, around(pass_every=600.0), shift_instant(START, float(after)))
        )
        assert next(c for c in f.checks if c.name == "progress").next == began + coming


def test_no_gpu_is_called_good_that_nobody_saw() -> None:
    """Beside the ledger, which knows of earlier looks."""
    empty = build_facts(read_status_inputs(store([]), around(), START))
    blind = CheckFact(name="gpus", kind="gpu", status=Status.UNKNOWN, summary="saw 0 of 6 nodes")
    seen = replace(blind, status=Status.OK, summary="6 nodes")
    for checks, standings, words in (
        ((), {}, "No check of kind gpu runs."),
        ((blind,), {}, "Not known: saw 0 of 6 nodes"),
        ((blind,), {"good": 8}, "Not known: saw 0 of 6 nodes"),
        ((seen,), {"good": 8}, "No GPU is under suspicion."),
    ):
        told = replace(empty, checks=checks, gpu_standings=standings)
        assert told.no_gpu_text == words
