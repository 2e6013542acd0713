"""How a job was submitted, and the line that submits it again."""

import shlex
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sentinel.clock import SystemClock
from sentinel.core.cluster import Submission
from sentinel.core.errors import CannotTell
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.snapshot import SlurmSnapshot
from sentinel.slurm.submission import (
    hides_arguments,
    read_submission,
    resubmit_argv,
    resubmit_command,
    submission_columns,
)
from tests.lab.cluster import Lab

PLAIN = Submission(
    id="7", name="llm 10b", user="alice", workdir="/work/my runs", command="/work/train.sh a.yaml",
    options=("--job-name=llm 10b", "--nodes=8"),
)  # fmt: skip


GUARD = '[ "$(id -un)" = alice ] && '


def resubmit_shell(job: Submission, without: str = "", wait: str = "") -> str:
    """The line of the command; empty if there is none."""
    command = resubmit_command(job, without, wait)
    return command.render() if command else ""


def test_the_line_is_for_a_shell() -> None:
    """Quoted, in the working directory, without the node that broke it."""
    line = (
        GUARD
        + "cd '/work/my runs' && sbatch '--job-name=llm 10b' --nodes=8 --exclude=n7 /work/train.sh a.yaml"
    )
    assert resubmit_shell(PLAIN, "n7") == line
    excluded = replace(PLAIN, exclude="n[1-2]")
    assert "--exclude=n[1-2,7]" in resubmit_argv(excluded, "n7")
    assert "--exclude=n[1-2]" in resubmit_argv(excluded)


def test_what_was_typed_is_used_where_its_words_are_known() -> None:
    """Accounting joins them by blanks: with a blank in a word nobody can tell them apart."""
    typed = replace(PLAIN, name="llm", line="sbatch -N 8 --signal=B:USR1@60 /work/train.sh a.yaml")
    options = ("-N", "8", "--signal=B:USR1@60")
    assert resubmit_argv(typed, "n7") == (
        "sbatch",
        *options,
        "--exclude=n7",
        "/work/train.sh",
        "a.yaml",
    )
    line = "sbatch -D /work --chdir=/work ./train.sh a.yaml"
    elsewhere = replace(typed, workdir="/work", line=line)
    assert resubmit_argv(elsewhere)[1:] == ("-D", "/work", "--chdir=/work", "./train.sh", "a.yaml")
    for odd in (
        replace(typed, name="llm 10b"),
        replace(typed, line="sbatch -a 1-4 /work/train.sh a.yaml"),
        replace(typed, line="sbatch --comment='a b' /work/train.sh a.yaml"),
        replace(typed, line="sbatch /work/other.sh"),
        replace(typed, line="srun /work/train.sh a.yaml"),
        replace(typed, line="sbatch -D runs /work/train.sh a.yaml"),
        replace(typed, line="sbatch --chdir runs /work/train.sh a.yaml"),
        replace(typed, line="sbatch -N 8 -- /work/train.sh a.yaml"),
    ):
        assert resubmit_argv(odd)[1:3] == PLAIN.options
        assert resubmit_argv(odd, exact=True) == (), "nobody reads it, so nothing typed may be lost"
    assert resubmit_argv(elsewhere, exact=True) == resubmit_argv(elsewhere)


def test_it_waits_for_the_one_that_still_runs() -> None:
    """Two trainings in one directory would write the same checkpoints: what the typed line waited for
    is over, and the later one wins, in whatever form. Only `singleton` names no job: sbatch refuses one that
    slurmctld has forgotten. Words behind the script are the script's."""
    for typed in ("-d afterok:5", "--dependency=singleton", "-dafterok:5", "--depend afterok:5"):
        for script in ("/work/train.sh", "/work/train.sh -d data"):
            job = replace(PLAIN, name="llm", command=script, line=f"sbatch -N 8 {typed} {script}")
            for told in (job, replace(job, command="/work/train.sh", workdir="/work", bare=True)):
                assert resubmit_argv(told, "n7", "afterany:7_3") == (
                    *("sbatch", "-N", "8"),
                    *("--dependency=afterany:7_3", "--exclude=n7", *script.split()),
                )
                kept = [typed] if typed.endswith("singleton") else []
                assert resubmit_argv(told)[3:] == (*kept, *script.split())
    assert "--dependency=afterany:7" in resubmit_shell(
        replace(PLAIN, command=""), "n7", "afterany:7"
    )


BARE = replace(PLAIN, name="llm", workdir="/work", command="/work/train.sh", bare=True)


@pytest.mark.parametrize("script", ["/work/train.sh", "train.sh", "./train.sh", "../work/train.sh"])
def test_arguments_that_slurm_does_not_tell_are_those_that_were_typed(script: str) -> None:
    """From 23.02 on squeue has the script without them: only accounting has the whole line."""
    typed = replace(BARE, line=f"sbatch -N 8 {script} a.yaml --lr 1e-4")
    assert resubmit_argv(typed) == ("sbatch", "-N", "8", script, "a.yaml", "--lr", "1e-4")
    assert resubmit_shell(typed).endswith(f"&& sbatch -N 8 {script} a.yaml --lr 1e-4")


@pytest.mark.parametrize(
    "line", ["", "sbatch /work/other.sh a.yaml", "sbatch -w n1 /work/train.sh a.yaml"]
)
def test_a_job_whose_arguments_nobody_tells_is_not_submitted_again(line: str) -> None:
    """A training without its arguments is another training; a person is told what is missing."""
    job = replace(BARE, line=line)
    assert resubmit_argv(job, "n7") == ()
    words, _, comment = resubmit_shell(job, "n7").partition("  # ")
    assert (
        words
        == GUARD + "cd /work && sbatch '--job-name=llm 10b' --nodes=8 --exclude=n7 /work/train.sh"
    )
    assert comment.startswith("and its arguments, if it had any")


