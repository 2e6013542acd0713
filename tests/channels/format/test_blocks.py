"""The short message: what it says, and what goes when there is little room."""

from typing import Any

import pytest

from sentinel.channels.format.blocks import ChatContent, MessageBlock, fit_blocks, make_chat
from sentinel.core.command_places import SETUP_PLACE
from sentinel.core.model import Notification, Status
from tests.channels.samples import notification


def read(*notifications: Notification, room: int = 4000) -> str:
    return "\n".join(block.text for block in fit_blocks(make_chat(notifications), room))


def test_one_alert_in_the_order_of_reading() -> None:
    """What, since when and where, the log's end, what to run, whom to call, how to go on."""
    message = make_chat([notification()])
    assert message.title == "CRITICAL h100-prod training tr11-176B"
    assert [(b.role, b.text.partition("\n")[0]) for b in message.blocks] == [
        ("line", "not running: job 4242 FAILED (exit 1)"),
        (
            "dim",
            "since: 2026-09-30 03:12:05 +02:00 (25m before this message) · exit code: 1"
            " · idle: 25m · node: r12n07 · user: alice",
        ),
        ("line", "Runbook: Call https://wiki.example.org/oncall"),
        ("code", "# on a login node, as yourself"),
        ("code", "| rank 0: NCCL WARN"),
        ("code", f"# {SETUP_PLACE}"),
    ]


def test_a_note_and_a_dry_run_are_told() -> None:
    """A note may name a silence's end."""
    told = read(notification(note="silenced until 06:00", dry_run=True))
    assert told.startswith("Dry run: nothing was acted upon.\n")
    assert "silenced until 06:00" in told


TONES: list[tuple[dict[str, Any], str, str]] = [
    ({}, "critical", "🔴"),
    ({"severity": Status.WARNING, "status": Status.WARNING}, "warning", "🟠"),
    ({"status": Status.UNKNOWN}, "unknown", "🟣"),
    ({"reason": "resolved", "status": Status.OK}, "ok", "🟢"),
    ({"reason": "test"}, "info", "🔵"),
]


@pytest.mark.parametrize(("changes", "tone", "icon"), TONES)
def test_a_circle_tells_how_bad(changes: dict[str, Any], tone: str, icon: str) -> None:
    """Also to those who see no colours: the word stands behind it."""
    message = make_chat([notification(**changes)])
    assert (message.tone, message.tone_icon) == (tone, icon)


def test_several_alerts_in_a_line_each_the_worst_first() -> None:
    """And the title counts them."""
    good = notification(subject="b", reason="resolved", status=Status.OK)
    mild = notification(subject="c", severity=Status.WARNING, status=Status.WARNING)
    message = make_chat([good, mild, notification(subject="a")])
    assert message.title == "3 alerts on h100-prod: 1 critical, 1 warning, 1 resolved"
    assert [b.text for b in message.blocks] == [
        "🔴 CRITICAL training a: not running: job 4242 FAILED (exit 1) (since 03:12 +02:00)",
        "🟠 WARNING training c: not running: job 4242 FAILED (exit 1) (since 03:12 +02:00)",
        "🟢 RESOLVED training b: not running: job 4242 FAILED (exit 1) (after 25m)",
    ]


def test_the_command_that_lists_the_rest_names_the_file() -> None:
    """With a path of any length the message still fits."""
    config = f"/scratch/{'x' * 200}.yaml"
    alerts = (notification(subject=f"n{i:03}", runbook="", config=config) for i in range(500))
    text = read(*alerts, room=1000)
    assert text.endswith(f" more: sentinel alerts list -c {config}")
    assert len(text) <= 1000


@pytest.mark.parametrize(("count", "room"), [(500, 4000), (500, 10**6), (3, 150), (2, 1)])
def test_alerts_that_do_not_fit_are_counted(count: int, room: int) -> None:
    """The first ones stand; the last line says how many more there are."""
    alerts = (notification(subject=f"n{i:03}", runbook="") for i in range(count))
    lines = read(*alerts, room=room).split("\n")
    assert "n000" in lines[0]
    assert lines[-1] == f"and {count - len(lines) + 1} more: sentinel alerts list"
    assert len("\n".join(lines)) <= max(room, 150)


def test_five_hundred_alerts_are_not_five_hundred_lines() -> None:
    """Nobody reads them, however much room there is."""
    assert read(*[notification(runbook="")] * 500, room=10**6).count("\n") == 100


def test_what_may_be_answered_is_a_word_with_an_address() -> None:
    """The address is long and says nothing."""
    message = make_chat([notification(links={"Acknowledge": "https://x.example.org/a/t/"})])
    (block,) = [b for b in message.blocks if b.url]
    assert (block.text, block.url) == ("Acknowledge", "https://x.example.org/a/t/")


def test_several_alerts_with_one_runbook_name_it() -> None:
    """It says what to do, and a line each does not; ends need none."""
    good = notification(subject="c", reason="resolved", status=Status.OK, runbook="else")
    bad = [notification(subject=s) for s in ("a", "b")]
    assert read(*bad, good).split("\n")[3:] == ["Runbook: Call https://wiki.example.org/oncall"]
    assert "Runbook" not in read(*bad, notification(runbook="another"))
    assert "Runbook" not in read(good, good)


def test_a_runbook_stands_below_all_and_takes_little_room() -> None:
    """Also where alerts are left out; never in place of them."""
    many = [notification(subject=f"n{i:03}") for i in range(200)]
    told = read(*many, room=1000).split("\n")
    assert [told[-2].partition(" ")[0], told[-1].partition(" ")[0]] == ["and", "Runbook:"]
    assert len("\n".join(told)) <= 1000
    assert "Runbook" not in read(*many, room=150)


GOING = [
    (600, ["rank 0: last", "scontrol", "Runbook", "explain", "since"]),
    (280, ["scontrol", "Runbook", "explain", "since"]),
    (255, ["Runbook", "explain", "since"]),
    (200, ["Runbook", "since"]),
    (100, ["Runbook"]),
    (50, []),
    (1, []),
]


@pytest.mark.parametrize(("room", "kept"), GOING)
def test_what_goes_first_in_little_room(room: int, kept: list[str]) -> None:
    """The log, then commands, then facts, then the runbook; never what has happened."""
    log = "\n".join(f"rank 0: line {i}" for i in range(30)) + "\nrank 0: last"
    told = read(notification(details=log), room=room)
    assert told.startswith("not running: job 4242 FAILED")
    words = ["rank 0: last", "scontrol", "Runbook", "explain", "since"]
    assert [word for word in words if word in told] == kept
    assert len(told) <= max(room, 40)


def test_a_log_loses_its_first_lines_first() -> None:
    """The end says why it ended; a mark stands for what is gone."""
    message = ChatContent(
        title="",
        tone="ok",
        blocks=(MessageBlock("line", "x"), MessageBlock("code", "one\ntwo\nthree", 1)),
    )
    assert [b.text for b in fit_blocks(message, 14)] == ["x", "…\ntwo\nthree"]
    assert [b.text for b in fit_blocks(message, 13)] == ["x", "…\nthree"]
    assert [b.text for b in fit_blocks(message, 9)] == ["x"]
