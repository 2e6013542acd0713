"""`sentinel top`: keys to views, and the real thing on a real terminal of 80 by 24."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timezone
from pathlib import Path

import pytest
from msgspec.structs import replace

from sentinel.cli import panels
from sentinel.cli.screen import diff_screen_lines, parse_keys, render_to_lines
from sentinel.cli.status import MAX_ALERT_ROWS
from sentinel.cli.top_view import (
    TAB_NAMES,
    TopView,
    apply_key,
    render_body,
    render_foot,
    render_head,
    select_alert_folds,
)
from sentinel.core.model import Status
from sentinel.status.collect import read_status_inputs
from sentinel.status.view_model import build_facts as seen
from sentinel.testing import START
from tests.channels.samples import HOSTILE
from tests.web.scenery import KINDS, alert, around, big, ledger, night, record, scene

SHOWN = scene(
    [
        alert(1, "gpu00003", summary="no power"),
        alert(2, "gpu00001", Status.WARNING),
        alert(3, "gpu00002", summary="no link"),
    ]
)


def pressed(*names: str, view: TopView = TopView()) -> TopView:  # noqa: B008 - frozen
    for name in names:
        view = apply_key(view, name, SHOWN)
    return view


@pytest.mark.parametrize(
    ("names", "field", "value"),
    [
        ("3", "tab", 2),
        (("tab", "tab"), "tab", 2),
        (("tab",) * len(TAB_NAMES), "tab", 0),
        (("j", "j", "j", "j"), "chosen", 2),
        (("j", "k", "k"), "chosen", 0),
        (("enter",), "open", "00000003"),
        (("enter", "esc"), "open", ""),
        (("enter", "q"), "done", False),
        ("q", "done", True),
        (("ctrl-c",), "done", True),
        (("s",), "order", "newest"),
        (("s",) * 4, "order", "severity"),
        ((" ",), "held", True),
        (("a",), "ack", ()),
        (("a", "y"), "ack", ("00000003",)),
        (("a", "n"), "ack", ()),
        (("a", "q"), "done", False),
        (("/", "w", "backspace", "g", "enter"), "filter", "g"),
        (("/", "w", "esc"), "filter", ""),
        (("2", "a"), "asking", ""),
        (("", "é"), "tab", 0),
    ],
)
def test_a_key_does_one_thing(names: tuple[str, ...], field: str, value: object) -> None:
    """Acknowledging asks first; what asks takes no other key."""
    assert getattr(pressed(*names), field) == value


def test_the_filter_fits_check_subject_and_words() -> None:
    """Whatever case it is typed in."""
    view = pressed("/", *"GPU00001", "enter")
    assert [row.first.subject for row in select_alert_folds(view, SHOWN)] == ["gpu00001"]
    assert select_alert_folds(replace(view, filter="nothing of this"), SHOWN) == []


def test_alerts_are_sorted_as_chosen() -> None:
    """The worst first, the newest, the oldest, by name."""
    orders = {
        o: [row.first.subject[-1] for row in select_alert_folds(TopView(order=o), SHOWN)]
        for o in ("newest", "oldest", "check")
    }
    assert orders == {"newest": list("312"), "oldest": list("213"), "check": list("123")}


def test_what_does_not_fire_yet_cannot_be_acknowledged() -> None:
    """And it says so."""
    facts = replace(SHOWN, alerts=(replace(SHOWN.alerts[0], state="pending"),))
    assert "does not fire yet" in apply_key(TopView(), "a", facts).said


@pytest.mark.parametrize("tab", range(len(TAB_NAMES)))
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_every_view_is_inert_and_fits_the_terminal(tab: int, text: str) -> None:
    """80 columns, whatever a job is called; nothing but colours of our own."""
    facts = scene([alert(1, text, summary=text, details=text)])
    view = TopView(tab=tab, open="00000001" if tab == 0 else "")
    parts = [
        *render_head(view, facts, timezone.utc),
        render_foot(view),
        render_body(view, facts, timezone.utc, 20),
    ]
    for line in [line for part in parts for line in render_to_lines(part, 80, colour=False)]:
        assert "\x1b" not in line
        assert len(line) <= 80
        assert not re.search(r"[\x00-\x1f\x7f\u202e]", line)


@pytest.mark.parametrize("chosen", [0, 5, 11])
def test_the_chosen_alert_is_on_the_screen(chosen: int) -> None:
    """Of a dozen with long summaries on 80 by 24: what `a` acknowledges must be seen."""
    facts = scene([alert(n, f"gpu{n:05}", summary="a long word " * 20) for n in range(1, 13)])
    shown = render_to_lines(
        render_body(TopView(chosen=chosen, each=True), facts, timezone.utc, 18), 80, colour=False
    )[:19]
    assert any(
        select_alert_folds(TopView(each=True), facts)[chosen].first.subject in line
        for line in shown
    )


def test_only_lines_that_have_changed_are_sent() -> None:
    """A slow line shows a new age without the whole page."""
    before = ["head", "one", "two", "three"]
    assert diff_screen_lines(before, ["head", "one", "2", "three"]) == ["\x1b[3;1H2\x1b[0m\x1b[K"]
    assert diff_screen_lines(before, before) == []
    assert diff_screen_lines(before, ["head"])[0].startswith("\x1b[2;1H\x1b[0m")


def test_keys_that_come_together_are_told_apart() -> None:
    """Over ssh several arrive at once; those without a meaning mean nothing."""
    assert parse_keys("j\r\x1b[Aq") == ["j", "enter", "up", "q"]
    assert parse_keys("\x1b[15~\x00é\x1b") == ["", "", "é", "esc"]


@contextmanager
def terminal(*words: str, kind: str = "xterm") -> Iterator[int]:
    """A child on a terminal of its own of 80 by 24; our end of it."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    child = subprocess.Popen(
        [sys.executable, "-m", "sentinel", *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": kind},
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield ours
    finally:
        child.terminate()
        child.wait(20)
        os.close(ours)


def read_until(ours: int, text: str) -> str:
    seen, deadline = "", time.monotonic() + 20
    while text not in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen):
        assert time.monotonic() < deadline, seen
        if select.select([ours], [], [], 0.5)[0]:
            seen += os.read(ours, 65536).decode("utf-8", "replace")
    return seen


