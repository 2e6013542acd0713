"""The state is damaged, the disk is full, the clock jumps: watching and telling go on."""

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab import needs
from tests.lab.service import Service
from tests.lab.waiting import wait_until
from tests.service.clock import FalseClock, why_no_clock
from tests.service.watch import Watch
from tests.store.disk import Disk

CONFIG = """\
checks:
  LAMP
channels:
  book: {{kind: file, path: {folder}/book.jsonl}}
"""
DAMAGES: dict[str, Callable[[Path], object]] = {
    "garbage": lambda path: path.write_bytes(b"this is no database " * 1000),
    "a page overwritten": lambda path: overwrite(path, 4096, b"\xff" * 4096),
    "cut in the middle": lambda path: cut(path, path.stat().st_size // 2),
    "cut to nothing": lambda path: cut(path, 0),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_state_is_kept_aside_and_told_and_watching_goes_on(
    watch: Watch, damage: str
) -> None:
    """The alert names both files. What was told before is not told anew: a copy of the open alerts
    is put back, and their ends are told."""
    watch.lamp(2)
    watch.configure(CONFIG)
    assert watch.say("tick").returncode == 0
    assert [line["check"] for line in watch.book] == ["lamp"]
    state = watch.state / "sentinel.db"
    DAMAGES[damage](state)
    done = watch.say("tick", "--all")
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    (told,) = watch.told(check="sentinel")
    assert (told["subject"], told["status"]) == ("state", "critical")
    (kept,) = state.parent.glob("sentinel.db.damaged-*[0-9Z]")
    assert str(state) in told["summary"]
    assert str(kept) in told["summary"]
    assert len(watch.told(check="lamp")) == 1
    watch.lamp(0)
    assert watch.say("tick", "--all").returncode == 0
    assert [line["reason"] for line in watch.told(check="sentinel")] == ["firing", "resolved"]
    first, end = watch.told(check="lamp")
    assert (end["reason"], end["alert"]) == ("resolved", first["alert"])


@pytest.mark.long
def test_a_state_removed_under_a_running_service_is_begun_anew(watch: Watch) -> None:
    """A cleaner took it: that is told, nothing is told twice, and a restart finds a state."""
    service = started(watch, CONFIG)
    turn(watch, service, 2, 1)
    for path in watch.state.glob("sentinel.db*"):
        path.unlink()
    (told,) = watch.wait_told(service, check="sentinel")
    assert (told["subject"], told["status"]) == ("state", "critical")
    assert f"{watch.state}/sentinel.db was removed; a new one was begun" in told["summary"]
    assert service.terminate() == 0
    service = watch.run()
    turn(watch, service, 0, 2)
    assert [line["reason"] for line in watch.told(check="lamp")] == ["firing", "resolved"]


@pytest.mark.long
def test_on_a_full_disk_watching_and_telling_go_on(watch: Watch, disk: Disk) -> None:
    """Full before an alert begins, free again after it ended and another began: each transition
    is told once, and a restart then knows what was told."""
    use(watch, disk)
    service = started(watch, CONFIG)
    service.wait_for(lambda: watch.status()["checks"][0]["status"], "the first run")
    disk.fill()
    for count, code in enumerate((2, 0, 2), 1):
        turn(watch, service, code, count)
    (told,) = watch.wait_told(service, check="sentinel")
    assert (told["subject"], told["status"]) == ("state", "critical")
    assert re.match(
        rf"{disk.state}/sentinel.db: .*; not written for \S+, \d+ writes wait", told["summary"]
    )
    disk.free()
    service.wait_for(lambda: watch.status()["unsent"] == [] and fires(watch), "it written")
    assert service.terminate() == 0
    service = watch.run()
    turn(watch, service, 0, 4)
    reasons = [line["reason"] for line in watch.told(check="lamp")]
    assert reasons == ["firing", "resolved"] * 2
    keys = [line["key"] for line in watch.book]
    assert len(set(keys)) == len(keys)


@pytest.mark.long
def test_a_service_starts_on_a_full_disk(watch: Watch, disk: Disk) -> None:
    """It cannot remember, and says so; it watches and tells. Once there is room the state is
    written, and others may look into it."""
    use(watch, disk)
    disk.fill()
    service = started(watch, CONFIG)
    turn(watch, service, 2, 1)
    (told,) = watch.wait_told(service, check="sentinel")
    assert (told["subject"], told["status"]) == ("state", "critical")
    disk.free()
    service.wait_for(lambda: watch.say("status").returncode == 0 and fires(watch), "it written")
    assert service.terminate() == 0


def test_a_stopping_service_on_a_full_disk_still_ends_cleanly(watch: Watch, disk: Disk) -> None:
    """Exit 0 within its bound; the next start tells what is wrong then."""
    use(watch, disk)
    service = started(watch, CONFIG)
    service.wait_for(lambda: watch.status()["checks"][0]["status"], "the first run")
    disk.fill()
    turn(watch, service, 2, 1)
    assert service.terminate(15) == 0
    assert "Traceback" not in service.err


@pytest.mark.long
@pytest.mark.parametrize("jump", [3600, -3600])
def test_a_clock_that_jumps_neither_stops_checks_nor_hurries_or_delays_alerts(
    watch: Watch, jump: int
) -> None:
    """An hour either way in the middle of `for: 4s`: runs go on within seconds, the alert comes
    not before its four seconds, and soon after; so does its end after `keep_firing_for`."""
    clock = false_clock(watch)
    service = started(watch, PATIENT)
    service.wait_for(lambda: runs(watch) >= 2, "the first runs")
    watch.lamp(2)
    began, before = time.monotonic(), runs(watch)
    service.wait_for(lambda: runs(watch) > before + 1, "a bad run")
    clock.set(jump)
    before = runs(watch)
    service.wait_for(lambda: runs(watch) >= before + 3, "runs after the jump", 60)  # not an hour
    assert watch.book == [] or time.monotonic() - began >= 4
    watch.wait_told(service)
    assert time.monotonic() - began >= 4
    watch.lamp(0)
    began, before = time.monotonic(), runs(watch)
    service.wait_for(lambda: runs(watch) > before + 1, "a good run")
    clock.set(0)
    watch.wait_told(service, reason="resolved")
    assert time.monotonic() - began >= 3


@pytest.mark.long
def test_a_state_of_the_year_2030_serves_when_the_clock_is_right_again(watch: Watch) -> None:
    """Passes while the clock was years ahead left an alert, a message that waits for its next attempt,
    and times of runs. Nothing waits for years, nothing is told twice, the alert stays what it is."""
    clock = false_clock(watch)
    watch.configure(AHEAD)
    clock.set(4 * 365 * 86400)
    watch.lamp(2)
    for _ in range(2):
        watch.say("tick", "--all")
    assert [line["reason"] for line in watch.told(check="lamp")] == ["firing"]
    assert len(watch.status()["unsent"]) == 1

    clock.set(0)
    (watch.folder / "open").touch()
    later = watch.folder / "later"
    wait_until(lambda: watch.say("tick") and later.exists(), lambda: f"{watch.status()}", 60)
    watch.lamp(0)
    wait_until(lambda: watch.say("tick") and len(watch.told(check="lamp")) > 1, "its end", 60)
    watch.say("tick")
    fired, ended = watch.told(check="lamp")
    assert (ended["reason"], ended["alert"]) == ("resolved", fired["alert"])
    assert len(later.read_text().splitlines()) == 2
    assert watch.say("state", "check").returncode == 0


AHEAD = """\
checks:
  LAMP
channels:
  book: {{kind: file, path: {folder}/book.jsonl}}
  shut: {{kind: exec, command: [/bin/sh, -c, "test -e {folder}/open && echo >>{folder}/later"]}}
"""

PATIENT = """\
checks:
  lamp:
    kind: exec
    every: 1s
    for: 4s
    keep_firing_for: 3s
    command: [/bin/sh, -c, "echo >> {folder}/runs; read code < {folder}/lamp; exit $code"]
channels:
  book: {{kind: file, path: {folder}/book.jsonl}}
"""


def false_clock(watch: Watch) -> FalseClock:
    if missing := why_no_clock():
        needs.skip(missing)
    clock = FalseClock(watch.folder)
    watch.env |= clock.env
    return clock


def started(watch: Watch, config: str) -> Service:
    watch.lamp(0)
    watch.configure(config)
    return watch.run()


def turn(watch: Watch, service: Service, code: int, count: int) -> None:
    """Switch the lamp; until the book has this transition too."""
    watch.lamp(code)
    watch.wait_told(service, count, check="lamp")


def use(watch: Watch, disk: Disk) -> None:
    """Put the state there."""
    disk.state.mkdir()
    watch.state = disk.state


def runs(watch: Watch) -> int:
    path = watch.folder / "runs"
    return len(path.read_text()) if path.exists() else 0


def fires(watch: Watch) -> bool:
    return any(alert["check"] == "lamp" for alert in watch.status()["alerts"])


def overwrite(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def cut(path: Path, size: int) -> None:
    with path.open("r+b") as file:
        file.truncate(size)
