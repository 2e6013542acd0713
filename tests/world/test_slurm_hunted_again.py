"""Forms of Slurm and cron that somebody looked for in its sources and manuals after reading the code; expectations first."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec.structs import replace

from sentinel.chain.mend import plan_mending
from sentinel.chain.scripts import find_scripts
from sentinel.clock import SystemClock
from sentinel.core.model import Status
from sentinel.slurm.change import SlurmHands
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.node_notes import is_note
from sentinel.slurm.reservations import is_as_asked, read_reservations
from sentinel.slurm.sbatch_words import SbatchCall, read_sbatch_call, read_script_options
from sentinel.slurm.snapshot import SlurmSnapshot
from sentinel.slurm.submission import resubmit_argv, submitted_job
from tests.chain.test_mend import CHAIN, NOW, A, B, link
from tests.checks.job.making import pending
from tests.slurm.stand_ins import StandIns
from tests.slurm.test_submission import PLAIN
from tests.world.case import Case, each
from tests.world.slurm_answers import seconds, waits
from tests.world.test_chains_drawn import times
from tests.world.test_slurm_hunted import among

SBATCH = "https://slurm.schedmd.com/sbatch.html"
HET = "https://slurm.schedmd.com/heterogeneous_jobs.html"
PLUGINS = "https://slurm.schedmd.com/job_submit_plugins.html, slurm.log_user()"
CRON = "https://man7.org/linux/man-pages/man5/crontab.5.html"
RUN_PARTS = "cronie, contrib/run-parts; https://manpages.debian.org/bookworm/debianutils/run-parts.8.en.html"
DEPENDS = "slurm, src/slurmctld/job_scheduler.c, test_job_dependency()"
DOUBLE = "The same work is submitted twice, or another's mark is removed."
NIGHT = "Nobody is woken for what never starts, or a resubmission does not run."


def changed(said: str) -> str:
    """What an sbatch proves that ended with 0 and a job id, and said this on stderr."""
    with TemporaryDirectory() as folder:
        programs = StandIns(Path(folder))
        programs.says("sbatch", out="Submitted batch job 4711\n", err=said, code=0)
        client = SlurmClient(limit=10.0, environ=programs.env)
        hands = SlurmHands(SlurmSnapshot(client, SystemClock(), users=(), max_age=5.0))
        return hands.change(("sbatch", "train.sh")).answer.name


def scripts(*names: str, text: str = "#!/bin/sh\ntrue\n") -> Mapping[str, str]:
    """The scripts that run by themselves, of these executable files of cron.daily, and when."""
    with TemporaryDirectory() as base:
        folder = Path(base) / "cron.daily"
        folder.mkdir()
        for name in names:
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
        found = find_scripts(base, {0, os.geteuid()})
        return {
            one.path.rpartition("/")[2]: one.script.schedule.text for one in found if one.script
        }


def again(line: str, without: str = "", *, batch: bool = True) -> tuple[str, ...]:
    """The command that submits a job again that was typed so."""
    return resubmit_argv(
        replace(PLAIN, name="llm", line=f"{line} /work/train.sh a.yaml", batch=batch), without
    )


def typed(line: str) -> tuple[str | None, str | None]:
    """Script and name of a job by what follows sbatch."""
    call = read_sbatch_call(line.split())
    return call.script, call.job_name


def script_options(*lines: str) -> SbatchCall:
    return read_script_options("\n".join(("#!/bin/bash", *lines, "true")).encode())


def may_be_deleted(rest: str) -> bool:
    """Whether a reservation with these last fields is still as sentinel made it."""
    line = (
        "ReservationName=p StartTime=1795235580 EndTime=1795239180 Duration=01:00:00 Nodes=n1 NodeCnt=1 CoreCnt=8"
        " Features=(null) PartitionName=(null) Flags=SPEC_NODES TRES=cpu=8 Users=root Groups=(null) Accounts=(null)"
        f" Licenses=(null) State=ACTIVE BurstBuffer=(null) {rest}\n"
    )
    (found,) = read_reservations(line.encode())
    return is_as_asked(found, {"name": "p", "minutes": "60", "node": "n1", "users": "root"})


def steps(state: str) -> int:
    """How many steps a chain takes whose two links are in this state."""
    return len(plan_mending(CHAIN, [link(2, A, state), link(3, B, state)], NOW))


HEREDOC = '#!/bin/sh\ncat > other.sh <<E\n#SENTINEL schedule="* * * * *"\nE\n'
RESERVATION = "slurm 25.05, src/api/reservation_info.c"

CASES = (
    Case("a-plugin-speaks-while-it-accepts", PLUGINS, lambda: changed("sbatch: lua: --exclusive is not permitted in dev; dropped"), "ACCEPTED", DOUBLE),
    Case("a-package-left-the-new-script", RUN_PARTS, lambda: sorted(scripts("backup.sh", "backup.sh.rpmnew")), ["backup.sh"], DOUBLE),
    Case("a-schedule-of-another-script", SBATCH, lambda: scripts("a.sh", text=HEREDOC)["a.sh"], "@daily", DOUBLE),
    Case("one-of-two-failed-the-other-is-held", DEPENDS, lambda: among(pending("21", "Dependency", dependency="afterok:19(failed)?afterok:20(unfulfilled)"), pending("20", "JobHeldUser", name="pre")), Status.CRITICAL, NIGHT),
    Case("two-components-typed", HET, lambda: typed("--job-name=a -n1 : --job-name=b -n8 train.sh"), ("train.sh", "a"), NIGHT),
    Case("two-components-written", HET, lambda: script_options("#SBATCH --job-name=a", "#SBATCH hetjob", "#SBATCH --job-name=b").job_name, "a", NIGHT),
    Case("a-number-sign-in-a-name", "slurm, src/common/slurm_opt.c, get_argument()", lambda: script_options("#SBATCH --job-name=run#7 # the seventh").job_name, "run#7", NIGHT),
    Case("a-flag-of-25-05", SBATCH, lambda: read_sbatch_call(["--spread-segments", "train.sh"]).script, "train.sh", NIGHT),
    Case("typed-with-wait", SBATCH, lambda: again("sbatch -W -N 8"), ("sbatch", "-N", "8", "/work/train.sh", "a.yaml"), NIGHT),
    Case("typed-with-hold", SBATCH, lambda: again("sbatch --hold -N 8"), ("sbatch", "-N", "8", "/work/train.sh", "a.yaml"), NIGHT),
    Case("typed-for-the-evening", SBATCH, lambda: again("sbatch --begin=now+8hours -N 8"), ("sbatch", "-N", "8", "/work/train.sh", "a.yaml"), NIGHT),
    Case("links-in-a-state-of-tomorrow", "https://slurm.schedmd.com/job_state_codes.html", lambda: steps("QUEUED"), 0, DOUBLE),
    Case("a-limit-of-one-partitions-qos", "https://slurm.schedmd.com/qos.html#partition", lambda: waits("QOSMaxNodePerJobLimit", partition="a,b"), "waits", NIGHT),
    Case("a-reservation-opened-for-a-qos", RESERVATION, lambda: may_be_deleted("AllowedPartitions=(null) QOS=high Comment=(null)"), False, DOUBLE),
    Case("a-ticket-in-place-of-an-instance", "https://slurm.schedmd.com/scontrol.html, Comment of a node", lambda: is_note("i-0abc12de", "INC0042137"), True, DOUBLE),
    Case("sbatch-in-colour", "a site's wrapper of sbatch", lambda: submitted_job(b"\x1b[32mSubmitted batch job 4711\x1b[0m\n"), "4711", DOUBLE),
    Case("a-gap-that-ends-at-midnight", "https://www.iana.org/time-zones, America/Nuuk", lambda: times("30 23 * * *", "America/Nuuk", "2024-03-30 12:00", "2024-03-31 12:00"), ["31 01:00"], NIGHT),
    Case("its-reservation-was-deleted", "https://slurm.schedmd.com/job_state_codes.html", lambda: waits("None", "RESV_DEL_HOLD"), "person", NIGHT),
    Case("a-chain-behind-one-that-is-held", DEPENDS, lambda: among(pending("21", "Dependency", dependency="afterok:20_*(unfulfilled),singleton(unfulfilled)"), pending("20", "JobHeldAdmin", name="pre")), Status.CRITICAL, NIGHT),
    Case("a-limit-without-a-number", "slurm, src/squeue/print.c", lambda: (seconds("INVALID"), seconds("365-00:00:00")), (None, 31536000), NIGHT),
)  # fmt: skip

# Two more of each kind that does harm, and a healthy control; these were written after the mends.
SIBLINGS = (
    Case("a-plugin-names-a-file", PLUGINS, lambda: changed("sbatch: lua: Access/permission denied: /etc/quotas, no limit is set"), "ACCEPTED", DOUBLE),
    Case("a-plugin-moves-the-job", PLUGINS, lambda: changed("sbatch: Invalid partition for one node: dev is taken instead"), "ACCEPTED", DOUBLE),
    Case("a-new-file-of-dpkg", RUN_PARTS, lambda: sorted(scripts("logrotate", "logrotate.dpkg-new")), ["logrotate"], DOUBLE),
    Case("a-switched-off-copy", RUN_PARTS, lambda: sorted(scripts("a.sh", "a.sh.disabled")), ["a.sh"], DOUBLE),
    Case("three-that-are-no-copies", RUN_PARTS, lambda: sorted(scripts("a.sh", "a-v2.sh", "ab.sh")), ["a-v2.sh", "a.sh", "ab.sh"], NIGHT),
    Case("a-schedule-behind-an-assignment", SBATCH, lambda: scripts("a.sh", text='#!/bin/sh\nA="\n#SENTINEL schedule=@hourly\n"\n')["a.sh"], "@daily", DOUBLE),
    Case("a-schedule-that-is-printed", SBATCH, lambda: scripts("a.py", text='#!/usr/bin/python3\nprint("""\n#SENTINEL overlap=x\n""")\n')["a.py"], "@daily", DOUBLE),
    Case("a-schedule-behind-options", SBATCH, lambda: scripts("a.sh", text="#!/bin/sh\n#SBATCH -n1\n\n#SENTINEL schedule=@hourly\ntrue\n")["a.sh"], "@hourly", NIGHT),
    Case("links-in-two-unknown-states", "https://slurm.schedmd.com/job_state_codes.html", lambda: steps("SLEEPING") + steps("ADMITTED"), 0, DOUBLE),
    Case("links-elsewhere-in-a-federation", "https://slurm.schedmd.com/federation.html", lambda: steps("REVOKED"), 2, NIGHT),
    Case("a-reservation-opened-for-a-partition", RESERVATION, lambda: may_be_deleted("AllowedPartitions=prod QOS=(null)"), False, DOUBLE),
    Case("a-reservation-with-a-delay", RESERVATION, lambda: may_be_deleted("Watts=n/a MaxStartDelay=00:10:00"), False, DOUBLE),
    Case("a-reservation-as-it-was-made", RESERVATION, lambda: may_be_deleted("Watts=n/a MaxStartDelay=(null) AllowedPartitions=(null) QOS=(null)"), True, NIGHT),
    Case("a-change-in-place-of-an-address", "typed by hand", lambda: is_note("10.0.0.7", "CHG7"), True, DOUBLE),
    Case("a-request-in-place-of-a-time", "typed by hand", lambda: is_note("seen 2026-11-28", "seen RITM0007"), True, DOUBLE),
    Case("another-instance", "https://github.com/aws/aws-parallelcluster", lambda: is_note("i-0abc12de at 03:10", "i-0fff34aa at 17:00"), False, NIGHT),
)  # fmt: skip
LATER = (
    Case("two-failed-and-one-is-held", DEPENDS, lambda: among(pending("21", "Dependency", dependency="afterok:18(failed)?afternotok:19(failed)?afterany:20(unfulfilled)"), pending("20", "JobHeldUser", name="pre")), Status.CRITICAL, NIGHT),
    Case("one-failed-and-one-runs", DEPENDS, lambda: among(pending("21", "Dependency", dependency="afterok:19(failed)?afterok:20(unfulfilled)"), pending("20", name="pre")), Status.OK, NIGHT),
    Case("three-components-typed", HET, lambda: typed("-Ja : -Jb : --job-name c -- train.sh"), ("train.sh", "a"), NIGHT),
    Case("two-components-of-18-08", HET, lambda: script_options("#SBATCH -J a", "#SBATCH packjob", "#SBATCH -J b").job_name, "a", NIGHT),
    Case("a-comment-with-an-apostrophe", SBATCH, lambda: script_options("#SBATCH -J a # don't", "#SBATCH --comment='b # c'").comment, "b # c", NIGHT),
    Case("another-flag-of-25-05", SBATCH, lambda: typed("--consolidate-segments train.sh"), ("train.sh", None), NIGHT),
    Case("typed-with-short-options", SBATCH, lambda: again("sbatch -H -b 18:00 -N 8 --wait-all-nodes=1"), ("sbatch", "-N", "8", "--wait-all-nodes=1", "/work/train.sh", "a.yaml"), NIGHT),
    Case("typed-with-wait-and-begin-in-words", SBATCH, lambda: again("sbatch --wait --begin 2026-11-28T18:00:00 -N 8"), ("sbatch", "-N", "8", "/work/train.sh", "a.yaml"), NIGHT),
    Case("a-least-of-one-partitions-qos", "https://slurm.schedmd.com/qos.html#partition", lambda: waits("QOSMinGRES", partition="a,b"), "waits", NIGHT),
    Case("a-limit-of-the-only-partitions-qos", "https://slurm.schedmd.com/qos.html#partition", lambda: waits("QOSMinGRES", partition="a"), "person", NIGHT),
)  # fmt: skip


@each(*CASES, *SIBLINGS, *LATER)
def test_a_form_of_slurm_or_cron_that_was_hunted_again(
    case: Case, record_property: Callable[[str, object], None]
) -> None:
    answer = case.form()
    record_property("answer", str(answer))
    record_property("right", str(case.right))
    assert answer == case.right
