"""Forms of Slurm and cron that were looked for a sixth time after reading the code; expectations first."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from sentinel.actions.probation import ProbationAction
from sentinel.actions.reboot import RebootAction
from sentinel.core.cluster import Job
from sentinel.slurm.node_notes import describe_new_note
from sentinel.slurm.submission import resubmit_argv, resubmit_command, submitted_job
from tests.checks.diag.test_probation import WISH
from tests.checks.diag.test_probation import Slurm as Reserved
from tests.checks.drained.test_check import NODE, REBOOT, STUCK, job, run
from tests.slurm.test_submission import PLAIN
from tests.world.case import Case, each
from tests.world.slurm_answers import field
from tests.world.test_chains_drawn import times
from tests.world.test_slurm_hunted_again import DOUBLE, NIGHT, again
from tests.world.test_slurm_hunted_fifth import told

SUSPENDED = "slurm 26.11, src/slurmctld/job_mgr.c, _suspend_job_nodes(): a node whose only job is suspended is IDLE"
SBATCH = "https://slurm.schedmd.com/sbatch.html"
AUKS = (
    "Sun Jul  7 03:08:22 2019 [INFO4] [euid=1000,pid=7] auks_krb5_cred: kerberos context initialized\n"
    "Sun Jul  7 03:08:23 2019 [INFO4] [euid=1000,pid=7] auks_api: cred added\n132826\n"
)
MARK = "sentinel:returned:1795235580:0123456789ab"


def rebooted(*jobs: Job) -> list[str]:
    """What `drained` asks for of a node with a task in state D, on which these jobs are."""
    return [request.action for request in run(REBOOT, probe=STUCK, jobs=jobs).requests]


class Beside(Reserved):
    """A Slurm that has these jobs on the node."""

    def __init__(self, *jobs: Job, **more: object) -> None:
        super().__init__(**more)  # type: ignore[arg-type]
        self._here = jobs

    def jobs_on(self, node: str) -> tuple[Job, ...]:
        return self._here


def is_kept(*jobs: Job) -> bool:
    """Whether an idle node with these jobs goes into a reservation of ours, to be tested."""
    return not ProbationAction().look(WISH, Beside(*jobs)).not_ready  # type: ignore[arg-type]


def is_rebooted(*jobs: Job) -> bool:
    """Whether a reboot that was asked for is carried out, when these jobs are on the node by then."""
    (asked,) = run(REBOOT, probe=STUCK).requests
    return not RebootAction().look(asked, Beside(*jobs, here=NODE)).not_ready


def noted(comment: str) -> bool:
    """Whether this Comment is a note of somebody, since it was empty."""
    return bool(describe_new_note({"comment": "", "extra": ""}, replace(NODE, comment=comment)))


def excluding(line: str, without: str = "") -> tuple[str, ...]:
    """The command that submits a job again that was typed so and excludes n3."""
    typed = replace(
        PLAIN, name="llm", workdir="/work", exclude="n3", line=f"{line} /work/train.sh a.yaml"
    )
    return resubmit_argv(typed, without)


def remark(line: str) -> str:
    """What is said behind the command for a person."""
    typed = replace(PLAIN, name="llm", line=f"{line} /work/train.sh a.yaml")
    command = resubmit_command(typed)
    return command.note if command else "no command"


CASES = (
    Case("a-reboot-under-a-suspended-job", SUSPENDED, lambda: rebooted(job("12", "SUSPENDED")), [], DOUBLE),
    Case("typed-with-a-node-and-variables", SBATCH + ", --exclude, --export", lambda: excluding("sbatch -x n3 --export=ALL,LR=3e-4 -N 8"), ("sbatch", "--export=ALL,LR=3e-4", "-N", "8", "--exclude=n3", "/work/train.sh", "a.yaml"), DOUBLE),
    Case("typed-with-a-file-of-variables", SBATCH + ", --export-file", lambda: "--export-file=/work/my runs/env.list" in again("sbatch --export-file=env.list -N 8"), True, NIGHT),
    Case("a-note-behind-a-mark", "typed by hand: scontrol update Comment=", lambda: noted(f"{MARK} RMA 71"), True, DOUBLE),
    Case("two-hours-are-left-out", "https://www.iana.org/time-zones, Antarctica/Troll", lambda: times("30 1 * * *", "Antarctica/Troll", "2026-03-28 12:00", "2026-03-29 12:00"), ["29 01:00"], NIGHT),
    Case("a-step-that-was-ended", "https://github.com/martius-lab/cluster_utils/issues/87", lambda: "but a step of it failed" in told("COMPLETED", exit_code=0, step_failed="0:10"), True, NIGHT),
    Case("a-plugin-speaks-before-the-number", "https://github.com/jupyterhub/batchspawner/issues/148", lambda: submitted_job(AUKS.encode()), "132826", DOUBLE),
    Case("a-zone-before-the-fields", "https://pkg.go.dev/github.com/robfig/cron/v3, CRON_TZ", lambda: field("CRON_TZ=Asia/Tokyo 30 04 * * *", "minutes"), "refused", NIGHT),
    Case("a-script-that-was-lost", "slurm 26.11, src/slurmctld/job_mgr.c: Script for JobId lost, state set to FAILED", lambda: "Slurm could not start it" in told("FAILED", reason="SystemFailure"), True, NIGHT),
    Case("a-probation-beside-a-suspended-job", SUSPENDED, lambda: is_kept(job("12", "SUSPENDED")), False, NIGHT),
)  # fmt: skip

# Siblings of each kind that was mended, and healthy controls; written after the mends.
SIBLINGS = (
    Case("a-reboot-under-no-job", SUSPENDED, lambda: (rebooted(), is_rebooted()), (["reboot"], True), NIGHT),
    Case("a-reboot-under-a-stopped-job", "https://slurm.schedmd.com/job_state_codes.html, STOPPED", lambda: rebooted(job("12", "STOPPED")), [], DOUBLE),
    Case("suspended-since-the-reboot-was-asked-for", SUSPENDED, lambda: is_rebooted(job("12", "SUSPENDED")), False, DOUBLE),
    Case("a-probation-beside-no-job", SUSPENDED, lambda: is_kept(), True, NIGHT),
    Case("a-mark-alone-and-one-behind-a-note", "sentinel's own", lambda: (noted(MARK), noted(f"RMA 71 {MARK}")), (False, True), DOUBLE),
    Case("typed-with-a-node-and-another-that-failed", SBATCH, lambda: excluding("sbatch --exclude n3 --mem=64G", "n7"), ("sbatch", "--mem=64G", "--exclude=n[3,7]", "/work/train.sh", "a.yaml"), NIGHT),
    Case("typed-with-a-file-of-variables-elsewhere", SBATCH, lambda: (again("sbatch --export-file env.list -D /x -N 8"), again("sbatch --export-file=3 -N 8")), ((), ()), DOUBLE),
    Case("typed-with-a-file-of-the-burst-buffer", SBATCH + ", --bbf", lambda: "--bbf=/work/my runs/bb.txt" in again("sbatch --bbf bb.txt -N 8"), True, NIGHT),
    Case("typed-as-an-array-with-variables", SBATCH, lambda: again("sbatch --array=1-4 --export=NONE -N 8"), (), DOUBLE),
    Case("typed-as-an-array-with-the-usual-variables", SBATCH, lambda: again("sbatch --array=1-4 --export=ALL -N 8")[0], "sbatch", NIGHT),
    Case("a-person-is-told-of-the-variables", SBATCH, lambda: ["--export" in remark(f"sbatch --array=1-4 {option}") for option in ("--export=NONE", "--export=ALL")], [True, False], DOUBLE),
)  # fmt: skip


@each(*CASES, *SIBLINGS)
def test_a_form_of_slurm_or_cron_that_was_hunted_a_sixth_time(
    case: Case, record_property: Callable[[str, object], None]
) -> None:
    answer = case.form()
    record_property("answer", str(answer))
    record_property("right", str(case.right))
    assert answer == case.right
