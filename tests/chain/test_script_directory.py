"""Passes over a cron directory; programs that keep a queue in a file stand in for Slurm's."""

import errno
import fcntl
import grp
import os
import pwd
import re
import shutil
import subprocess
import time
from collections.abc import Mapping
from datetime import timezone
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.chain import script_book
from sentinel.chain.cron_trust import NoTrustedUser, make_cron_trust
from sentinel.chain.program_copies import keep_program
from sentinel.chain.queue import SubmissionRefused
from sentinel.chain.script_book import BadCronBook
from sentinel.chain.scripts import BadCronDirectory, find_scripts
from sentinel.chain.scripts_run import (
    CronDirectory,
    CronPass,
    run_cron_check,
    run_pass,
)
from sentinel.chain.scripts_submit import ScriptSubmitter
from sentinel.checks.cron import CronCheck, LogRetention
from sentinel.clock import SystemClock
from sentinel.core.settings import FilePath
from sentinel.core.values import Duration
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.snapshot import SlurmSnapshot

T0 = 1_800_000_000 // 3600 * 3600

SBATCH = """\
#!/bin/bash
cat >SUBMITTED
for word in "$@"; do
    case $word in --comment=*) comment=${word#*=} ;; --job-name=*) name=${word#*=} ;; esac
done
job=$(($(wc -l <QUEUE) + 1))
echo "$job $name $(cat CLOCK) $comment" >>QUEUE
env >ENVIRONMENT
THEN
echo $job
"""
SQUEUE = """\
#!/bin/bash
echo "$*" >>CALLS
case ${SQUEUE_FORMAT2:+columns} in columns)  # about one job, by names of columns
    for field in ${SQUEUE_FORMAT2//,/ }; do
        case $field in JobID:* | JobArrayID:*) word=$6 ;; State:*) word=RUNNING ;; *) word=N/A ;; esac
        printf '%s%s' "$word" "${field#*:}"
    done
    echo
    exit
esac
while read -r job name at comment; do
    line=$SQUEUE_FORMAT; line=${line//%A/$job}; line=${line//%F/$job}; line=${line//%V/$at}
    line=${line//%K/N\\/A}; line=${line//%T/RUNNING}
    echo "${line//%k/$comment}"
done <QUEUE
"""


