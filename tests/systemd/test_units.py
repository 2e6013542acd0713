"""The units under a real systemd: start, ready, reload, watchdog, crash, stop, credentials."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab import needs
from tests.lab.systemd import ROOT, Systemd, why_no_systemd
from tests.lab.waiting import wait_until

CONFIG = """\
cluster: init
checks:
  lamp: {kind: exec, every: 1s, command: [/bin/sh, -c, "exit $(cat /run/lamp)"]}
  disks: {kind: fs, every: 2s}
channels:
  book: {kind: file, path: /var/log/sentinel/book.jsonl}
  hook: {kind: webhook, url: {credential: hook}}
"""
DROP_IN = """\
[Service]
LoadCredential=hook:/etc/sentinel/hook
RestartSec=200ms
"""


@pytest.fixture(scope="module")
def init(tmp_path_factory: pytest.TempPathFactory, as_root: None) -> Iterator[Systemd]:
    """A machine with the service installed and not started."""
    missing = why_no_systemd()
    if missing:
        needs.skip(missing)
    files = {
        "sentinel/sentinel.yaml": CONFIG,
        "sentinel/hook": "http://127.0.0.1:1/secret-path",
        "systemd/system/sentinel.service.d/test.conf": DROP_IN,
    }
    folder = tmp_path_factory.mktemp("init") / "machine"
    with Systemd(folder, files) as machine:
        machine.put("/run/lamp", "0\n")
        yield machine


@pytest.fixture
def running(init: Systemd) -> Systemd:
    init.ctl("reset-failed")
    init.ctl("start", "sentinel.service")
    assert init.show("ActiveState")["ActiveState"] == "active"
    return init


def test_it_is_ready_and_says_how_it_is(running: Systemd) -> None:
    """Type=notify: `start` comes back once it watches; as its own user, with a state of its own."""
    shown = running.show("SubState", "User", "StatusText")
    assert (shown["SubState"], shown["User"]) == ("running", "sentinel")
    running.wait_show("StatusText", "2 checks")
    stat = running.run("stat", "-c", "%U %a", "/var/lib/sentinel", "/var/lib/sentinel/sentinel.db")
    assert stat.stdout.split() == ["sentinel", "700", "sentinel", "600"]


def test_it_tells_from_inside_its_walls(running: Systemd) -> None:
    """Checks run, the alert reaches the file, and the secret is in no message."""
    running.put("/run/lamp", "2\n")
    book = "/var/log/sentinel/book.jsonl"
    wait_until(lambda: "critical" in running.run("cat", book).stdout, "an alert", 20)
    running.put("/run/lamp", "0\n")
    wait_until(lambda: "resolved" in running.run("cat", book).stdout, "its end", 20)
    line = json.loads(running.run("head", "-1", book).stdout)
    assert (line["check"], line["status"]) == ("lamp", "critical")


def test_reload_keeps_what_is_good(running: Systemd) -> None:
    """A new file is taken, a bad one refused; the process stays the same."""
    pid = running.show("MainPID")["MainPID"]
    running.put(
        "/etc/sentinel/sentinel.yaml", CONFIG.replace("  disks: {kind: fs, every: 2s}\n", "")
    )
    running.ctl("reload", "sentinel.service")
    running.wait_show("StatusText", "1 checks")
    running.put("/etc/sentinel/sentinel.yaml", "checks: [")
    running.ctl("reload", "sentinel.service")
    running.wait_show("StatusText", "1 checks")
    running.put("/etc/sentinel/sentinel.yaml", CONFIG)
    running.ctl("reload", "sentinel.service")
    running.wait_show("StatusText", "2 checks")
    assert running.show("MainPID", "ActiveState") == {"MainPID": pid, "ActiveState": "active"}


@pytest.mark.long
def test_what_hangs_is_restarted_by_the_watchdog(running: Systemd) -> None:
    """SIGSTOP keeps it from saying that it lives. The limit is short here alone: a busy machine may
    hold up anybody for six seconds."""
    short = "/etc/systemd/system/sentinel.service.d/watchdog.conf"
    running.put(short, "[Service]\nWatchdogSec=6\n")
    try:
        running.ctl("daemon-reload")
        running.ctl("restart", "sentinel.service")
        before = running.show("NRestarts", "MainPID")
        running.signal("STOP")
        wait_until(
            lambda: running.show("NRestarts")["NRestarts"] != before["NRestarts"], "a restart", 40
        )
        running.wait_show("SubState", "running")
        assert running.show("MainPID")["MainPID"] != before["MainPID"]
    finally:
        running.run("rm", short)
        running.ctl("daemon-reload")
        running.ctl("restart", "sentinel.service")


def test_what_crashes_is_restarted(running: Systemd) -> None:
    """And goes on with the same state."""
    before = running.show("NRestarts")["NRestarts"]
    running.signal("KILL")
    wait_until(lambda: running.show("NRestarts")["NRestarts"] != before, "a restart", 20)
    running.wait_show("SubState", "running")


def test_stop_is_an_end_in_good_order(running: Systemd) -> None:
    """No failure, nothing left behind; the state is given up."""
    running.ctl("stop", "sentinel.service")
    shown = running.show("ActiveState", "Result", "ExecMainStatus")
    assert shown == {"ActiveState": "inactive", "Result": "success", "ExecMainStatus": "0"}


def test_a_missing_credential_is_told(init: Systemd) -> None:
    """It does not start with half a configuration: it goes on with the last whole one, and says so."""
    init.ctl("reset-failed")  # and with it forgets how often it was started in ten seconds
    init.ctl("restart", "sentinel.service")
    init.ctl("stop", "sentinel.service")
    init.put("/etc/sentinel/sentinel.yaml", CONFIG.replace("credential: hook", "credential: none"))
    try:
        init.ctl("start", "sentinel.service")
        shown = init.show("ActiveState", "NRestarts")
        said = init.run("sentinel", "config", "check", "-c", "/etc/sentinel/sentinel.yaml")
    finally:
        init.put("/etc/sentinel/sentinel.yaml", CONFIG)
    assert shown == {"ActiveState": "active", "NRestarts": "0"}
    assert "credential" in said.stdout + said.stderr, said


def test_the_timer_makes_a_pass(init: Systemd) -> None:
    """The same hardening, one pass, its state kept."""
    init.ctl("stop", "sentinel.service")
    plain = CONFIG.replace("  hook: {kind: webhook, url: {credential: hook}}\n", "")
    init.put("/etc/sentinel/sentinel.yaml", plain)
    init.ctl("start", "sentinel-tick.service")
    init.ctl("start", "sentinel-tick.timer")
    assert "sentinel-tick.timer" in init.ctl("list-timers", "--no-pager")
    init.ctl("stop", "sentinel-tick.timer")
    init.put("/etc/sentinel/sentinel.yaml", CONFIG)


SSHD = """\
ip link set lo up
useradd -p '*' -m -d /var/lib/probe -s /bin/sh probe
mkdir -p /var/lib/probe/.ssh /run/sshd /etc/systemd/system/sentinel.service.d
ssh-keygen -q -t ed25519 -N '' -f /etc/sentinel/ssh-key
ssh-keygen -q -t ed25519 -N '' -f /run/host-key
cp /etc/sentinel/ssh-key.pub /var/lib/probe/.ssh/authorized_keys
chown -R probe /var/lib/probe
chmod 700 /var/lib/probe/.ssh
systemd-run --quiet /usr/sbin/sshd -D -p 2222 -h /run/host-key -o UsePAM=no
cp "$1" /etc/systemd/system/sentinel.service.d/
systemctl daemon-reload
"""


def test_it_asks_nodes_by_ssh_from_inside_its_walls(init: Systemd) -> None:
    """With the drop-in as it is, and the options that its first lines name."""
    drop_in = ROOT / "systemd/sentinel-ssh.conf"
    said = re.search(r'ssh_options: "(.+)"', drop_in.read_text())
    assert said
    init.ctl("stop", "sentinel.service")
    done = init.run("sh", "-ec", SSHD, "sh", str(drop_in))
    assert done.returncode == 0, done.stderr
    init.put(
        "/etc/sentinel/sentinel.yaml",
        f"cluster: init\nremote: {{ssh_options: '-p 2222 -l probe {said[1]}'}}\n"
        "checks: {memory: {kind: memory, nodes: localhost, every: 1s}}\n"
        "channels: {book: {kind: file, path: /var/log/sentinel/nodes.jsonl}}\n",
    )
    try:
        init.ctl("start", "sentinel.service")
        wait_until(lambda: _summary(init).startswith("localhost: "), lambda: _summary(init), 20)
        assert "% used" in _summary(init)
    finally:
        init.ctl("stop", "sentinel.service")
        init.run("rm", "/etc/systemd/system/sentinel.service.d/sentinel-ssh.conf")
        init.ctl("daemon-reload")
        init.put("/etc/sentinel/sentinel.yaml", CONFIG)


def _summary(init: Systemd) -> str:
    """What the check of that node said last."""
    state = ["env", "XDG_STATE_HOME=/var/lib", "sentinel", "status", "--json"]
    done = init.run("runuser", "-u", "sentinel", "--", *state, "-c", "/etc/sentinel/sentinel.yaml")
    checks = json.loads(done.stdout or "{}").get("checks", [])
    return next(
        (str(c["summary"]) for c in checks if c.get("check", c.get("name")) == "memory"), ""
    )


@pytest.mark.parametrize("unit", ["sentinel.service", "sentinel-tick.service"])
def test_the_walls_are_as_high_as_promised(unit: str) -> None:
    """systemd-analyze(1) security: at most 2.0 of 10."""
    if not shutil.which("systemd-analyze"):
        needs.skip("needs systemd-analyze")
    argv = ["systemd-analyze", "security", "--offline=true", str(ROOT / "systemd" / unit)]
    said = subprocess.run(argv, capture_output=True, text=True, check=False).stdout
    assert float(said.split("exposure level for")[1].split(":")[1].split()[0]) <= 2.0


def test_systemd_finds_nothing_wrong_with_the_units() -> None:
    """systemd-analyze verify has nothing to say of them."""
    if not shutil.which("systemd-analyze"):
        needs.skip("needs systemd-analyze")
    units = [str(path) for path in Path(ROOT / "systemd").glob("*.timer")]
    argv = ["systemd-analyze", "verify", "--man=no", *units]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    ours = [x for x in done.stderr.splitlines() if "sentinel" in x and "is not executable" not in x]
    assert [x for x in ours if "Command sentinel" not in x] == []
