"""Processes and units that must live: real processes, and systemctl's own forms."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from sentinel.checks.service import ServiceCheck, judge_process, judge_unit
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.model import Finding, Status
from sentinel.core.node_answers import Answered, Unreachable
from sentinel.testing import context
from tests.kinds import looks
from tests.lab.fuse import Fuse
from tests.lab.waiting import wait_until

NAME = "sentinel-test-daemon"
"""Longer than the fifteen letters that the kernel keeps."""


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    program = tmp_path / NAME
    shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
    with subprocess.Popen([program, "60"]) as running:
        yield running
        running.kill()


def look(check: ServiceCheck, **more: Any) -> Finding:
    [finding] = check.run(context(**more)).findings
    return finding


def test_a_process_that_lives_and_one_that_does_not(daemon: "subprocess.Popen[bytes]") -> None:
    """By the name ps shows; once it is gone it is critical, also as a zombie."""
    check = ServiceCheck(processes=[NAME])
    wait_until(lambda: look(check).status is Status.OK, "the daemon")
    assert (look(check).subject, look(check).summary) == (NAME, "runs")
    daemon.kill()
    os.waitid(os.P_PID, daemon.pid, os.WEXITED | os.WNOWAIT)  # dead, and nobody has reaped it
    dead = look(check)
    assert (dead.status, dead.summary) == (
        Status.CRITICAL,
        "is not running: no process has this name",
    )
    assert looks(dead) == (
        f"systemctl status {NAME}",
        f"journalctl -n 50 _COMM={NAME[:15]}",
    )


def test_a_process_that_hangs_in_the_kernel_is_not_alive_enough(tmp_path: Path, fuse: Fuse) -> None:
    """It is there, and does nothing: not even SIGKILL wakes it from state D."""
    program = tmp_path / "sentinel-d"
    shutil.copy(shutil.which("cat") or "/bin/cat", program)
    fuse.hold("open")
    with subprocess.Popen([program, fuse.point / "data"], stdout=subprocess.DEVNULL) as stuck:
        check = ServiceCheck(processes=["sentinel-d"])
        try:
            wait_until(fuse.withheld, "the hang")
            stuck.kill()
            wait_until(lambda: "state D" in look(check).summary, "state D")
        finally:
            fuse.release()


@pytest.mark.parametrize(
    ("listed", "status"),
    [
        ("2 0 S munged\n", Status.OK),
        ("2 0 Ss munged\n 3 0 D munged\n", Status.OK),
        ("2 0 D munged\n", Status.WARNING),
        ("2 0 T munged\n", Status.WARNING),
        ("2 0 T munged\n3 0 D munged\n", Status.WARNING),
        ("2 0 Z munged\n", Status.CRITICAL),
        ("2 0 S mungedx\n3 0 S xmunged\n4 0 S a munged\n", Status.CRITICAL),
        ("", Status.CRITICAL),
        (CannotTell("no route"), Status.UNKNOWN),
    ],
)
def test_states_of_a_process(listed: Any, status: Status) -> None:
    """One that works is enough; silence says nothing."""
    said = f"    1 0 S init\n{listed}" if isinstance(listed, str) else listed
    assert judge_process("", "munged", said).status is status


@pytest.mark.parametrize(
    ("uid", "users", "status"),
    [
        (0, [], Status.OK),
        (999, [], Status.OK),
        (1000, [], Status.UNKNOWN),
        (64030, [], Status.OK),
        (65534, [], Status.OK),
        (65535, [], Status.UNKNOWN),
        (54321, ["54321"], Status.OK),
        (54321, ["54322"], Status.UNKNOWN),
    ],
)
def test_a_process_of_an_ordinary_user_is_no_service(
    uid: int, users: list[str], status: Status
) -> None:
    """Anybody may call one munged while the real one is dead."""
    listed = f"1 0 S init\n2 {uid} S munged\n3 0 Z munged\n"
    hosts = Changing(listed.encode(), listed.encode())
    found = look(ServiceCheck(processes=["munged"], users=users, nodes="login1"), remote=hosts)
    assert found.status is status
    assert ("`users`" in found.summary) is (status is Status.UNKNOWN)


def test_a_name_forges_no_row() -> None:
    """Only a newline ends one."""
    said = "1 0 S init\n2 1000 S x\x0b9 0 S munged\n"
    assert judge_process("", "munged", said).status is Status.CRITICAL


def test_where_others_processes_are_hidden_nobody_knows() -> None:
    """hidepid leaves only one's own in the list (proc(5)): munged is not dead for that."""
    found = judge_process("", "munged", "812 0 S bash\n913 0 R ps\n")
    assert (found.status, "hidepid" in found.summary) == (Status.UNKNOWN, True)


def test_a_stopped_process_is_not_alive_enough(daemon: "subprocess.Popen[bytes]") -> None:
    """Somebody, or a debugger, has stopped it: it answers nobody."""
    daemon.send_signal(signal.SIGSTOP)
    wait_until(lambda: "stopped" in look(ServiceCheck(processes=[NAME])).summary, "the stop")


def test_a_moment_in_the_kernel_is_no_hang() -> None:
    """Whoever writes to a disk is in state D now and then; the host is asked once more."""
    hosts = Changing(b"1 0 S init\n2 0 D munged\n", b"1 0 S init\n2 0 S munged\n")
    check = ServiceCheck(processes=["munged"], nodes="login1")
    assert look(check, remote=hosts).status is Status.OK
    hosts = Changing(b"1 0 S init\n2 0 D munged\n", b"1 0 S init\n2 0 D munged\n")
    assert look(check, remote=hosts).status is Status.WARNING


