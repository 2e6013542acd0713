"""Entries in tables of the host and the site, and timers of the user's systemd."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sentinel.chain import status
from sentinel.chain.folder import ChainFolder
from sentinel.chain.model import Chain
from sentinel.chain.timers import (
    CronTable,
    ModeUnavailable,
    SystemdTimer,
    crontab_schedule,
    find_entry_state,
    pass_line,
    remove_blocks,
    systemd_calendar,
)
from sentinel.slurm.client import SlurmClient
from tests.lab import accounts, needs

TABLE_TOOL = """\
#!/bin/sh
# As scrontab(1) and crontab(1): -l prints the table, - replaces it, -r removes it; complaints of
# scrontab go to its standard output (src/scrontab/scrontab.c).
case $1 in
  -r) rm -f {table} ;;
  -l) cat {table} 2>/dev/null || {{ echo "no crontab for $USER"; exit 1; }} ;;
  -) cat >{table}; grep -q REFUSE {table} || exit 0
     echo "There are errors in your crontab."; exit 1 ;;
esac
"""


def put_crontab(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crontab whose table is a file in that folder, in place of this host's."""
    tools = folder / "tools"
    tools.mkdir()
    _script(tools / "crontab", TABLE_TOOL.format(table=folder / "table"))
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")


@pytest.mark.parametrize(
    ("every", "line", "oncalendar"),
    [
        (60, "* * * * *", "*-*-* *:*:00"),
        (600, "*/10 * * * *", "*-*-* *:00/10:00"),
        (3600, "0 * * * *", "*-*-* *:00:00"),
        (6 * 3600, "0 */6 * * *", "*-*-* 00/6:00:00"),
        (24 * 3600, "0 0 * * *", "*-*-* 00:00:00"),
    ],
)
def test_intervals_as_tables_write_them(every: int, line: str, oncalendar: str) -> None:
    """Both mean the same; systemd itself reads its own."""
    assert (crontab_schedule(every), systemd_calendar(every)) == (line, oncalendar)
    if shutil.which("systemd-analyze"):
        argv = ["systemd-analyze", "calendar", oncalendar]
        assert subprocess.run(argv, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("every", [30, 90, 420, 5 * 3600])
def test_intervals_that_no_table_can_say(every: int) -> None:
    """With those that it can."""
    with pytest.raises(ModeUnavailable, match="--every 5m, 10m"):
        crontab_schedule(every)


@pytest.mark.parametrize(
    ("table", "state"),
    [
        ("", "no"),
        ("BEGIN\nEND\n", "no"),
        ("BEGIN\n#SCRON --time=1\n* * * * * x\nEND\n", "yes"),
        ("BEGIN\n#SCRON --time=1\n#DISABLED: * * * * * x\nEND\n", "disabled"),
        ("* * * * * x\n", "no"),
    ],
)
def test_an_entry_that_a_scancel_took_out_is_noticed(table: str, state: str) -> None:
    """scrontab(1): the lines are commented out and begin with #DISABLED."""
    assert find_entry_state(table, "BEGIN", "END") == state


def test_an_entry_that_nothing_calls_is_no_good_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is in the table, and there is no cron daemon."""
    chain = Chain(
        name="x",
        every=600,
        command=("sentinel",),
        mode="crontab",
        installed=int(time.time()) - 3600,
    )
    place = ChainFolder(str(tmp_path / "chain"))
    place.install_files(chain, "")
    put_crontab(tmp_path, monkeypatch)
    CronTable("crontab", chain, place).install_entry()
    facts = status.chain_facts(place.folder, SlurmClient())
    assert (facts["well"], facts["problems"]) == (False, ["no pass for 1h: nothing was watched"])


def test_nothing_of_others_is_touched() -> None:
    """Lines before, behind and between stay as they were, without a last newline too."""
    assert remove_blocks("a\nB\nx\nE\nb", "B", "E") == "a\nb"
    assert remove_blocks("a\nb", "B", "E") == "a\nb"


@pytest.fixture
def tools(tmp_path: Path, as_root: None) -> Iterator[Path]:
    """crontab(1) of a throw-away user, and a scrontab whose table is a file."""
    if not shutil.which("crontab"):
        needs.skip("needs Debian's cron")
    folder = tmp_path / "bin"
    folder.mkdir()
    user = f"crontab-{os.getpid()}"  # that of another worker would end with its tests
    accounts.add_user(user, tmp_path / "home", None, ())
    _script(folder / "crontab", f'#!/bin/sh\nexec /usr/bin/crontab -u {user} "$@"\n')
    _script(folder / "scrontab", TABLE_TOOL.format(table=tmp_path / "scrontab"))
    yield folder
    subprocess.run(["/usr/bin/crontab", "-u", user, "-r"], capture_output=True, check=False)
    accounts.remove_user(user)


def say(tools: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    home = tools.parent
    (home / "sentinel.yaml").write_text(
        f"cluster: x\nstate: {home}/state\nchecks: {{d: {{kind: exec, command: [/bin/true], every: 1s}}}}\n"
        f"channels: {{b: {{kind: file, path: {home}/book}}}}\n"
    )
    return subprocess.run(
        [sys.executable, "-m", "sentinel", *words, "-c", str(home / "sentinel.yaml")],
        env={"PATH": f"{tools}:/usr/bin:/bin", "HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("mode", ["crontab", "scrontab"])
def test_an_entry_comes_and_goes(tools: Path, mode: str) -> None:
    """Others' entries stay; --print shows it and changes nothing; what it calls makes a pass."""
    other = "5 4 * * * /usr/bin/other 100\\%\n"
    tool = str(tools / mode)
    subprocess.run([tool, "-"], input=other, text=True, check=True)
    shown = say(tools, "cron", "install", "--mode", mode, "--print").stdout
    assert _table(tool) == other
    for _ in range(2):
        assert say(tools, "cron", "install", "--mode", mode).returncode == 0
        assert _table(tool) == other + shown
    assert say(tools, "cron", "status").returncode == 0
    line = next(x for x in shown.splitlines() if x.startswith("*/10"))
    done = subprocess.run(
        ["sh", "-c", line.split(" ", 5)[5]], env={"PATH": "/usr/bin:/bin"}, check=False
    )
    assert done.returncode == 0
    said = say(tools, "cron", "status").stdout  # of two slots, where ten minutes ended meanwhile
    assert re.search(r"passes: 1 of [12] ran", said)
    assert say(tools, "cron", "remove").returncode == 0
    assert _table(tool) == other


def test_who_has_no_scrontab_yet_gets_one(tools: Path) -> None:
    """scrontab says so on its standard output, and ends with 1."""
    assert say(tools, "cron", "install", "--mode", "scrontab").returncode == 0
    assert "#SCRON --job-name=sentinel-" in (tools.parent / "scrontab").read_text()


def test_what_scrontab_complains_of_is_told(tools: Path) -> None:
    """On its standard output too."""
    done = say(tools, "cron", "install", "--mode", "scrontab", "--sbatch=--comment=REFUSE")
    assert (done.returncode, "There are errors in your crontab." in done.stderr) == (69, True)


def test_a_disabled_entry_is_told_and_mended(tools: Path) -> None:
    """A scancel of scrontab's job took it out."""
    say(tools, "cron", "install", "--mode", "scrontab")
    table = tools.parent / "scrontab"
    table.write_text(table.read_text().replace("\n*/10", "\n#DISABLED: */10"))
    done = say(tools, "cron", "status")
    assert (done.returncode, "disabled by a scancel" in done.stdout) == (1, True)
    assert "is there again" in say(tools, "cron", "ensure").stderr
    assert say(tools, "cron", "status").returncode == 0


def test_an_entry_finds_slurm_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """cron(8) and the user's systemd hand on neither PATH nor SLURM_CONF: each pass would be blind."""
    chain = Chain(name="sentinel-x", every=600, command=("/bin/true",), mode="systemd")
    place = ChainFolder(str(tmp_path / "50% of it"))
    monkeypatch.delenv("SLURM_CONF", raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert pass_line(chain, place).startswith("/bin/true cron link --dir ")
    _script(tmp_path / "squeue", "#!/bin/sh\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("SLURM_CONF", "/opt/slurm/slurm.conf")
    said = f"/usr/bin/env SLURM_CONF=/opt/slurm/slurm.conf PATH={tmp_path}:/usr/local/bin:/usr/bin:/bin"
    assert pass_line(chain, place).startswith(f"{said} /bin/true cron link --dir ")
    assert "50%% of it" in SystemdTimer(chain, place, str(tmp_path)).block_text()


def test_a_systemd_that_does_not_answer_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the error says what to do. A timer that was there before stays."""
    _script(tmp_path / "systemctl", "#!/bin/sh\necho 'Failed to connect to bus' >&2\nexit 1\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    chain = Chain(name="sentinel-x", every=600, command=("/bin/true",), mode="systemd")
    timer, units = (
        SystemdTimer(chain, ChainFolder(str(tmp_path / "chain")), str(tmp_path / "units")),
        tmp_path / "units",
    )
    with pytest.raises(ModeUnavailable, match=r"Failed to connect to bus .* take another --mode"):
        timer.install_entry()
    assert list(units.iterdir()) == []
    (units / "sentinel-x.timer").write_text("old")
    with pytest.raises(ModeUnavailable):
        timer.install_entry()
    assert [path.name for path in units.iterdir()] == ["sentinel-x.timer"]


def test_units_of_a_timer_are_what_systemd_takes(tmp_path: Path) -> None:
    """systemd-analyze(1) verifies both."""
    if not shutil.which("systemd-analyze"):
        needs.skip("needs systemd-analyze")
    chain = Chain(name="sentinel-x", every=600, command=("/bin/true",), mode="systemd")
    timer = SystemdTimer(chain, ChainFolder(str(tmp_path / "chain")), str(tmp_path))
    for block in timer.block_text().split("# /")[1:]:
        name, _, text = block.partition("\n")
        Path(f"/{name}").write_text(text)
    argv = ["systemd-analyze", "verify", "--user", str(tmp_path / "sentinel-x.timer")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert "sentinel-x" not in done.stderr


def _table(tool: str) -> str:
    done = subprocess.run([tool, "-l"], capture_output=True, text=True, check=True)
    return done.stdout


def _script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)
