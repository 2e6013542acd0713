"""Commands as a stranger types them: on odd terminals, with words missing, with nothing there."""

import fcntl
import json
import os
import pty
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from sentinel.config.settings import Settings
from sentinel.core.actions import ActionOutcome, ActionRecord, GuardDecision
from sentinel.core.clock import Instant
from sentinel.core.cluster import Node
from sentinel.store.opening import open_sql_audit_log
from sentinel.wiring.app import describe_state_location
from tests.lab import needs
from tests.lab.waiting import wait_until

CONFIG = """
state: {folder}/state
cluster: lab
checks:
  ok: {{kind: exec, command: [/bin/sh, -c, "echo all is — well"]}}
  bad: {{kind: exec, command: [/bin/sh, -c, "exit 2"]}}
channels: {{book: {{kind: file, path: {folder}/book}}}}
silences: [{{match: {{check: ok}}, cron: "* * * * *", for: 1h, reason: backup}}]
"""


class Shell:
    """Somebody in a folder with a configuration of their own, which a variable names: root's
    working directory is not looked at."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "sentinel.yaml").write_text(CONFIG.format(folder=folder))

    def run(self, *words: str, **env: str) -> "subprocess.CompletedProcess[str]":
        """What it says of the file that it goes by is left out of `stderr`."""
        done = subprocess.run(
            [sys.executable, "-m", "sentinel", *words],
            cwd=self.folder,
            env=self.env(env),
            capture_output=True,
            encoding="utf-8",
            errors="backslashreplace",
            timeout=60,
            check=False,
        )
        said = f"sentinel: configuration: {self.folder}/sentinel.yaml\n"
        done.stderr = done.stderr.replace(said, "", 1)
        return done

    def env(self, more: Mapping[str, str]) -> dict[str, str]:
        usual = {k: v for k, v in os.environ.items() if k not in ("SENTINEL_CONFIG", "COLUMNS")}
        file = self.folder / "sentinel.yaml"
        named = {"SENTINEL_CONFIG": str(file)} if file.exists() else {}
        home = {"HOME": str(self.folder), "XDG_STATE_HOME": str(self.folder)}
        return {**usual, **home, **named, **more}

    def script(self, text: str) -> list[str]:
        """The words that have it run as a check."""
        path = self.folder / "script"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return ["check", "exec", "--command", str(path)]

    def wrong(self, *words: str) -> str:
        """What is said of a call that makes no sense: in one line, exit code 64."""
        done = self.run(*words)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (64, "", 1), done
        return done.stderr


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def ticked(shell: Shell) -> Shell:
    assert shell.run("tick").returncode == 0
    return shell


@pytest.mark.parametrize("charset", ["ascii", "latin-1"])
@pytest.mark.parametrize(
    "words", [["--help"], ["check", "ok"], ["status"], ["plugins"], ["check", "--help"]]
)
def test_a_terminal_that_lacks_letters_is_no_error(
    ticked: Shell, words: list[str], charset: str
) -> None:
    """de_DE.ISO-8859-1 and the like: what it lacks becomes a question mark."""
    done = ticked.run(*words, PYTHONIOENCODING=charset)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("columns", ["0", "00", "80"])
def test_a_terminal_that_does_not_know_its_width_has_eighty(ticked: Shell, columns: str) -> None:
    """Containers and schedulers start commands on some that say 0."""
    lines = ticked.run("status", COLUMNS=columns).stdout.splitlines()
    assert any(line.startswith("sentinel lab") for line in lines)
    assert max(map(len, lines)) <= 80


def test_what_is_piped_does_not_wrap(ticked: Shell) -> None:
    """A line of a table is one line, however wide."""
    lines = ticked.run("status", COLUMNS="").stdout.splitlines()
    assert any("/bin/sh ended with exit code 2 and said nothing" in line for line in lines)
    assert max(map(len, lines)) > 80


def test_json_is_the_same_in_every_character_set(shell: Shell) -> None:
    """Programs read it as UTF-8, whatever the terminal speaks."""
    documents = [
        json.loads(shell.run("check", "ok", "--json", PYTHONIOENCODING=c).stdout)
        for c in ("ascii", "latin-1", "utf-8")
    ]
    assert [d["summary"] for d in documents] == ["all is — well"] * 3


@pytest.mark.parametrize(("words", "code"), [("status", 0), ("top", 0), ("gpus import -", 65)])
def test_a_closed_standard_input_is_an_empty_one(shell: Shell, words: str, code: int) -> None:
    """As daemons and some schedulers start their children."""
    argv = ["/bin/sh", "-c", f'exec "$0" -m sentinel {words} <&-', sys.executable]
    done = subprocess.run(
        argv, cwd=shell.folder, env=shell.env({}), capture_output=True, text=True, check=False
    )
    assert done.returncode == code
    assert "internal error" not in done.stderr


def test_an_id_that_is_empty_is_none(ticked: Shell) -> None:
    """`alerts ack "$ID"` in a script that has lost its ID, while only one alert is there."""
    assert len(json.loads(ticked.run("alerts", "list", "--json").stdout)) == 1
    for words in (["explain", ""], ["alerts", "ack", ""], ["alerts", "silence", "", "--for", "1h"]):
        assert "no alert has the id or name ''" in ticked.wrong(*words)
    [alert] = json.loads(ticked.run("alerts", "list", "--json").stdout)
    assert alert["acknowledged_by"] is None


def test_a_silence_that_fits_nothing_says_so(ticked: Shell) -> None:
    """A word mistyped is a label that no alert has; who believes in quiet is woken."""
    assert (
        "no current alert matches" in ticked.run("alerts", "silence", "chekc=b", "--for=1h").stderr
    )
    assert ticked.run("alerts", "silence", "check=bad", "--for=1h").stderr == ""
    shown = ticked.run("alerts", "list").stdout
    assert ": chekc=b\n" in shown
    assert ": check=bad\n" in shown


def test_a_key_that_is_given_twice_means_either(ticked: Shell) -> None:
    """node=a node=b is about both nodes; a label has one value."""
    done = ticked.run("alerts", "silence", "check=bad", "check=worse", "--for", "1h")
    assert (done.returncode, done.stderr) == (0, "")
    assert ": check=bad,worse\n" in ticked.run("alerts", "list").stdout
    assert "rack= is given twice" in ticked.wrong(
        "alerts", "silence", "rack=1", "rack=2", "--for=1h"
    )


def test_a_window_of_the_file_is_not_ended_by_hand(ticked: Shell) -> None:
    """It would be said to have ended, and go on."""
    [line] = [x for x in ticked.run("alerts", "list").stdout.splitlines() if "backup" in x]
    assert "stands in the file" in ticked.wrong("alerts", "unsilence", line.split()[1])


@pytest.mark.parametrize("until", ["9999-12-31T23:59-12:00", "9000-01-01", "2200-01-01"])
def test_a_silence_that_no_calendar_ends_is_refused(ticked: Shell, until: str) -> None:
    """Once written, nothing that shows its end could show anything any more."""
    assert "from 1m to 90d" in ticked.wrong("alerts", "silence", "check=bad", "--until", until)
    assert ticked.run("alerts", "list").returncode == 0


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Etc/GMT+12"])
def test_a_window_of_the_file_without_an_end_blinds_nothing(shell: Shell, zone: str) -> None:
    """People write 9999-12-31 for `for ever`, which some zones' calendars do not reach."""
    config = shell.folder / "sentinel.yaml"
    text = config.read_text().partition("silences:")[0]
    window = "{match: {check: bad}, from: 2020-01-01, until: '9999-12-31T23:59-12:00'}"
    config.write_text(f"{text}timezone: {zone}\nsilences: [{window}]\n")
    assert "CRITICAL bad" in shell.run("tick").stdout
    done = shell.run("alerts", "list")
    assert (done.returncode, "until 9999-12-3" in done.stdout) == (0, True)
    assert shell.run("status").returncode == 0


