"""E-mail, webhook and exec while their other side is down, slow or refuses: nothing is lost,
nothing overtakes, and no channel waits for another."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.lab.hook import HookServer
from tests.lab.service import Service
from tests.lab.smtp import SmtpServer
from tests.service.watch import Watch

CONFIG = """\
checks:
  LAMP
  other: {{kind: exec, every: 1s, command: [/bin/sh, -c, "read code < {folder}/other; exit $code"]}}
channels:
  book: {{kind: file, path: {folder}/book.jsonl}}
  mail: {{kind: email, to: [ops@example.org], from: s@example.org, host: localhost, port: {port}, security: none, timeout: {limit}}}
  hook: {{kind: webhook, url: "{url}", timeout: {limit}}}
  pager: {{kind: exec, command: [{folder}/pager], timeout: {limit}}}
"""
PAGER = """\
#!/bin/sh
read mode < {folder}/pager.mode
case $mode in
  hold) while [ "$(cat {folder}/pager.mode)" = hold ]; do sleep 0.1; done ;;
  hang) exec sleep 60 ;;
  *[0-9]) echo "the line is busy" >&2; exit $mode ;;
esac
exec cat >> {folder}/pager.jsonl
"""
TURNS = (1, 2, 0, 2, 0)
REASONS = ["firing", "worse", "resolved", "firing", "resolved"]
PATIENCE = 60.0  # three attempts wait 2 s, 4 s and 8 s


class Others:
    """The three other sides, well at first."""

    def __init__(self, folder: Path, smtp: SmtpServer, hook: HookServer) -> None:
        self.smtp, self.hook, self._folder = smtp, hook, folder
        self._pager = folder / "pager"
        self._pager.write_text(PAGER.format(folder=folder))
        self._pager.chmod(0o755)
        self.pager("ok")

    def pager(self, mode: str) -> None:
        (self._folder / "pager.mode").write_text(f"{mode}\n")

    def down(self) -> None:
        """Nobody listens, and the program is gone."""
        self.smtp.down()
        self.hook.down()
        self._pager.rename(self._folder / "pager.away")

    def up(self) -> None:
        self.smtp.up()
        self.hook.up()
        (self._folder / "pager.away").rename(self._pager)

    def hold(self) -> None:
        """Each takes every message, but only after `release`."""
        self.smtp.hold()
        self.hook.hold()
        self.pager("hold")

    def release(self) -> None:
        self.smtp.release()
        self.hook.release()
        self.pager("ok")

    def hang(self) -> None:
        """None answers before the channel's limit."""
        self.smtp.slow(60)
        self.hook.slow(60)
        self.pager("hang")

    def refuse(self) -> None:
        """Each says that it may take the message later."""
        self.smtp.greylist("ops@example.org")
        self.hook.refuse(503)
        self.pager("75")

    def refuse_for_good(self) -> None:
        self.smtp.refuse("ops@example.org")
        self.hook.refuse(400)
        self.pager("100")

    def well(self) -> None:
        self.smtp.accept("ops@example.org")
        self.smtp.slow(0)
        self.hook.accept()
        self.pager("ok")

    def told(self, check: str = "lamp") -> dict[str, list[str]]:
        """The keys that came to each, in order; what came twice counts once, by its key."""
        path = self._folder / "pager.jsonl"
        paged = (
            [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        )
        posted = [json.loads(post.body) for post in self.hook.posts]
        mails = [mail.message for mail in list(self.smtp.mails)]
        return {
            "mail": unique(m["X-Sentinel-Key"] for m in mails if m["X-Sentinel-Check"] == check),
            "hook": unique(line["key"] for line in posted if line["check"] == check),
            "pager": unique(line["key"] for line in paged if line["check"] == check),
        }


@pytest.fixture
def others(watch: Watch, smtp: SmtpServer) -> Iterator[Others]:
    with HookServer() as hook:
        yield Others(watch.folder, smtp, hook)


@pytest.mark.long
def test_what_happens_while_all_are_down_is_told_once_they_are_up(
    watch: Watch, others: Others
) -> None:
    """Every transition, in its order, through a restart in the middle; the file did not wait."""
    service = started(watch, others)
    others.down()
    turn(watch, service, TURNS[:3])
    assert service.terminate() == 0
    service = watch.run()
    turn(watch, service, TURNS[3:], 3)
    assert_errors(
        watch,
        {
            "mail": "cannot connect to localhost:",
            "hook": "cannot connect to http://127.0.0.1:",
            "pager": "No such file or directory",
        },
    )
    others.up()
    assert_all_told(watch, service, others)


@pytest.mark.long
@pytest.mark.parametrize(
    ("fault", "errors"),
    [
        (Others.refuse, {"mail": "451 4.7.1", "hook": "answered 503", "pager": "exit code 75"}),
        (Others.hang, {"mail": "4s", "hook": "within 4s", "pager": "did not finish within 4s"}),
    ],
)
def test_what_is_not_taken_now_is_told_later(
    watch: Watch, others: Others, fault: Callable[[Others], None], errors: dict[str, str]
) -> None:
    """Nothing overtakes what waits, and `status` has the words of each other side."""
    service = started(watch, others)
    fault(others)
    turn(watch, service, TURNS)
    service.wait_for(lambda: len(failing(watch)) == 3, "failures of all three", PATIENCE)
    assert_errors(watch, errors)
    assert not any(others.told().values())
    others.well()
    assert_all_told(watch, service, others)


@pytest.mark.long
def test_slow_ones_hold_up_neither_each_other_nor_the_checks(watch: Watch, others: Others) -> None:
    """All transitions are in the file before a slow one has taken the first."""
    service = started(watch, others, limit="80s")
    others.hold()
    turn(watch, service, TURNS)
    assert not any(others.told().values())
    assert failing(watch) == {}
    others.release()
    assert_all_told(watch, service, others)


@pytest.mark.long
def test_what_is_refused_for_good_stays_known_and_stops_nothing_else(
    watch: Watch, others: Others
) -> None:
    """The refused messages wait with the other side's answer, through a restart; an alert tells
    of each channel elsewhere; alerts about something else are delivered meanwhile."""
    service = started(watch, others)
    others.refuse_for_good()
    turn(watch, service, (2,))
    service.wait_for(lambda: len(failing(watch)) == 3, "three refusals")
    errors = {
        "mail": "550 5.1.1",
        "hook": "answered 400",
        "pager": "ended with exit code 100: the line is busy",
    }
    assert_errors(watch, errors)
    watch.wait_told(service, 3, check="sentinel", reason="firing")
    others.well()
    switch(watch, "other", 2)
    service.wait_for(lambda: all(others.told("other").values()), "the other alert", PATIENCE)
    assert not any(others.told("lamp").values())
    assert service.terminate() == 0
    assert_errors(watch, errors)


def started(watch: Watch, others: Others, limit: str = "4s") -> Service:
    watch.lamp(0)
    switch(watch, "other", 0)
    watch.configure(CONFIG, port=others.smtp.port, url=others.hook.url, limit=limit)
    service = watch.run()
    service.wait_for(lambda: watch.status()["checks"][0]["status"] == "ok", "the first run")
    return service


def turn(watch: Watch, service: Service, codes: tuple[int, ...], before: int = 0) -> None:
    """Switch the lamp; each time until the file has it."""
    for count, code in enumerate(codes, before + 1):
        watch.lamp(code)
        watch.wait_told(service, count, check="lamp")


def switch(watch: Watch, name: str, code: int) -> None:
    new = watch.folder / f"{name}.new"
    new.write_text(f"{code}\n")
    new.rename(watch.folder / name)


def assert_all_told(watch: Watch, service: Service, others: Others) -> None:
    """Each has every transition of the file, in the same order; nothing waits any more."""
    booked = watch.told(check="lamp")
    assert [line["reason"] for line in booked] == REASONS
    keys = [line["key"] for line in booked]
    everybody = {"mail": keys, "hook": keys, "pager": keys}
    service.wait_for(lambda: others.told() == everybody, f"not {others.told()}", PATIENCE)
    service.wait_for(lambda: watch.status()["unsent"] == [], "an empty outbox", PATIENCE)


def failing(watch: Watch) -> dict[str, str]:
    """The last error of each channel that has one."""
    return {row["channel"]: row["error"] for row in watch.status()["unsent"] if row["attempts"]}


def assert_errors(watch: Watch, errors: dict[str, str]) -> None:
    """Each channel fails, and says so in the words of its other side."""
    found = failing(watch)
    assert found.keys() == errors.keys()
    for channel, error in errors.items():
        assert error in found[channel]


def unique(keys: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(keys))
