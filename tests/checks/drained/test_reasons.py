"""Reasons: by prefix, with what Slurm appends, and what they may have replaced."""

import pytest
from msgspec.structs import replace

from sentinel.checks.drained import node_evidence
from sentinel.checks.drained.node_evidence import (
    UNTOLD,
    ReasonHistory,
    find_lines_at_error,
    parse_reason_histories,
)
from sentinel.checks.drained.reasons import (
    KILL,
    find_hidden_reason,
    find_note,
    find_reason_author,
    find_unkillable_job,
    has_prefix,
    is_absence_watched,
    may_be_old_reason,
)
from sentinel.core.actions import NodeReading
from sentinel.core.clock import Instant
from sentinel.testing import START
from tests.checks.drained.nodes import LEFT_SERVICE, NODE

NEW = "Kill task failed (JobId=4711 StepId=batch)"


def reading(reason: str, *, out: bool = True) -> NodeReading:
    return NodeReading(
        node="n1", state="", reason=reason, user="root", reason_time=1, out=out, seen=START
    )


@pytest.mark.parametrize(
    ("reason", "fit", "job", "note"),
    [
        (KILL, True, "", ""),
        (NEW, True, "4711", ""),
        (f"{NEW} : Not responding", True, "4711", ""),
        (f"{KILL} : Not responding : reboot issued", True, "", ""),
        (f"{KILL}, RMA GPU3", True, "", "RMA GPU3"),
        (f"{NEW} do not resume - alice", True, "4711", "do not resume - alice"),
        (f"{KILL} (JobId=4711 StepId=batch) RMA", True, "4711", "RMA"),
        (f"{KILL} (JobId=4711 RMA)", True, "", "(JobId=4711 RMA)"),
        ("RMA: Kill task failed", False, "", ""),
        ("kill task failed", False, "", ""),
        ("", False, "", ""),
    ],
)
def test_a_reason(reason: str, fit: bool, job: str, note: str) -> None:
    """Matched by its beginning; what people wrote behind Slurm's own words is a note."""
    assert (has_prefix(reason, [KILL]), find_unkillable_job(reason), find_note(reason)) == (
        fit,
        job,
        note,
    )


@pytest.mark.parametrize(
    "reason",
    [
        "slurm-operator: Pod is terminating",
        "slurm-operator:Kill task failed",
        "k8s: node is cordoned",
        "[node_problem] gpu_health: Kill task failed",
        "[user_problem] alloc_gpus_busy",
        "[hardware_problem] ib",
        "[software_problem] nvidia_libraries: libcuda.so.1: file too short [hc_program]",
        "[compute_maintenance] node reboot process",
        "[HC] All reduce perf nccl failed",
        "Soperator auto-healing: node reboot process",
    ],
)
def test_a_drain_of_an_operator_of_kubernetes_is_never_ours_to_undo(reason: str) -> None:
    """Whatever prefix was configured, and also where Slurm's own reason has replaced it since."""
    whole = [reason, reason[:4], reason[:9]]
    assert not has_prefix(reason, [*whole, KILL])
    assert find_hidden_reason([reading(KILL), reading(reason)], [], [*whole, KILL]) == reason
    assert has_prefix(f"a {reason}", [f"a {reason[:4]}"])


@pytest.mark.parametrize(
    ("reason", "prefix", "note"),
    [
        ("Prolog error", "Prolog error", ""),
        ("Prolog error : Not responding", "Prolog", ""),
        ("Prolog error: 8 xid 13 errors", "Prolog error", "8 xid 13 errors"),
        ("Prolog error: 8 xid 13 errors", "Prolog error:", ""),
        ("Epilog error on purpose, alice", "Epilog error", "on purpose, alice"),
        ("batch job complete failure, RMA", "batch job", "RMA"),
        ("Epilog error (JobId=12_3(15))", "Epilog error", ""),
        ("Epilog error (JobId=12+1(13) StepId=0)", "Epilog error", ""),
        ("Prolog error (JobId=7 RMA 55)", "Prolog error", "(JobId=7 RMA 55)"),
        ("Prolog/Epilog failure: gpu 3 lost", "Prolog/Epilog failure", "gpu 3 lost"),
        ("SlurmdSpoolDir is full, disk dying", "SlurmdSpoolDir is full", "disk dying"),
        ("SlurmdSpoolDir is full : reboot timed out", "SlurmdSpoolDir is full", ""),
        ("Epilog error : reboot timed out : see 7", "Epilog error", "reboot timed out : see 7"),
        ("Kill task failed : NHC: check_fs", "Kill task failed", "NHC: check_fs"),
        ("NHC: /scratch is not mounted", "NHC", ""),
    ],
)
def test_what_only_begins_as_a_reason_of_slurm_is_somebodys(
    reason: str, prefix: str, note: str
) -> None:
    """Unless the prefix goes on behind Slurm's own words: then it was meant."""
    assert find_note(reason, [prefix]) == note
    assert bool(find_hidden_reason([reading(reason)], [], [prefix])) is bool(note)