@pytest.mark.parametrize("number", ["0", "-1", "x", "9" * 30, "1e3", "²"])
def test_a_number_of_lines_is_one(ticked: Shell, number: str) -> None:
    """Neither none, nor what no database can count."""
    done = ticked.run("alerts", "history", f"--limit={number}")
    assert (done.returncode, "is no number of lines" in done.stderr) == (64, True)


def test_a_first_look_on_a_terminal_speaks_of_no_state(shell: Shell) -> None:
    """`sentinel check fs` needs none: that there is none is no news."""
    (shell.folder / "sentinel.yaml").unlink()
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    argv = [sys.executable, "-m", "sentinel", "check", "fs", "--path", "/"]
    with subprocess.Popen(
        argv, cwd=shell.folder, env=shell.env({}), stdin=theirs, stdout=theirs,
        stderr=subprocess.PIPE, text=True,
    ) as child:  # fmt: skip
        os.close(theirs)
        assert "file system" in os.read(ours, 65536).decode()
        _, said = child.communicate(timeout=30)
    os.close(ours)
    assert said == ""
    assert list(shell.folder.iterdir()) == []


def test_what_was_written_down_is_inert_on_a_terminal(shell: Shell) -> None:
    """Reasons come from whoever drained, actions from whoever asked: also of another sentinel."""
    evil = "\x1b]0;owned\x07\x1b[2J"
    log = open_sql_audit_log(str(shell.folder / "state"))
    record = ActionRecord(
        id="1", action=evil, target="n1", reason=evil, by=evil, at=Instant(wall=1_800_000_000_000_000),
        outcome=ActionOutcome.DONE, why=evil, detail=evil, evidence={evil: f"{evil}\n{evil}"},
    )  # fmt: skip
    log.record_intent("n1", lambda _: GuardDecision(record=record))
    log.record_readings([Node(name="n1", state="IDLE", reason=evil, reason_user=evil)], record.at)
    log.close()
    told = shell.run("nodes", "list", "--history", "n1")
    assert (told.returncode, told.stderr) == (0, "")
    assert "owned" in told.stdout
    assert all(line.isprintable() for line in told.stdout.splitlines())
    assert json.loads(shell.run("nodes", "list", "--history", "n1", "--json").stdout)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("drain", "n1", "--reason", " "), "--reason: say why"),
        (
            ("list", "--history", "n[1-2]"),
            "--history: one node (or directory that was cleaned) at a time",
        ),
        (("list", "--history", "n1;id"), "';' is in no node name"),
        (("maintenance", "on", "--for", "0s"), "--for: must be longer than 0s"),
        (("maintenance", "on", "--for", "soon"), "--for: 'soon' is no duration"),
    ],
)
def test_a_call_about_nodes_that_makes_no_sense(
    shell: Shell, words: tuple[str, ...], says: str
) -> None:
    """Told before Slurm is asked, and without a state being made."""
    assert says in shell.wrong("nodes", *words)
    assert not (shell.folder / "state").exists()


