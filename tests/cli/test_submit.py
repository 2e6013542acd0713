"""`sentinel submit` becomes sbatch with the wish in the comment, and says what will be watched."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CONFIG = """\
cluster: lab
checks:
  trainings: {{kind: job, match: 'train.*', users: ["*"], min_gpus: 8}}
  progress: {{kind: log, match: 'train.*', users: ["*"]}}
  others: {{kind: job, name: train.sh, users: [nobody]}}
channels:
  owners: {{kind: email, to: {to}, {domain} from: s@example.org, host: localhost, security: none}}
"""


class Desk:
    """A shell with a stand-in for sbatch, which prints its words and its standard input."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.config = folder, folder / "sentinel.yaml"
        (folder / "bin").mkdir()
        sbatch = folder / "bin" / "sbatch"
        sbatch.write_text('#!/bin/sh\nprintf "%s\\n" "$@"; cat; exit 7\n')
        sbatch.chmod(0o755)
        self.configure()

    def configure(self, to: str = "owner", domain: str = "owner_domain: example.org,") -> None:
        self.config.write_text(CONFIG.format(to=to, domain=domain))

    def script(self, text: str) -> str:
        (self.folder / "train.sh").write_text(text)
        return "train.sh"

    def say(self, *words: str, stdin: str = "", **env: str) -> "subprocess.CompletedProcess[str]":
        path = f"{self.folder}/bin:{os.environ['PATH']}"
        return subprocess.run(
            [sys.executable, "-m", "sentinel", "submit", *words],
            env={**os.environ, "PATH": path, "SENTINEL_CONFIG": str(self.config), **env},
            cwd=self.folder,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_the_words_of_sbatch_stay_as_they_are(desk: Desk) -> None:
    """Its exit code, its output and its input too."""
    script = desk.script("#!/bin/sh\ntrue\n")
    done = desk.say(
        "--wish", "stale=15m", "-N", "4", "-c", "2", "--exclusive", script, "-h", stdin="in"
    )
    comment = "--comment=sentinel: stale=15m"
    assert done.stdout.split("\n") == [
        comment,
        "-N",
        "4",
        "-c",
        "2",
        "--exclusive",
        script,
        "-h",
        "in",
    ]
    assert done.returncode == 7
    assert done.stderr.splitlines() == [
        "sentinel: your wish: you are told when nothing advances for 15m",
        "sentinel: watched: job train.sh by trainings (job, if it has 8 GPUs or more), progress (log)",
    ]


def test_the_line_of_the_script_is_the_wish(desk: Desk) -> None:
    """With a name for the job in the script."""
    wish = 'off progress="step (\\d+)"'
    script = desk.script(f"#!/bin/sh\n#SBATCH -J train-7\n#SENTINEL {wish}\nsrun x\n")
    done = desk.say("--dry-run", script)
    assert done.stdout == f"sbatch '--comment=sentinel: {wish}' train.sh\n"
    assert "job train-7 by trainings" in done.stderr
    assert r"no messages to you; the number of step (\d+) has to advance" in done.stderr


@pytest.mark.parametrize(
    ("wish", "why"),
    [
        ("stael=15m", "stael=15m is none of off, stale=, progress="),
        ("stale=00:12:00", "stale=00:12:00 is no duration"),
        ('progress="step (', "close the quote"),
        ('progress="step ("', "is no regular expression"),
        ("off\n", ""),
    ],
)
def test_nothing_is_submitted_with_a_word_that_is_refused(desk: Desk, wish: str, why: str) -> None:
    """The reason comes at once, not in a mail."""
    done = desk.say("--wish", wish, desk.script("true\n"))
    assert (done.returncode, bool(done.stdout)) == ((64, False) if why else (7, True))
    assert why in done.stderr


def test_two_lines_in_a_script_are_refused(desk: Desk) -> None:
    """Which of them would count?"""
    done = desk.say(desk.script("#SENTINEL off\n#SENTINEL stale=1h\n"))
    assert (done.returncode, done.stdout) == (64, "")
    assert "the script has 2 lines that begin with #SENTINEL; one may" in done.stderr


@pytest.mark.parametrize("where", ["option", "script"])
def test_a_comment_of_another_tool_stays(desk: Desk, where: str) -> None:
    """The job is submitted, and the wish is not followed: that is said."""
    other = '{"APS":1}'
    line = f"#SBATCH --comment='{other}'\n" if where == "script" else ""
    script = desk.script(f"#!/bin/sh\n{line}#SENTINEL off\n")
    option = [] if where == "script" else [f"--comment={other}"]
    done = desk.say("--dry-run", *option, script)
    assert "sentinel:" not in done.stdout
    belongs = f"the comment of this job belongs to another tool ({other}); "
    assert f"not watched yet as you wish: {belongs}the #SENTINEL line counts once" in done.stderr
    assert "your wish:" not in done.stderr
    done = desk.say("--dry-run", "--wish", "off", *option, script)
    assert f"NOT watched as you wish: {belongs}write your wish into a #SENTINEL line" in done.stderr


def test_a_script_that_cannot_be_read_is_said(desk: Desk) -> None:
    """One that is missing is for sbatch to report."""
    (desk.folder / "folder").mkdir()
    assert "NOT watched: cannot read folder: Is a directory" in desk.say("folder").stderr
    assert "cannot read" not in desk.say("missing.sh").stderr


def test_a_pipe_is_left_to_sbatch(desk: Desk) -> None:
    """`<(make-script)`: who reads it takes it away, and one that nobody writes into never ends."""
    os.mkfifo(desk.folder / "pipe")
    done = desk.say("pipe")
    assert "NOT watched: cannot read pipe: it is a pipe, which is read once" in done.stderr
    assert (done.returncode, done.stdout) == (7, "pipe\n")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("gone", "NOT watched, as far as can be seen: cannot read {config}: No such file"),
        ("broken", "NOT watched, as far as can be seen: cannot read the configuration: "),
        ("no owner", "NOT told to you: no channel in {config} has `to: owner`"),
        ("other name", "NOT watched: no check of {config} looks at jobs named other of yours"),
    ],
)
def test_what_is_not_watched_is_said(desk: Desk, change: str, said: str) -> None:
    """And the job is submitted all the same."""
    if change == "gone":
        desk.config.unlink()
    elif change == "broken":
        desk.config.write_text("checks: {a: {kind: nothing}}\n")
    elif change == "no owner":
        desk.configure("ann@example.org", "")
    name = ["-J", "other"] if change == "other name" else []
    done = desk.say("--wish", "off", *name, desk.script("true\n"))
    assert done.returncode == 7
    assert said.format(config=desk.config) in done.stderr