@pytest.mark.parametrize(
    ("before", "found"),
    [
        ([], ""),
        ([reading(KILL)], ""),
        ([reading(NEW), reading(KILL), reading("Not responding")], ""),
        ([reading(KILL), reading("RMA GPU3")], "RMA GPU3"),
        ([reading(KILL), reading("RMA GPU3 : Not responding")], "RMA GPU3"),
        ([reading(KILL), reading(""), reading("sentinel: bad GPU")], "sentinel: bad GPU"),
        ([reading(KILL), reading("", out=False), reading("RMA GPU3")], ""),
        ([reading(KILL), reading("stale", out=False)], ""),
        ([reading(KILL), reading(f"{KILL}; bad dimm")], f"{KILL}; bad dimm"),
    ],
)
def test_what_a_reason_replaced(before: list[NodeReading], found: str) -> None:
    """Only since the node was last in service, newest first."""
    assert find_hidden_reason(before, [], [KILL]) == found


@pytest.mark.parametrize(
    ("reason", "user", "giver"),
    [
        (KILL, "root", ""),
        (NEW, "root", ""),
        (KILL, "", ""),
        (KILL, "alice", "alice"),
        (f"{NEW} : Not responding", "slurm", ""),
        ("maintenance over", "alice", ""),
    ],
)
def test_a_person_who_uses_slurms_words(reason: str, user: str, giver: str) -> None:
    """slurmstepd signs as root, slurmctld as SlurmUser what it appends: all others are people."""
    assert find_reason_author(replace(NODE, reason=reason, reason_user=user)) == giver


@pytest.mark.parametrize(
    ("reason", "time", "before", "left"),
    [
        pytest.param(KILL, 9, reading("", out=False), False, id="Slurm forgot the last one"),
        pytest.param(KILL, 9, reading(KILL, out=False), False, id="the same words once more"),
        pytest.param(KILL, 1, reading(KILL, out=False), True, id="kept, and drained again"),
        pytest.param(KILL, 1, reading(KILL), False, id="given in this absence"),
        pytest.param(KILL, 9, reading("RMA", out=False), False, id="replaced"),
        pytest.param(
            f"{KILL} : Not responding",
            9,
            reading(KILL, out=False),
            True,
            id="kept, and appended to",
        ),
        pytest.param(
            f"{KILL} : Not responding", 9, reading("RMA", out=False), False, id="replaced and more"
        ),
    ],
)
def test_a_reason_from_before_the_node_was_in_service(
    reason: str, time: int, before: NodeReading, left: bool
) -> None:
    """It says nothing about why the node left service now: that may have been a failed prolog."""
    node = replace(NODE, reason=reason, reason_user="root", reason_time=time)
    assert may_be_old_reason(node, [reading(KILL), before]) == left
    assert not may_be_old_reason(node, [])


def test_the_beginning_of_an_absence_is_known_by_close_looks_alone() -> None:
    """A sentinel that was away for a weekend knows the last reason of it, and no other."""
    was_away = replace(LEFT_SERVICE, seen=Instant(wall=LEFT_SERVICE.seen.wall + 10**12))
    assert is_absence_watched([LEFT_SERVICE])
    assert not is_absence_watched([was_away])
    assert not is_absence_watched([replace(LEFT_SERVICE, left=None)])
    assert not is_absence_watched([])


LOG = """\
[2026-11-21T04:00:00.000] update_node: node n1 reason set to: old trouble
[2026-11-21T04:00:01.000] sched/backfill: _start_job: Started JobId=12_3(15) in prod on n[0-1]
[2026-11-21T04:10:00.000] update_node: node n1 reason set to: RMA GPU3
[2026-11-21T04:10:00.000] update_node: node n10 reason set to: something else
[2026-11-21T04:10:01.000] update_node: node n1 state set to IDLE
[2026-11-21T04:11:00.000] update_node: node n1 reason set to: Kill task failed
[2026-11-21T04:11:00.001] update_node: node n1 state set to DRAINING
[2026-11-21T04:11:00.002] error: slurmd error running JobId=2 on node(s)=n1: Kill task failed
[2026-11-21T04:11:00.003] sched: Allocate JobId=3 NodeList=n3 #CPUs=1 Partition=prod
[2026-11-21T04:11:00.004] drain_nodes: node n3 state set to DRAIN
[2026-11-21T04:11:00.005] sched: _slurm_rpc_allocate_resources JobId=4 NodeList=n4 usec=1
"""


