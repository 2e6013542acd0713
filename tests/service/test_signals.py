"""Signals, systemd's protocol, and several sentinels on one state."""

import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.service import Service
from tests.lab.smtp import SmtpServer
from tests.lab.waiting import wait_until
from tests.service.watch import Watch, processes, wait_gone

CONFIG = """\
checks:
  LAMP
  {more}
channels:
  book: {{kind: file, path: {folder}/book.jsonl}}
"""
MAIL = (
    CONFIG
    + "  oncall: {{kind: email, to: [o@example.org], from: s@example.org, "
    + "host: localhost, port: {port}, security: none}}\n"
)
SLOW = "slow: {kind: exec, every: 1s, timeout: 60s, command: [/bin/sleep, '50']}"


def test_sighup_with_a_good_file_goes_on_with_that(watch: Watch) -> None:
    """The new check runs; the alert of the one that is no more ends, for those who heard of it."""
    service = started(watch, 2)
    watch.wait_told(service, check="lamp")
    watch.config.write_text(watch.config.read_text().replace("lamp: {", "light: {"))
    service.signal(signal.SIGHUP)
    watch.wait_told(service, check="light")
    assert [line["reason"] for line in watch.told(check="lamp")] == ["firing", "gone"]
    assert service.terminate() == 0


@pytest.mark.long
def test_sighup_with_a_bad_file_keeps_the_old_and_says_what_is_wrong(watch: Watch) -> None:
    """At file and line, in the log; mended, the next SIGHUP takes it."""
    service = started(watch, 0)
    wait_leads(watch, service)
    good = watch.config.read_text()
    watch.config.write_text(good.replace("every: 1s", "every: fast"))
    service.signal(signal.SIGHUP)
    wrong = f"{watch.config}:4: checks.lamp.every: 'fast' is no duration"
    service.wait_for(lambda: wrong in service.err, "the refusal")
    assert "the old one stays in force" in service.err
    watch.lamp(2)
    watch.wait_told(service, check="lamp")
    watch.config.write_text(good.replace("lamp: {", "light: {"))
    service.signal(signal.SIGHUP)
    watch.wait_told(service, check="light")


@pytest.mark.long
def test_a_reload_does_not_take_the_log_of_actions_to_another_state(watch: Watch) -> None:
    """What was done within the hour would be forgotten, and caps with it: that takes a restart."""
    service = started(watch, 0)
    wait_leads(watch, service)
    good = watch.config.read_text()
    other = watch.folder / "other"
    watch.config.write_text(good.replace(f"state: {watch.state}", f"state: {other}"))
    service.signal(signal.SIGHUP)
    service.wait_for(lambda: "needs a restart" in service.err, "the refusal")
    assert "the old one stays in force" in service.err
    assert not other.exists()
    assert service.terminate() == 0


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_delivers_what_is_pending(watch: Watch, smtp: SmtpServer, number: int) -> None:
    """The mail that a slow server is taking is finished, and then the exit code is 0."""
    smtp.slow(1.0)
    service = started(watch, 2, MAIL, port=smtp.port)
    watch.wait_told(service)
    assert smtp.mails == []
    service.signal(number)
    assert service.wait(20) == 0
    assert len(smtp.mails) == 1
    assert watch.status()["unsent"] == []


@pytest.mark.long
@pytest.mark.parametrize("trouble", ["down", "silent"])
def test_a_stop_waits_for_no_server_beyond_its_bound(
    watch: Watch, smtp: SmtpServer, trouble: str
) -> None:
    """What could not be sent is kept for the next start, which sends it."""
    smtp.down() if trouble == "down" else smtp.slow(60)
    service = started(watch, 2, MAIL, port=smtp.port)
    watch.wait_told(service)
    assert service.terminate(20) == 0
    assert "the next start sends them" in service.err
    assert len(watch.status()["unsent"]) == 1
    smtp.up() if trouble == "down" else smtp.slow(0)
    watch.run()
    assert len(smtp.wait(1)) == 1
    assert len(watch.book) == 1


@pytest.mark.long
def test_a_second_service_on_one_state_says_who_leads(watch: Watch) -> None:
    """Exit 75, which systemd takes for `try again`; the first goes on undisturbed."""
    first = started(watch, 0)
    wait_leads(watch, first)
    second = watch.run()
    assert second.wait() == 75
    assert f"pid {first.pid}" in second.err.splitlines()[-1]
    assert "Traceback" not in second.err
    watch.lamp(2)
    watch.wait_told(first, check="lamp")


def test_a_tick_beside_a_service_runs_nothing(watch: Watch) -> None:
    """Exit 0, for a timer is no error; it says who leads."""
    first = started(watch, 0)
    wait_leads(watch, first)
    done = watch.say("tick", "--all", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout) == {"ran": False, "checks": []}
    assert f"nothing run: {watch.state}" in done.stderr
    assert f"pid {first.pid}" in done.stderr


