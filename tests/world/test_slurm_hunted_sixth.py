"""Forms of Slurm and cron that were looked for a sixth time after reading the code; expectations first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec.structs import replace

from sentinel.actions.cancel import CancelAction
from sentinel.actions.probation import ProbationAction
from sentinel.actions.reboot import RebootAction
from sentinel.checks.drained.reasons import find_hidden_reason
from sentinel.checks.gpu import signals
from sentinel.clock import SystemClock
from sentinel.core.actions import Answer, Reply
from sentinel.core.cluster import Job, JobEnd, Node, Submission
from sentinel.core.model import ActionRequest
from sentinel.slurm.change import SlurmHands
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.drain_reasons import classify_reason
from sentinel.slurm.gres import count_job_gpus
from sentinel.slurm.job_change import WorkingHands
from sentinel.slurm.node_notes import describe_new_note
from sentinel.slurm.snapshot import SlurmSnapshot
from sentinel.slurm.submission import resubmit_argv, resubmit_command, submitted_job
from sentinel.testing import START, FixedSlurm
from tests.checks.diag.test_probation import WISH
from tests.checks.diag.test_probation import Slurm as Reserved
from tests.checks.drained.test_check import NODE, REBOOT, STUCK, Book, job, run
from tests.checks.job.making import HOUR, NOW, check, ended
from tests.checks.job.making import Watch as Watched
from tests.checks.job.making import job as watched
from tests.checks.job.test_recall import Slurm as Remembering
from tests.checks.job.test_recall import run as ended_run
from tests.slurm.stand_ins import StandIns
from tests.slurm.test_submission import PLAIN
from tests.world.case import Case, each
from tests.world.slurm_answers import field, returns
from tests.world.test_chains_drawn import times
from tests.world.test_slurm_hunted_again import DOUBLE, NIGHT, again, scripts
from tests.world.test_slurm_hunted_fifth import Queued, told
from tests.world.test_slurm_hunted_fourth import revived

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


class Scrontab(Queued):
    """A Slurm in which `scontrol show job` says this behind the name of the one job."""

    def __init__(self, said: str, state: str = "RUNNING") -> None:
        super().__init__(watched("11", state))
        self._said = said

    def is_of_scrontab(self, job_id: str) -> bool:
        with TemporaryDirectory() as folder:
            programs = StandIns(Path(folder))
            programs.says(
                "scontrol", out=f"JobId={job_id} JobName=train {self._said} UserId=a(1)\n"
            )
            client = SlurmClient(limit=10.0, environ=programs.env)
            snapshot = SlurmSnapshot(client, SystemClock(), users=(), max_age=5.0)
            hands = WorkingHands(snapshot, (), None, evidence=lambda _: Reply(Answer.ACCEPTED))
            return hands.is_of_scrontab(job_id)


def is_cancelled(said: str, **params: str) -> bool:
    """Whether a running job is cancelled, or sent a signal, of which Slurm says this."""
    asked = ActionRequest(action="cancel", target="11", reason="", params=params)
    return not CancelAction().look(asked, Scrontab(said)).not_ready  # type: ignore[arg-type]


def timed_out(limit: str, hours: float) -> str:
    """What is told of a training with this limit that ended as TIMEOUT after so many hours."""
    watch, ran = Watched(check()), int(hours * HOUR)
    how = Submission(
        id="10", name="train", user="alice", workdir="/w", options=(f"--time={limit}",)
    )
    began = watched("10", started=NOW - ran)
    watch.see(FixedSlurm(jobs=[began], submissions={"10": how}))
    watch.clock.advance(60)
    end = ended("10", "TIMEOUT", reason="TimeLimit", started=NOW - ran, ended=NOW)
    return watch.see(FixedSlurm(jobs=[], ends={"10": end}, submissions={"10": how})).summary


def scancel(said: str) -> str:
    """What a scancel proves that ended with 1 and said this."""
    with TemporaryDirectory() as folder:
        programs = StandIns(Path(folder))
        programs.says("scancel", out="", err=f"scancel: error: {said}\n", code=1)
        client = SlurmClient(limit=10.0, environ=programs.env)
        hands = SlurmHands(SlurmSnapshot(client, SystemClock(), users=(), max_age=5.0))
        return hands.change(("scancel", "11")).answer.name


def noted(comment: str) -> bool:
    """Whether this Comment is a note of somebody, since it was empty."""
    return bool(describe_new_note({"comment": "", "extra": ""}, replace(NODE, comment=comment)))


def excluding(line: str, without: str = "") -> tuple[str, ...]:
    """The command that submits a job again that was typed so and excludes n3."""
    typed = replace(
        PLAIN, name="llm", workdir="/work", exclude="n3", line=f"{line} /work/train.sh a.yaml"
    )
    return resubmit_argv(typed, without)


def typed_as(line: str, command: str = "/work/train.sh a.yaml") -> tuple[str, ...]:
    """The command that submits a job again whose script and line these are."""
    return resubmit_argv(replace(PLAIN, name="llm", workdir="/work", command=command, line=line))


def forgotten(state: str, *, ended: int) -> str:
    """What is told of a job of a high number that only accounting knows, after slurmctld started anew at NOW + 300
    and counts from 57."""
    watch, number = Watched(check()), "67108860"
    watch.look(watched(number, id=number, array_id=number))
    watch.clock.advance(600)
    booked = ended_run(number, state, source="sacct", ended=ended, exit_code=0)
    return watch.see(
        Remembering(runs=[booked], booted=NOW + 300, next_id=57, accounting=True, keeps=300)
    ).summary


def blamed(reason: str) -> list[str]:
    """The nodes against which it counts that a job ended with NODE_FAIL, when its node was set DOWN so."""
    down = Node(name="n1", state="DOWN", reason=reason, reason_user="alice", reason_time=NOW)
    before = signals.running([watched("10", nodes="n1", node_count=1)], [down])
    end = JobEnd(job_id="10", state="NODE_FAIL", failed_node="n1")
    return [event.node for event in signals.failures(before, [], lambda _: end, START)]


def found(text: str) -> list[str]:
    """The files of a directory that run, of one with this text."""
    return [*scripts("backup", text=text)]


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
    Case("a-cancel-without-a-flag", "slurm 26.11, src/common/slurm_errno.c, ESLURM_CANNOT_CANCEL_CRON_JOB", lambda: scancel("Kill job error on job id 11: Cannot cancel scrontab jobs without --cron flag."), "REFUSED", NIGHT),
    Case("a-cancel-of-what-scrontab-began", "slurm 20.11 to 26.11, src/slurmctld/job_mgr.c, crontab_add_disabled_lines()", lambda: is_cancelled('CronJob=Yes CrontabSpec="0 3 * * *"'), False, DOUBLE),
    Case("a-silent-srun", "slurm 26.11, src/slurmctld/job_mgr.c, FAIL_INACTIVE_LIMIT with JOB_TIMEOUT", lambda: "time limit" in told("TIMEOUT", reason="InactiveLimit"), False, NIGHT),
    Case("a-reservation-that-ended", "slurm 26.11, src/slurmctld/job_mgr.c: Reservation ended for JobId", lambda: ["reached its time limit" in timed_out("1-00:00:00", 1), "22h" in timed_out("1-00:00:00", 2)], [False, True], NIGHT),
    Case("switched-off-in-capitals", "https://manpages.debian.org/bookworm/debianutils/run-parts.8.en.html", lambda: sorted(scripts("backup.sh.DISABLED", "sync")), ["sync"], DOUBLE),
    Case("saved-by-an-editor-that-was-killed", "https://www.nano-editor.org/dist/latest/nano.1.html, FILE.save", lambda: sorted(scripts("backup.sh.save", "sync")), ["sync"], DOUBLE),
    Case("a-type-of-digits", "public job scripts: #SBATCH --gres=gpu:4090:2", lambda: count_job_gpus("cpu=8,node=2", "", "gres/gpu:4090:2", "", "", 2, 2), 4, NIGHT),
    Case("low-memory-and-other-cores", "slurm 26.11, src/slurmctld/node_mgr.c, validate_node_specs()", lambda: returns("Low RealMemory (reported:193024 < 100.00% of configured:257000), CoreSpec differ", "root", "Low RealMemory"), True, NIGHT),
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
    Case("a-cancel-of-what-sbatch-began", "slurm 26.11, src/scontrol/info_job.c", lambda: (is_cancelled("Restarts=0"), is_cancelled("Restarts=0", signal="USR1")), (True, True), NIGHT),
    Case("a-signal-to-what-scrontab-began", "slurm 26.11, src/slurmctld/job_mgr.c, _job_signal()", lambda: is_cancelled("CronJob=Yes", signal="USR1"), False, DOUBLE),
    Case("a-requeue-of-what-scrontab-began", "slurm 26.11, src/common/slurm_errno.c", lambda: scancel("Cannot modify scrontab jobs through scontrol for job 11"), "REFUSED", NIGHT),
    Case("a-silent-srun-is-not-submitted-again", "slurm 26.11, src/slurmctld/job_mgr.c", lambda: (revived("iteration 7\n", "TIMEOUT", reason="InactiveLimit"), revived("iteration 7\n", "TIMEOUT", reason="TimeLimit")), (False, True), DOUBLE),
    Case("a-limit-that-was-reached", "slurm 26.11, src/slurmctld/job_mgr.c", lambda: ["reached its time limit" in timed_out(limit, hours) for limit, hours in (("02:00:00", 2.01), ("02:00:00", 1.99), ("UNLIMITED", 2))], [True, True, True], NIGHT),
    Case("switched-off-behind-an-extension", "https://manpages.debian.org/bookworm/debianutils/run-parts.8.en.html", lambda: sorted(scripts("a.sh.inactive", "b.BAK", "c.sh-off", "d.sh_2026", "e.RPMNEW", "f.old.sh", "g.aus", "h.2026", "i.v2.sh")), [], DOUBLE),
    Case("names-that-end-with-their-language", "names of scripts", lambda: sorted(scripts("a-v2.sh", "c-sh", "d.sh.slurm", "e.SBATCH", "f.py")), ["a-v2.sh", "c-sh", "d.sh.slurm", "e.SBATCH", "f.py"], NIGHT),
    Case("types-and-numbers", "slurm 20.11 to 26.11, tres-per-node and tres-per-job", lambda: [count_job_gpus("", "", asked, "", "", 1, 1) for asked in ("gres:gpu:2", "gres/gpu:h100", "gres/gpu:4090=2", "gpu:1g.10gb:3", "gres/gpu=8,gres/nvme:1", "gres/gpumem:4")], [2, 1, 2, 3, 8, 0], NIGHT),
    Case("a-note-behind-other-cores", "slurm 26.11, src/slurmctld/node_mgr.c", lambda: returns("Low RealMemory, CoreSpec differ, RMA 71", "root", "Low RealMemory"), False, DOUBLE),
    Case("a-person-is-told-of-the-variables", SBATCH, lambda: ["--export" in remark(f"sbatch --array=1-4 {option}") for option in ("--export=NONE", "--export=ALL")], [True, False], DOUBLE),
)  # fmt: skip


# Ten more, looked for when the kinds above had been mended; expectations first. Six siblings came later.
GREETING = "          Welcome to the Stampede3 Supercomputer\n--> Checking (login4)...OK\n"
LATER = (
    Case("a-mark-of-an-editor-before-the-first-line", "https://www.unicode.org/faq/utf_bom.html, written by editors of Windows", lambda: sorted(scripts("a.py", text="\ufeff#!/usr/bin/python3\nimport os\n")), [], DOUBLE),
    Case("ids-that-begin-anew", "https://slurm.schedmd.com/slurm.conf.html, MaxJobId", lambda: "lost its memory" in forgotten("COMPLETED", ended=NOW + 60), False, NIGHT),
    Case("a-node-that-an-administrator-set-down", "https://slurm.schedmd.com/scontrol.html, State=DOWN Reason=", lambda: blamed("maint: firmware"), [], DOUBLE),
    Case("a-script-in-path", "slurm 26.11, src/sbatch/opt.c, search_path()", lambda: typed_as("sbatch --mem=64G train.sh a.yaml", "/home/alice/bin/train.sh a.yaml"), ("sbatch", "--mem=64G", "/home/alice/bin/train.sh", "a.yaml"), NIGHT),
    Case("a-renamed-sbatch", "a site's wrapper of sbatch", lambda: typed_as("/opt/slurm/bin/sbatch.real --mem=64G /work/train.sh a.yaml"), ("sbatch", "--mem=64G", "/work/train.sh", "a.yaml"), NIGHT),
    Case("a-diagnosis-of-a-prolog", "https://github.com/GoogleCloudPlatform/slurm-gcp/pull/223", lambda: classify_reason("H100 GPU issues detected: DCGM test failed, see /tmp/dcgm.out"), "gpu", NIGHT),
    Case("a-reason-of-an-operator", "https://github.com/nebius/soperator/pull/1392", lambda: returns("[user_problem] alloc_gpus_busy: kill them", "root", "[user_problem]"), False, DOUBLE),
    Case("a-health-check-over-a-persons-reason", "https://github.com/mej/nhc/issues/134", lambda: find_hidden_reason(Book((), "NHC: Watchdog timer unable to terminate", "ADMIN SHUTDOWN").readings("n1"), (), ["NHC"]), "ADMIN SHUTDOWN", DOUBLE),
    Case("a-default-partition", "https://github.com/easybuilders/easybuild-framework/issues/4061", lambda: submitted_job(b"sbatch: no partition specified, using default partition x\nSubmitted batch job 7787202\n"), "7787202", DOUBLE),
    Case("a-greeting-and-a-cluster", "https://github.com/llnl/maestrowf/issues/441; https://github.com/Parsl/parsl/pull/2636", lambda: submitted_job(f"{GREETING}Submitted batch job 60060368 on cluster slaking\n".encode()), "60060368", DOUBLE),
    Case("an-empty-line-before-the-first-line", "execve(2)", lambda: sorted(scripts("a.py", text="\n#!/usr/bin/python3\nimport os\n")), [], DOUBLE),
    Case("a-program-without-a-first-line", "run by the shell, as ever", lambda: len(found("true  # not #!/bin/sh\n")), 1, NIGHT),
    Case("a-memory-that-was-lost", "https://slurm.schedmd.com/slurmctld.html, -c: accounting ends the job when slurmctld starts", lambda: "lost its memory" in forgotten("NODE_FAIL", ended=NOW + 300), True, NIGHT),
    Case("a-node-that-was-lost", "slurm 26.11, src/slurmctld/node_mgr.c", lambda: [blamed(reason) for reason in ("Not responding", "", "Xid 79, RMA 71")], [["n1"]] * 3, NIGHT),
    Case("another-script-of-that-name", SBATCH, lambda: typed_as("sbatch --mem=64G /work/other.sh a.yaml")[1:3], PLAIN.options, DOUBLE),
    Case("a-script-from-elsewhere", SBATCH + ", --chdir", lambda: typed_as("sbatch -D /work train.sh a.yaml", "/home/alice/train.sh a.yaml"), ("sbatch", "-D", "/work", "/home/alice/train.sh", "a.yaml"), NIGHT),
)  # fmt: skip


@each(*CASES, *SIBLINGS, *LATER)
def test_a_form_of_slurm_or_cron_that_was_hunted_a_sixth_time(
    case: Case, record_property: Callable[[str, object], None]
) -> None:
    answer = case.form()
    record_property("answer", str(answer))
    record_property("right", str(case.right))
    assert answer == case.right
