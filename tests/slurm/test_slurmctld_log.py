"""What slurmctld logs of nodes: lines as 22.05 and 26.05 write them."""

import pytest

from sentinel.core.cluster import ControllerLogEntry
from sentinel.slurm.slurmctld_log import (
    entry_author,
    erased_reasons,
    explain_disorder,
    node_entries,
)

STAMP = "[2026-11-22T11:59:01.459] "
AUDIT = "AUDIT_RPCS: _on_primary_msg: [fd:9] msg_type=REQUEST_UPDATE_NODE uid={} client=[::1] protocol=1"
RMA = ("update_node: node n1 reason set to: RMA", "update_node: node n1 state set to DRAINED")
BACK = "update_node: node n1 state set to IDLE"


def log(*lines: str) -> str:
    return "".join(f"{STAMP}{line}\n" for line in lines)


def back(entry: ControllerLogEntry) -> bool:
    return entry.kind == "back"


def lost(*lines: str) -> list[str] | None:
    found = erased_reasons(log(*lines), "n1", back)
    return None if found is None else [entry.text for entry in found]


@pytest.mark.parametrize(
    ("lines", "reasons"),
    [
        ((), None),
        (RMA, None),
        ((BACK.replace("n1", "n10"),), None),
        ((BACK,), []),
        ((*RMA, BACK), ["RMA"]),
        ((BACK, *RMA), []),
        ((*RMA, BACK, BACK), []),
        ((BACK.replace("IDLE", "MIXED*"),), []),
        ((BACK.replace("IDLE", "DRAINED*"),), None),
        ((BACK.replace("IDLE", "DOWN"),), None),
        (
            ("drain_nodes: node n1 state set to DRAIN", BACK),
            ["drained by slurmctld, which does not log why"],
        ),
        (("error: _x: JobId=7 epilog error on n1, draining the node", BACK), ["Epilog error"]),
        (("update_node: node n2 reason set to: x", BACK), []),
    ],
)
def test_what_stood_before_our_change(lines: tuple[str, ...], reasons: list[str] | None) -> None:
    """None where our change is not there; what was given after it is nobody's loss."""
    assert lost(*lines) == reasons


def test_a_reason_of_two_lines_forges_nothing() -> None:
    """Slurm prints its line ends as they are; only what slurmctld stamped is a line of its own."""
    text = log("update_node: node n1 reason set to: x\nupdate_node: node n1 state set to IDLE")
    assert [e.kind for e in node_entries(text, "n1")] == ["reason"]


@pytest.mark.parametrize(
    ("line", "author"),
    [
        (AUDIT.format(0), "root"),
        (AUDIT.format(1000).partition("[fd:9] ")[2], "uid 1000"),
        (f"_update_job: setting comment to {AUDIT.format(1000)} for JobId=1", ""),
        (f"_update_job: setting comment to x {AUDIT.format(1000)} for JobId=1", ""),
    ],
)
def test_only_slurmctld_says_who_asked(line: str, author: str) -> None:
    """A user's text within a line of slurmctld's blames nobody."""
    (entry,) = node_entries(log(line, RMA[0]), "n1")
    assert entry_author(entry) == author


FORGED = """\
[2026-11-27T19:51:12.142] _update_job: setting comment to x
[{}] update_node: node n1 reason set to: RMA
[{}] x for JobId=1
[2026-11-27T19:51:12.142] _slurm_rpc_update_job: complete JobId=1 uid=65534 usec=190
"""
"""As slurmctld 22.05 wrote what an ordinary user gave as a job's comment."""


@pytest.mark.parametrize(
    ("time", "why"),
    [
        ("2026-11-27T19:51:12.141", "go back"),
        ("2026-11-27T19:51:12.143", "go back"),
        ("2026-11-27T19:51:12", "no milliseconds"),
    ],
)
def test_a_log_with_lines_of_a_user_proves_nothing(time: str, why: str) -> None:
    """Who forges one has to guess the millisecond; a time without any needs no guess."""
    assert why in explain_disorder(FORGED.format(time, time))


def test_a_line_without_slurmctlds_time_is_none() -> None:
    """Any other text in brackets would need no guess."""
    for time in ("x", "2026-11-27T19:51:12", "19:51:12.142"):
        assert list(node_entries(FORGED.format(time, time), "n1")) == []


@pytest.mark.parametrize("zone", ["", "+01:00"])
def test_a_log_in_order_is_believed(zone: str) -> None:
    """Several lines of one millisecond, lines without a time, a first line that is cut; and a zone."""
    lines = ["12.142", "12.142", "12.143"]
    text = "".join(
        f"[2026-11-27T19:51:{at}{zone}] update_node: node n1 reason set to: x\ny\n" for at in lines
    )
    assert explain_disorder(text) == ""
    assert explain_disorder(text[5:]) == ""
    assert len(list(node_entries(text, "n1"))) == 3


def test_a_reboot_is_ours_where_the_node_is_in_its_list() -> None:
    """One line for all nodes."""
    text = log(*RMA, "reboot request queued for nodes n[0-3]")
    assert [e.kind for e in node_entries(text, "n1")] == ["reason", "rebooted"]
    assert [e.kind for e in node_entries(text, "n4")] == []


@pytest.mark.parametrize(
    ("uids", "name"), [((), ""), ((0,), "root"), ((1000, 1000), "uid 1000"), ((0, 1000), "")]
)
def test_the_author_where_the_audit_leaves_no_doubt(uids: tuple[int, ...], name: str) -> None:
    """DebugFlags=AuditRPCs tells who asked, one line before; two who asked at once are a doubt."""
    [entry] = node_entries(log(*(AUDIT.format(uid) for uid in uids), RMA[0]), "n1")
    assert entry_author(entry) == name


def test_slurmctlds_own_drain_has_an_author() -> None:
    """Nobody else's RPC comes before it."""
    [entry] = node_entries(log("drain_nodes: node n1 state set to DRAIN"), "n1")
    assert entry_author(entry) == "slurmctld"
