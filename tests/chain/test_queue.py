"""The links of a chain in a queue that is not what it should be: programs stand in for Slurm's."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from sentinel.chain.folder import ChainFolder
from sentinel.chain.install import link_script
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


def queue(folder: Path) -> ChainQueue:
    client = SlurmClient(limit=10, environ={"PATH": f"{folder}:/usr/bin:/bin"})
    return ChainQueue(CHAIN, ChainFolder(str(folder / "chain")), client, now=lambda: 6000.0)


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
    slot = re.search(f"--job-name={name} --comment=sentinel (\\d+) r ", submitted)
    assert slot
    assert int(slot[1]) % 1800 == turn


def test_links_in_hidden_partitions_are_asked_for(
    tmp_path: Path, slurm: Callable[..., Path]
) -> None:
    """squeue(1) leaves such jobs out without --all, one's own too."""
    calls = slurm(squeue=BLIND)
    queue(tmp_path).list_links()
    assert calls.read_text().startswith("squeue -h -a -u ")
