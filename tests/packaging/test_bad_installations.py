"""What is not whole, or may not be written, says what to do or works all the same."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sentinel.store.migrations import NEWEST_SCHEMA_VERSION
from tests.lab.waiting import wait_until
from tests.packaging.wheels import Site, build_wheel

FILE = """\
state: {state}
checks: {{load: {{kind: {kind}, command: [/bin/false]}}}}
channels: {{book: {{kind: file, path: {folder}/book}}, many: {{kind: apprise, url: "json://localhost:9"}}}}
"""
pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]  # a busy machine starts twenty commands
REPLACED = "the installation is being replaced: "
AGAIN_SOON = "try again in a minute, and install it again if that does not help"
AGAIN = (
    "needs the extra, which is not whole ({}): pip install --force-reinstall 'slurm-sentinel[{}]'"
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def site(tmp_path: Path, wheel: Path) -> Site:
    site = Site(tmp_path / "venv")
    site.install(wheel)
    return site


def start(site: Site, *words: str, state: str = "", kind: str = "exec") -> "subprocess.Popen[str]":
    folder = site.folder.parent
    config = folder / "sentinel.yaml"
    config.write_text(FILE.format(folder=folder, state=state or folder / "state", kind=kind))
    config.chmod(0o600)
    return subprocess.Popen(
        [str(site.folder / "bin/sentinel"), *words, "-c", str(config)],
        env={"PATH": os.environ["PATH"], "HOME": str(folder)},
        cwd="/", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def call(site: Site, *words: str, **filled: str) -> tuple[int, str]:
    """The code, and all that it prints."""
    with start(site, *words, **filled) as process:
        said, _ = process.communicate()
    return process.returncode, said


def call_meanwhile(site: Site, *words: str) -> tuple[int, str]:
    """As `call`, while pip writes files: on a busy machine the last one was written long ago."""
    (site.packages / "sentinel/__init__.py").touch()
    return call(site, *words)


def test_a_half_installed_extra_is_installed_again(site: Site) -> None:
    """Nothing of it, or a part; pip calls both installed once it has its folder."""
    for name, text in {
        "apprise": "from apprise.apprise_of_old import Apprise",
        "psycopg": "raise ImportError('no pq wrapper available')",
    }.items():
        (site.packages / name).mkdir()
        (site.packages / name / "__init__.py").write_text(text)
    why = "No module named 'apprise.apprise_of_old'"
    code, said = call(site, "config", "check")
    assert (code, AGAIN.format(why, "apprise") in said) == (2, True), said
    shutil.rmtree(site.packages / "apprise")  # the borrowed one is whole
    _, said = call(site, "state", "check", state="postgresql://x@localhost:1/x")
    assert AGAIN.format("no pq wrapper available", "postgres") in said


LATER = """
import sys, time
now = time.time
time.time = lambda: now() + 61
from sentinel.cli import main
sys.exit(main(sys.argv[1:]))
"""
"""The command a minute after the files have changed."""


def call_later(site: Site, *words: str) -> tuple[int, str]:
    """As `call`, a minute later."""
    done = subprocess.run(
        [str(site.python), "-c", LATER, *words, "-c", str(site.folder.parent / "sentinel.yaml")],
        env={"PATH": os.environ["PATH"], "HOME": str(site.folder.parent)}, cwd="/",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


def test_a_module_that_is_cut_or_missing_is_installed_again(site: Site) -> None:
    """At first it may be an installation that goes on."""
    module = site.packages / "sentinel/cli/status.py"
    text = module.read_text()
    assert call(site, "status")[0] == 0
    for damage in (lambda: module.write_text(text[: text.index('"""') + 10]), module.unlink):
        damage()
        code, said = call_meanwhile(site, "status")
        assert (code, f"{REPLACED}sentinel/cli/status.py is not as " in said) == (75, True), said
        code, said = call_later(site, "status")
        assert (code, "the installation is not whole: install it again" in said) == (70, True), said
    assert "No module named 'sentinel.cli.status'" in said


@pytest.mark.parametrize("module", ["channels/file.py", "checks/exec.py", "config/shapes.py"])
def test_a_pass_that_meets_half_an_installation_blames_no_file(site: Site, module: str) -> None:
    """Neither in its words, nor by the code of a wrong file, nor in the channels of the last one."""
    folder = site.folder.parent
    assert call(site, "tick")[0] == 0
    told = read_told(folder)
    (site.packages / "sentinel" / module).unlink()
    for words, expected in {("tick",): 75, ("run",): 75, ("config", "check"): 75}.items():
        code, said = call_meanwhile(site, *words)
        assert (code, f"{REPLACED}sentinel/{module} is not as it" in said) == (expected, True), said
        assert "there is no kind" not in said
    assert call(site, "check", "load")[0] == 3
    assert read_told(folder) == told
    if "/shapes" not in module:  # a kind that a site has taken out
        assert call_later(site, "config", "check")[0] == 2
    (site.packages / "sentinel/proc/installation.py").unlink()  # the module that knows
    code, said = call_meanwhile(site, "tick")
    assert (code, "being replaced or not whole: " in said, AGAIN_SOON in said) == (75, True, True)


