"""The log: one event a line, for people on a terminal, for machines elsewhere."""

import asyncio
import io
import json
import logging
import sys
from typing import Any

import pytest

from sentinel.cli.logs import choose_formatter
from sentinel.core.model import Status
from tests.channels.samples import HOSTILE
from tests.engine.worlds import Book, Says, Scene, play, world

QUARTERS = 12 * 240
"""Of an hour's minutes in a night of twelve hours: as often as the service looks at itself."""


def record(text: str, level: int = logging.INFO, **fields: str) -> logging.LogRecord:
    made = logging.LogRecord("sentinel", level, "", 0, "%s", (text,), None)
    made.fields = fields
    return made


def as_json(text: str, **fields: str) -> dict[str, Any]:
    line = choose_formatter(terminal=False, journal=False).format(record(text, **fields))
    read: dict[str, Any] = json.loads(line)
    return read


def test_away_from_a_terminal_an_event_is_an_object_with_what_it_is_about() -> None:
    """`jq 'select(.check == "scratch")'` works."""
    event = as_json("firing", event="alert", check="scratch")
    assert (event["message"], event["level"]) == ("firing", "info")
    assert (event["event"], event["check"]) == ("alert", "scratch")
    assert event["at"].endswith("+00:00")


def test_on_a_terminal_it_is_words() -> None:
    """With the time of the day and the level."""
    line = choose_formatter(terminal=True, journal=False).format(record("firing", logging.WARNING))
    assert line.split(maxsplit=1)[1] == "warning firing"


@pytest.mark.parametrize(
    ("level", "priority"),
    [
        (logging.DEBUG, 7),
        (logging.INFO, 6),
        (logging.WARNING, 4),
        (logging.ERROR, 3),
        (logging.CRITICAL, 2),
    ],
)
def test_the_journal_is_told_how_grave_it_is(level: int, priority: int) -> None:
    """By the prefix of sd-daemon(3); `journalctl -p warning` then finds it."""
    line = choose_formatter(terminal=False, journal=True).format(record("x", level))
    assert line.startswith(f"<{priority}>{{")


def test_a_traceback_on_a_terminal_keeps_its_lines_and_is_inert() -> None:
    """An exception may tell the name of somebody else's file."""
    try:
        raise OSError("\x1b[2J of mallory's\nsecond")
    except OSError:
        made = logging.LogRecord("sentinel", 40, "", 0, "failed", (), sys.exc_info())
    lines = choose_formatter(terminal=True, journal=False).format(made).split("\n")
    assert lines[1] == "Traceback (most recent call last):"
    assert lines[-2:] == ["OSError: \\x1b[2J of mallory's", "second"]


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_name_is_one_inert_line_and_is_not_changed(text: str) -> None:
    """No second event, no colours; whoever reads the JSON gets the very text."""
    line = choose_formatter(terminal=False, journal=False).format(record(text, subject=text))
    assert line.isprintable()
    assert len(line.splitlines()) == 1
    assert json.loads(line)["subject"] == text
    words = choose_formatter(terminal=True, journal=False).format(record(text))
    assert "\x1b" not in words


def test_an_error_keeps_its_trace_in_one_line() -> None:
    """A traceback of forty lines is one event."""
    try:
        raise ValueError("no\nway")
    except ValueError:
        made = record("internal error", logging.ERROR)
        made.exc_info = sys.exc_info()
    line = choose_formatter(terminal=False, journal=False).format(made)
    assert "\n" not in line
    assert "ValueError: no\nway" in json.loads(line)["trace"]


def test_a_night_without_trouble_is_under_a_hundred_lines(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Twelve hours of a service at info level, everything that it does every quarter minute."""

    async def night(scene: Scene) -> None:
        for _ in range(QUARTERS):
            await scene.engine.run_check("disk")
            await scene.engine.check_self()
            await scene.engine.review_alerts()
            await scene.engine.deliver_due()
            scene.clock.advance(15)
            await asyncio.sleep(0)

    with caplog.at_level(logging.INFO):
        play(night, world({"disk": Says()}, {"book": Book()}))
    assert len(caplog.records) < 100


def test_what_fires_and_ends_is_in_the_log_with_its_names(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One event each, in the same words as the state has them."""
    disk = Says(Status.CRITICAL)

    async def trouble(scene: Scene) -> None:
        await scene.engine.run_check("disk")
        disk.status = Status.OK
        await scene.engine.run_check("disk")

    with caplog.at_level(logging.INFO):
        play(trouble, world({"disk": disk}, {"book": Book()}))
    events = [r.fields for r in caplog.records if getattr(r, "fields", {}).get("event") == "alert"]
    assert [(e["reason"], e["check"], e["subject"]) for e in events] == [
        ("firing", "disk", "/scratch"),
        ("resolved", "disk", "/scratch"),
    ]


def test_the_log_is_set_up_for_the_stream_that_there_is() -> None:
    """A pipe is no terminal."""
    from sentinel.cli.logs import configure_logging

    stream, root = io.StringIO(), logging.getLogger()
    before, level = root.handlers[:], root.level
    try:
        configure_logging(verbose=False, stream=stream)
        logging.getLogger("sentinel").info("hello")
        logging.getLogger("other").info("not heard")
    finally:
        root.handlers[:] = before
        root.setLevel(level)
        logging.getLogger("sentinel").setLevel(logging.NOTSET)
    [line] = stream.getvalue().splitlines()
    assert json.loads(line)["message"] == "hello"
