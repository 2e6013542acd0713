"""What happened to a job that is gone, in words."""

import getpass
import re
from pathlib import Path

import pytest
from msgspec import structs

from sentinel.core.cluster import JobEnd, JobPast, Submission
from sentinel.core.errors import CannotTell
from sentinel.core.model import Status
from sentinel.core.values import clock_text
from sentinel.slurm.job_states import is_node_failure
from sentinel.testing import FixedSlurm
from tests.checks.job.making import NOW, Watch, check, ended, glance, job, pending
from tests.kinds import looks


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (ended(exit_code=1), "job 10 FAILED with exit code 1 on node-[0-3]"),
        (ended(exit_code=137), "FAILED with exit code 137 (128 + signal 9 (SIGKILL))"),
        (
            ended(exit_code=9, or_exit_code=137),
            "FAILED with exit code 137 (128 + signal 9 (SIGKILL)) or 9",
        ),
        (ended(exit_code=0, signal=9), "FAILED, killed by signal 9 (SIGKILL)"),
        (ended(exit_code=0, signal=99), "FAILED, killed by signal 99"),
        (
            ended(exit_code=0, signal=53),
            "job 10 FAILED before it began: slurmd could not open its output or enter its directory"
            " (Slurm's error 4021, told as signal 53) on node-[0-3]",
        ),
        (ended(exit_code=0, signal=54), "before it began: a prolog failed (Slurm's error 4022,"),
        (
            ended(exit_code=None, reason="JobLaunchFailure"),
            "FAILED before it began: Slurm could not start it (JobLaunchFailure) on node-[0-3]",
        ),
        (ended(exit_code=None, reason="AssocGrpGRES"), "job 10 FAILED on node-[0-3]"),
        (ended(exit_code=0, signal=125), "FAILED, out of memory (told as signal 125)"),
        (ended(state="OUT_OF_MEMORY", exit_code=0, signal=125), "(OUT_OF_MEMORY) on node-[0-3]"),
        (ended(state="COMPLETED", exit_code=0), "completed with exit code 0"),
        (ended(state="CANCELLED", cancelled_by="bob"), "was cancelled by bob on node-"),
        (ended(state="CANCELLED by 1000"), "job 10 was cancelled on node-"),
        # Slurm's own signals, by which it ends what it has already said why (slurmctld of a lab).
        (ended(state="TIMEOUT", signal=15), "reached its time limit (TIMEOUT) on node-"),
        (ended(state="CANCELLED", cancelled_by="bob", signal=9), "was cancelled by bob on node-"),
        (ended(state="NODE_FAIL", signal=15), "nodes failed (NODE_FAIL) among node-"),
        (ended(state="CANCELLED", signal=11), "was cancelled, killed by signal 11 (SIGSEGV) on"),
        (ended(state="TIMEOUT"), "reached its time limit (TIMEOUT)"),
        (ended(state="OUT_OF_MEMORY", exit_code=0, signal=9), "ran out of memory (OUT_OF_MEMORY)"),
        (
            ended(state="NODE_FAIL", failed_node="node-2"),
            f"ended because one of its nodes failed (NODE_FAIL): node-2 {clock_text(NOW - 300, NOW)}",
        ),
        (
            ended(state="NODE_FAIL"),
            f"one of its nodes failed (NODE_FAIL) among node-[0-3] {clock_text(NOW - 300, NOW)}",
        ),
        (
            ended(state="NODE_FAIL", nodes="node-3"),
            "one of its nodes failed (NODE_FAIL): node-3 at",
        ),
        (ended(state="PREEMPTED"), "was preempted on node-"),
        (ended(state="BOOT_FAIL"), "did not boot (BOOT_FAIL)"),
        (ended(state="DEADLINE"), "missed its deadline on node-"),
        (ended(state="LAUNCH_FAILED"), "could not be launched (LAUNCH_FAILED)"),
        (
            ended(started=NOW - 7500, ended=NOW - 300),
            f"{clock_text(NOW - 300, NOW)} after running for 2h",
        ),
    ],
)
def test_how_it_ended_is_said(end: JobEnd, words: str) -> None:
    """State, exit code and signal, who cancelled it, which node, when and after how long."""
    watch = Watch(check())
    assert watch.look(job()).status is Status.OK
    finding = watch.look(ends=[end])
    assert finding.status is Status.CRITICAL
    assert words in finding.summary