def test_which_slurms_tell_arguments() -> None:
    """By slurmctld's release; one that is not known is not trusted with them."""
    told = {r: hides_arguments(r) for r in [(20, 11), (22, 5), (23, 2), (26, 5), (0, 0)]}
    assert told == {(20, 11): False, (22, 5): False, (23, 2): True, (26, 5): True, (0, 0): True}


def test_a_script_that_was_piped_is_had_from_slurm() -> None:
    """It has no path; slurmctld has its text for MinJobAge."""
    piped = replace(PLAIN, command="", workdir="/w")
    assert resubmit_argv(piped) == ()
    unprinted = resubmit_shell(replace(PLAIN, command="/w/train.sh fast\r", workdir="/w"))
    assert unprinted.endswith('"$script"  # and its arguments: they cannot be pasted')
    assert "#" not in resubmit_shell(piped)
    assert resubmit_shell(piped).startswith(
        f'{GUARD}cd /w && script=$(mktemp) && scontrol write batch_script 7 - >"$script" && sbatch '
    )
    assert resubmit_shell(replace(piped, id="7+1")) == ""


@given(st.text(max_size=20), st.text(max_size=20), st.text(max_size=20), st.text(max_size=10))
def test_no_text_of_a_user_becomes_shell(name: str, folder: str, command: str, node: str) -> None:
    """Every word is one word again for the shell, and the command is sbatch. What does not print would
    be another word: there is no line then."""
    job = replace(
        PLAIN, name=name, workdir=f"/{folder}", command=command, options=(f"--job-name={name}",)
    )
    line = resubmit_shell(job, node)
    if not line:
        assert not f"{name}{folder}{command}{node}".isprintable()
        return
    words = shlex.split(line.removeprefix(GUARD).replace(" && ", " ; "))
    assert words[:2] == ["cd", f"/{folder}"]
    assert f"--job-name={name}" in words


def test_an_answer_of_another_form_is_none() -> None:
    """Cut, or with fewer fields."""
    with pytest.raises(CannotTell):
        read_submission(b"a|b1x.\n", "x", "1")
    assert read_submission(b"", "x", "1") is None


@pytest.mark.parametrize(("flag", "batch"), [("0", False), ("1", True), ("2", True)])
def test_only_a_batch_script_is_submitted_again(flag: str, batch: bool) -> None:
    """BatchFlag is 0 for srun and salloc, and counts a requeue (job_info.h, batch_flag)."""
    told = {
        "JobID": "7",
        "UserName": "alice",
        "WorkDir": "/w",
        "Command": "t.sh",
        "BatchFlag": flag,
    }
    names = [column.partition(":")[0] for column in submission_columns("x").split(",")]
    values = [told.get(name, "0" if name.startswith("Num") else "N/A") for name in names]
    job = read_submission(f"{'x|'.join(values)}x.\n".encode(), "x", "7")
    assert job is not None
    assert bool(resubmit_argv(job)) is batch
    assert bool(resubmit_command(job)) is batch


def test_a_real_job_is_submitted_again_as_it_was(fresh: Lab, tmp_path) -> None:  # type: ignore[no-untyped-def]
    """What Slurm says of the second is what it says of the first, but for the node it avoids."""
    script = tmp_path / "train.sh"
    script.write_text("#!/bin/sh\n#SBATCH --comment=x\nexec sleep 300\n")
    asked = [
        "--job-name=größtes; touch /tmp/x",
        "--nodes=2",
        "--gres=gpu:3",
        "--time=1:02:03",
        "--ntasks=4",
    ]
    first = _sbatch(fresh, [*asked, str(script), "a.yaml"], tmp_path)
    before = _submission(fresh, first)
    told = str(script) if before.bare else f"{script} a.yaml"
    assert (before.nodes, before.gpus, before.command) == (2, 6, told)
    fresh.ask(["scancel", first])
    line = resubmit_shell(before, "node-3")
    assert line.startswith(f'[ "$(id -un)" = {before.user} ] && cd ')
    assert ("and its arguments" in line) == before.bare
    done = subprocess.run(
        ["sh", "-c", line], env={**fresh.env}, capture_output=True, text=True, check=True
    )
    after = _submission(fresh, done.stdout.split()[-1])
    assert after.exclude == "node-3"
    # Absolute up to 25.05; from 25.11 on as it was asked for (_print_job_std_out() in src/squeue/print.c).
    assert before.stdout.removeprefix(f"{tmp_path}/").startswith("slurm-")
    assert replace(after, id=before.id, exclude="", stdout=before.stdout) == before
    typed = replace(before, name="x", line=f"sbatch --depend afterok:{first} {script} a.yaml")
    third = _sbatch(fresh, [*resubmit_argv(typed, "node-3", f"afterany:{after.id}")[1:]], tmp_path)
    waits = fresh.ask(["squeue", "-h", "-j", third, "-o", "%E"])
    assert waits.strip() == f"afterany:{after.id}(unfulfilled)"


def _sbatch(lab: Lab, words: list[str], folder: object) -> str:
    done = subprocess.run(
        ["sbatch", *words],
        env={**lab.env},
        cwd=str(folder),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()[-1]


def _submission(lab: Lab, job: str) -> Submission:
    slurm = SlurmSnapshot(
        SlurmClient(limit=20.0, environ=lab.env), SystemClock(), users=None, max_age=1.0
    )
    found = slurm.submission(job)
    assert found is not None
    return found