def test_slurmctlds_log_knows_reasons_that_the_ledger_never_saw() -> None:
    """Given and replaced between two looks; only a job that is given the node ends what was
    before: a cancelled reboot, which leaves it drained, is logged as IDLE too."""
    found = parse_reason_histories(LOG, ["n1", "n2", "n3", "n4", "n10"])
    assert found["n1"] == ReasonHistory(("RMA GPU3", "Kill task failed"), whole=True)
    assert find_hidden_reason([], found["n1"].reasons, [KILL]) == "RMA GPU3"
    assert found["n2"] == ReasonHistory()
    assert find_hidden_reason([], found["n3"].reasons, [KILL]) == UNTOLD
    assert found["n4"] == ReasonHistory(whole=True)


def test_an_epilog_that_fails_on_a_drained_node_is_in_the_log_alone() -> None:
    """Slurm gives no second reason to what is drained: a fault that the epilog found would be lost."""
    log = (
        "[2026-11-21T04:11:00.000] update_node: node n1 reason set to: Kill task failed\n"
        "[2026-11-21T04:11:01.000] error: job_epilog_complete: JobId=2 epilog error on n1, "
        "draining the node\n"
    )
    assert (
        find_hidden_reason([], parse_reason_histories(log, ["n1"])["n1"].reasons, [KILL])
        == "Epilog error"
    )


def test_a_log_that_begins_within_the_absence_does_not_know_its_beginning() -> None:
    """It was rotated since: what it holds counts against the node, and not for it."""
    assert parse_reason_histories(LOG, ["n10"])["n10"] == ReasonHistory(
        ("something else",), whole=False
    )
    tail = LOG[LOG.index("[2026-11-21T04:11:00.000]") :]
    assert parse_reason_histories(tail, ["n1"])["n1"] == ReasonHistory(
        ("Kill task failed",), whole=False
    )


def test_a_reason_that_quotes_the_log_proves_nothing() -> None:
    """Only a line of its own says that the node was at work."""
    reason = "see sched: Allocate JobId=3 NodeList=n1 #CPUs=1"
    log = f"[2026-11-21T04:10:00.000] update_node: node n1 reason set to: {reason}\n"
    assert parse_reason_histories(log, ["n1"])["n1"] == ReasonHistory((reason,), whole=False)


def test_lines_that_tell_something_of_a_node() -> None:
    """By its whole name, the last five, none too long, nothing in them that a terminal obeys."""
    lines = node_evidence.filter_log_lines(LOG)
    assert (
        node_evidence.format_last_lines(node_evidence.filter_node_lines(lines, "n1")).count("\n")
        == 4
    )
    assert "n10" not in node_evidence.format_last_lines(
        node_evidence.filter_node_lines(lines, "n1")
    )
    assert node_evidence.format_last_lines(node_evidence.filter_node_lines(lines, "n2")) == ""
    line = node_evidence.format_last_lines(
        node_evidence.filter_log_lines(
            f"[2.batch] error: *** JOB 2 CANCELLED AT \x1b[31m{'x' * 999}"
        )
    )
    assert "\\x1b[31m" in line
    assert len(line) == 240
    assert (
        node_evidence.format_last_lines(node_evidence.filter_log_lines("nothing of interest\n"))
        == ""
    )


LAUNCH = "[2026-11-28T03:00:00] launch task StepId={n}.0 request from UID:1000"
PYXIS = "[2026-11-28T03:09:01] spank-epilog: error: pyxis: mkdir: cannot create directory '/x'"
EPILOG = "[2026-11-28T03:09:02] error: epilog for UID 1000 exited with status 1"


def test_of_a_nodes_log_the_lines_at_its_last_error_are_shown() -> None:
    """Whatever their words; what led to it stands before it (awslabs/awsome-distributed-ai #185)."""
    before, after = ([LAUNCH.format(n=n) for n in range(first, first + 9)] for first in (0, 50))
    shown = find_lines_at_error("\n".join([*before, PYXIS, EPILOG, *after]))
    assert shown == [*before[-2:], PYXIS, EPILOG, after[0]]
    assert find_lines_at_error("\n".join([PYXIS, EPILOG])) == [PYXIS, EPILOG]
    assert find_lines_at_error("\n".join(before)) == find_lines_at_error("") == []
