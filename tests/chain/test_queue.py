"""The links of a chain in a queue that is not what it should be: programs stand in for Slurm's."""

import os
import re
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from sentinel.chain.folder import ChainFolder
from sentinel.chain.install import ensure_chain, install_chain, link_script
from sentinel.chain.marks import LinkMark
from sentinel.chain.mend import SubmitLink
from sentinel.chain.model import Chain
from sentinel.chain.queue import ChainQueue, SubmissionRefused
from sentinel.slurm.client import SlurmClient

CHAIN = Chain(name="s", every=600, command=("sentinel",), revision="r")

SBATCH = 'n=$(wc -l <"$HERE/calls"); echo "$n"'
BLIND = "exit 0"
FORGETFUL = 'case "$*" in *"-t all"*) echo "${@: -1}" ;; esac'


@pytest.fixture
def slurm(tmp_path: Path) -> Callable[..., Path]:
    """Programs of Slurm that note how they were called, and do what the test says."""

    def put(**programs: str) -> Path:
        for name, text in programs.items():
            path = tmp_path / name
            path.write_text(
                f'#!/bin/bash\nHERE={tmp_path}\necho "{name} $*" >>"$HERE/calls"\n{text}\n'
            )
            path.chmod(0o755)
        return tmp_path / "calls"

    return put


def queue(folder: Path, chain: Chain = CHAIN) -> ChainQueue:
    client = SlurmClient(limit=10, environ={"PATH": f"{folder}:/usr/bin:/bin"})
    return ChainQueue(chain, ChainFolder(str(folder / "chain")), client, now=lambda: 6000.0)


def test_a_queue_that_hides_links_is_not_filled(tmp_path: Path, slurm: Callable[..., Path]) -> None:
    """Each link would begin three more: what squeue does not show is cancelled, and told."""
    calls = slurm(sbatch=SBATCH, squeue=BLIND, scancel="exit 0")
    blind = queue(tmp_path)
    with pytest.raises(SubmissionRefused, match="squeue does not show it"):
        blind.mend_chain()
    said = calls.read_text()
    submitted = re.findall(r"^sbatch .*--job-name=(\S+)", said, re.M)
    cancelled = re.findall(r"^scancel --name=(\S+)", said, re.M)
    assert sorted(submitted) == sorted(cancelled) == ["s-a", "s-b", "s-c"]


def test_links_that_were_over_before_the_next_look_are_known(
    tmp_path: Path, slurm: Callable[..., Path]
) -> None:
    """slurmctld remembers them: they are not taken for hidden ones."""
    calls = slurm(sbatch=SBATCH, squeue=FORGETFUL, scancel="exit 0")
    queue(tmp_path).mend_chain()
    assert "scancel" not in calls.read_text()


def test_what_slurm_says_is_told_once(tmp_path: Path, slurm: Callable[..., Path]) -> None:
    """Its complaints open with the name of the command."""
    slurm(sbatch="echo 'sbatch: error: no' >&2; exit 1", squeue=BLIND)
    with pytest.raises(SubmissionRefused) as told:
        queue(tmp_path).mend_chain()
    assert str(told.value) == "sbatch: error: no"


@pytest.mark.parametrize(("name", "turn"), [("s-a", 0), ("s-b", 600), ("s-c", 1200)])
def test_without_sentinel_the_script_of_a_link_submits_the_next_of_its_strand(
    tmp_path: Path, slurm: Callable[..., Path], name: str, turn: int
) -> None:
    """At its own turn, with its own output."""
    calls = slurm(sbatch="exit 0", squeue=BLIND, sentinel="exit 1")
    place = ChainFolder(str(tmp_path / "chain of mine"))
    chain = replace(CHAIN, command=(str(tmp_path / "sentinel"),))
    place.install_files(
        chain, link_script(chain, place, queue(tmp_path).submission_argv(SubmitLink(name, 0)))
    )
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_JOB_NAME": name}
    done = subprocess.run(
        [place.script_path], env=env, capture_output=True, check=False, timeout=60
    )
    assert done.returncode == 1
    submitted = calls.read_text().splitlines()[-1]
    assert submitted.endswith(
        f"--output=/dev/null --time=120 --ntasks=1 --cpus-per-task=1 {place.script_path}"
    )
    assert "goes on without it" in (tmp_path / f"chain of mine/link-{name[-1]}.log").read_text()
    (mark,) = place.read_marks()
    assert (mark.name, mark.revision, mark.job, mark.slot % 1800) == (name, "r", "", turn)
    assert 0 < mark.slot - mark.at <= 1800


STATEFUL = """\
[[ "$*" == *--test-only* ]] && exit
[[ " $* " == *" --comment=ProjA "* && "$*" != *--comment=*--comment=* ]] || { echo "give your project" >&2; exit 1; }
for word in "$@"; do case $word in --job-name=*) name=${word#*=} ;; esac; done
job=$(($(cat "$HERE/jobs" 2>/dev/null | wc -l) + 1))
echo "$job $name" >>"$HERE/jobs"
"""
SHOWN = """\
while read -r job name; do
    line=${SQUEUE_FORMAT//%A/$job}; line=${line//%j/$name}; line=${line//%T/PENDING}
    line=${line//%e/N\\/A}; line=${line//%k/ProjA}; line=${line//%r/BeginTime}; line=${line//%P/main}
    echo "${line//%V/5990}"
done <"$HERE/jobs"
"""
"""A site that takes only jobs with the comment of their project, and a queue that keeps them."""


