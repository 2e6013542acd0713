"""`status` says what is wrong first, each thing once; `explain` has a time line of what was told."""

import json
import os
import sys
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.cli import main
from sentinel.cli.panels import render_watcher
from sentinel.cli.status import print_status
from sentinel.cli.time_line import explain_silence, render_time_line
from sentinel.config.settings import Settings
from sentinel.core.model import Status
from sentinel.status.collect import read_status_inputs
from sentinel.status.types import CheckFact, Facts
from sentinel.status.view_model import build_facts
from sentinel.testing import START
from tests.web.scenery import KINDS, alert, around, big, ledger, record, scene

NOW = datetime(2026, 11, 27, 3, 0, tzinfo=timezone.utc)


def show(
    facts: Facts, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int
) -> list[str]:
    """The lines of `status`."""
    monkeypatch.setenv("COLUMNS", str(columns))
    state: Any = SimpleNamespace(zone=timezone.utc, settings=Settings())
    print_status(facts, state)
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert max(map(len, lines)) <= columns
    return lines


def check_fact(name: str, status: Status = Status.OK, **more: Any) -> CheckFact:
    """A check that has run."""
    return CheckFact(name=name, kind="fs", status=status, ran=90.0, summary="fine", **more)


@pytest.mark.parametrize("columns", [80, 160])
def test_fifteen_lines_are_enough_where_all_is_well(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forty trainings and twenty checks that are well are counted; who watches comes last."""
    known = build_facts(read_status_inputs(big(), around(KINDS, record(), gpus=ledger()), START))
    well = {"status": Status.OK, "stale": ""}
    first = replace(known.jobs[0], summary="job 4711 runs", **well)
    jobs = [replace(first, subject=f"t{n}") for n in range(40)]
    disks = [replace(known.disks[0], path=f"/d{n}", **well) for n in range(9)]
    checks = tuple(check_fact(f"check-{n}") for n in range(20))
    calm = replace(
        scene([]),
        alerts=(),
        unsent=(),
        actions=(),
        gpus=(),
        nodes=(),
        jobs=tuple(jobs),
        disks=tuple(disks),
        checks=checks,
    )
    lines = show(calm, capsys, monkeypatch, columns)
    assert len(lines) <= 15, "\n".join(lines)
    assert "no alerts" in lines[0]
    text = "\n".join(lines)
    assert "and 45 more of these: sentinel top" in text
    assert "20 checks ok: check-0, " in text
    assert "configuration: " in text.split("checks ok")[1]


def test_what_is_wrong_and_who_has_it_come_first_and_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A check whose trouble is an alert is not listed again; one that cannot see is."""
    known = scene([alert(1, "gpu00003", summary="no power")])
    facts = replace(
        known,
        alerts=(replace(known.alerts[0], check="gpu", acknowledged_by="ann"),),
        checks=(
            check_fact("gpu", Status.CRITICAL),
            check_fact("blind", Status.UNKNOWN, blind=True),
            check_fact("well"),
        ),
    )
    lines = show(facts, capsys, monkeypatch, 120)
    assert "1 critical" in lines[0]
    assert "[ann has it] no power" in lines[2]
    text = "\n".join(lines)
    assert text.count("no power") == 1
    assert [line.split()[0] for line in lines if line.startswith(("gpu ", "blind "))] == ["blind"]
    assert "1 check ok: well" in text


def test_a_training_names_the_alert_that_says_it_already(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same words are not repeated below; others are."""
    known = build_facts(read_status_inputs(big(), around(KINDS, record(), gpus=ledger()), START))
    died = {"check": "training", "subject": "llama", "summary": "not running"}
    told = replace(scene([alert(1, "llama")]).alerts[0], elsewhere="", **died)
    jobs = [replace(known.jobs[0], elsewhere="", stale="", status=Status.CRITICAL, **died)]
    jobs.append(replace(jobs[0], summary="not running any more"))
    facts = replace(scene([]), alerts=(told,), jobs=tuple(jobs))
    text = "\n".join(show(facts, capsys, monkeypatch, 160))
    assert text.count("not running") == 2
    # The same, of two clocks that tell its age a second apart.
    hang = "no progress for {}, still at 9"
    alerts = (replace(told, summary=hang.format("6m 54s")),)
    facts = replace(facts, alerts=alerts, jobs=(replace(jobs[0], summary=hang.format("7m")),))
    assert "\n".join(show(facts, capsys, monkeypatch, 160)).count("no progress") == 1
    assert f"alert {told.id}" in text


def test_why_nothing_is_current_is_said_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing runs it, every check and every row is old for the same reason."""
    old = "not checked since 04:09 UTC"
    known = scene([alert(1, "gpu00003", summary="no power")])
    facts = replace(
        known,
        alerts=(replace(known.alerts[0], stale=old),),
        checks=tuple(check_fact(name, Status.UNKNOWN, stale=old) for name in "abc"),
    )
    lines = show(facts, capsys, monkeypatch, 80)
    assert lines[1] == f"{old}; what follows is from then"
    assert "\n".join(lines).count(old) == 1


@pytest.mark.parametrize(
    ("every", "told"),
    [
        (30.0, "last pass 08:00:02 UTC, next 08:00:30 UTC (every 30s,"),
        (60.0, "last pass 08:00 UTC, next 08:01 UTC (every 1m,"),
    ],
)
def test_the_next_pass_is_never_told_as_the_last_one(every: float, told: str) -> None:
    """Where passes come more often than each minute, seconds tell them apart."""
    at = 8 * 3600.0
    checks = (replace(check_fact("disks"), ran=at + 2),)
    facts = replace(scene([]), leader="", at=at + 5, checks=checks, pass_every=every)
    assert render_watcher(facts, timezone.utc).plain.startswith(told)


STORY: dict[str, Any] = {
    "now": None,
    "timeline": [
        {
            "at": "2026-11-27T02:00:00+00:00",
            "reason": "firing",
            "about": "train llama",
            "severity": "critical",
            "summary": "no progress for 20 min",
        },
        {
            "at": "2026-11-27T02:10:00+00:00",
            "reason": "ack",
            "about": "ann",
            "severity": "",
            "summary": "train llama on it",
        },
    ],
    "transitions": [{"reason": "firing"}],
    "deliveries": [
        {
            "channel": "ops",
            "reason": "firing",
            "committed": "2026-11-27T02:00:00+00:00",
            "sent": "2026-11-27T02:00:04+00:00",
            "attempts": 1,
            "answer": "250 queued",
        },
        {
            "channel": "pager",
            "reason": "firing",
            "committed": "2026-11-27T02:00:00+00:00",
            "sent": None,
            "attempts": 3,
            "answer": "connection refused",
        },
    ],
}


def test_the_time_line_has_told_and_not_told_beside_what_happened() -> None:
    """In the order of time, with ages and local times."""
    assert list(render_time_line(STORY, NOW)) == [
        "time line:",
        "       1h ago  02:00:00  firing (critical): no progress for 20 min",
        "       1h ago  02:00:00    NOT told pager (firing), 3 attempts: connection refused",
        "  59m 56s ago  02:00:04    told ops (firing): 250 queued",
        "      50m ago  02:10:00  ack by ann: train llama on it",
    ]


def test_how_long_each_user_waits_for_a_look_is_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The longest first, by the training that waits longest; of a user alone nothing is said."""
    known = build_facts(read_status_inputs(big(), around(KINDS, record(), gpus=ledger()), START))
    waits = {"ann": (5.0,), "mallory": (60.0, 125.0)}
    jobs = [
        replace(known.jobs[0], check="logs", user=user, subject=f"{user}/{n}", seen=known.at - age)
        for user, ages in waits.items()
        for n, age in enumerate(ages)
    ]
    told = " ".join(
        show(replace(scene([]), at=known.at, jobs=tuple(jobs)), capsys, monkeypatch, 160)
    )
    assert "last looks at users' trainings: mallory 2m 05s ago (logs), ann 5s ago (logs)" in told
    alone = replace(scene([]), at=known.at, jobs=tuple(jobs[:1]))
    assert "last looks" not in " ".join(show(alone, capsys, monkeypatch, 160))


def test_another_day_is_named() -> None:
    """A time alone would be read as today's."""
    lines = list(render_time_line(STORY, datetime(2026, 11, 29, 2, 0, tzinfo=timezone.utc)))
    assert lines[1] == "      2d ago  Fri 11-27 02:00:00  firing (critical): no progress for 20 min"


@pytest.mark.parametrize(
    ("now", "reasons", "why"),
    [
        ({"state": "pending", "held_back": ""}, ["pending"], "because it has not fired yet"),
        (
            {"state": "firing", "held_back": "silenced by ann"},
            ["firing"],
            "held back: silenced by ann",
        ),
        (
            {"state": "firing", "held_back": "", "owner_muted": False},
            ["firing"],
            "because no channel is routed to it",
        ),
        (
            {"state": "firing", "held_back": "", "owner_muted": True},
            ["firing"],
            "because a wish of its owner says so, and nobody else is told of it",
        ),
        (None, ["pending"], "because it never fired"),
    ],
)
def test_the_reason_why_nobody_was_told_is_the_true_one(
    now: dict[str, str | bool] | None, reasons: list[str], why: str
) -> None:
    """One of several, not all of them in one sentence."""
    facts = {
        **STORY,
        "now": now,
        "transitions": [{"reason": r} for r in reasons],
        "deliveries": [],
    }
    assert explain_silence(facts) == why
    assert list(render_time_line(facts, NOW))[-1] == f"told: nobody, {why}"


def test_a_pass_at_work_is_no_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `status` says while a pass runs, read by a check of that pass."""
    monkeypatch.setenv("HOME", str(tmp_path))
    file, heard = tmp_path / "sentinel.yaml", tmp_path / "heard"
    ask = f"COLUMNS=200 {sys.executable} -m sentinel status -c {file} >{heard}"
    checks = {"itself": {"kind": "exec", "command": ["sh", "-c", ask], "timeout": "60s"}}
    file.write_text(json.dumps({"state": str(tmp_path / "state"), "checks": checks}))
    assert main(["tick", "-c", str(file)]) == 0
    assert (
        f"one pass of sentinel on host {os.uname().nodename}, pid {os.getpid()} since"
        in heard.read_text()
    )