def test_without_a_service_it_shows_the_state_says_so_and_acknowledges(tmp_path: Path) -> None:
    """A tick wrote the state; nobody is at work; the answer is kept; the terminal is put back."""
    config = tmp_path / "sentinel.yaml"
    config.write_text(
        f"state: {tmp_path}/state\n"
        "checks: {gone: {kind: fs, paths: [/nowhere/at/all]}}\n"
        f"channels: {{book: {{kind: file, path: {tmp_path}/book}}}}\n"
    )
    sentinel = [sys.executable, "-m", "sentinel"]
    subprocess.run([*sentinel, "tick", "-c", config], check=True, capture_output=True)
    with terminal("top", "-c", str(config)) as ours:
        read_until(ours, "does not exist")
        os.write(ours, b"a")
        read_until(ours, "y/n")
        os.write(ours, b"y")
        read_until(ours, "has it]")
        os.write(ours, b"q")
        end = read_until(ours, "")
        while "\x1b[?1049l" not in end:
            end += os.read(ours, 65536).decode()
    told = subprocess.run(
        [*sentinel, "top", "--once", "-c", config], check=True, capture_output=True, text=True
    ).stdout
    logged = subprocess.run([*sentinel, "tick", "-c", config], capture_output=True, text=True)
    assert '"event": "ack"' in logged.stderr
    assert '"how": "top"' in logged.stderr
    assert "nothing runs sentinel now; last pass" in told
    assert "has it]" in " ".join(told.split())


def test_a_terminal_that_cannot_be_drawn_on_is_printed_on(tmp_path: Path) -> None:
    """As in an editor's shell: once, without a single escape sequence of movement."""
    config = tmp_path / "sentinel.yaml"
    config.write_text(f"state: {tmp_path}/state\nchecks: {{root: {{kind: fs, paths: [/]}}}}\n")
    with terminal("top", "-c", str(config), kind="dumb") as ours:
        assert "\x1b[?1049h" not in read_until(ours, "no alerts")