def test_of_two_ticks_at_once_the_second_runs_nothing(watch: Watch) -> None:
    """It says so and exits 0; the first is not disturbed."""
    go = watch.folder / "go"
    waits = f"until [ -e {go} ]; do sleep 0.1; done"
    configure(
        watch, CONFIG, f"slow: {{kind: exec, timeout: 60s, command: [/bin/sh, -c, '{waits}']}}"
    )
    first = watch.start("tick")
    wait_leads(watch, first)
    second = watch.say("tick")
    go.touch()
    assert (second.returncode, second.stdout) == (0, "")
    assert "nothing run" in second.stderr
    assert first.wait() == 0
    assert {line.split(":")[0].split()[-1] for line in first.out.splitlines()} == {"lamp", "slow"}
    third = watch.say("tick", "--all")
    assert third.stdout != ""


def test_a_killed_service_can_be_started_again_at_once(watch: Watch) -> None:
    """kill -9 leaves no lock; what was told, and marked so, stays told."""
    service = started(watch, 2)
    watch.wait_told(service)
    service.wait_for(lambda: not watch.status()["unsent"], "an empty outbox")
    service.kill9()
    service = watch.run()
    watch.lamp(0)
    watch.wait_told(service, reason="resolved")
    assert [line["reason"] for line in watch.book] == ["firing", "resolved"]


def test_systemd_hears_when_it_is_ready_reloads_lives_and_stops(
    watch: Watch, systemd: "Systemd"
) -> None:
    """sd_notify(3): READY once all is set up, RELOADING with the time and READY again,
    WATCHDOG within the interval, STATUS in words, STOPPING first thing at the end."""
    watch.env |= systemd.env
    service = started(watch, 2)
    systemd.wait("READY=1")
    watch.wait_told(service)
    systemd.wait("WATCHDOG=1")
    systemd.wait("STATUS=")
    before = len(systemd.heard)
    service.signal(signal.SIGHUP)
    systemd.wait("RELOADING=1\nMONOTONIC_USEC=", before)
    systemd.wait("READY=1", before)
    systemd.wait("WATCHDOG=1", len(systemd.heard))
    assert service.terminate() == 0
    systemd.wait("STOPPING=1", before)
    assert systemd.heard.index("STOPPING=1") > max(
        at for at, text in enumerate(systemd.heard) if text.startswith("READY=1")
    )


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
@pytest.mark.parametrize("words", [["check", "slow"], ["tick"]])
def test_a_command_that_is_told_to_end_takes_what_it_started_with_it(
    watch: Watch, words: list[str], number: int, code: int
) -> None:
    """Ctrl-C, or `timeout 30 sentinel tick` in cron: neither reaches a session of its own."""
    configure(watch, CONFIG, SLOW)
    command = watch.start(*words)
    wait_until(lambda: "/bin/sleep 50" in processes(str(watch.folder)).values(), "the command")
    command.signal(number)
    assert command.wait(10) == code
    wait_gone(str(watch.folder), 3.0)
    assert "Traceback" not in command.err


def test_a_service_ends_the_checks_that_are_at_work(watch: Watch) -> None:
    """A stop does not wait for a check that takes a minute."""
    configure(watch, CONFIG, SLOW)
    service = watch.run()
    wait_until(lambda: "/bin/sleep 50" in processes(str(watch.folder)).values(), "the command")
    assert service.terminate(10) == 0
    wait_gone(str(watch.folder), 3.0)


def started(watch: Watch, code: int, config: str = CONFIG, **values: object) -> Service:
    configure(watch, config, "", **values)
    watch.lamp(code)
    return watch.run()


def configure(watch: Watch, config: str, more: str = "", **values: object) -> None:
    watch.lamp(0)
    watch.configure(config, more=more, **values)


def wait_leads(watch: Watch, service: Service) -> None:
    """Until the service (or tick) is up."""
    service.wait_for(lambda: f"pid {service.pid} " in watch.status()["leader"] + " ", "it to lead")


class Systemd:
    """A notification socket, and all that was heard on it."""

    def __init__(self, folder: Path) -> None:
        path = folder / "notify"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        self._socket.setblocking(False)
        self.env = {"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": "1000000"}
        self._heard: list[str] = []

    @property
    def heard(self) -> list[str]:
        while True:
            try:
                self._heard.append(self._socket.recv(65536).decode())
            except BlockingIOError:
                return self._heard

    def wait(self, beginning: str, after: int = 0) -> None:
        """Until a message that begins so has come, after so many others."""
        wait_until(
            lambda: any(text.startswith(beginning) for text in self.heard[after:]),
            lambda: f"{beginning!r}; heard {self.heard}",
        )

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[Systemd]:
    service = Systemd(tmp_path)
    yield service
    service.close()