def test_the_failed_node_is_a_label() -> None:
    """So that a route can tell the people of that node."""
    watch = Watch(check())
    watch.look(job())
    end = ended(state="NODE_FAIL", failed_node="node-2")
    assert watch.look(ends=[end]).labels == {
        "job": "train",
        "user": "alice",
        "partition": "prod",
        "node": "node-2",
    }


def test_a_partition_that_went_is_no_node_that_failed() -> None:
    """kill_job_by_part_name() in src/slurmctld/job_mgr.c. In accounting the same word is why the job
    waited once."""
    watch = Watch(check())
    watch.look(job(nodes="n7", node_count=1))
    over = ended(state="NODE_FAIL", reason="PartitionDown", nodes="n7", source="squeue")
    finding = watch.look(ends=[over])
    assert finding.status is Status.CRITICAL
    assert finding.summary.startswith(
        "job 10 ended because its partition is gone (NODE_FAIL): prod"
    )
    assert "node" not in finding.labels
    assert not any("n7" in command for command in looks(finding))
    assert "another partition" in finding.guidance.todo
    assert is_node_failure(structs.replace(over, source="sacct"))


def test_what_nothing_remembers_is_said_so() -> None:
    """Slurm forgets after MinJobAge; without accounting nobody knows."""
    watch = Watch(check())
    watch.look(job())
    finding = watch.look()
    assert finding.status is Status.CRITICAL
    assert "neither squeue nor sacct said how it ended" in finding.summary


def test_the_end_is_asked_for_once_and_kept() -> None:
    """Slurm forgets within minutes, the alert lasts for hours."""
    watch = Watch(check())
    watch.look(job())
    watch.look(ends=[ended(exit_code=7)])
    assert "exit code 7" in watch.look(after=7200).summary


def test_a_question_about_the_end_that_fails_is_asked_again() -> None:
    """One list of jobs alone is not believed; that two have left it out is told meanwhile."""

    class Silent(FixedSlurm):
        def past(self, job_ids: object, names: object, since: float, **_: object) -> JobPast:
            raise CannotTell("Socket timed out")

    watch = Watch(check())
    watch.look(job())
    finding = watch.see(Silent(jobs=[]))
    assert finding.status is Status.UNKNOWN
    assert "Socket timed out" in finding.summary
    watch.clock.advance(60)
    finding = watch.see(Silent(jobs=[]))
    assert finding.status is Status.CRITICAL
    assert "not known yet" in finding.summary
    assert "exit code 7" in watch.look(ends=[ended(exit_code=7)]).summary


def test_an_end_that_slurm_says_is_none_is_no_end() -> None:
    """Between two questions the job may be there again."""
    watch = Watch(check())
    watch.look(job())
    assert "not known yet" in watch.look(ends=[ended(state="RUNNING")]).summary


def test_a_job_cancelled_while_pending_has_no_nodes_and_no_duration() -> None:
    """It never ran."""
    watch = Watch(check())
    watch.look(pending("11"))
    end = ended("11", "CANCELLED", cancelled_by="bob", started=NOW - 300, nodes="")
    summary = watch.look(ends=[end]).summary
    assert f"job 11 was cancelled by bob {clock_text(NOW - 300, NOW)}" in summary
    assert "after" not in summary


def test_the_one_that_ran_is_told_before_the_ones_that_waited() -> None:
    """When a train is cancelled as a whole, the others follow in the details."""
    watch = Watch(check())
    watch.look(job("10"), pending("11"))
    finding = watch.look(ends=[ended("10", exit_code=1), ended("11", "CANCELLED")])
    assert "job 10 FAILED" in finding.summary
    assert "job 11 was cancelled" in finding.details


def test_next_steps_are_given_as_commands() -> None:
    """A person at night pastes them; the path of the log is quoted for the shell, and no terminal
    obeys what another user wrote there."""
    watch = Watch(check())
    watch.look(job())
    commands = looks(watch.look(ends=[ended(stdout="/logs/a b.out")]))
    log = "tail -c 5000 '/logs/a b.out' | cat -v"
    assert commands == ("scontrol show job 10 | cat -v", log)


