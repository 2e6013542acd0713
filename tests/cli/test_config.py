"""`sentinel config` as people and scripts call it: real processes, real files."""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

Called = subprocess.CompletedProcess[str]
Call = Callable[..., Called]

GOOD = "checks: {disks: {kind: fs}}\nchannels: {terminal: {kind: console}}\n"


@pytest.fixture
def call(tmp_path: Path) -> Call:
    """Run `sentinel config …` in an empty directory that is the home as well."""

    def do(*words: str, **env: str) -> Called:
        return subprocess.run(
            [sys.executable, "-m", "sentinel", "config", *words],
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), **env},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return do


def test_check_says_ok_in_one_line(tmp_path: Path, call: Call) -> None:
    """Exit 0, how many of each, nothing on standard error."""
    (tmp_path / "sentinel.yaml").write_text(GOOD)
    done = call("check", "-c", "sentinel.yaml")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "sentinel.yaml: ok: 1 check, 1 channel\n"


def test_check_prints_every_problem_and_exits_2(tmp_path: Path, call: Call) -> None:
    """One line each, file and line first, as compilers do."""
    (tmp_path / "bad.yaml").write_text(
        "checks:\n  a: {kind: fss}\n  b: {kind: fs, every: 5}\nactions: {drian: {}}\n"
    )
    done = call("check", "-c", "bad.yaml")
    assert done.returncode == 2
    assert done.stdout.splitlines() == [
        "bad.yaml:2: checks.a.kind: there is no kind 'fss' (did you mean 'fs'?)",
        "bad.yaml:3: checks.b.every: '5' is no duration; write it like 90s, 15m, 2h or 3d",
        "bad.yaml:4: actions.drian: there is no action 'drian' (did you mean 'drain'?)",
    ]
    assert done.stderr == ""


def test_a_secret_that_everybody_can_read_fails_the_check_and_not_the_service(call: Call) -> None:
    """With the file, the line and the command that mends it; other commands go on, and say so."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        config = folder / "sentinel.yaml"
        config.write_text("web:\n  listen: 127.0.0.1:9650\n  token: {file: token}\n" + GOOD)
        config.chmod(0o600)
        (folder / "token").write_text("a-token-of-32-characters-or-more\n")
        (folder / "token").chmod(0o644)
        done = call("check", "-c", str(config))
        line = f"{config}:3: web.token: {folder}/token can be read by everybody; chmod 600 {folder}/token"
        assert (done.returncode, done.stdout, done.stderr) == (2, f"{line}\n", "")
        shown = call("show", "-c", str(config))
        assert (shown.returncode, shown.stderr) == (0, f"warning: {line}\n")
        (folder / "token").chmod(0o600)
        assert call("check", "-c", str(config)).returncode == 0


def test_warnings_go_to_standard_error_and_change_no_answer(tmp_path: Path, call: Call) -> None:
    """A script that reads standard output sees the answer alone."""
    (tmp_path / "sentinel.yaml").write_text("checks: {disks: {kind: fs}}\n")
    done = call("check", "-c", "sentinel.yaml")
    assert (done.returncode, done.stdout) == (0, "sentinel.yaml: ok: 1 check, 0 channels\n")
    assert done.stderr == "warning: sentinel.yaml:1: channels: no channel: nobody is told\n"


def test_a_pattern_that_is_searched_with_a_limit_is_named(tmp_path: Path, call: Call) -> None:
    """With line and key, by `check` alone: a pass says nothing of it."""
    lines = [
        f"  {name}: {{kind: log, path: /l, progress: '{pattern}'}}\n"
        for name, pattern in (("slow", r"a.*(\d+)"), ("fast", r"^.*step (\d+)"))
    ]
    (tmp_path / "sentinel.yaml").write_text(f"checks:\n{''.join(lines)}")
    done = call("check", "-c", "sentinel.yaml")
    told = [line for line in done.stderr.splitlines() if "without an end" in line]
    assert [line.split(": ")[1:3] for line in told] == [["sentinel.yaml:2", "checks.slow.progress"]]
    assert done.returncode == 0
    assert "without an end" not in call("show", "-c", "sentinel.yaml").stderr


@pytest.mark.parametrize("command", ["check", "show"])
def test_without_any_file_the_places_are_told(tmp_path: Path, call: Call, command: str) -> None:
    """Exit 78, EX_CONFIG, and what to do."""
    done = call(command)
    assert (done.returncode, done.stdout) == (78, "")
    assert "looked for -c FILE, $SENTINEL_CONFIG, " in done.stderr
    assert f"{tmp_path}/.config/sentinel/sentinel.yaml" in done.stderr
    assert "`sentinel config init` writes only the file" in done.stderr


def test_the_file_of_the_environment_is_used(tmp_path: Path, call: Call) -> None:
    """And -c goes before it."""
    (tmp_path / "one.yaml").write_text(GOOD)
    assert call("check", SENTINEL_CONFIG="one.yaml").stdout.startswith("one.yaml: ok")
    done = call("check", "-c", "two.yaml", SENTINEL_CONFIG="one.yaml")
    assert done.returncode == 2
    assert done.stdout == "two.yaml: the file cannot be read: No such file or directory\n"


def test_show_prints_what_is_in_effect_without_secrets(tmp_path: Path, call: Call) -> None:
    """References stay references; what is printed is a configuration again."""
    channels = "channels: {terminal: {kind: console}, hook: {kind: webhook, url: {env: HOOK}}}\n"
    (tmp_path / "sentinel.yaml").write_text(f"checks: {{disks: {{kind: fs}}}}\n{channels}")
    done = call("show", "-c", "sentinel.yaml", HOOK="https://example.org/T0K3N")
    assert done.returncode == 0
    assert "url: {env: HOOK}" in done.stdout
    assert "every: 1m" in done.stdout
    assert "T0K3N" not in done.stdout + done.stderr
    (tmp_path / "again.yaml").write_text(done.stdout)
    again = call("show", "-c", "again.yaml", HOOK="https://example.org/T0K3N")
    assert again.stdout == done.stdout


def test_show_refuses_a_file_with_errors(tmp_path: Path, call: Call) -> None:
    """Exit 78 and the problems on standard error: half a configuration is none."""
    (tmp_path / "sentinel.yaml").write_text("chekcs: {}\n")
    done = call("show", "-c", "sentinel.yaml")
    assert (done.returncode, done.stdout) == (78, "")
    assert "sentinel.yaml:1: chekcs: unknown key (did you mean 'checks'?)" in done.stderr
    assert "Traceback" not in done.stderr


def test_schema_is_one_json_document(call: Call) -> None:
    """With the keys of every kind."""
    done = call("schema")
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert found["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert {"check.fs", "check.job", "channel.email"} <= found["$defs"].keys()


@pytest.mark.parametrize("words", [("config", "schema"), ("plugins",)])
def test_a_file_that_is_named_and_not_there_is_an_error(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    """Or kinds of one's own would silently be missing. One with other errors hides no kind."""
    for name, code in (("none.yaml", 78), ("bad.yaml", 0)):
        (tmp_path / "bad.yaml").write_text("chekcs: {}\n")
        done = subprocess.run(
            [sys.executable, "-m", "sentinel", *words, "-c", tmp_path / name],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, bool(done.stdout)) == (code, code == 0)
        assert ("cannot be read" in done.stderr) == (code == 78)