class Site:
    """A base with cron.hourly in it, beside a Slurm in which no job ever ends."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.base = folder, folder / "base"
        (self.base / "cron.hourly").mkdir(parents=True)
        (folder / "QUEUE").touch()
        self.slurm()
        monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def slurm(self, then: str = "", squeue: str = SQUEUE) -> None:
        """sbatch does that once it has taken the job."""
        for name, text in (("sbatch", SBATCH.replace("THEN", then)), ("squeue", squeue)):
            for word in ("QUEUE", "CALLS", "ENVIRONMENT", "CLOCK", "SUBMITTED"):
                text = re.sub(rf"\b{word}\b", str(self.folder / word), text)
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o755)

    def script(self, name: str, text: str = "#!/bin/sh\n") -> Path:
        path = self.base / "cron.hourly" / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def run(self, now: float, options: Mapping[str, str] | None = None) -> CronPass:
        (self.folder / "CLOCK").write_text(str(int(now)))
        snapshot = SlurmSnapshot(SlurmClient(limit=10), SystemClock(), users=[], max_age=60)
        directory = CronDirectory(
            base=str(self.base), trust=make_cron_trust(), log_age=1e9, log_count=2
        )
        submitter = ScriptSubmitter(snapshot, str(self.base), options or {})
        return run_pass(directory, submitter, timezone.utc, now)

    def queue(self) -> list[str]:
        """The names of all that were submitted."""
        return [line.split()[1] for line in (self.folder / "QUEUE").read_text().splitlines()]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    return Site(tmp_path, monkeypatch)


def submit_and_die(site: Site, now: float, sbatch: str = "kill -9 $PPID") -> None:
    """A pass that ends between sbatch and the book."""
    site.slurm(then=sbatch)
    child = os.fork()
    if not child:
        site.run(now)
        os._exit(0)
    os.waitpid(child, 0)
    site.slurm()


@pytest.mark.parametrize("sbatch", ["kill -9 $PPID", "exit 1"])
@pytest.mark.parametrize("later", [60, 3600])
def test_a_pass_that_is_killed_submits_nothing_twice(site: Site, sbatch: str, later: int) -> None:
    """Between sbatch and the book, or told that it failed: the next pass finds the job by its name
    and time, also at the next slot, which it skips."""
    site.script("one")
    site.run(T0)
    submit_and_die(site, T0 + 3600, sbatch)
    site.run(T0 + 3600 + later)
    assert site.queue() == ["cron.hourly.one"]
    record = script_book.read_book(str(site.base)).records["cron.hourly/one"]
    assert [(run.job, run.slot) for run in record.runs] == [("1", T0 + 3600)]
    assert (record.trouble, record.begun_slot, record.skipped) == ("", 0, later // 3600)


def test_beside_an_unknown_job_of_its_name_nothing_is_submitted(site: Site) -> None:
    """Its time does not fit, as where a clock is wrong: that is told until it is over."""
    site.script("one")
    site.run(T0)
    submit_and_die(site, T0 + 3600)
    (site.folder / "QUEUE").write_text("1 cron.hourly.one 60\n")
    done = site.run(T0 + 3660)
    assert (done.failures, len(site.queue())) == (1, 1)
    assert "job 1 has this name and may be of the submission that failed" in done.lines[0]


CONFIG = """\
#!/bin/sh
cat <<'END'
Configuration data as of 2027-01-15T08:00:00
AccountingStorageType   = accounting_storage/none
ClusterName             = c
SLURM_VERSION           = 25.05.1
SlurmUser               = slurm(64030)
MinJobAge               = 300 sec
END
"""
FORGOTTEN = "#!/bin/sh\nexit 0\n"


@pytest.mark.parametrize(
    ("sbatch", "later", "jobs", "said"),
    [
        ("kill -9 $PPID", 60, 2, []),
        ("kill -9 $PPID", 600, 1, [("", "LOST", T0 + 3600)]),
        ("exit 1", 600, 2, []),
    ],
    ids=["slurmctld would know it", "nothing can tell", "sbatch said no"],
)
def test_a_job_that_nothing_remembers(
    site: Site, sbatch: str, later: int, jobs: int, said: list[tuple[str, str, int]]
) -> None:
    """Without accounting: it is submitted again only if it is certain that there was none."""
    site.script("one")
    site.run(T0)
    submit_and_die(site, T0 + 3600, sbatch)
    (site.folder / "scontrol").write_text(CONFIG)
    (site.folder / "scontrol").chmod(0o755)
    site.slurm(squeue=FORGOTTEN)
    site.run(T0 + 3600 + later)
    assert len(site.queue()) == jobs
    runs = script_book.read_book(str(site.base)).records["cron.hourly/one"].runs
    assert [(r.job, r.state, r.slot) for r in runs if r.is_over] == said


SACCT = """\
#!/bin/bash
case "$*" in --helpformat | *DerivedExitCode*) exit ;; esac
for word in "$@"; do case $word in --delimiter=*) mark=${word#*=} ;; esac; done
printf "%s$mark" 7 7 COMPLETED 0:0 AT AT n1 None cron.hourly.one root main AT 7
echo
"""


@pytest.mark.parametrize(
    ("submitted", "jobs", "runs"),
    [
        (T0 + 3605, 1, [("7", "COMPLETED", T0 + 3600)]),
        (T0, 2, [("2", "", T0 + 3600)]),
    ],
    ids=["of that submission", "of an hour before"],
)
def test_accounting_knows_what_slurmctld_forgot(
    site: Site, submitted: int, jobs: int, runs: list[tuple[str, str, int]]
) -> None:
    """A job that ended long before the next pass is found there, by its time of submission."""
    site.script("one")
    site.run(T0)
    submit_and_die(site, T0 + 3600)
    for name, text in (
        ("scontrol", CONFIG.replace("storage/none", "storage/slurmdbd")),
        ("sacct", SACCT.replace("AT", str(submitted))),
    ):
        (site.folder / name).write_text(text)
        (site.folder / name).chmod(0o755)
    site.slurm(squeue=FORGOTTEN)
    site.run(T0 + 4200)
    assert len(site.queue()) == jobs
    record = script_book.read_book(str(site.base)).records["cron.hourly/one"]
    assert [(run.job, run.state, run.slot) for run in record.runs] == runs


ARRAY = """\
#!/bin/bash
element() {  # id, task, state, exit
    for field in ${SQUEUE_FORMAT2//,/ }; do
        case $field in
            JobID:*) word=$1 ;; JobArrayID:*) word=1_$2 ;; ArrayJobID:*) word=1 ;;
            State:*) word=$3 ;; exit_code:*) word=$4 ;; *) word=N/A ;;
        esac
        printf '%s%s' "$word" "${field#*:}"
    done
    echo
}
case ${SQUEUE_FORMAT2:+columns} in "") echo "QUEUED" ;; *)
    ROWS
