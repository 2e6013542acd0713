"""What others could change of a configuration: told, and refused where root would run it."""

import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sentinel.cli import main
from sentinel.config.settings import Settings
from sentinel.core.errors import CannotTell
from sentinel.core.settings import FilePath
from sentinel.trust import SiteTrust, set_site_trust
from sentinel.wiring.trust_review import list_trust_doubts
from tests.lab.fuse import Fuse
from tests.lab.waiting import wait_until
from tests.user_files.places import ALICE, MALLORY, file_of, folder_of, shared_folder

pytestmark = pytest.mark.root

FILE = """\
cluster: lab
state: {0}/state
{1}
checks:
  plugin: {{kind: exec, every: 1s, command: [{0}/bin/plugin]}}
  scripts: {{kind: cron, base: {0}/cron}}
channels:
  book: {{kind: file, path: {0}/log/book}}
  pager: {{kind: exec, command: [{0}/bin/page]}}
"""


class Site:
    """A configuration of root's; nobody else could change what it names."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.file = folder, folder / "sentinel.yaml"
        for name in ("state", "bin", "cron", "cron/cron.daily", "log"):
            (folder / name).mkdir()
        for name in ("plugin", "page"):
            (folder / "bin" / name).write_text("#!/bin/sh\ncat >/dev/null\necho taken >>$0.ran\n")
            (folder / "bin" / name).chmod(0o755)
        self.write()

    def write(self, *lines: str) -> None:
        self.file.write_text(FILE.format(self.folder, "\n".join(lines)))

    def told(self) -> list[tuple[str, str, str]]:
        """Subject, reason and summary of what sentinel said of itself about trust."""
        book = self.folder / "log/book"
        rows = [json.loads(line) for line in book.read_text().splitlines()] if book.exists() else []
        return [(r["subject"], r["reason"], r["summary"]) for r in rows if r["subject"] == "trust"]

    def tick(self) -> None:
        main(["tick", "--all", "-c", str(self.file)])


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with shared_folder() as folder:
        monkeypatch.setenv("HOME", str(folder))
        monkeypatch.setenv("XDG_STATE_HOME", str(folder / "home"))
        yield Site(folder)
    set_site_trust(SiteTrust())


def warnings(site: Site, capsys: pytest.CaptureFixture[str]) -> list[str]:
    capsys.readouterr()
    assert main(["config", "check", "-c", str(site.file)]) == 0
    out, err = capsys.readouterr()
    found = [line for line in err.splitlines() if "XDG" not in line and " may be " in line]
    found += [line for line in err.splitlines() if "belongs to" in line or "there is no" in line]
    assert ("others could act through it" in out) == bool(found)
    return found


PLACES: dict[str, Callable[[Path], None]] = {
    "state": lambda at: (at / "state").chmod(0o777),
    "checks.plugin": lambda at: (at / "bin").chmod(0o775),
    "checks.scripts": lambda at: (at / "cron/cron.daily").chmod(0o775),
    "channels.book": lambda at: os.chown(at / "log", MALLORY, -1),
}


def test_what_is_roots_alone_is_not_spoken_of(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    assert warnings(site, capsys) == []
    site.tick()
    site.tick()
    assert site.told() == []


@pytest.mark.parametrize("what", PLACES)
def test_each_place_that_others_could_change_is_named_with_its_remedy(
    site: Site, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    PLACES[what](site.folder)
    (line,) = warnings(site, capsys)
    assert line.startswith(f"warning: {what}: {site.folder}/")
    assert "(chmod g" in line or "belongs to" in line
    main(["doctor", "-c", str(site.file)])
    assert line.removeprefix("warning: ")[:60] in " ".join(capsys.readouterr().out.split())


def test_one_alert_tells_all_of_it_and_ends_when_it_is_mended(site: Site) -> None:
    site.tick()
    (site.folder / "state").chmod(0o777)
    (site.folder / "cron/cron.daily").chmod(0o775)
    site.tick()
    site.tick()
    ((_, reason, summary),) = site.told()
    assert reason == "firing"
    assert "may be written by everybody" in summary
    assert "(and 1 more)" in summary
    (site.folder / "state").chmod(0o755)
    (site.folder / "cron/cron.daily").chmod(0o755)
    site.tick()
    assert [reason for _, reason, _ in site.told()] == ["firing", "resolved"]


@pytest.mark.parametrize(
    ("more", "warned"), [(".py", True), (".py.rpmnew", False), ("2.py", False)]
)
def test_a_script_beside_one_of_its_name_is_warned_of_for_one_release(
    site: Site, more: str, warned: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """An earlier sentinel ran `sync.py` beside `sync`; what a package left there does harm, and is told by the check."""
    for name in ("sync", f"sync{more}"):
        path = site.folder / "cron/cron.daily" / name
        path.write_text("#!/usr/bin/env python3\n")
        path.chmod(0o755)
    found = [line for line in warnings(site, capsys) if "a copy of sync" in line]
    assert len(found) == warned
    main(["doctor", "-c", str(site.file)])
    assert ("rename it" in " ".join(capsys.readouterr().out.split())) == warned
    site.tick()
    site.tick()
    assert [reason for _, reason, _ in site.told()] == (["firing"] if warned else [])


def test_a_secret_for_another_host_in_clear_is_told(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    """By all three, for one release."""
    site.write("heartbeat: {url: 'http://hc.example.org/ping/0c2f4a7e-1f0e-4c57'}")
    site.file.chmod(0o600)
    capsys.readouterr()
    assert main(["config", "check", "-c", str(site.file)]) == 0
    said = (
        "heartbeat: a secret goes to hc.example.org without verified TLS; use its https:// address"
    )
    assert f"warning: {said}" in capsys.readouterr().err
    main(["doctor", "-c", str(site.file)])
    assert said in " ".join(capsys.readouterr().out.split())
    site.tick()
    site.tick()
    ((_, reason, summary),) = site.told()
    assert reason == "firing"
    assert said in summary


def test_whom_the_file_names_is_trusted(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """And a name that this host does not know is told, not taken for somebody."""
    os.chown(site.folder / "log", 1, -1)
    os.chown(site.folder / "state", -1, 100)
    (site.folder / "state").chmod(0o775)
    assert len(warnings(site, capsys)) == 2
    site.write("trust: [daemon]", "trust_groups: [users]")
    assert warnings(site, capsys) == []
    site.write("trust: [daemon, nemo]", "trust_groups: [users]")
    assert warnings(site, capsys) == ["warning: trust: there is no user nemo on this host"]


def test_the_group_of_one_daemon_is_the_systems(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    """/var/log of some systems belongs to root and the group of syslog."""
    os.chown(site.folder / "log", 0, 1)
    (site.folder / "log").chmod(0o775)
    assert warnings(site, capsys) == []


@pytest.mark.parametrize("how", ["owner", "everybody", "above"])
def test_root_runs_no_program_that_a_user_could_have_written(site: Site, how: str) -> None:
    """The rest runs, and the other channel tells it in the same pass."""
    if how == "owner":
        file_of(MALLORY, site.folder / "bin/plugin", "#!/bin/sh\ntouch $0.ran\n", 0o755)
        os.chown(site.folder / "bin/page", ALICE, -1)
    elif how == "everybody":
        (site.folder / "bin").chmod(0o777)
    else:
        (site.folder / "bin").rename(site.folder / "kept")
        theirs = folder_of(MALLORY, site.folder / "theirs")
        (site.folder / "kept").rename(theirs / "bin")
        (site.folder / "bin").symlink_to(theirs / "bin")
    site.tick()
    assert not list(site.folder.glob("**/*.ran"))
    ((_, reason, summary),) = site.told()
    assert reason == "firing"
    assert str(site.folder) in summary


def test_a_program_that_a_group_may_write_is_only_warned_of(site: Site) -> None:
    (site.folder / "bin").chmod(0o775)
    site.tick()
    assert sorted(p.name for p in (site.folder / "bin").glob("*.ran")) == ["page.ran", "plugin.ran"]
    assert len(site.told()) == 1


def test_a_look_that_hangs_is_given_up_and_no_other_is_begun_beside_it(
    site: Site, fuse: Fuse
) -> None:
    """A service looks every minute: else each look would leave a thread behind."""
    settings = Settings(evidence=FilePath(str(fuse.point / "evidence")))
    state = str(site.folder / "state")
    fuse.hold("lookup", "getattr")
    threads = []
    for _ in range(2):
        with pytest.raises(CannotTell, match="no answer"):
            list_trust_doubts(settings, state)
        threads.append(threading.active_count())
    assert threads[0] == threads[1]
    fuse.release()
    wait_until(lambda: _can_look(settings, state), "an answer")


def _can_look(settings: Settings, state: str) -> bool:
    try:
        list_trust_doubts(settings, state)
    except CannotTell:
        return False
    return True


def test_a_trusted_users_program_is_run(site: Site) -> None:
    os.chown(site.folder / "bin/plugin", 1, -1)
    site.write("trust: [daemon]")
    site.tick()
    assert (site.folder / "bin/plugin.ran").exists()
    assert site.told() == []
