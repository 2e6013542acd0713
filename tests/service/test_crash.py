"""kill -9 at random moments: nothing told is lost, nothing is forgotten, little is repeated."""

import json
import os
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from sentinel.core.clock import Instant
from sentinel.core.model import Transition
from sentinel.store.opening import open_store
from tests.lab.service import Service
from tests.lab.smtp import SmtpServer

KILLS = int(os.environ.get("SENTINEL_KILLS", "100"))
"""Of `make test-long`; 1,000 were tried by hand: SENTINEL_KILLS=1000."""

PLUGIN = """\
#!/bin/sh
# Bad and good in turn, at every run: as many transitions as runs.
n=$(cat {folder}/turn 2>/dev/null || echo 0)
if [ -e {folder}/rest ]; then
  # The last life: it stays as it is, so that nothing new is owed when all is told.
  echo >> {folder}/rest
  exit $(( ((n + 1) % 2) * 2 ))
fi
echo $((n + 1)) > {folder}/turn.new && mv {folder}/turn.new {folder}/turn
exit $(( (n % 2) * 2 ))
"""

CONFIG = """\
cluster: lab
state: {folder}/state
flapping: {{changes: 0}}
checks:
  flips: {{kind: exec, command: [{folder}/plugin], every: 1s}}
  steady: {{kind: exec, command: ["/bin/false"], every: 1s}}
channels:
  book: {{kind: file, path: {folder}/book.jsonl}}
  mail: {{kind: email, to: [ops@example.org], from: s@example.org, host: localhost, port: {port}, security: none}}
"""


@pytest.mark.timeout(120 + 4 * KILLS)
@pytest.mark.parametrize("kills", [12, pytest.param(KILLS, marks=pytest.mark.nightly)])
def test_kill_9_loses_no_notification_and_forgets_no_alert(
    kills: int, tmp_path: Path, service: Callable[..., Service], smtp: SmtpServer
) -> None:
    """Every transition ever committed reaches every channel; each kill repeats at most one
    message a channel; the alert that fires all the time is told once in all those lives."""
    _write(tmp_path, smtp.port)
    dice = random.Random(20261121)
    for number in range(kills):
        one = service("run", "-c", tmp_path / "sentinel.yaml")
        if number % 5:
            _wait_for_a_run(tmp_path, one)
        time.sleep(dice.uniform(0.0, 1.5))
        one.kill9()
    _deliver_the_rest(tmp_path, service)
    told, deliveries = _state(tmp_path)
    booked = [json.loads(line) for line in (tmp_path / "book.jsonl").read_text().splitlines()]
    mailed = [m.message["X-Sentinel-Key"] for m in smtp.mails]
    for channel, keys in (("book", [b["key"] for b in booked]), ("mail", mailed)):
        _assert_all_arrived(channel, keys, deliveries, kills)
    assert len(told) > kills / 4, "too few transitions happened for the test to mean anything"
    _assert_alternating(told)
    assert [t.reason for t in told if t.key.check == "steady"] == ["firing"]


def _write(folder: Path, port: int) -> None:
    plugin = folder / "plugin"
    plugin.write_text(PLUGIN.format(folder=folder))
    plugin.chmod(0o755)
    (folder / "sentinel.yaml").write_text(dedent(CONFIG.format(folder=folder, port=port)))


def _wait_for_a_run(folder: Path, one: Service) -> None:
    """Most lives get as far as a run of the check; a fifth is killed while it starts."""
    turn = folder / "turn"
    before = turn.read_text() if turn.exists() else ""
    one.wait_for(lambda: turn.exists() and turn.read_text() != before, "a run", 30)


def _deliver_the_rest(folder: Path, service: Callable[..., Service]) -> None:
    """A second run begins only when the first is committed: after it nothing new is owed."""
    rest = folder / "rest"
    rest.touch()
    last = service("run", "-c", folder / "sentinel.yaml")
    last.wait_for(lambda: rest.stat().st_size >= 2, "two runs", 60)
    last.wait_for(lambda: _settled(folder, last.pid), "the outbox to empty", 60)
    assert last.terminate() == 0, last.err


def _settled(folder: Path, pid: int) -> bool:
    store = open_store(str(folder / "state"), Instant(wall=time.time_ns() // 1000)).store
    try:
        return str(pid) in store.read_leader() and not store.read_outbox()
    finally:
        store.close()


def _state(folder: Path) -> tuple[list[Transition], dict[str, set[str]]]:
    """The transitions, oldest first, and per channel the keys that its outbox ever held."""
    store = open_store(str(folder / "state"), Instant(wall=time.time_ns() // 1000)).store
    told = list(reversed(store.read_transitions(100_000)))
    owed: dict[str, set[str]] = {}
    for alert in {t.alert for t in told}:
        for row, _, _ in store.read_deliveries(alert):
            owed.setdefault(row.channel, set()).add(row.notification.key)
    store.close()
    return told, owed


def _assert_all_arrived(
    channel: str, keys: list[str], owed: dict[str, set[str]], kills: int
) -> None:
    assert set(keys) == owed[channel], channel
    assert len(keys) - len(set(keys)) <= kills, channel
    assert max(Counter(keys).values()) <= 3, "the same message was repeated at kill after kill"


def _assert_alternating(told: list[Transition]) -> None:
    """Per subject, firing and its end take turns: no end is lost and none is invented."""
    for check in ("flips", "steady"):
        reasons = [t.reason for t in told if t.key.check == check and t.key.subject]
        assert all(r == "firing" for r in reasons[::2]), reasons
        assert all(r == "resolved" for r in reasons[1::2]), reasons