esac
"""


def test_a_bad_element_that_slurmctld_forgot_is_told(site: Site) -> None:
    """Without accounting an array is looked at while it runs; at its end the first are forgotten."""
    site.script("one")
    site.run(T0)
    site.run(T0 + 3600)
    (site.folder / "scontrol").write_text(CONFIG)
    (site.folder / "scontrol").chmod(0o755)
    runs, ended = "element 2 0 FAILED 1:0; element 1 1 RUNNING 0:0", "element 1 1 COMPLETED 0:0"
    site.slurm(squeue=ARRAY.replace("QUEUED", "1 1 1").replace("ROWS", runs))
    site.run(T0 + 3660)
    (run,) = script_book.read_book(str(site.base)).records["cron.hourly/one"].runs
    assert (run.is_over, run.elements) == (False, "1 element: 1 FAILED")
    site.slurm(squeue=ARRAY.replace("QUEUED", "").replace("ROWS", ended))
    site.run(T0 + 5400)
    (run,) = script_book.read_book(str(site.base)).records["cron.hourly/one"].runs
    assert (run.is_over, run.elements) == (True, "1 element: 1 FAILED")


def test_what_the_version_before_submitted_is_known_by_its_comment(site: Site) -> None:
    """It died between sbatch and the book, which has no begin of it."""
    site.script("one")
    site.run(T0)
    book = script_book.read_book(str(site.base))
    died = {key: replace(r, trouble="was ended") for key, r in book.records.items()}
    script_book.write_book(str(site.base), replace(book, records=died))
    line = f"1 cron.hourly.one {T0 + 3600} sentinel cron {T0 + 3600}\n"
    (site.folder / "QUEUE").write_text(line)
    site.run(T0 + 3660)
    assert site.queue() == ["cron.hourly.one"]
    (submitted,) = script_book.read_book(str(site.base)).records["cron.hourly/one"].runs
    assert (submitted.job, submitted.slot) == ("1", T0 + 3600)


@pytest.mark.parametrize("options", [{}, {"comment": "ProjA"}])
def test_the_comment_of_a_script_is_its_authors(site: Site, options: dict[str, str]) -> None:
    """sbatch gets none but that of the settings, which win over `#SBATCH --comment`."""
    site.script("one", "#!/bin/sh\n#SBATCH --comment=mine\n")
    site.slurm(then='echo "$@" >>CALLS')
    site.run(T0)
    site.run(T0 + 3600, options)
    words = (site.folder / "CALLS").read_text().split()
    assert [w for w in words if w.startswith("--comment")] == [
        f"--comment={text}" for text in options.values()
    ]


def test_a_book_that_cannot_be_written_submits_nothing(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk: every pass would submit it again."""
    site.script("one")
    site.run(T0)

    def fail(*_words: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(script_book, "replace_whole_file", fail)
    for minute in range(3):
        with pytest.raises(BadCronBook):
            site.run(T0 + 3600 + minute * 60)
    assert site.queue() == []


def test_a_log_that_cannot_be_made_stops_no_other_script(site: Site) -> None:
    """It is told, and the slot stays due."""
    site.script("one")
    site.script("two")
    site.run(T0)
    (site.base / "log/cron.hourly").mkdir(parents=True)
    (site.base / "log/cron.hourly/one").write_text("")
    done = site.run(T0 + 3600)
    assert (done.failures, site.queue()) == (1, ["cron.hourly.two"])
    assert "no place for its log" in done.lines[0]


def test_a_log_folder_of_other_things_is_left_alone(site: Site) -> None:
    """BASE may be somebody's $WORK: only names that this gives itself are removed, through no link."""
    own, links = site.base / "log/training", site.base / "log/cron.hourly/x"
    own.mkdir(parents=True)
    links.parent.mkdir()
    links.symlink_to(own)
    files = [f"2026-11-0{day}T0000-{day}.log" for day in range(1, 6)]
    for name in [*files, "run.log"]:
        (own / name).write_text("")
    made = site.base / "log/cron.hourly/y"
    made.mkdir()
    for name in [*files, "run.log"]:
        (made / name).write_text("")
    site.run(T0)
    assert len(list(own.iterdir())) == 6
    assert sorted(path.name for path in made.iterdir()) == [*files[-2:], "run.log"]


def test_a_configured_check_says_what_is_submitted_and_what_stays(site: Site) -> None:
    """Its options for sbatch, and how many logs of a script are kept, and for how long."""
    site.slurm(then='echo "$@" >>CALLS')
    logs, now = site.base / "log/cron.hourly/one", time.time()
    logs.mkdir(parents=True)
    for day in (1, 2, 3):
        path = logs / f"2026-01-0{day}T0000-{day}.log"
        path.write_text("")
        os.utime(path, (now - day * 86400,) * 2)
    site.script("one")
    snapshot = SlurmSnapshot(SlurmClient(limit=10), SystemClock(), users=[], max_age=60)

    def kept(**settings: Any) -> int:
        check = CronCheck(base=FilePath(str(site.base)), **settings)
        assert run_cron_check(check, snapshot, timezone.utc, dry_run=False).failures == 0
        return len(list(logs.glob("2026-01-*.log")))

    assert kept() == 3
    assert kept(logs=LogRetention(age=Duration(2.5 * 86400))) == 2
    assert kept(logs=LogRetention(count=1)) == 1
    book = script_book.read_book(str(site.base))
    back = {key: replace(record, handled=0.0) for key, record in book.records.items()}
    script_book.write_book(str(site.base), replace(book, records=back))
    kept(sbatch={"partition": "night"})
    assert "--partition=night" in (site.folder / "CALLS").read_text()


@pytest.mark.root
def test_whose_scripts_run_can_be_said(site: Site) -> None:
    """A stranger's does not, a trusted user's does; a name that nobody has is an error."""
    os.chown(site.script("one"), pwd.getpwnam("nobody").pw_uid, -1)
    snapshot = SlurmSnapshot(SlurmClient(limit=10), SystemClock(), users=[], max_age=60)

    def lines(trust: list[str]) -> str:
        check = CronCheck(base=FilePath(str(site.base)), trust=trust)
        return " ".join(run_cron_check(check, snapshot, timezone.utc, dry_run=True).lines)

    assert "refused" in lines([])
    assert "refused" not in lines(["nobody"])
    with pytest.raises(NoTrustedUser, match="no user 'nemo'"):
        lines(["nemo"])


def test_a_script_that_is_refused_for_a_while_keeps_its_past(site: Site) -> None:
    """Mended, it does not begin beside its own run that is under way."""
    path = site.script("one")
    site.run(T0)
    site.run(T0 + 3600)
    path.chmod(0o777)
    assert "refused" in site.run(T0 + 3660).lines[0]
    path.chmod(0o755)
    site.run(T0 + 2 * 3600)
    assert site.queue() == ["cron.hourly.one"]
    assert script_book.read_book(str(site.base)).records["cron.hourly/one"].skipped == 1


@pytest.mark.root
def test_what_a_group_may_write_is_nobodys(site: Site) -> None:
    """Its owner says nothing of its text. Root trusts no group, not even its own."""
    shared = site.script("shared")
    shared.chmod(0o775)
    site.script("own").chmod(0o775)
    os.chown(shared, -1, 12345)
    assert site.run(T0).lines == (
        "cron.hourly/own: refused: its group may write to it (chmod g-w)",
        "cron.hourly/shared: refused: its group may write to it (chmod g-w)",
    )


@pytest.mark.root
def test_a_link_that_a_stranger_made_of_a_directory_is_refused(site: Site) -> None:
    """Whoever may write the base could have all of ~/bin run."""
    (site.base / "cron.every-5min").symlink_to(site.base / "cron.hourly")
    os.chown(site.base / "cron.every-5min", 12345, -1, follow_symlinks=False)
    site.script("one")
    assert site.run(T0).lines == (
        "cron.every-5min: refused: the directory: belongs to uid 12345, whom `trust` does not name",
    )


def test_whoever_may_open_the_book_s_folder_could_hold_its_lock(site: Site) -> None:
    """flock(2) needs no right to write, and a folder whose lock was held for ever ran nothing. Its own
    second pass waits as before."""
    site.script("one")
    folder = site.base / ".sentinel"
    folder.mkdir(mode=0o755)  # as the release before made it
    assert site.run(T0).lines == ()
    assert folder.stat().st_mode & 0o777 == 0o711
    assert script_book.read_book(str(site.base)).at == T0
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(held, fcntl.LOCK_EX)
    assert site.run(T0 + 3600).lines == (f"{site.base}: another pass is at work",)
    os.close(held)


@pytest.mark.root
def test_root_runs_nothing_of_a_base_that_a_user_could_replace(site: Site) -> None:
    """All in it is root's; but the folder above is a user's, who may put another base there."""
    site.script("one")
    assert site.run(T0).lines == ()
    os.chown(site.folder, 12345, -1)
    with pytest.raises(BadCronDirectory, match=f"{site.folder} belongs to uid 12345; nothing"):
        site.run(T0)


@pytest.mark.root
def test_a_program_that_a_group_could_replace_is_refused(site: Site) -> None:
    """Whoever is in the group chooses what runs. Scripts there are still run, and warned of."""
    (site.base / "cron.hourly/program").write_bytes(b"\x7fELF")
    (site.base / "cron.hourly/program").chmod(0o755)
    site.script("script")
    assert site.run(T0).lines == ()
    (site.base / "cron.hourly").chmod(0o775)
    (line,) = site.run(T0).lines
    assert line.startswith("cron.hourly/program: refused: is a program in a directory that a group")


@pytest.mark.root
def test_a_group_that_is_named_may_write_a_directory(site: Site) -> None:
    """Its members are trusted then, as `trust` does it with users. Another group is not."""
    (site.base / "cron.hourly/program").write_bytes(b"\x7fELF")
    (site.base / "cron.hourly/program").chmod(0o755)
    os.chown(site.base / "cron.hourly", -1, grp.getgrnam("games").gr_gid)
    (site.base / "cron.hourly").chmod(0o775)
    snapshot = SlurmSnapshot(SlurmClient(limit=10), SystemClock(), users=[], max_age=60)

    def lines(*groups: str) -> str:
        check = CronCheck(base=FilePath(str(site.base)), trust_groups=[*groups])
        return " ".join(run_cron_check(check, snapshot, timezone.utc, dry_run=True).lines)

    assert "refused" not in lines("games")
    assert "refused: is a program in a directory that a group may write" in lines("mail")
    with pytest.raises(NoTrustedUser, match="no group 'nemo'"):
        lines("nemo")


def run_submitted(site: Site) -> subprocess.CompletedProcess[str]:
    """What a node would do with what sbatch got last."""
    script = site.folder / "SUBMITTED"
    return subprocess.run(["sh", script], capture_output=True, text=True, timeout=30, check=False)


def test_a_program_that_is_swapped_after_the_pass_is_not_run(site: Site) -> None:
    """Its job may start hours later. It runs the copy that was checked, or nothing."""
    program = site.base / "cron.hourly/program"
    shutil.copy("/bin/echo", program)
    site.run(T0)
    site.run(T0 + 3600)
    assert site.queue() == ["cron.hourly.program"]
    shutil.copy("/bin/false", program)
    done = run_submitted(site)
    assert (done.returncode, done.stdout, done.stderr) == (0, "\n", "")
    (copy,) = (site.base / ".sentinel/programs").glob("*/program")
    copy.chmod(0o755)
    shutil.copy("/bin/false", copy)
    done = run_submitted(site)
    assert done.returncode == 126
    assert "was changed after it was checked" in done.stderr


@pytest.mark.root
def test_a_program_that_changed_hands_during_the_pass_is_not_submitted(site: Site) -> None:
    """It is checked at the moment of its submission too."""
    program = site.base / "cron.hourly/program"
    shutil.copy("/bin/echo", program)
    (found,) = find_scripts(str(site.base), {0})
    os.chown(program, 12345, -1)
    with pytest.raises(SubmissionRefused, match="belongs to uid 12345"):
        keep_program(str(site.base), found, make_cron_trust())


def test_copies_that_nothing_was_submitted_of_for_long_are_removed(site: Site) -> None:
    """The newest stays, as does what a waiting job may still run."""
    program = site.base / "cron.hourly/program"
    copies = []
    for word in ("/bin/echo", "/bin/true", "/bin/false"):
        shutil.copy(word, program)
        (found,) = find_scripts(str(site.base), {0, os.geteuid()})
        keep_program(str(site.base), found, make_cron_trust())
        copies += set((site.base / ".sentinel/programs").iterdir()) - set(copies)
        if word == "/bin/echo":
            os.utime(copies[0], (1, 1))
    assert sorted((site.base / ".sentinel/programs").iterdir()) == sorted(copies[1:])


@pytest.mark.root
@pytest.mark.parametrize("name", [".sentinel", "log", "log/cron.hourly"])
def test_no_link_of_somebody_else_is_followed_to_write(site: Site, name: str) -> None:
    """Who may write the base, or a folder in it, could lead the book and the logs elsewhere."""
    site.script("one")
    elsewhere = site.folder / "elsewhere"
    elsewhere.mkdir()
    if "/" in name:
        (site.base / "log").mkdir()
    (site.base / name).symlink_to(elsewhere)
    os.chown(site.base / name, 12345, -1, follow_symlinks=False)
    try:
        site.run(T0)
        said = " ".join(site.run(T0 + 3600).lines)
    except BadCronBook as error:
        said = str(error)
    assert "belongs to uid 12345" in said
    assert not list(elsewhere.iterdir())
    assert not site.queue()


@pytest.mark.root
def test_a_link_of_ones_own_is_followed(site: Site) -> None:
    """Logs are often kept on another file system."""
    site.script("one")
    elsewhere = site.folder / "elsewhere"
    elsewhere.mkdir()
    (site.base / "log").symlink_to(elsewhere)
    site.run(T0)
    site.run(T0 + 3600)
    assert site.queue() == ["cron.hourly.one"]
    assert (elsewhere / "cron.hourly/one").is_dir()


def test_a_program_of_any_size_is_run_by_a_script(site: Site) -> None:
    """Only a script goes to sbatch whole, and has to be short."""
    (site.base / "cron.hourly/program").write_bytes(b"\x7fELF" + bytes(2**21))
    (site.base / "cron.hourly/program").chmod(0o755)
    site.script("long", "#!/bin/sh\n" + "#" * 2**20)
    assert site.run(T0).lines == ("cron.hourly/long: refused: is larger than 1 MiB",)


def test_scripts_find_the_environment_of_whoever_launched_it(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """sentinel's own wishes to squeue would change what a script reads from it."""
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("SLURM_MEM_PER_NODE", "500")
    site.script("one")
    site.run(T0)
    site.run(T0 + 3600)
    seen = (site.folder / "ENVIRONMENT").read_text()
    assert "LC_ALL=de_DE.UTF-8\n" in seen
    assert "SLURM_" not in seen


def test_open_runs_cost_one_question(site: Site) -> None:
    """However many there are; a Slurm that does not answer ends none of them."""
    for number in range(5):
        site.script(f"s{number}")
    site.run(T0)
    site.run(T0 + 3600)
    site.run(T0 + 3660)
    assert len((site.folder / "CALLS").read_text().splitlines()) == 1
    site.slurm(squeue="#!/bin/sh\nexit 1\n")
    site.run(T0 + 3720)
    records = script_book.read_book(str(site.base)).records.values()
    assert [len(record.open_runs) for record in records] == [1] * 5


@pytest.mark.parametrize(
    ("first", "name", "runs"),
    [
        ("#!/usr/bin/python3 -u", "sync.py", True),
        ("#!/usr/bin/env perl", "sync.pl", True),
        ("#!/bin/bash", "sync.sh", True),
        ("#!/bin/bash", "sync.slurm", True),
        ("#!/bin/bash", "sync.broken", False),
        ("#!/bin/bash", "sync.rpmnew", False),
        ("#!/usr/bin/python3", "sync.py.new", False),
        ("#!/usr/bin/python3", "sync.", False),
    ],
)
def test_an_extension_of_its_language_makes_a_script_no_copy(
    tmp_path: Path, first: str, name: str, runs: bool
) -> None:
    """Beside one of its name without the extension, which runs whatever lies beside it."""
    folder = tmp_path / "cron.daily"
    folder.mkdir()
    for each in ("sync", name):
        (folder / each).write_text(f"{first}\ntrue\n")
        (folder / each).chmod(0o755)
    found = {one.key: one for one in find_scripts(str(tmp_path), {0, os.geteuid()})}
    other = found[f"cron.daily/{name}"]
    assert found["cron.daily/sync"].script
    assert (other.script is not None, other.twin) == (runs, "sync" if runs else "")