@pytest.mark.long
def test_status_tells_all_that_it_told_before_and_more(tmp_path: Path) -> None:
    """The JSON keeps its keys; the metrics are Prometheus' own form; 80 columns suffice."""
    import json

    config = tmp_path / "sentinel.yaml"
    config.write_text(f"state: {tmp_path}/state\nchecks: {{root: {{kind: fs, paths: [/]}}}}\n")
    sentinel = [sys.executable, "-m", "sentinel"]
    subprocess.run([*sentinel, "tick", "-c", config], check=True, capture_output=True)

    def status(*words: str) -> str:
        return subprocess.run(
            [*sentinel, "status", "-c", config, *words],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "COLUMNS": "80"},
        ).stdout

    document = json.loads(status("--json"))
    assert {"state", "leader", "notices", "alerts", "checks", "unsent"} <= set(document)
    assert document["disks"][0]["path"] == "/"
    assert "sentinel_filesystem_used_ratio" in status("--metrics")
    assert max(len(line) for line in status().splitlines()) <= 80


def test_three_hundred_alerts_are_read_within_80_lines() -> None:
    """What is wrong first, the trainings next, alike alerts as one row; each count is told."""
    rows = [
        alert(n, f"gpu{n:05}", summary=f"{WORDS[n % 15]} on gpu{n:05}: " + "a long story " * 20)
        for n in range(300)
    ]
    table = render_to_lines(
        panels.render_folded_alerts(scene(rows), MAX_ALERT_ROWS), 80, colour=False
    )
    assert len(table) <= 60
    assert max(map(len, table)) <= 80
    assert "and 19 more like it on 20 nodes" in " ".join(" ".join(table).split())
    assert "and 100 more: sentinel alerts list" in table[-1]


@pytest.mark.parametrize("tab", ["1", "2", "3", "4", "5", "7"])
def test_a_narrow_terminal_has_fewer_columns_and_whole_words(tab: str) -> None:
    """At 60 columns no name, state or number is broken in two; what is wrong stays."""
    facts = seen(read_status_inputs(big(), around(KINDS, record(), gpus=ledger()), START))
    view = apply_key(TopView(), tab, facts)
    wide, narrow = (
        render_to_lines(render_body(view, facts, timezone.utc, 17), width, colour=False)
        for width in (200, 60)
    )
    assert max(map(len, narrow)) <= 60
    whole = {word for line in wide for word in line.split()}
    broken = {w for line in narrow for w in line.split() if w not in whole and not w.endswith("…")}
    assert {
        w for w in broken if "," not in w
    } == set()  # a list of hosts may go on in the next line
    assert {"1": "critical", "3": "FAILED", "4": "warning"}.get(tab, "") in " ".join(narrow)


def test_eighteen_dead_trainings_of_three_hundred_alerts_are_on_the_first_screen() -> None:
    """Of a terminal of 80 by 24, whatever else has been broken for longer; below them the twenty
    nodes with their GPUs are one row, which `a` acknowledges as a whole and `f` unfolds."""
    facts = scene(night(), 500)
    assert len(facts.alerts) == 300
    screen = render_to_lines(render_body(TopView(), facts, timezone.utc, 24 - 6), 80, colour=False)[
        : 24 - 5
    ]
    assert sum("training user" in line for line in screen) == 18
    (row,) = [row for row in select_alert_folds(TopView(), facts) if row.alike == 20]
    assert row.more == "and 19 more like it on 20 nodes, and 200 more of these incidents"
    place = select_alert_folds(TopView(), facts).index(row)
    asked = apply_key(TopView(chosen=place), "a", facts)
    assert "and 219 more of its row" in render_foot(asked).plain
    assert len(apply_key(asked, "y", facts).ack) == 220
    assert len(select_alert_folds(apply_key(TopView(), "f", facts), facts)) == 300
    opened = render_body(apply_key(TopView(chosen=place), "enter", facts), facts, timezone.utc, 18)
    assert f"same incident, {row.first.id}:" in " ".join(render_to_lines(opened, 80, colour=False))


WORDS = [f"{chr(97 + n)} fault" for n in range(15)]