def shown(name: str, load: str, active: str, sub: str, result: str = "success") -> str:
    return f"Id={name}\nLoadState={load}\nActiveState={active}\nSubState={sub}\nResult={result}\n"


@pytest.mark.parametrize(
    ("told", "status", "says"),
    [
        (("loaded", "active", "running"), Status.OK, "is active (running)"),
        (("loaded", "reloading", "reload"), Status.OK, "is reloading (reload)"),
        (("loaded", "activating", "auto-restart", "exit-code"), Status.WARNING, "exit-code"),
        (("loaded", "inactive", "dead"), Status.CRITICAL, "is inactive (dead)"),
        (("loaded", "failed", "failed", "oom-kill"), Status.CRITICAL, "(failed): oom-kill"),
        (("not-found", "inactive", "dead"), Status.CRITICAL, "there is no such unit"),
        (("loaded", "refreshing", "refresh"), Status.OK, "is refreshing"),
        (("loaded", "levitating", "?"), Status.UNKNOWN, "is levitating"),
        (("loaded", "", ""), Status.UNKNOWN, ""),
    ],
)
def test_states_of_a_unit(told: tuple[str, ...], status: Status, says: str) -> None:
    """systemctl(1): active is alive; what restarts is on its way, perhaps for ever."""
    finding = judge_unit("", "sssd.service", shown("sssd.service", *told), ["sssd.service"])
    assert finding.status is status
    assert says in finding.summary


@pytest.mark.parametrize(
    ("unit", "impact"),
    [
        ("opensmd.service", "InfiniBand links that are up go on;"),
        ("slurmdbd", "`sacct` and `sacctmgr` get no answer. Jobs start and go on;"),
        ("raid-watch.service", "Whatever needs raid-watch.service on this host fails or waits"),
    ],
)
def test_the_impact_is_what_stands_still(unit: str, impact: str) -> None:
    """opensm(8) sweeps the subnet, slurmdbd(8) keeps accounting. Of another name nothing is made up."""
    dead = judge_unit("", unit, shown(unit, "loaded", "failed", "failed"), [unit])
    assert dead.guidance.impact.startswith(impact)
    hidden = judge_unit("", unit, CannotTell("no systemd here"), [unit])
    assert hidden.guidance.impact == "", "what is not known stops nothing"
    assert "start it" not in hidden.guidance.todo


def test_several_units_are_told_apart_by_their_order() -> None:
    """Also where systemctl shows an alias by another name."""
    said = shown("ssh.service", "loaded", "active", "running") + "\n"
    said += shown("nscd.service", "loaded", "failed", "failed")
    units = ["sshd.service", "nscd.service"]
    assert judge_unit("", units[0], said, units).status is Status.OK
    assert judge_unit("", units[1], said, units).status is Status.CRITICAL
    assert judge_unit("", units[0], said.partition("\n\n")[0], units).status is Status.UNKNOWN


class Changing:
    """A way to one host that answers otherwise each time."""

    def __init__(self, *answers: bytes) -> None:
        self._answers = list(answers)

    def run(
        self, nodes: Sequence[str], argv: Sequence[str], *, limit: float, stdin: bytes = b""
    ) -> Mapping[str, Any]:
        return dict.fromkeys(nodes, Answered(code=0, out=self._answers.pop(0)))


class Hosts:
    """A way to hosts; `login2` cannot be reached."""

    def run(
        self, nodes: Sequence[str], argv: Sequence[str], *, limit: float, stdin: bytes = b""
    ) -> Mapping[str, Any]:
        answers = {"login1": Answered(code=0, out=b"1 0 S init\n2 0 S munged\n3 0 S sssd\n")}
        return {node: answers.get(node, Unreachable("no route to host")) for node in nodes}


def test_other_hosts_are_asked_and_silence_is_unknown() -> None:
    """A host that cannot be reached is not one where nothing runs."""
    check = ServiceCheck(processes=["munged", "nscd"], nodes="login[1-2]")
    findings = check.run(context(remote=Hosts())).findings
    assert {f.subject: f.status for f in findings} == {
        "login1 munged": Status.OK,
        "login1 nscd": Status.CRITICAL,
        "login2 munged": Status.UNKNOWN,
        "login2 nscd": Status.UNKNOWN,
    }
    assert looks(findings[1]) == (
        "ssh login1 systemctl status nscd",
        "ssh login1 journalctl -n 50 _COMM=nscd",
    )
    assert findings[2].summary == "Unreachable: no route to host"


def test_no_way_to_other_hosts_is_said() -> None:
    """Nobody was asked."""
    with pytest.raises(CannotTell):
        ServiceCheck(processes=["munged"], nodes="login1").run(context())


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"units": ["--all"]},
        {"units": [""]},
        {"units": ["sssd*"]},
        {"units": ["sssd"], "processes": ["sssd"]},
        {"units": ["sssd.service", "sssd.service"]},
        {"processes": ["x"], "nodes": "n["},
    ],
)
def test_bad_settings(settings: dict[str, Any]) -> None:
    """Nothing to watch, an option or a pattern in place of a unit, two alerts of one name, no
    host list."""
    with pytest.raises(Invalid):
        ServiceCheck(**settings)