def test_a_wish_for_progress_needs_a_check_of_logs(desk: Desk) -> None:
    """`off` does not."""
    text = desk.config.read_text()
    desk.config.write_text("".join(s for s in text.splitlines(True) if "kind: log" not in s))
    script = desk.script("true\n")
    missing = "stale= and progress= need a check of kind log"
    assert missing in desk.say("--wish", "stale=5m", script).stderr
    assert missing not in desk.say("--wish", "off", script).stderr


def test_no_sbatch_is_said(desk: Desk) -> None:
    """With the exit code of every other program that is not there."""
    (desk.folder / "bin" / "sbatch").unlink()
    done = desk.say("--wish", "off", desk.script("true\n"), PATH=f"{desk.folder}/bin")
    assert done.returncode == 69
    assert "sbatch cannot be started: No such file or directory" in done.stderr
    assert desk.say().returncode == 64


def test_the_help_fits_a_terminal(desk: Desk) -> None:
    """80 columns, and as it stands here but for the blanks of Python's versions."""
    page = desk.say("--help", COLUMNS="80").stdout
    assert max(map(len, page.splitlines())) <= 80
    assert page.split() == HELP.split()


HELP = """\
usage: sentinel submit [-h] [--wish WORDS] [--config FILE] [--dry-run] ...

Runs sbatch with these words, and writes your wish into the job's comment. The
wish is that of --wish, or the #SENTINEL line of the script. Prints what will
be watched. Options of sentinel come before those of sbatch.

positional arguments:
  SCRIPT         sbatch's options, then the script

options:
  -h, --help     show this help message and exit
  --wish WORDS   off, stale=DURATION, progress=PATTERN; docs/wishes.md
  --config FILE  the configuration of the sentinel that watches; default:
                 $SENTINEL_CONFIG, /etc/sentinel/sentinel.yaml
  --dry-run      print the command instead of running it

Example: sentinel submit --wish 'stale=15m progress="step (\\d+)"' -N 4
train.sh
"""