@pytest.mark.parametrize("answer", ["echo $job", "exit 1", "kill -9 $PPID"])
def test_a_site_that_demands_a_comment_has_one_link_of_each_strand(
    tmp_path: Path, slurm: Callable[..., Path], answer: str
) -> None:
    """The user's comment is the only one. Nothing is cancelled or submitted again at the next pass,
    also where sbatch took a job and did not say so."""
    calls = slurm(sbatch=STATEFUL + answer, squeue=SHOWN, scancel="exit 0")
    (tmp_path / "jobs").touch()
    place = ChainFolder(str(tmp_path / "chain"))
    chain = replace(CHAIN, options=("--comment=ProjA",), installed=6000)
    place.install_files(chain, "")
    for _ in range(4):  # one more than the strands: each pass may end at its first submission
        child = os.fork()
        if not child:
            with suppress(SubmissionRefused):
                queue(tmp_path, chain).mend_chain()
            os._exit(0)
        os.waitpid(child, 0)
    assert (tmp_path / "jobs").read_text() == "1 s-c\n2 s-a\n3 s-b\n"
    assert queue(tmp_path, chain).mend_chain() == (True, [])
    assert "scancel" not in calls.read_text()
    assert [(m.job, m.slot) for m in place.read_marks() if m.job] == [
        ("1", 6600), ("2", 7200), ("3", 7800),
    ]  # fmt: skip


def test_a_chain_of_the_version_before_goes_on(tmp_path: Path, slurm: Callable[..., Path]) -> None:
    """Its links are known by their comments: nothing is cancelled, moved or submitted. One that is
    missing comes back as it is made today."""
    (tmp_path / "jobs").write_text("1 s-a\n2 s-b\n3 s-c\n")
    place = ChainFolder(str(tmp_path / "chain"))
    chain = replace(CHAIN, installed=90_000)
    place.install_files(chain, "")
    shown = SHOWN.replace("ProjA", "sentinel 6600 r")
    calls = slurm(sbatch=STATEFUL + "echo $job", squeue=shown)
    assert queue(tmp_path, chain).mend_chain() == (True, [])
    (tmp_path / "jobs").write_text("1 s-a\n2 s-b\n")
    chain = replace(chain, options=("--comment=ProjA",))
    assert len(queue(tmp_path, chain).mend_chain()[1]) == 1
    assert re.findall("^(?!squeue).*", calls.read_text(), re.M)[0].startswith("sbatch ")


def test_after_a_lost_state_the_installation_replaces_the_links_once(
    tmp_path: Path, slurm: Callable[..., Path]
) -> None:
    """Nothing is known of them but their names, and that they are older. The next pass has nothing to
    do."""
    (tmp_path / "jobs").write_text("1 s-a\n2 s-b\n3 s-c\n")
    gone = 'grep -v "^$1 " "$HERE/jobs" >"$HERE/left"; mv "$HERE/left" "$HERE/jobs"'
    calls = slurm(sbatch=STATEFUL + "echo $job", squeue=SHOWN, scancel=gone)
    text = (tmp_path / "sbatch").read_text().replace("wc -l) + 1", "wc -l) + 7")
    (tmp_path / "sbatch").write_text(text)
    client = SlurmClient(limit=10, environ={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    chain = replace(CHAIN, options=("--comment=ProjA",))
    folder = str(tmp_path / "chain")
    done = install_chain(chain, folder, client, show_only=False)
    assert [line.split(" ")[0] for line in done[:-1]] == ["cancelled", "submitted"] * 3
    assert len((tmp_path / "jobs").read_text().splitlines()) == 3
    before = calls.read_text()
    assert ensure_chain(folder, client) == []
    assert re.findall("^(sbatch|scancel) ", calls.read_text().removeprefix(before), re.M) == []


def test_the_script_of_a_link_has_the_comment_of_the_user(tmp_path: Path) -> None:
    """As the links that sentinel submits, and no other."""
    chain = replace(CHAIN, options=("--comment=Proj A",))
    words = queue(tmp_path, chain).submission_argv(SubmitLink("s-a", 0))
    script = link_script(chain, ChainFolder(str(tmp_path / "chain")), words)
    assert script.count("--comment") == 1
    assert "'--comment=Proj A'" in script


def test_a_link_that_is_moved_keeps_its_comment(tmp_path: Path, slurm: Callable[..., Path]) -> None:
    """Its new turn is written down."""
    (tmp_path / "jobs").write_text("1 s-a\n2 s-b\n3 s-c\n")
    place = ChainFolder(str(tmp_path / "chain"))
    place.install_files(CHAIN, "")
    for job, name, slot in (("1", "s-a", 3600), ("2", "s-b", 7800), ("3", "s-c", 6600)):
        place.append_mark(LinkMark(name=name, slot=slot, revision="r", at=3000.0, job=job))
    calls = slurm(squeue=SHOWN, scontrol="exit 0")
    assert queue(tmp_path).mend_chain()[0]
    (asked,) = re.findall("^scontrol .*", calls.read_text(), re.M)
    assert asked == "scontrol update jobid=1 starttime=now+1200"
    assert place.read_marks()[-1].slot == 7200


def test_links_in_hidden_partitions_are_asked_for(
    tmp_path: Path, slurm: Callable[..., Path]
) -> None:
    """squeue(1) leaves such jobs out without --all, one's own too."""
    calls = slurm(squeue=BLIND)
    queue(tmp_path).list_links()
    assert calls.read_text().startswith("squeue -h -a -u ")
