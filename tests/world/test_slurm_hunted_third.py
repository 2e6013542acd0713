"""More forms of Slurm and cron, looked for after reading the code; expectations first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from sentinel.clock import SystemClock
from sentinel.core.model import Status
from sentinel.slurm.change import SlurmHands
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.drain_reasons import is_hardware_reason
from sentinel.slurm.node_notes import is_note
from sentinel.slurm.snapshot import SlurmSnapshot
from tests.checks.job.making import pending
from tests.slurm.stand_ins import StandIns
from tests.world.case import Case, each
from tests.world.slurm_answers import booked, waits
from tests.world.test_chains_drawn import times
from tests.world.test_slurm_hunted import among
from tests.world.test_slurm_hunted_again import (
    DEPENDS,
    DOUBLE,
    NIGHT,
    RESERVATION,
    RUN_PARTS,
    SBATCH,
    again,
    may_be_deleted,
    scripts,
    steps,
    typed,
)

FILTER = "https://slurm.schedmd.com/cli_filter_plugins.html"
GETOPT = "https://man7.org/linux/man-pages/man3/getopt_long.3.html, abbreviations"
LINE = "slurm 22.05, src/common/slurm_opt.c: SubmitLine is argv joined by blanks"
REBUILT = ("sbatch", "--job-name=llm 10b", "--nodes=8", "/work/train.sh", "a.yaml")
PLAINLY = ("sbatch", "-N", "8", "/work/train.sh", "a.yaml")


def failed(said: str) -> str:
    """What an sbatch proves that ended with 1 and said this on stderr."""
    with TemporaryDirectory() as folder:
        programs = StandIns(Path(folder))
        programs.says("sbatch", out="", err=said, code=1)
        client = SlurmClient(limit=10.0, environ=programs.env)
        hands = SlurmHands(SlurmSnapshot(client, SystemClock(), users=(), max_age=5.0))
        return hands.change(("sbatch", "train.sh")).answer.name


def waits_for_a_person(line: str) -> bool:
    """Whether sbatch would stay until the job ends."""
    return any(word.startswith("-") and "W" in word for word in again(line))


TIMED_OUT = "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"

# Two are left out: half an hour that is skipped was in a test already, and a name in words of PBS
# (`#PBS -N`) is not read, which changes one line of `sentinel submit`.
CASES = (
    Case("a-comment-of-two-words-typed", LINE, lambda: again("sbatch --comment my run -N 8"), REBUILT, DOUBLE),
    Case("typed-for-several-clusters", SBATCH, lambda: again("sbatch -M east,west -N 8"), PLAINLY, DOUBLE),
    Case("typed-with-a-deadline", SBATCH, lambda: again("sbatch --deadline=2026-11-28T18:00:00 -N 8"), PLAINLY, NIGHT),
    Case("typed-with-grouped-flags", SBATCH, lambda: waits_for_a_person("sbatch -QW -N 8"), False, NIGHT),
    Case("an-abbreviated-flag", GETOPT, lambda: typed("--contig train.sh"), ("train.sh", None), NIGHT),
    Case("a-flag-with-an-optional-value", SBATCH, lambda: typed("-k -s -N8 train.sh"), ("train.sh", None), NIGHT),
    Case("a-filter-speaks-and-it-timed-out", FILTER, lambda: failed(f"sbatch: Invalid partition dev: gpu is taken instead\n{TIMED_OUT}"), "UNSURE", DOUBLE),
    Case("a-note-in-a-value-of-json", "https://slurm.schedmd.com/scontrol.html, Extra of a node", lambda: is_note('{"rack": "r7", "note": ""}', '{"rack": "r7", "note": "do not resume, RMA"}'), True, DOUBLE),
    Case("its-burst-buffer-timed-out", "slurm, src/plugins/burst_buffer: Burst buffer stage-in timeout, with WAIT_HELD", lambda: waits("Burst buffer stage-in timeout"), "person", NIGHT),
    Case("behind-an-element-that-is-held", DEPENDS, lambda: among(pending("31", "Dependency", dependency="afterok:20_3(unfulfilled)"), pending("20", "JobHeldUser", name="pre", id="20_[1-4%2]", array_id="20", task="1-4%2")), Status.CRITICAL, NIGHT),
    Case("an-hour-behind-one-that-is-held", DEPENDS, lambda: among(pending("31", "Dependency", dependency="after:20+60(unfulfilled)"), pending("20", "JobHeldUser", name="pre")), Status.CRITICAL, NIGHT),
    Case("accounting-has-it-as-requeued", "https://slurm.schedmd.com/sacct.html, -D", lambda: booked("REQUEUED", "0:0"), "REQUEUED None None - no death", NIGHT),
    Case("from-friday-to-seven", "https://man7.org/linux/man-pages/man5/crontab.5.html", lambda: times("0 4 * * 5-7", "UTC", "2026-11-27 00:00", "2026-11-30 12:00"), ["27 04:00", "28 04:00", "29 04:00"], NIGHT),
    Case("a-file-of-rcs-alone", RUN_PARTS, lambda: sorted(scripts("backup.sh,v", "sync")), ["sync"], DOUBLE),
    Case("a-saved-file-alone", RUN_PARTS, lambda: sorted(scripts("logrotate.cfsaved", "sync")), ["sync"], DOUBLE),
    Case("links-that-were-requeued-and-held", "https://slurm.schedmd.com/scontrol.html, requeuehold", lambda: steps("REQUEUE_HOLD"), 2, NIGHT),
    Case("a-reservation-with-a-comment", RESERVATION, lambda: may_be_deleted("Watts=n/a MaxStartDelay=(null) Comment=alice keeps it until Monday"), False, DOUBLE),
    Case("a-broken-gpu-that-wants-a-reboot", "reasons of node health checks", lambda: is_hardware_reason("Xid 79: GPU has fallen off the bus, needs reboot"), True, NIGHT),
)  # fmt: skip

# Siblings of each kind that was mended, and healthy controls; written after the mends.
SPEAKS = "sbatch: lua: Access/permission denied: /etc/quotas, no limit is set"
DENIED = "sbatch: error: Batch job submission failed: Access/permission denied"
SIBLINGS = (
    Case("an-environment-of-two-words-typed", LINE, lambda: again("sbatch -N 8 --export ALL,A=1 2"), (), DOUBLE),
    Case("a-log-with-a-blank-typed", LINE, lambda: again("sbatch -omy logs/%j -N 8"), REBUILT, DOUBLE),
    Case("a-comment-of-one-word-typed", LINE, lambda: again("sbatch --comment my -N 8"), ("sbatch", "--comment", "my", *PLAINLY[1:]), NIGHT),
    Case("typed-for-clusters-in-words", SBATCH, lambda: again("sbatch --clusters east -N 8"), PLAINLY, DOUBLE),
    Case("a-constraint-of-the-cluster-stays", SBATCH, lambda: again("sbatch --cluster-constraint=a -N 8"), ("sbatch", "--cluster-constraint=a", *PLAINLY[1:]), NIGHT),
    Case("typed-with-flags-before-a-value", GETOPT, lambda: again("sbatch -QHN 8"), ("sbatch", "-Q", *PLAINLY[1:]), NIGHT),
    Case("two-abbreviated-flags", GETOPT, lambda: typed("--spread-j --requ --comm a train.sh"), ("train.sh", None), NIGHT),
    Case("an-abbreviated-array", GETOPT, lambda: again("sbatch --arr=1-4 -N 8"), REBUILT, DOUBLE),
    Case("a-plugin-speaks-and-it-timed-out", FILTER, lambda: failed(f"{SPEAKS}\n{TIMED_OUT}"), "UNSURE", DOUBLE),
    Case("a-shell-speaks-and-it-timed-out", "bash, over ssh", lambda: failed(f"bash: /home/a/.bashrc: Permission denied\n{TIMED_OUT}"), "UNSURE", DOUBLE),
    Case("a-plugin-speaks-and-it-is-refused", FILTER, lambda: failed(f"{SPEAKS}\n{DENIED}"), "REFUSED", NIGHT),
    Case("a-hold-in-a-value-of-json", "typed by hand", lambda: is_note('{"state": "ok"}', '{"state": "keep out, CHG7"}'), True, DOUBLE),
    Case("a-state-in-a-value-of-json", "https://github.com/SlinkyProject/slurm-operator", lambda: is_note('{"pod": "a-1", "at": "2026-11-29 03:10"}', '{"pod": "a-7", "at": "2026-11-29 04:20"}'), False, NIGHT),
    Case("its-burst-buffer-has-no-nodes", "slurm, src/plugins/burst_buffer", lambda: waits("Could not find job node"), "person", NIGHT),
    Case("its-burst-buffer-is-filled", "https://slurm.schedmd.com/job_reason_codes.html", lambda: waits("BurstBufferStageIn"), "waits", NIGHT),
    Case("behind-an-element-of-a-stride", DEPENDS, lambda: among(pending("31", "Dependency", dependency="afterok:20_5(unfulfilled)"), pending("20", "JobHeldUser", name="pre", id="20_[1-9:4]", array_id="20", task="1-9:4")), Status.CRITICAL, NIGHT),
    Case("behind-an-element-that-runs", DEPENDS, lambda: among(pending("31", "Dependency", dependency="afterok:20_0(unfulfilled)"), pending("20", "JobHeldUser", name="pre", id="20_[1-4]", array_id="20", task="1-4")), Status.OK, NIGHT),
    Case("a-new-file-of-ucf-alone", RUN_PARTS, lambda: sorted(scripts("a.ucf-dist", "b.dpkg-new", "c.rpmnew", "sync")), ["sync"], DOUBLE),
    Case("names-with-dots", RUN_PARTS, lambda: sorted(scripts("a.rpm", "b.v2", "old.sh")), ["old.sh"], DOUBLE),
    Case("links-whose-reservation-was-deleted", "https://slurm.schedmd.com/job_state_codes.html", lambda: steps("RESV_DEL_HOLD"), 2, NIGHT),
    Case("links-that-wait", "https://slurm.schedmd.com/job_state_codes.html", lambda: steps("PENDING"), 0, DOUBLE),
    Case("a-reservation-with-a-short-comment", RESERVATION, lambda: may_be_deleted("AllowedPartitions=(null) QOS=(null) Comment=alice"), False, DOUBLE),
    Case("a-reservation-without-a-comment", RESERVATION, lambda: may_be_deleted("AllowedPartitions=(null) QOS=(null) Comment=(null)"), True, NIGHT),
    Case("a-memory-fault-after-a-reboot", "reasons of node health checks", lambda: is_hardware_reason("DIMM A3 fails again after reboot"), True, NIGHT),
    Case("a-reboot-for-a-driver", "reasons of administrators", lambda: is_hardware_reason("reboot for new nvidia driver") or is_hardware_reason("GPU firmware update"), False, NIGHT),
)  # fmt: skip


@each(*CASES, *SIBLINGS)
def test_a_form_of_slurm_or_cron_that_was_hunted_a_third_time(
    case: Case, record_property: Callable[[str, object], None]
) -> None:
    answer = case.form()
    record_property("answer", str(answer))
    record_property("right", str(case.right))
    assert answer == case.right
