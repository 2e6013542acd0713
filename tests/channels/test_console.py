"""The console channel on pipes, files and a real terminal."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import get_type_hints

import msgspec
import pytest
from rich.cells import cell_len

from sentinel.channels.console import Console, wants_colour
from sentinel.channels.console_card import paint_card
from sentinel.channels.format.text import make_card
from sentinel.core.errors import ChannelError
from sentinel.core.guidance import Guidance
from sentinel.core.model import Notification, Status
from sentinel.core.settings import Secret
from sentinel.core.values import Duration
from tests.channels.contract import ChannelContract, Mood, Side, send
from tests.channels.samples import HOSTILE, hostile, notification

SGR = re.compile(r"\x1b\[[0-9;]*m")
PRINT = """
import asyncio, sys, msgspec
from sentinel.channels.console import Console
from sentinel.core.model import Notification
asyncio.run(Console().send([msgspec.msgpack.decode(bytes.fromhex(sys.argv[1]), type=Notification)]))
"""


class TestContract(ChannelContract):
    """A reader that has gone is for good, a full disk for now, a full pipe hangs."""

    @contextmanager
    def side(self, tmp_path: Path, mood: Mood) -> Iterator[Side]:
        book = tmp_path / "book"
        channel = Console(timeout=Duration(0.3 if mood == "hangs" else 20))
        with standard_output(mood, book):
            yield Side(channel, lambda: blocks(book.read_bytes()))

    def test_secrets_are_nowhere(self) -> None:  # type: ignore[override]
        """There are none."""
        assert Secret not in get_type_hints(Console).values()


@contextmanager
def standard_output(mood: Mood, book: Path) -> Iterator[None]:
    """A real one in that mood."""
    ends: list[int] = []
    if mood == "takes":
        out = os.open(book, os.O_WRONLY | os.O_CREAT)
    elif mood == "later":
        out = os.open("/dev/full", os.O_WRONLY)
    else:
        reader, out = os.pipe()
        os.close(reader) if mood == "refuses" else ends.append(reader)
    if mood == "hangs":
        fill(out)
    with open(out, "w") as stream, redirect_stdout(stream):
        yield
    for end in ends:
        os.close(end)


def fill(pipe: int) -> None:
    """Until nothing more goes in."""
    os.set_blocking(pipe, False)
    with suppress(BlockingIOError):
        while True:
            os.write(pipe, b"x" * 4096)
    os.set_blocking(pipe, True)


def blocks(data: bytes) -> list[bytes]:
    """The alerts in what was printed: each begins with a time."""
    return re.split(rb"(?m)^(?=\d\d:\d\d:\d\d )", data)[1:]


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("plain", [False, True], ids=["colour", "NO_COLOR"])
def test_nothing_is_obeyed_on_a_terminal(text: str, plain: bool) -> None:
    """On a real pty: markup is shown as it is, and no escape but our own colours is sent."""
    shown = on_terminal(hostile(text), {"NO_COLOR": "1"} if plain else {})
    assert bool(SGR.search(shown)) is not plain
    rest = SGR.sub("", shown)
    assert not [c for c in rest if ord(c) < 32 and c not in "\r\n"]
    assert not re.search("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]", rest)
    if text.startswith("[red]"):
        assert "[red]x[/red] [link=" in rest


def on_terminal(about: Notification, env: dict[str, str]) -> str:
    """What a terminal of 80 columns is sent."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    base = {n: v for n, v in os.environ.items() if n not in ("NO_COLOR", "COLUMNS")}
    code = msgspec.msgpack.encode(record(about)).hex()
    with subprocess.Popen(
        [sys.executable, "-c", PRINT, code],
        stdout=slave,
        env={**base, "TERM": "xterm-256color", **env},
    ) as process:
        os.close(slave)
        data = b""
        with suppress(OSError):
            while chunk := os.read(master, 65536):
                data += chunk
    os.close(master)
    assert process.returncode == 0
    return data.decode()


