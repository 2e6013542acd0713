"""A file with a typing error: what runs goes on with the last good one, tells, and does nothing."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sentinel.cli import main
from sentinel.config.problems import ConfigError
from sentinel.wiring import app, last_good
from tests.lab.fuse import Fuse

FILE = """\
cluster: lab
state: {state}
checks:
  marker: {{kind: exec, every: 1s, command: [/bin/sh, -c, "exit $(cat {folder}/code)"]}}
channels:
  book: {{kind: file, path: {folder}/book}}
"""
BROKEN = {
    "a key": lambda text: text.replace("every: 1s", "evry: 1s"),
    "no yaml": lambda text: text.replace("checks:", "checks: ]"),
    "the state's key": lambda text: text.replace("state:", "stat:"),
    "nothing": lambda _text: "",
}


class Site:
    """A configuration with one check and a book of what was told."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.file = folder, folder / "sentinel.yaml"
        self.good = FILE.format(state=folder / "state", folder=folder)
        self.file.write_text(self.good)
        self.code(0)

    def code(self, number: int) -> None:
        (self.folder / "code").write_text(str(number))

    def tick(self) -> int:
        return main(["tick", "--all", "-c", str(self.file)])

    def told(self, check: str = "sentinel") -> list[Mapping[str, Any]]:
        book = self.folder / "book"
        rows = [json.loads(line) for line in book.read_text().splitlines()] if book.exists() else []
        return [row for row in rows if row["check"] == check]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    return Site(tmp_path)


@pytest.mark.parametrize("how", [name for name in BROKEN if name != "nothing"])
def test_passes_go_on(site: Site, how: str) -> None:
    """One message names file and line, once; what is bad is told meanwhile; its end is told."""
    assert site.tick() == 0
    site.file.write_text(BROKEN[how](site.good))
    site.code(2)
    assert site.tick() == 0
    assert site.tick() == 0
    (told,) = site.told()
    assert (told["subject"], told["reason"], told["status"]) == (
        "configuration",
        "firing",
        "warning",
    )
    assert told["summary"].startswith(f"{site.file}:")
    assert "without actions" in told["summary"]
    assert [row["reason"] for row in site.told("marker")] == ["firing"]
    site.file.write_text(site.good)
    assert site.tick() == 0
    assert [row["reason"] for row in site.told()] == ["firing", "resolved"]


def test_actions_are_off(site: Site) -> None:
    """The copy says so to whoever builds a world of it."""
    assert last_good.load_or_last_good(str(site.file)) == (app.load_settings(str(site.file)), "")
    site.file.write_text(BROKEN["a key"](site.good))
    settings, invalid = last_good.load_or_last_good(str(site.file))
    assert [check.name for check in settings.checks] == ["marker"]
    assert f"{site.file}:4: checks.marker.evry" in invalid


def test_a_file_that_was_never_good(site: Site) -> None:
    """There is nothing to go on with."""
    site.file.write_text(BROKEN["a key"](site.good))
    assert site.tick() == ConfigError.exit_code


def test_a_version_that_refuses_what_an_earlier_one_took(site: Site) -> None:
    """After an upgrade nothing is valid, not even the last good copy: its channels hear of it, once
    an hour, and hear of the end."""
    taken = app.load_settings(str(site.file))
    site.file.write_text(BROKEN["a key"](site.good))
    last_good.store_last_good(taken)  # as an earlier version did, to which that was no error
    assert [site.tick(), site.tick()] == [ConfigError.exit_code] * 2
    (told,) = site.told()
    assert told["summary"].startswith(
        "sentinel does not start, so nothing is watched: its configuration is refused: "
    )
    assert "checks.marker.evry" in told["summary"]
    site.file.write_text(site.good)
    assert site.tick() == 0
    assert [row["reason"] for row in site.told()] == ["firing", "resolved"]


def test_a_planted_copy(site: Site) -> None:
    """Nobody else says what runs."""
    assert site.tick() == 0
    for copy in site.folder.rglob("configuration-*"):
        copy.chmod(0o666)
    site.file.write_text(BROKEN["a key"](site.good))
    with pytest.MonkeyPatch.context() as elsewhere:
        elsewhere.setenv("XDG_RUNTIME_DIR", str(site.folder / "none"))
        for copy in Path("/run/sentinel-0").glob("configuration-*"):
            assert str(site.file) not in copy.read_text(errors="replace")
        assert site.tick() == ConfigError.exit_code


def test_one_copy_is_left_outside(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds secrets: where a better place is there, the one in the other goes."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(site.folder / "none"))
    assert site.tick() == 0
    better = site.folder / "better"
    better.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(better))
    (beside,) = (site.folder / "state").rglob("configuration-*")
    outside = [
        Path(f"{d}/sentinel-{os.geteuid()}", beside.name) for d in ("/run", "/dev/shm", "/tmp")
    ]
    assert any(place.exists() for place in outside)
    assert site.tick() == 0
    assert len(list(better.rglob(beside.name))) == 1
    assert not any(place.exists() for place in outside)


def test_the_chain_is_found(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """`cron status` and `cron ensure` need no more of the file than where the state is."""
    for command in ("status", "ensure"):
        site.file.write_text(site.good)
        before = main(["cron", command, "-c", str(site.file)])
        good = capsys.readouterr()
        site.file.write_text(BROKEN["no yaml"](site.good))
        assert main(["cron", command, "-c", str(site.file)]) == before
        bad = capsys.readouterr()
        assert bad.out == good.out
        assert good.err in bad.err


def test_a_state_that_hangs_holds_up_no_start(
    site: Site, fuse: Fuse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy beside it and the chain are looked for within a limit; the copy elsewhere counts."""
    monkeypatch.setattr(app, "STATE_LOOK_TIMEOUT_S", 0.2)
    site.good = site.good.replace(f"{site.folder}/state", str(fuse.point))
    site.file.write_text(site.good)
    assert last_good.load_or_last_good(str(site.file))[1] == ""
    fuse.hold("lookup", "getattr", "open", "opendir")
    assert last_good.load_or_last_good(str(site.file))[1] == ""
    site.file.write_text(BROKEN["a key"](site.good))
    settings, invalid = last_good.load_or_last_good(str(site.file))
    assert (settings.state, bool(invalid)) == (str(fuse.point), True)
    fuse.release()


def test_a_hook(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """Silent where all is well; else the errors, and 2."""
    assert main(["config", "check", "--quiet", "-c", str(site.file)]) == 0
    assert capsys.readouterr().out == ""
    site.file.write_text(BROKEN["a key"](site.good))
    assert main(["config", "check", "--quiet", "-c", str(site.file)]) == 2
    assert f"{site.file}:4:" in capsys.readouterr().out