def test_a_wrong_file_just_after_an_installation_is_a_wrong_file(site: Site) -> None:
    code, said = call(site, "config", "check", kind="exce")
    assert (code, "there is no kind 'exce' (did you mean 'exec'?)" in said) == (2, True), said
    code, said = call(site, "tick", kind="exce")
    assert (code, "there is no kind 'exce' (did you mean 'exec'?)" in said) == (78, True), said


def test_a_wheel_that_was_cut_replaces_nothing(site: Site, wheel: Path, tmp_path: Path) -> None:
    """pip refuses it; the version before works."""
    cut = tmp_path / wheel.name
    cut.write_bytes(wheel.read_bytes()[:-5000])
    with pytest.raises(subprocess.CalledProcessError):
        site.install(cut)
    assert call(site, "status")[0] == 0


@pytest.mark.root
def test_a_prefix_that_is_read_only(site: Site) -> None:
    """Nothing is compiled or written there."""
    command = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
    whole = ["unshare", "-m", "sh", "-c", command, str(site.folder)]
    config = site.folder.parent / "sentinel.yaml"
    assert call(site, "config", "check")[0] == 0
    for words in (["tick"], ["status"], ["check", "load"]):
        argv = [*whole, str(site.folder / "bin/sentinel"), *words, "-c", str(config)]
        done = subprocess.run(argv, cwd="/", capture_output=True, text=True, check=False)
        assert "Traceback" not in done.stderr
        assert done.returncode == (1 if words[0] == "check" else 0), done.stderr
    assert "firing" in (site.folder.parent / "book").read_text()


@contextmanager
def run_service(site: Site) -> Iterator["subprocess.Popen[str]"]:
    with start(site, "run") as process:
        try:
            yield process
        finally:
            process.terminate()
            process.communicate(timeout=60)


def change_schema(site: Site) -> None:
    """As a later release may: the tables are others, and this version cannot use them."""
    folder = site.packages / "sentinel/store/migrations"
    for dialect in ("sqlite", "postgresql"):
        file = folder / f"{NEWEST_SCHEMA_VERSION + 1:04}.{dialect}.sql"
        file.write_text("CREATE TABLE later (body TEXT NOT NULL);\n")
    module = folder / "__init__.py"
    was = f"NEWEST_SCHEMA_VERSION = {NEWEST_SCHEMA_VERSION}\n"
    text = module.read_text()
    assert was in text
    module.write_text(text.replace(was, f"NEWEST_SCHEMA_VERSION = {NEWEST_SCHEMA_VERSION} + 1\n"))


def read_told(folder: Path) -> list[tuple[str, str]]:
    book = folder / "book"
    lines = book.read_text().splitlines() if book.exists() else []
    return [(row["check"], row["reason"]) for row in map(json.loads, lines)]


def test_two_versions_on_one_state_at_once(site: Site, wheel: Path, tmp_path: Path) -> None:
    """The one that leads goes on, and the other changes nothing and names it. When the newer one has
    changed the state, the older one is refused. The open alert is told once."""
    newer = Site(tmp_path / "newer")
    newer.install(wheel)
    change_schema(newer)
    busy = "written by an older sentinel that still runs: sentinel on host "
    with run_service(site) as service:
        wait_until(lambda: read_told(tmp_path), "the alert of the older one", 60)
        for words, expected in {
            ("run",): 75,
            ("tick", "--all"): 0,
            ("state", "migrate"): 74,
        }.items():
            code, said = call(newer, *words)
            assert (code, busy in said) == (expected, True), said
            assert f"pid {service.pid} since " in said
            assert "; end it, or start it again as this version" in said
        assert service.poll() is None
        assert call(site, "state", "check")[0] == 0
    assert call(newer, "tick", "--all")[0] == 0
    for words in (["run"], ["tick", "--all"], ["status"], ["state", "check"]):
        code, said = call(site, *words)
        assert (code, "written by a newer sentinel: schema " in said) == (74, True), said
        assert "; install that one again or set another state:" in said
    assert call(newer, "tick", "--all")[0] == 0
    told = read_told(tmp_path)
    assert told == [("load", "firing"), ("sentinel", "firing"), ("sentinel", "resolved")]
