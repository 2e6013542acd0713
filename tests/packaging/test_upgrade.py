"""An upgrade by pip under a running service, with real wheels."""

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sentinel import __version__
from tests.lab.waiting import wait_until
from tests.packaging.wheels import NEXT, Site, build_wheel

FILE = """\
cluster: lab
state: {folder}/state
checks:
  marker: {{kind: exec, every: 2s, command: ["/bin/false"]}}
  switch: {{kind: exec, every: 1s, command: [/bin/sh, -c, "exit $(cat {folder}/code)"]}}
channels:
  book: {{kind: file, path: {folder}/book}}
"""

NEW_NAME = "\n\ndef only_the_new_one_has_it(text: str) -> str:\n    return text\n"
NEEDS_IT = "\n\nfrom sentinel.core.text import only_the_new_one_has_it as _\n"

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """This version, and one whose modules need a name that this one lacks."""
    folder = tmp_path_factory.mktemp("wheels")
    new = {"core__text": NEW_NAME, "channels__file": NEEDS_IT, "checks__exec": NEEDS_IT}
    return {
        "old": build_wheel(folder),
        "new": build_wheel(folder, NEXT, **new),
    }


@pytest.fixture
def site(tmp_path: Path, wheels: dict[str, Path]) -> Site:
    site = Site(tmp_path / "venv")
    site.install(wheels["old"])
    return site


LOOK = """
import sys

from sentinel.config.settings import Settings
from sentinel.wiring import upgrade
from sentinel.proc.own_package import require_own_package
def look():
    try:
        require_own_package()
        helpers = "own"
    except Exception as error:
        helpers = str(error)
    print(helpers, "|", upgrade.prove_new_version(Settings()), flush=True)
look()
for line in sys.stdin:
    look()
"""


class Running:
    """A process of the version that was installed first; it looks when it is asked."""

    def __init__(self, site: Site, **env: str) -> None:
        self.process = subprocess.Popen(
            [str(site.python), "-c", LOOK], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, cwd="/",
            env={"PATH": os.environ["PATH"], "HOME": str(site.folder), **env},
        )  # fmt: skip
        self.first = self._line()

    def _line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def look(self) -> str:
        assert self.process.stdin
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self._line()

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait(10)
        assert self.process.stdout
        self.process.stdout.close()


def test_a_new_version_proves_itself(site: Site, wheels: dict[str, Path]) -> None:
    """Helper programs of it are not started by the old one; it is taken under a supervisor only."""
    with Running(site, INVOCATION_ID="1") as supervised, Running(site) as alone:
        assert supervised.first == "own |"
        # Who installs the same version again is not told that nothing is new.
        assert f"other files of sentinel {__version__} are installed" in alone.first
        site.install(wheels["new"])
        helpers, _, proof = supervised.look().partition(" |")
        assert helpers.startswith(
            f"there is sentinel {NEXT} where sentinel {__version__} was started from"
        )
        assert proof == ""
        assert "| restart sentinel: " in alone.look()
        assert (
            f"sentinel {NEXT} is installed, and this service still runs {__version__}, because "
            in (alone.look())
        )
        assert "no supervisor starts it again" in alone.look()


def test_what_is_no_whole_version_is_not_taken(site: Site, wheels: dict[str, Path]) -> None:
    """A wheel that was cut, a half installation, one that does not start, an uninstall."""
    not_as_packed = "sentinel/core/text.py is not as it was packed"
    with Running(site, INVOCATION_ID="1") as running:
        site.install(wheels["new"])
        text = site.packages / "sentinel" / "core" / "text.py"
        whole = text.read_bytes()
        text.write_bytes(whole[:100])
        assert not_as_packed in running.look()
        text.unlink()
        assert not_as_packed in running.look()
        text.write_bytes(whole)
        broken = site.packages / "msgspec.py"
        broken.write_text("raise ImportError('half an upgrade')")
        assert "sentinel state check: " in running.look()
        broken.unlink()
        assert running.look().endswith(" |")
        site.uninstall()
        assert "0 versions are installed at once" in running.look()


def read_book(folder: Path) -> list[dict[str, str]]:
    path = folder / "book"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def await_rows(folder: Path, count: int, seconds: float = 60) -> list[tuple[str, str]]:
    """Which check was told, and why, in the order in which it was."""
    deadline = time.monotonic() + seconds
    while len(read_book(folder)) < count and time.monotonic() < deadline:
        time.sleep(0.2)
    return [(row["check"], row["reason"]) for row in read_book(folder)]


@pytest.fixture
def service(site: Site, tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    (tmp_path / "code").write_text("0")
    (tmp_path / "sentinel.yaml").write_text(FILE.format(folder=tmp_path))
    process = start_service(site, tmp_path)
    log = tmp_path / "log"  # what is installed before that is loaded may be of both versions
    wait_until(lambda: "all modules are loaded" in log.read_text(), log.read_text, 60)
    yield process
    process.kill()
    process.wait()


def start_service(site: Site, folder: Path) -> "subprocess.Popen[bytes]":
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            [str(site.python.parent / "sentinel"), "run", "-c", str(folder / "sentinel.yaml")],
            cwd="/", env={"PATH": os.environ["PATH"], "HOME": str(folder), "INVOCATION_ID": "1"},
            stderr=log,
        )  # fmt: skip


@pytest.mark.nightly
def test_an_upgrade_silences_nobody(
    service: "subprocess.Popen[bytes]", site: Site, tmp_path: Path, wheels: dict[str, Path]
) -> None:
    """It tells while the new files lie under it, and ends with 75 for its supervisor. What was open
    before is told by the new version as ended, under the same id, and nothing is told twice."""
    told = [("marker", "firing")]
    assert await_rows(tmp_path, 1) == told
    site.install(wheels["new"])
    (tmp_path / "code").write_text("2")
    told.append(("switch", "firing"))
    assert await_rows(tmp_path, 2) == told
    assert service.wait(150) == 75
    again = start_service(site, tmp_path)
    try:
        (tmp_path / "code").write_text("0")
        told.append(("switch", "resolved"))
        assert await_rows(tmp_path, 3) == told
    finally:
        again.terminate()
        again.wait(30)
    _, fired, ended = read_book(tmp_path)
    assert fired["alert"] == ended["alert"]
    assert len(read_book(tmp_path)) == 3