def test_init_writes_a_file_that_check_accepts(tmp_path: Path, call: Call) -> None:
    """Private, for the user who calls, under the name that was asked for."""
    done = call("init", "mine.yaml", "--cluster", "h100", "--user", "bob")
    assert done.returncode == 0
    assert done.stdout == (
        "mine.yaml: written; check it with: sentinel config check -c mine.yaml\n"
    )
    path = tmp_path / "mine.yaml"
    assert path.stat().st_mode & 0o777 == 0o600
    assert "cluster: h100\n" in path.read_text()
    assert "users: [bob]" in path.read_text()
    assert call("check", "-c", "mine.yaml").returncode == 0


def test_init_replaces_nothing(tmp_path: Path, call: Call) -> None:
    """Exit 73, EX_CANTCREAT, and the file as it was."""
    (tmp_path / "sentinel.yaml").write_text("mine")
    done = call("init", "sentinel.yaml")
    assert (done.returncode, done.stdout) == (73, "")
    assert done.stderr == (
        "sentinel config: sentinel.yaml exists and is left as it is; name another FILE\n"
    )
    assert (tmp_path / "sentinel.yaml").read_text() == "mine"


def test_init_says_why_it_cannot_write(call: Call) -> None:
    """The system's reason, not a traceback."""
    done = call("init", "no/such/dir.yaml")
    assert done.returncode == 73
    assert done.stderr == (
        "sentinel config: no/such/dir.yaml cannot be written: No such file or directory\n"
    )


def test_config_alone_is_a_wrong_call(call: Call) -> None:
    """Exit 64 with the commands there are."""
    done = call()
    assert done.returncode == 64
    assert "schema" in done.stderr


def test_times_of_runs_and_windows_with_both_nights(tmp_path: Path, call: Call) -> None:
    """What comes next, what the two clock changes make of it, and nothing for what has no time."""
    (tmp_path / "sentinel.yaml").write_text(
        "timezone: Europe/Berlin\n"
        "checks:\n"
        "  nightly: {kind: fs, cron: '30 2 * * *'}\n"
        "  often: {kind: fs, every: 5m}\n"
        "silences: [{match: {check: often}, cron: '0 1 * * *', for: 2h}]\n"
        "channels: {terminal: {kind: console}}\n"
        "routes: [{to: [terminal], hours: {from: '01:00', until: '04:00'}}]\n"
    )
    done = call("check", "-c", "sentinel.yaml", "--times")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[1:3] == ["times in Europe/Berlin", "check nightly: 30 2 * * *"]
    assert len(re.findall(r"\d\d:\d\d CES?T", lines[3])) == 3
    spring, autumn = (
        [line.partition(": ")[2] for line in lines if f"clocks go from {moved}" in line]
        for moved in ("02:00 to 03:00", "03:00 to 02:00")
    )
    times = [[re.findall(r"\d\d:\d\d CES?T", line) for line in night] for night in (spring, autumn)]
    assert times == [
        [["03:00 CEST"], ["01:00 CET", "04:00 CEST"], ["01:00 CET", "04:00 CEST"]],
        [["02:30 CEST"], ["01:00 CEST", "02:00 CET"], ["01:00 CEST", "04:00 CET"]],
    ]
    assert "often" not in done.stdout.replace("silences[0]", "")