@pytest.mark.parametrize("words", ["check", "check nope", "check --bogus", "--bogus", "nope"])
def test_nagios_is_told_unknown_of_a_call_that_makes_no_sense(shell: Shell, words: str) -> None:
    """64 is no answer that a monitoring system knows; one line on stdout is what it shows."""
    done = shell.run(*words.split(), "--nagios")
    assert (done.returncode, done.stdout[:10], done.stdout.count("\n")) == (3, "UNKNOWN - ", 1)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_what_was_started_ends_with_the_command(shell: Shell, name: str) -> None:
    """Ctrl-C, kill, a terminal that is closed: no child is left behind."""
    pid, number = shell.folder / "pid", getattr(signal, name)
    argv = shell.script(f"echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 300")
    with subprocess.Popen(
        [sys.executable, "-m", "sentinel", *argv], cwd=shell.folder, env=shell.env({})
    ) as process:
        wait_until(pid.exists, "the command begun", 30)
        process.send_signal(number)
        assert process.wait(30) == 128 + number
    wait_until(lambda: not Path(f"/proc/{pid.read_text().strip()}").exists(), "its child gone", 10)


@pytest.fixture(scope="module")
def late(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables with which a command's main thread waits late."""
    if not shutil.which("cc"):
        needs.skip("to wait late needs Debian's gcc libc6-dev")
    library = tmp_path_factory.mktemp("late") / "late.so"
    source = Path(__file__).with_name("late.c")
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return {"LD_PRELOAD": str(library)}


@pytest.mark.parametrize("words", ["check exec --timeout 1h --command ./scontrol", "nodes list"])
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_right_before_a_wait_is_heard(
    shell: Shell, late: dict[str, str], name: str, words: str
) -> None:
    """A SIGHUP came just before the wait for a lock, or for poll(2): the command ended at its limit."""
    pid, number = shell.folder / "pid", getattr(signal, name)
    shell.script(f"echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 300")
    (shell.folder / "script").rename(shell.folder / "scontrol")
    (shell.folder / "sentinel.yaml").write_text("slurm: {timeout: 1h}\n")
    path = f"{shell.folder}:{os.environ['PATH']}"
    with subprocess.Popen(
        [sys.executable, "-m", "sentinel", *words.split()],
        cwd=shell.folder, env=shell.env({**late, "PATH": path}),
    ) as process:  # fmt: skip
        wait_until(pid.exists, "the command begun", 30)
        process.send_signal(number)
        try:
            assert process.wait(30) == 128 + number
        finally:
            process.kill()


@pytest.mark.parametrize("words", ["check exec --command ./scontrol", "nodes list"])
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_second_signal_leaves_nothing_behind(shell: Shell, name: str, words: str) -> None:
    """Ctrl-C twice: the child that ignores SIGTERM had not been killed yet, and stayed."""
    pid, number = shell.folder / "pid", getattr(signal, name)
    text = f"trap '' TERM; echo $$ > {pid}.new; mv {pid}.new {pid}; while :; do sleep 1; done"
    shell.script(text)
    (shell.folder / "script").rename(shell.folder / "scontrol")
    path = f"{shell.folder}:{os.environ['PATH']}"
    with subprocess.Popen(
        [sys.executable, "-m", "sentinel", *words.split()],
        cwd=shell.folder, env=shell.env({"PATH": path}),
    ) as process:  # fmt: skip
        wait_until(pid.exists, "the command begun", 30)
        process.send_signal(number)
        time.sleep(0.1)  # within the 0.3 s after which it is killed
        process.send_signal(number)
        assert process.wait(30) == 128 + number
    wait_until(lambda: not Path(f"/proc/{pid.read_text().strip()}").exists(), "its child gone", 10)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_what_is_just_being_started_ends_with_the_command(
    shell: Shell, late: dict[str, str], name: str
) -> None:
    """A SIGTERM came when the child was there and its number was not known yet: it stayed behind."""
    pid, number = shell.folder / "pid", getattr(signal, name)
    shell.script(f"echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 300")
    (shell.folder / "script").rename(shell.folder / "scontrol")
    path = f"{shell.folder}:{os.environ['PATH']}"
    with subprocess.Popen(
        [sys.executable, "-m", "sentinel", "nodes", "list"],
        cwd=shell.folder, env=shell.env({**late, "LATE_SPAWN": "1", "PATH": path}),
    ) as process:  # fmt: skip
        wait_until(pid.exists, "the command begun", 30)
        process.send_signal(number)
        assert process.wait(30) == 128 + number
    wait_until(lambda: not Path(f"/proc/{pid.read_text().strip()}").exists(), "its child gone", 10)


def test_nohup_is_honoured(shell: Shell) -> None:
    """Who asked for it to go on without a terminal gets that."""
    argv = shell.script("kill -HUP $PPID; sleep 0.2; echo went on")
    done = subprocess.run(
        ["nohup", sys.executable, "-m", "sentinel", *argv],
        cwd=shell.folder, env=shell.env({}), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, "went on" in done.stdout) == (0, True)


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        ("/var/lib/sentinel", "/var/lib/sentinel"),
        ("postgresql://u:secret@db:5432/x", "postgresql://u@db:5432/x"),
        ("postgresql://u:secret@a@db/x?password=secret", "postgresql://u@db/x"),
        ("postgresql:///x?host=/run&password=secret", "postgresql:///x"),
    ],
)
def test_where_the_state_lies_is_shown_without_its_password(state: str, shown: str) -> None:
    """It is printed by `status` and stands in the journal."""
    assert describe_state_location(Settings(state=state)) == shown


def test_a_service_that_starts_keeps_the_password_to_itself(shell: Shell) -> None:
    """Nobody listens on port 1."""
    config = shell.folder / "sentinel.yaml"
    config.write_text("state: 'postgresql://u:s3cr3t@127.0.0.1:1/x?password=s3cr3t'\n")
    for command in ("run", "status", "tick", "gpus list", "doctor"):
        done = shell.run(*command.split())
        assert "s3cr3t" not in done.stdout + done.stderr, command