def record(about: Notification) -> Notification:
    """The same with what no encoding has replaced: it has to reach the other process."""

    def clean(text: str) -> str:
        return text.encode("utf-8", "replace").decode()

    changes = {n: clean(getattr(about, n)) for n in ("subject", "summary", "check", "details")}
    rest = {
        n: clean(getattr(about, n)) for n in ("cluster", "reason", "since", "key", "alert", "note")
    }
    return msgspec.structs.replace(
        about,
        **changes,
        **rest,
        labels={},
        values={},
        commands=(),
        guidance=Guidance(*map(clean, msgspec.structs.astuple(about.guidance))),
        runbook=clean(about.runbook),
    )


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("summary", ["word " * 60, "x" * 300, "作业" * 100])
def test_it_fits_the_width(width: int, summary: str) -> None:
    """All but commands and their places, which are there to be copied whole; wide letters count
    twice."""
    about = notification(summary=summary, details="log " * 60, commands=("scontrol " * 20,))
    lines = paint_card(make_card(about), False, width).splitlines()
    long = [line for line in lines if cell_len(line) > width]
    commands = [line.strip() for line in long if not line.startswith("  # ")]
    assert commands == ["$ " + "scontrol " * 19 + "scontrol"]
    assert not [line for line in lines[1:] if line != line.rstrip()]


def test_colour_is_for_terminals() -> None:
    """A pipe gets none, nor one that asks for none (https://no-color.org) or cannot."""
    master, slave = pty.openpty()
    with open(slave, "w") as terminal, StringIO() as pipe:
        assert wants_colour(terminal, {"TERM": "xterm"})
        assert wants_colour(terminal, {"TERM": "xterm", "NO_COLOR": ""})
        assert not wants_colour(terminal, {"TERM": "xterm", "NO_COLOR": "0"})
        assert not wants_colour(terminal, {"TERM": "dumb"})
        assert not wants_colour(terminal, {})
        assert not wants_colour(pipe, {"TERM": "xterm"})
    os.close(master)


def test_it_says_what_a_person_asks_first() -> None:
    """What, where, since when, why, what to run; in a handful of lines."""
    shown = paint_card(make_card(notification()), False)
    for words in (
        "03:37:05 CRITICAL training tr11-176B (h100-prod)",
        "job 4242 FAILED (exit 1)",
        "since: 2026-09-30 03:12:05 +02:00 (25m before",
        "exit code: 1",
        "| rank 0: Aborted",
        "$ scontrol show job 4242",
        "$ sentinel explain 01J9",
        "runbook: Call https://wiki.example.org/oncall",
    ):
        assert words in shown
    assert len(shown.splitlines()) <= 12


def test_lines_that_are_left_out_are_marked() -> None:
    """Of a log the last six are shown, and a mark where there were more."""
    shown = paint_card(make_card(notification(details="\n".join("abcdefg"))), False)
    assert "  | …\n  | b\n  | c\n  | d\n" in shown
    assert "…" not in paint_card(make_card(notification(details="a\nb")), False)


def test_the_end_is_short() -> None:
    """Resolved: what, and how long it lasted."""
    about = notification(reason="resolved", status=Status.OK, dry_run=True)
    shown = paint_card(make_card(about), False)
    assert "RESOLVED training" in shown
    assert "lasted: 25m" in shown
    assert "[dry run]" in shown
    assert "Aborted" not in shown


def test_a_second_print_does_not_wait_behind_a_hanging_one(tmp_path: Path) -> None:
    """One thread at most is left behind on one stream."""
    channel = Console(timeout=Duration(0.2))
    with standard_output("hangs", tmp_path):
        for _ in range(3):
            with pytest.raises(ChannelError) as caught:
                send(channel, notification())
            assert caught.value.reason == "timeout"
        assert [t.name for t in threading.enumerate()].count("sentinel-aside") == 1


def test_without_a_standard_output_it_is_an_error() -> None:
    """As a daemon whose streams were closed."""
    closed = StringIO()
    closed.close()
    for stream in (None, closed):
        with redirect_stdout(stream), pytest.raises(ChannelError, match="no standard") as caught:
            send(Console(), notification())
        assert caught.value.permanent


def test_any_text_stream_will_do() -> None:
    """Also one that is no file."""
    with redirect_stdout(StringIO()) as stream:
        send(Console(), notification())
    assert "job 4242 FAILED" in stream.getvalue()


def test_a_poor_locale_gets_escapes(tmp_path: Path) -> None:
    """Nothing fails for want of a letter."""
    path = tmp_path / "out"
    with path.open("w", encoding="ascii") as stream, redirect_stdout(stream):
        send(Console(), notification(subject="Ω"))
    assert "\\u03a9" in path.read_text()
