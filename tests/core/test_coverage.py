"""How much was seen is part of every report, and nothing is ok without it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sentinel.alerting.notifications import NotificationPlan
from sentinel.alerting.observations import RunOutcome
from sentinel.alerting.processor import process_outcomes
from sentinel.alerting.state_machine import AlertPolicy
from sentinel.cli import outcome_formats
from sentinel.core.clock import shift_instant
from sentinel.core.model import Alert, Batch, Coverage, Finding, Key, Report, Status, covered
from sentinel.core.settings import CheckCommon, CheckConfig
from sentinel.engine.runner import make_outcome
from sentinel.plugin import Check
from sentinel.testing import START

PLAN = NotificationPlan(
    cluster="lab", policies={"gpus": AlertPolicy(kind="gpu")}, channels=["mail"]
)
NAMES = [f"node-{n}" for n in range(1, 9)]


class Idle(Check, frozen=True):
    """A plugin that is never asked."""


def concluded(coverage: Coverage, *findings: Finding) -> RunOutcome:
    check: Any = CheckConfig(name="gpus", common=CheckCommon(kind="gpu"), plugin=Idle())
    return make_outcome(check, Report(findings=findings, coverage=coverage), "", 0.1)


def finding(subject: str, status: Status = Status.OK, **labels: str) -> Finding:
    return Finding(subject=subject, status=status, summary=f"{status.value}!", labels=labels)


def saw(*seen: str, excused: str = "") -> Coverage:
    return covered("nodes", NAMES, seen, excused)


SAID = [
    (saw(*NAMES), "saw 8 of 8 nodes", Status.OK),
    (saw("node-1", "node-2", "node-3"), "saw 3 of 8 nodes: not node-[4-8]", Status.UNKNOWN),
    (saw(*NAMES[:3], excused="down"), "saw 3 of 8 nodes: not node-[4-8] (down)", Status.OK),
    (saw(), "saw 0 of 8 nodes: not node-[1-8]", Status.UNKNOWN),
    (saw(excused="down"), "saw 0 of 8 nodes: not node-[1-8] (down)", Status.UNKNOWN),
    (covered("paths", []), "there are no paths to look at", Status.UNKNOWN),
    (covered("logs", [], excused="no such job is running"), "there are no logs to look at: no such job is running", Status.OK),
    (covered("paths", ["/a\x1b[31m", "/b"], ["/b"]), "saw 1 of 2 paths: not /a\\x1b[31m", Status.UNKNOWN),
]  # fmt: skip


@pytest.mark.parametrize(("coverage", "words", "status"), SAID)
def test_none_of_some_is_unknown_and_some_of_some_says_so(
    coverage: Coverage, words: str, status: Status
) -> None:
    """In one plain sentence; only a reason makes less than all ok, and never nothing of some."""
    assert (coverage.words, coverage.status) == (words, status)
    assert concluded(coverage).itself.status is status
    assert concluded(coverage).itself.summary == words


@pytest.mark.parametrize(
    ("coverage", "count", "words"),
    [
        (saw(*NAMES), 3, "8 nodes, all ok"),
        (covered("chains", ["c"]), 2, "s0: ok!; s1: ok!"),
        (covered("chains", ["c"]), 3, "3 findings, all ok"),
        (covered("chains", ["c"]), 1, "s0: ok!"),
    ],
)
def test_a_number_of_good_ones_says_of_what(coverage: Coverage, count: int, words: str) -> None:
    """`all 2 ok` beside three jobs in the queue let people look for the third."""
    assert concluded(coverage, *[finding(f"s{n}") for n in range(count)]).headline == words


def test_a_report_without_coverage_does_not_exist() -> None:
    """The class demands it, for kinds of others too."""
    with pytest.raises(TypeError, match="coverage"):
        Report(findings=(finding("x"),))  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="2 of 1 nodes"):
        Coverage(of="nodes", meant=1, unseen=("a", "b"))


STATUSES = st.sampled_from(Status)


@given(
    meant=st.integers(0, 8),
    seen=st.integers(0, 8),
    excused=st.sampled_from(["", "because"]),
    statuses=st.lists(STATUSES, max_size=4),
)
def test_what_was_not_seen_is_never_silently_ok(
    meant: int, seen: int, excused: str, statuses: list[Status]
) -> None:
    """Not in what `check` prints, its JSON and exit code, nor in `status`, whatever is found."""
    coverage = covered("nodes", NAMES[:meant], NAMES[: min(seen, meant)], excused)
    found = [finding(f"s{number}", status) for number, status in enumerate(statuses)]
    outcome = concluded(coverage, *found)
    (run,) = process_outcomes([outcome], {}, PLAN, START).runs
    assert outcome.report is not None
    worst = max((f.status for f in outcome.findings), key=lambda s: s.rank)
    texts = [
        outcome_formats.render_outcome_lines(outcome),
        outcome_formats.render_outcome_json(outcome),
        outcome_formats.render_nagios_output(outcome),
    ]
    whole = 0 < meant <= seen
    if Status.OK in (run.status, worst, outcome.report.status) and not whole:
        assert excused
        assert coverage.seen or not meant
        if coverage.meant or not found:
            assert all(coverage.words in text for text in [*texts, run.summary])
    if not whole and not excused:
        assert run.blind
        assert min(worst.rank, run.status.rank) >= Status.UNKNOWN.rank
    if whole and statuses:
        assert [f.subject for f in outcome.findings] == [f.subject for f in found]


def after(batch: Batch, before: dict[Key, Alert] | None = None) -> dict[Key, Alert]:
    alerts = {**(before or {}), **{a.key: a for a in batch.alerts}}
    return {k: a for k, a in alerts.items() if k not in batch.closed}


@pytest.mark.parametrize(
    ("coverage", "ended"),
    [
        (saw(*NAMES), ["gpu-1", "gpu-7"]),
        (saw(*NAMES[:3], excused="Slurm says that they are down"), ["gpu-1"]),
        (saw(*NAMES[:3]), []),
        (saw(), []),
        (covered("nodes", []), []),
        (covered("nodes", [], excused="all of them sleep"), ["gpu-1", "gpu-7"]),
    ],
)
def test_no_alert_ends_because_its_node_was_not_seen(coverage: Coverage, ended: list[str]) -> None:
    """A node that goes down takes its troubles with it, and is not well for that."""
    bad = [
        finding("gpu-1", Status.CRITICAL, node="node-1"),
        finding("gpu-7", Status.CRITICAL, node="node-7"),
    ]
    alerts = after(process_outcomes([concluded(saw(*NAMES), *bad)], {}, PLAN, START))
    later = process_outcomes([concluded(coverage)], alerts, PLAN, shift_instant(START, 60))
    assert [t.key.subject for t in later.transitions] == ended


def test_a_check_sees_again_only_where_somebody_was_told_that_it_did_not() -> None:
    """Not on a first run, nor after a blindness too short for an alert."""
    good, blind = concluded(saw(*NAMES)), concluded(saw())
    first = process_outcomes([good], {}, PLAN, START)
    assert first.runs[0].summary == "saw 8 of 8 nodes"
    for runs, said in ((2, []), (3, ["sees again: saw 8 of 8 nodes"])):
        alerts: dict[Key, Alert] = {}
        for number in range(runs):
            alerts = after(
                process_outcomes([blind], alerts, PLAN, shift_instant(START, 60.0 * number)), alerts
            )
        end = process_outcomes([good], alerts, PLAN, shift_instant(START, 300))
        assert [o.notification.summary for o in end.outbox] == said
        assert end.runs[0].summary == "saw 8 of 8 nodes"


@pytest.mark.parametrize(
    ("bad", "channels"),
    [
        ([concluded(saw())] * 3, []),
        ([concluded(saw(*NAMES), finding("gpu-1", Status.CRITICAL))], ["mail"]),
    ],
)
def test_what_nobody_heard_of_or_was_no_blindness_is_not_seen_again(
    bad: list[RunOutcome], channels: list[str]
) -> None:
    """The history has the end of either in its own words."""
    plan, alerts = replace(PLAN, channels=channels), dict[Key, Alert]()
    for number, outcome in enumerate(bad):
        alerts = after(
            process_outcomes([outcome], alerts, plan, shift_instant(START, 60.0 * number)), alerts
        )
    good = concluded(saw(*NAMES), finding("gpu-1"))
    (end,) = process_outcomes([good], alerts, plan, shift_instant(START, 300)).transitions
    assert end.reason == "resolved"
    assert end.summary in ("saw 8 of 8 nodes", "ok!")
