"""Forms of Slurm and cron that were looked for once more after reading the code; expectations first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec.structs import replace

from sentinel.actions.probation import ReleaseAction
from sentinel.chain.script_history import SubmittedRun
from sentinel.chain.scripts_submit import ScriptSubmitter
from sentinel.clock import SystemClock
from sentinel.core.cluster import JobEnd, Reservation
from sentinel.core.model import ActionRequest, Status
from sentinel.slurm.array_ends import SubmissionEnd
from sentinel.slurm.change import SlurmHands
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.node_notes import is_note
from sentinel.slurm.snapshot import SlurmSnapshot
from sentinel.slurm.submission import submitted_job
from tests.checks.job.making import pending
from tests.checks.job.test_revival import Dying
from tests.slurm.stand_ins import StandIns
from tests.world.case import Case, each
from tests.world.test_slurm_hunted import among
from tests.world.test_slurm_hunted_again import (
    DOUBLE,
    NIGHT,
    RUN_PARTS,
    again,
    script_options,
    scripts,
)
from tests.world.test_slurm_hunted_third import PLAINLY, REBUILT

SBATCH_C = "slurm 26.05, src/sbatch/opt.c, _opt_batch_script()"
DEPENDS_C = "slurm 26.05, src/slurmctld/job_scheduler.c"
GETOPT = "https://man7.org/linux/man-pages/man3/getopt_long.3.html, abbreviations"
EXTRA = "https://slurm.schedmd.com/slurm.conf.html, extra_constraints: Extra of a node is JSON"


def revived(said: str, state: str = "FAILED", **end: Any) -> bool:
    """Whether a training that ends so is submitted again."""
    with TemporaryDirectory() as folder:
        return bool(Dying(Path(folder)).dies(said, state, **end))


def outcome(out: str, said: str, code: int) -> str:
    """What an sbatch proves that prints this."""
    with TemporaryDirectory() as folder:
        programs = StandIns(Path(folder))
        programs.says("sbatch", out=out, err=said, code=code)
        client = SlurmClient(limit=10.0, environ=programs.env)
        hands = SlurmHands(SlurmSnapshot(client, SystemClock(), users=(), max_age=5.0))
        return hands.change(("sbatch", "train.sh")).answer.name


@dataclass
class Ended:
    """A Slurm in whose queue nothing is, and that remembers one end."""

    state: str
    source: str

    @property
    def client(self) -> Ended:
        return self

    def ask_slurm(self, *_: str) -> bytes:
        return b""

    def submission_end(self, job: str) -> SubmissionEnd:
        return SubmissionEnd(JobEnd(job_id=job, state=self.state, source=self.source))


def is_over(state: str, source: str = "squeue") -> bool:
    """Whether a run of a script whose job has this state is over, so that the next one begins."""
    submitter = ScriptSubmitter(Ended(state, source), "/cron", {})  # type: ignore[arg-type]
    (run,) = submitter.refresh_ends([SubmittedRun(slot=60, job="7", at=60.0)])
    return run.is_over


@dataclass
class Reserved:
    """A Slurm with one reservation."""

    one: Reservation

    def reservations(self) -> list[Reservation]:
        return [self.one]


def may_be_released(starts: int) -> bool:
    """Whether the reservation that was made at 1795235580 is taken away, when it begins at that time."""
    params = {"name": "p", "minutes": "60", "node": "n1", "users": "root", "asked": "1795235580"}
    found = Reservation(name="p", starts=starts, ends=starts + 3600, nodes=frozenset({"n1"}), flags=frozenset({"SPEC_NODES"}), users=frozenset({"root"}))  # fmt: skip
    request = ActionRequest(action="release", target="n1", reason="", params=params)
    return not ReleaseAction().look(request, Reserved(found)).not_ready  # type: ignore[arg-type]


HELD_ARRAY = pending("20", "JobHeldUser", name="pre", id="20_[1-4]", array_id="20", task="1-4")
AFTER_EACH = pending(
    "31",
    "Dependency",
    id="31_[1-4]",
    array_id="31",
    task="1-4",
    dependency="aftercorr:20_*(unfulfilled)",
)
LOGGED = "tee: /var/log/sbatch.log: Permission denied"

# Three are left out: `*/60` was in a test already, a refusal in words that are not known stays unknown, and
# `5/15` is minute 5 alone to cronie and 5-59/15 to others.
CASES = (
    Case("typed-for-a-node-that-failed", "slurm 26.05, src/slurmctld/job_mgr.c: required and excluded node lists overlap", lambda: again("sbatch -w n7 -N 8", "n7"), (*REBUILT[:3], "--exclude=n7", *REBUILT[3:]), NIGHT),
    Case("a-number-behind-the-submission", "a site's wrapper of sbatch", lambda: submitted_job(b"Submitted batch job 4711\nnode hours left:\n120\n"), "4711", DOUBLE),
    Case("behind-each-element-of-a-held-array", DEPENDS_C + ", AFTER_CORRESPOND", lambda: among(AFTER_EACH, HELD_ARRAY), Status.CRITICAL, NIGHT),
    Case("typed-for-srun", "https://slurm.schedmd.com/srun.html: an allocation without a batch script", lambda: again("srun -N 8", batch=False), (), DOUBLE),
    Case("typed-behind-a-job-that-is-forgotten", DEPENDS_C + ", ESLURM_DEPENDENCY for afterok of an unknown job", lambda: again("sbatch -d afterok:4710 -N 8"), PLAINLY, NIGHT),
    Case("typed-for-later-by-two-letters", GETOPT, lambda: again("sbatch --be=20:00 -N 8"), PLAINLY, NIGHT),
    Case("an-option-right-behind-the-mark", SBATCH_C, lambda: script_options("#SBATCH--job-name=a").job_name, "a", NIGHT),
    Case("a-component-in-capitals", SBATCH_C, lambda: script_options("#SBATCH --job-name=a", "#SBATCH HETJOB", "#SBATCH --job-name=b").job_name, "a", NIGHT),
    Case("a-copy-of-a-conflict", "https://docs.syncthing.net/users/syncing.html, conflicting changes", lambda: sorted(scripts("backup.sh", "backup.sync-conflict-20261129-031500-D4LGQYW.sh")), ["backup.sh"], DOUBLE),
    Case("a-copy-of-a-merge", "git, git-mergetool.sh: BACKUP, LOCAL, REMOTE, BASE", lambda: sorted(scripts("backup.sh", "backup_BACKUP_4711.sh", "backup_REMOTE_4711.sh")), ["backup.sh"], DOUBLE),
    Case("a-saved-file-of-pacman-alone", "https://man.archlinux.org/man/pacman.8, handling config files", lambda: sorted(scripts("man-db.pacsave", "sync")), ["sync"], DOUBLE),
    Case("interrupted-by-its-owner", "https://slurm.schedmd.com/scancel.html, --signal=INT: the job is not CANCELLED", lambda: revived("iteration 7 loss 2.1\nKeyboardInterrupt\n", exit_code=130), False, DOUBLE),
    Case("a-wrapper-fails-behind-the-submission", "a site's wrapper of sbatch", lambda: outcome("Submitted batch job 4711\n", LOGGED, 1) != "REFUSED", True, DOUBLE),
    Case("a-note-in-a-list-of-json", EXTRA, lambda: is_note('{"rack": "r7", "notes": []}', '{"rack": "r7", "notes": ["do not resume, RMA"]}'), True, DOUBLE),
    Case("a-ticket-in-an-empty-value", EXTRA, lambda: is_note('{"rack": "r7", "ticket": null}', '{"rack": "r7", "ticket": "INC0042137"}'), True, DOUBLE),
    Case("a-reservation-that-was-moved", "https://slurm.schedmd.com/scontrol.html, update ReservationName StartTime", lambda: may_be_released(1795840380), False, DOUBLE),
    Case("a-run-on-another-cluster", "https://slurm.schedmd.com/federation.html, src/slurmctld/fed_mgr.c", lambda: is_over("REVOKED"), False, DOUBLE),
)  # fmt: skip


# Siblings of each kind that was mended, and healthy controls; written after the mends.
SIBLINGS = (
    Case("interrupted-by-a-signal", "https://slurm.schedmd.com/scancel.html, --signal=INT", lambda: revived("iteration 7 loss 2.1\n", signal=2), False, DOUBLE),
    Case("a-wrong-argument-in-a-script", "bash(1), EXIT STATUS: 2 is wrong usage", lambda: [revived(f"iteration 7 loss 2.1\nRuntimeError: {said}\n", exit_code=2) for said in ("x", "NCCL communicator was aborted")], [False, True], NIGHT),
    Case("ended-by-a-signal-of-its-own", "https://slurm.schedmd.com/scancel.html", lambda: [revived(f"iteration 7 loss 2.1\n{said}", exit_code=134) for said in ("RuntimeError: x\n", "")], [False, True], NIGHT),
    Case("a-wrapper-fails-behind-an-id", "a site's wrapper of sbatch", lambda: outcome("4711;east\n", "sbatch: account is not permitted to log", 1) != "REFUSED", True, DOUBLE),
    Case("a-refusal-behind-a-greeting", "a site's wrapper of sbatch", lambda: outcome("Welcome to cluster 7\n", "sbatch: error: Batch job submission failed: Invalid qos specification", 1), "REFUSED", NIGHT),
    Case("a-note-in-an-object-of-json", EXTRA, lambda: is_note('{"ops": {"note": ""}}', '{"ops": {"note": "do not resume"}}'), True, DOUBLE),
    Case("a-new-place-deep-in-json", EXTRA, lambda: is_note('{"ops": {"by": "a"}}', '{"ops": {"by": "a", "hold": true}}'), True, DOUBLE),
    Case("one-more-in-a-list-of-json", EXTRA, lambda: is_note('{"tickets": ["INC1"]}', '{"tickets": ["INC1", "INC2"]}'), True, DOUBLE),
    Case("values-deep-in-json", "https://github.com/SlinkyProject/slurm-operator", lambda: [is_note('{"pod": {"name": "a-1", "restarts": 0}, "ok": true}', f'{{"pod": {{"name": "a-7", "restarts": 3}}, "ok": {ok}}}') for ok in ("true", "false")], [False, True], DOUBLE),
    Case("a-value-that-was-emptied", EXTRA, lambda: is_note('{"ticket": "INC1", "notes": ["a"]}', '{"ticket": "", "notes": []}'), False, NIGHT),
    Case("a-reservation-as-it-was-asked-for", "https://slurm.schedmd.com/scontrol.html, StartTime=now", lambda: may_be_released(1795235600), True, NIGHT),
    Case("a-reservation-that-was-moved-by-a-day", "https://slurm.schedmd.com/scontrol.html", lambda: may_be_released(1795321980), False, DOUBLE),
    Case("a-run-in-a-state-of-tomorrow", "https://slurm.schedmd.com/job_state_codes.html", lambda: is_over("TELEPORTED"), False, DOUBLE),
    Case("a-run-on-another-cluster-by-accounting", "slurm 26.05, src/sacct: slurmctld has forgotten it", lambda: is_over("REVOKED", "sacct"), True, NIGHT),
    Case("allocated-for-salloc", "https://slurm.schedmd.com/salloc.html", lambda: again("salloc -N 8", batch=False), (), DOUBLE),
    Case("typed-behind-jobs-in-words", DEPENDS_C, lambda: again("sbatch --dependency afterany:4710:4711,singleton -N 8"), PLAINLY, NIGHT),
    Case("typed-as-one-at-a-time", "https://slurm.schedmd.com/sbatch.html, singleton", lambda: again("sbatch -d singleton -N 8"), ("sbatch", "-d", "singleton", *PLAINLY[1:]), DOUBLE),
    Case("held-by-two-letters", GETOPT, lambda: again("sbatch --ho -N 8"), PLAINLY, NIGHT),
    Case("a-list-by-two-letters", GETOPT, lambda: again("sbatch --ar 1-4 -N 8"), REBUILT, DOUBLE),
    Case("a-time-is-no-test", GETOPT, lambda: again("sbatch --time=20 --export=ALL -N 8"), ("sbatch", "--time=20", "--export=ALL", *PLAINLY[1:]), NIGHT),
    Case("a-short-option-right-behind-the-mark", SBATCH_C, lambda: script_options("#SBATCH-J a", "#SBATCH\t-n2", "# SBATCH -J b").job_name, "a", NIGHT),
    Case("a-component-of-18-08-in-capitals", SBATCH_C, lambda: script_options("#SBATCH -J a", "#SBATCH PackJob", "#SBATCH -J b").job_name, "a", NIGHT),
    Case("a-copy-of-a-conflict-without-extension", "https://docs.syncthing.net/users/syncing.html", lambda: sorted(scripts("backup", "backup.sync-conflict-20261129-031500-D4LGQYW")), ["backup"], DOUBLE),
    Case("a-copy-of-a-cloud", "https://github.com/owncloud/client: conflict copies", lambda: sorted(scripts("a.py", "a_conflict-20261129-031500.py")), ["a.py"], DOUBLE),
    Case("a-dated-script-alone", RUN_PARTS, lambda: sorted(scripts("report-20261129.sh", "train_100.sh", "train.sh", "a-v2.sh", "a.sh")), ["a-v2.sh", "a.sh", "report-20261129.sh", "train.sh", "train_100.sh"], NIGHT),
    Case("files-of-three-package-managers-alone", "apk, dpkg and rpm", lambda: sorted(scripts("a.apk-new", "b.dpkg-old", "c.rpmsave", "d.pacnew", "sync")), ["sync"], DOUBLE),
    Case("extensions-that-are-words", RUN_PARTS, lambda: sorted(scripts("a.gold", "b.news", "c.job", "d_node")), ["d_node"], DOUBLE),
    Case("typed-for-nodes-of-which-none-failed", "https://slurm.schedmd.com/sbatch.html, --nodelist", lambda: again("sbatch --nodelist=n[7-8] -N 8"), REBUILT, NIGHT),
    Case("typed-for-a-node-of-which-none-failed", "https://slurm.schedmd.com/sbatch.html, --nodelist", lambda: again("sbatch -w n7 -N 8"), ("sbatch", "-w", "n7", *PLAINLY[1:]), NIGHT),
    Case("a-number-before-the-submission", "a site's wrapper of sbatch", lambda: submitted_job(b"120\n4711\n"), "4711", DOUBLE),
    Case("behind-each-element-of-another-array", DEPENDS_C, lambda: among(AFTER_EACH, replace(HELD_ARRAY, task="7-9", id="20_[7-9]")), Status.OK, NIGHT),
    Case("behind-each-element-of-an-array-that-waits", DEPENDS_C, lambda: among(AFTER_EACH, replace(HELD_ARRAY, reason="Priority")), Status.OK, NIGHT),
    Case("behind-each-element-of-an-array-with-a-throttle", DEPENDS_C, lambda: among(AFTER_EACH, replace(HELD_ARRAY, task="1-4%2", id="20_[1-4%2]")), Status.CRITICAL, NIGHT),
    Case("a-run-that-failed", "https://slurm.schedmd.com/job_state_codes.html", lambda: is_over("FAILED"), True, NIGHT),
)  # fmt: skip


@each(*CASES, *SIBLINGS)
def test_a_form_of_slurm_or_cron_that_was_hunted_a_fourth_time(
    case: Case, record_property: Callable[[str, object], None]
) -> None:
    answer = case.form()
    record_property("answer", str(answer))
    record_property("right", str(case.right))
    assert answer == case.right
