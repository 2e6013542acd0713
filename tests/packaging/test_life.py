"""The life of each package, on a clean Debian that boots: installed, configured, started, an alert,
upgraded and downgraded with the alert open, removed, purged.

The packages are those that `make packages` left in dist/; `make test-life` makes the systems.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from sentinel import __version__
from tests.lab import needs
from tests.lab.systemd import ROOT, why_no_systemd
from tests.lab.waiting import wait_until
from tests.packaging.lives import KINDS, PackageKind, find_lent_python
from tests.packaging.machine import Machine
from tests.packaging.wheels import NEXT, Site, build_wheel

DIST, SYSTEMS = ROOT / "dist", ROOT / "build/systems"
BOOK = "/var/log/sentinel/book.jsonl"
CONFIG = """\
cluster: life
checks:
  lamp: {kind: exec, every: 1s, command: [/bin/sh, -c, "exit $(cat /run/lamp)"]}
channels:
  book: {kind: file, path: /var/log/sentinel/book.jsonl}
"""
LEFT = "find / /run /dev/shm -xdev -iname '*sentinel*' -not -path '/packages*'"
SHARED = (
    "man/man1/sentinel.1",
    "bash-completion/completions/sentinel",
    "fish/vendor_completions.d/sentinel.fish",
    "zsh/*/_sentinel",
)
"""What is not Python, below share/."""
pytestmark = [pytest.mark.nightly, pytest.mark.timeout(900)]


@dataclass(frozen=True)
class Life:
    """A booted system, a kind of package, and the files to install there one after the other."""

    machine: Machine
    kind: PackageKind
    old: str
    new: str


@pytest.fixture(params=KINDS)
def life(request: pytest.FixtureRequest, tmp_path: Path, as_root: None) -> Iterator[Life]:
    kind = KINDS[request.param]
    found, system = [*DIST.glob(kind.pattern)], SYSTEMS / kind.system
    lent = find_lent_python(kind.python)
    if missing := why_no_systemd():
        needs.skip(missing)
    if not found or not system.exists():
        pytest.skip("not in dist/, or no system to try it on: make packages test-life")
    if kind.python and not lent:
        pytest.skip(f"no Python {kind.python} to lend")
    folder = tmp_path / "packages"
    folder.mkdir()
    old, new = (folder / f"{which}{found[0].suffix}" for which in ("old", "new"))
    old.write_bytes(found[0].read_bytes())
    work = tmp_path / "work"
    work.mkdir()
    kind.make_next(old, new, work)
    stage = [
        "make",
        "install-files",
        f"DESTDIR={folder / 'files'}",
        "UNITDIR=/usr/lib/systemd/system",
    ]
    subprocess.run(stage, cwd=ROOT, check=True, capture_output=True)
    with Machine(system, tmp_path / "machine", folder, lent) as machine:
        yield Life(machine, kind, f"/packages/{old.name}", f"/packages/{new.name}")


@pytest.mark.root
def test_the_life_of_a_package(life: Life) -> None:
    machine, kind = life.machine, life.kind
    assert machine.say(LEFT) == ""
    machine.say(kind.install.format(life.old))
    assert machine.say("sentinel --version") == f"sentinel {__version__}"
    for name in SHARED:
        machine.say(f"cat /usr/share/{name}* /usr/local/share/{name}* 2>/dev/null | grep -q .")
    configure_and_start(machine)
    machine.say("echo 2 >/run/lamp")
    wait_until(lambda: "critical" in machine.run("cat", BOOK).stdout, "an alert", 30)
    alerts = list_alerts(machine)
    assert len(alerts) == 1

    for package, version in ((life.new, NEXT), (life.old, __version__)):  # up, then down
        restart(machine, kind.install.format(package), kind.restarts_itself)
        assert machine.say("sentinel --version") == f"sentinel {version}"
        assert list_alerts(machine) == alerts
        assert len(machine.say(f"cat {BOOK}").splitlines()) == 1
    machine.say("echo 0 >/run/lamp")
    wait_until(lambda: "resolved" in machine.run("cat", BOOK).stdout, "its end", 30)
    first, last = (json.loads(line) for line in machine.say(f"cat {BOOK}").splitlines())
    assert first["alert"] == last["alert"]

    machine.say(kind.remove)
    assert machine.run("systemctl", "is-active", "sentinel.service").stdout.strip() != "active"
    machine.say("! command -v sentinel; test ! -e /opt/sentinel")
    machine.say(f"test -s {BOOK}; test -s /var/lib/sentinel/sentinel.db")
    machine.say("test -s /etc/sentinel/sentinel.yaml")
    machine.say("mkdir -m 700 /dev/shm/sentinel-$(id -u sentinel); mkdir -p /run/sentinel-0")
    machine.say("chown sentinel /dev/shm/sentinel-$(id -u sentinel)")
    machine.say(kind.purge)
    assert machine.say(LEFT) == ""
    assert machine.run("id", "sentinel").returncode == 1


def configure_and_start(machine: Machine) -> None:
    """As docs/install.md says; then with a check whose outcome is ours."""
    config = "/etc/sentinel/sentinel.yaml"
    machine.say(f"sentinel config init {config}; chgrp sentinel {config}; chmod 640 {config}")
    machine.say(f"sentinel config check -c {config}")
    machine.say(f"echo 0 >/run/lamp; cat >{config} <<'end'\n{CONFIG}end")
    machine.say("systemctl enable --now sentinel")
    assert machine.say("systemctl is-active sentinel") == "active"
    machine.say("systemctl reload sentinel")


def restart(machine: Machine, command: str, by_itself: bool) -> None:
    """The service proves what is new and ends for it, within two minutes; nobody restarts it. A zipapp
    is one file, which the service does not look at: there somebody has to."""
    before = int(machine.say("systemctl show -P NRestarts sentinel"))
    machine.say(command)
    if not by_itself:
        machine.say("systemctl restart sentinel")
        return
    running = f"{before + 1} running"  # one by hand would begin to count anew
    show = "systemctl show -P NRestarts -P SubState sentinel | xargs"
    wait_until(lambda: machine.say(show) == running, f"a restart: {running}", 240)


def list_alerts(machine: Machine) -> list[str]:
    """Their ids."""
    said = machine.say(
        "runuser -u sentinel -- env XDG_STATE_HOME=/var/lib"
        " sentinel alerts list --json -c /etc/sentinel/sentinel.yaml"
    )
    return [alert["id"] for alert in json.loads(said)]


def test_the_life_of_the_wheel(tmp_path: Path) -> None:
    """In an environment of a user, who has no systemd: somebody starts it again."""
    found = [*DIST.glob("slurm_sentinel-*.whl")]
    if not found:
        pytest.skip("no wheel in dist/: make packages")
    site, home = Site(tmp_path / "venv"), tmp_path / "home"
    book, config = home / "book", home / "sentinel.yaml"
    home.mkdir()
    site.install(found[0])
    call(site, home, "config", "init", str(config))
    call(site, home, "config", "check", "-c", str(config))
    (home / "lamp").write_text("2")
    config.write_text(CONFIG.replace(BOOK, str(book)).replace("/run/lamp", str(home / "lamp")))

    service = start(site, home, config)
    try:
        wait_until(lambda: book.exists() and "critical" in book.read_text(), "an alert", 60)
        for wheel in (build_wheel(tmp_path, NEXT), found[0]):
            site.install(wheel)
            assert service.wait(240) == 75
            service = start(site, home, config)
        (home / "lamp").write_text("0")
        wait_until(lambda: "resolved" in book.read_text(), "its end", 60)
    finally:
        service.terminate()
        service.wait(30)
    first, last = (json.loads(line) for line in book.read_text().splitlines())
    assert first["alert"] == last["alert"]

    site.uninstall()
    assert not (site.folder / "bin/sentinel").exists()
    assert not [*site.packages.glob("*sentinel*")]
    assert (home / ".local/state/sentinel/sentinel.db").stat().st_size
    assert sorted(path.name for path in home.iterdir()) == [
        ".local",
        "book",
        "lamp",
        "sentinel.yaml",
    ]


def call(site: Site, home: Path, *words: str) -> None:
    command = [str(site.folder / "bin/sentinel"), *words]
    env = {"PATH": os.environ["PATH"], "HOME": str(home)}
    subprocess.run(command, env=env, cwd="/", check=True, capture_output=True, timeout=60)


def start(site: Site, home: Path, config: Path) -> "subprocess.Popen[bytes]":
    command = [str(site.folder / "bin/sentinel"), "run", "-c", str(config)]
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "INVOCATION_ID": "1"}
    return subprocess.Popen(command, cwd="/", env=env)