def test_sacct_is_named_only_where_it_knows_something() -> None:
    """Without accounting it would print an error."""
    watch = Watch(check())
    watch.look(job())
    commands = looks(watch.look(ends=[ended(source="sacct", started=NOW - 3600)]))
    assert commands[0].startswith("sacct -j 10 ")
    for accounting in (True, False):
        how = Submission(id="10", name="train", user="alice", workdir="/p", accounting=accounting)
        watch = Watch(check())
        watch.see(FixedSlurm(jobs=[job()], submissions={"10": how}))
        dead = watch.see(FixedSlurm(jobs=[], ends={"10": ended("10")}, submissions={"10": how}))
        assert any(one.startswith("sacct") for one in looks(dead)) is accounting


def test_the_first_line_says_whom_it_stops_and_the_first_command_submits_it_again() -> None:
    """With what the job was submitted with, and without the node that failed."""
    how = Submission(id="10", name="train", user="alice", workdir="/proj/a", nodes=8, gpus=64,
                     command="/proj/train.sh big.yaml", options=("--nodes=8",), accounting=True)  # fmt: skip
    watch = Watch(check())
    watch.look(job())
    end = ended("10", "NODE_FAIL", failed_node="node-7")
    slurm = FixedSlurm(jobs=[], ends={"10": end}, submissions={"10": how})
    finding = watch.see(slurm)
    assert finding.summary.startswith(
        "job 10 ended because one of its nodes failed (NODE_FAIL): node-7"
    )
    assert finding.summary.count("failed") == 1, "it is said once"
    assert "(alice, 64 GPUs on 8 nodes)" in finding.summary
    again = "cd /proj/a && sbatch --nodes=8 --exclude=node-7 /proj/train.sh big.yaml"
    again = f'[ "$(id -un)" = alice ] && {again}'
    assert looks(finding)[0].startswith("sacct -j 10 "), "first look, then submit"
    assert [one.render() for one in finding.acts] == [again]
    assert finding.began == end.ended
    assert watch.see(FixedSlurm(jobs=[])).acts == finding.acts, "it is remembered"


def test_what_slurm_forgets_between_two_passes_was_asked_while_it_ran(tmp_path: Path) -> None:
    """Where to look, its last lines, how to submit it again, and since when at most it is gone; its
    script, where that was piped, Slurm has forgotten with it."""
    user = getpass.getuser()
    log = tmp_path / "10.out"
    log.write_text("step 100\nRuntimeError: boom\n")
    how = Submission(id="10", name="train", user=user, workdir="/proj", command="/proj/train.sh",
                     options=("--nodes=8",), stdout=f"{tmp_path}/%j.out", gpus=64, nodes=8)  # fmt: skip
    watch = Watch(check(users=[user]))
    running = job(user=user, started=None)
    watch.see(FixedSlurm(jobs=[running], submissions={"10": how}))
    watch.clock.advance(600)
    finding = watch.see(FixedSlurm(jobs=[]))
    assert "64 GPUs on 8 nodes" in finding.summary
    assert f"it was last seen running {clock_text(NOW, NOW + 600)}" in finding.summary
    assert (finding.values["last_step"], finding.values["cause"]) == (
        "step 100",
        "RuntimeError: boom",
    )
    only = f'[ "$(id -un)" = {user} ] && '
    (again,) = finding.acts
    assert again.render() == f"{only}cd /proj && sbatch --nodes=8 /proj/train.sh"
    piped = structs.replace(how, command="")
    watch = Watch(check(users=[user]))
    watch.see(FixedSlurm(jobs=[running], submissions={"10": piped}))
    assert watch.see(FixedSlurm(jobs=[])).acts == ()


def test_a_hostile_name_comes_out_inert() -> None:
    """Ids, nodes and users are others' text too."""
    watch = Watch(check())
    watch.look(job())
    evil = "x\x1b[31m\nforged"
    end = ended(state="CANCELLED", cancelled_by=evil, nodes=evil, stdout="/a\n/b")
    finding = watch.look(ends=[end])
    assert finding.summary.isprintable()
    assert all(command.isprintable() for command in looks(finding))


def test_labels_are_inert_too() -> None:
    """A pattern may fit whatever a user called the job; routes and templates get the name."""
    finding = glance(check(name=None, match=re.compile("tr.*", re.S)), job(name="tr\n\x1b[2J"))
    assert finding.findings[0].labels["job"] == "tr\\n\\x1b[2J"


def test_a_clean_end_points_to_done_when() -> None:
    """COMPLETED may be the end of the training; only the user knows, and can say so."""
    watch = Watch(check())
    watch.look(job())
    finding = watch.look(ends=[ended(state="COMPLETED", exit_code=0)])
    assert finding.status is Status.CRITICAL
    assert "done_when" in finding.details
