"""Commands on a host that lacks what most have: a home, a time zone, a console, a slurm.conf."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sentinel.core.errors import CannotAsk, CannotTell
from sentinel.slurm.complaints import failure_error
from tests.lab import needs

SENTINEL = [sys.executable, "-m", "sentinel"]
ROOT = Path(__file__).parents[2]


def call(*words: str, cwd: Path, before: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command with nothing in its environment but this, after a line of shell."""
    return subprocess.run(
        ["sh", "-c", f'{before or ":"}; exec "$@"', "sh", *SENTINEL, *words],
        cwd=cwd,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def config(folder: Path, command: str = "/bin/false", state: bool = True) -> str:
    """A file with one check, and a book of what is told."""
    path = folder / "sentinel.yaml"
    lines = [f"state: {folder}/state"] if state else []
    lines += [
        f"checks: {{load: {{kind: exec, command: [{command}]}}}}",
        f"channels: {{book: {{kind: file, path: {folder}/book}}}}",
    ]
    path.write_text("\n".join(lines) + "\n")
    path.chmod(0o644)
    return str(path)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter; those of pytest are closed."""
    folder = Path(tempfile.mkdtemp(prefix="sentinel-bare-"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.root
def test_without_a_home_no_folder_is_named_after_the_tilde(open_folder: Path) -> None:
    """A uid without an entry in passwd and no $HOME: refused, from whatever directory."""
    file = config(open_folder, state=False)
    here = open_folder / "here"
    here.mkdir()
    here.chmod(0o777)
    user = ["setpriv", "--reuid=424242", "--regid=424242", "--clear-groups"]
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    for words in (["tick", "--all"], ["status"], ["cron", "status"], ["diag", "list"]):
        done = subprocess.run(
            [*user, *SENTINEL, *words, "-c", file],
            cwd=here, env=env, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        if "Permission denied" in done.stderr and "python" in done.stderr:
            needs.skip("this Python may not be started by other users")
        assert done.returncode == 78, (words, done.stderr)
        assert "no home directory is known for uid 424242: set HOME" in done.stderr
    assert list(here.iterdir()) == []


ZONES = {
    "absent": ":",
    "a directory": "mkdir -p /etc/localtime",
    "empty": ": >/etc/localtime",
    "garbage": "echo TZif >/etc/localtime",
}


@pytest.mark.root
@pytest.mark.parametrize("form", ZONES)
def test_a_host_without_a_time_zone_counts_in_utc(tmp_path: Path, form: str) -> None:
    """No internal error and no warning at each pass; doctor says it once."""
    file = config(tmp_path, "/bin/true")
    etc = tmp_path / "etc"
    etc.mkdir()
    for name in ("passwd", "group", "nsswitch.conf", "ld.so.cache"):
        (etc / name).write_bytes(Path("/etc", name).read_bytes())
    inside = f'mount --bind {etc} /etc && {ZONES[form]} && "$@"'
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}
    for words in (["tick", "--all"], ["doctor"]):
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", inside, "sh", *SENTINEL, *words, "-c", file],
            env=env, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode != 70, done.stderr
        assert "Warning" not in done.stderr
    assert "/etc/localtime" in " ".join(done.stdout.split())


def test_a_tz_that_leads_elsewhere_is_utc(tmp_path: Path) -> None:
    """`../x` is no zone, and no file is read."""
    done = call("tick", "-c", config(tmp_path, "/bin/true"), cwd=tmp_path, TZ="../x", HOME="/")
    assert done.returncode == 0, done.stderr


def test_an_alert_on_a_closed_console_was_not_sent(tmp_path: Path) -> None:
    """`>&-`, as some callers do: nobody was told, and explain says so."""
    file = tmp_path / "sentinel.yaml"
    file.write_text(
        f"state: {tmp_path}/state\nchecks: {{load: {{kind: exec, command: [/bin/false]}}}}\n"
        "channels: {terminal: {kind: console}}\n"
    )
    call("tick", "-c", str(file), cwd=tmp_path, before="exec >&-", HOME="/")
    listed = call("alerts", "list", "--json", "-c", str(file), cwd=tmp_path, HOME="/")
    alerts = json.loads(listed.stdout)
    listed_alerts = alerts["alerts"] if isinstance(alerts, dict) else alerts
    [found] = (one for one in listed_alerts if one["check"] == "load")
    told = call(
        "explain", found.get("id") or found["alert"], "-c", str(file), cwd=tmp_path, HOME="/"
    )
    assert "sent: printed" not in told.stdout
    assert "there is no standard output" in " ".join(told.stdout.split())


def test_a_working_directory_that_is_gone_is_named(tmp_path: Path) -> None:
    """It was removed by somebody else; `check` cannot tell then."""
    file = config(tmp_path)
    gone = tmp_path / "gone"
    for words, code in ((["status", "-c", file], 66), (["tick", "-c", file], 66),
                        (["check", "memory"], 3)):  # fmt: skip
        gone.mkdir()
        done = call(*words, cwd=gone, before=f"rmdir {gone}", HOME="/")
        assert done.returncode == code, done.stderr
        assert "the working directory is gone" in done.stderr


def test_a_timer_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    """A home that is a file stands for one that is read-only."""
    (tmp_path / "home").write_text("")
    done = call(
        "cron", "install", "--mode", "systemd", "-c", config(tmp_path), cwd=tmp_path,
        HOME=str(tmp_path / "home"),
    )  # fmt: skip
    assert done.returncode == 69, done.stderr
    assert "take another --mode" in done.stderr


def test_without_slurm_a_command_ends_with_its_reason(tmp_path: Path) -> None:
    """69, unavailable: no fault of the program."""
    for words in (["nodes", "list"], ["stacks", "15"], ["diag", "run", "n1"]):
        done = call(*words, "-c", config(tmp_path), cwd=tmp_path, HOME="/", before="PATH=/nowhere")
        assert done.returncode == 69, done.stderr
        assert "not installed or not in PATH (cannot start s" in done.stderr


def test_init_refuses_a_user_who_is_not_there(tmp_path: Path) -> None:
    """No job of such a one would ever be found."""
    done = call("init", "--yes", "--by=none", "--user=nosuchuser", cwd=tmp_path, HOME=str(tmp_path))
    assert (done.returncode, "there is no user 'nosuchuser' on this host" in done.stderr) == (
        64,
        True,
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.root
def test_a_full_file_system_is_no_damage(tmp_path: Path) -> None:
    """The first pass met a disk without room: its empty file is told as that, and not as cut."""
    disk = tmp_path / "disk"
    disk.mkdir()
    file = config(tmp_path).replace(str(tmp_path), str(disk))
    text = Path(tmp_path, "sentinel.yaml").read_text().replace(str(tmp_path), str(disk))
    steps = (
        f"mount -t tmpfs -o size=4m full {disk} && cp /dev/stdin {file} &&"
        f" {{ head -c 5M /dev/zero >{disk}/fill; exec 2>&1;"
        f' "$@" tick --all -c {file}; "$@" status -c {file}; "$@" doctor -c {file}; rm {disk}/fill;'
        f' "$@" tick --all -c {file} && "$@" status -c {file}; }}'
    )
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", steps, "sh", *SENTINEL],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(disk), "COLUMNS": "400",
             "XDG_RUNTIME_DIR": os.environ["XDG_RUNTIME_DIR"]},
        input=text, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "/bin/false ended with exit code 1 and said nothing" in done.stdout.split("alerts\n")[-1]
    assert "a file can be made there and not written: no space left" in done.stdout
    assert "damaged" not in done.stdout


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("scontrol: fatal: Could not establish a configuration source", False),
        ("scontrol: error: s_p_parse_file: unable to read slurm.conf", False),
        ("error: Parsing error at unrecognized key: Bogus\nfatal: Unable to process conf", False),
        ("ssh: connect to host login1 port 22: Connection refused", False),
        ("slurm_load_jobs error: Unable to contact slurm controller (connect failure)", True),
        ("error: something that nobody knows", True),
    ],
)
def test_a_fault_of_this_host_accuses_no_slurmctld(said: str, asked: bool) -> None:
    """No slurm.conf, a slip in it, or ssh that is not let in: slurmctld was never asked."""
    error = failure_error("scontrol", said.replace("\n", "; "), 1)
    assert isinstance(error, CannotTell)
    assert isinstance(error, CannotAsk) is not asked
