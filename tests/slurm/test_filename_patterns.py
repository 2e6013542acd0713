"""Rules of Slurm's filename patterns, as slurmstepd of 22.05 was seen to apply them."""

import pytest
from msgspec.structs import replace

from sentinel.core.cluster import Job
from sentinel.core.errors import CannotTell
from sentinel.slurm.filename_patterns import (
    expand_output_path,
    fill_symbols,
    first_host,
    has_symbols,
    job_output_path,
    whose_path,
)
from sentinel.user_files.whose import Whose

JOB = Job(
    id="1",
    job_id="1",
    array_id="1",
    task="",
    name="my job",
    user="root",
    partition="p",
    state="RUNNING",
    reason="",
    nodes="node-0",
    node_count=1,
    dependency="",
    submitted=1,
    started=2,
    ends=None,
    time_limit=None,
    workdir="/gpfs",
)
ELEMENT = replace(JOB, id="2_3", job_id="4", array_id="2", task="3", name="arr")


@pytest.mark.parametrize(
    ("pattern", "job", "name"),
    [
        pytest.param(
            "/l/x-%x-%j-%A-%a-%u-%N-%n-%t-%%-%6j-%J-%s-%12j-%q-%3t.out",
            JOB,
            "/l/x-my job-1-1-4294967294-root-node-0-0-0-%-000001-1-batch-0000000001-%q-000.out",
            id="every symbol; width 10 is the widest; unknown ones stay",
        ),
        pytest.param(
            "y-%x-%j-%A-%a-%3a-%u-%N.out",
            ELEMENT,
            "/gpfs/y-arr-4-2-3-003-root-node-0.out",
            id="an array element; a relative name",
        ),
        pytest.param(
            r"z-\%x-%j\\k.out", JOB, r"/gpfs/z-%x-%j\k.out", id="a backslash switches symbols off"
        ),
        pytest.param("/l/%b", replace(ELEMENT, task="13"), "/l/3", id="the index modulo ten"),
        pytest.param("/l/%5x-%5N", JOB, "/l/my job-node-0", id="words are not padded"),
        pytest.param("/l/%%j", JOB, "/l/%j", id="two percent signs are one"),
        pytest.param("/l/%", JOB, "/l/%", id="a lone percent sign stays"),
        pytest.param("/l/%x", replace(JOB, name="%j"), "/l/%j", id="a name is never a pattern"),
    ],
)
def test_a_pattern_names_the_file_slurm_writes(pattern: str, job: Job, name: str) -> None:
    """The names are those of real files in a listing."""
    assert expand_output_path(pattern, job) == name


@pytest.mark.parametrize(
    ("nodes", "first"),
    [
        ("n1", "n1"),
        ("n1,n2", "n1"),
        ("n[03-05,9],m1", "n03"),
        ("n[7]", "n7"),
        ("r[1-2]n[03-04]", "r1n03"),
        ("n[1-2]-ib", "n1-ib"),
        ("n6[1-4][3-4]", "n613"),
        ("n1.example.org", "n1"),
        ("", ""),
    ],
)
def test_the_first_host_of_a_hostlist(nodes: str, first: str) -> None:
    """Its short name, as %N has it."""
    assert first_host(nodes) == first


@pytest.mark.parametrize(
    ("pattern", "depends"),
    [
        ("/l/%j.out", True),
        ("/l/%04x", True),
        ("/l/100%", False),
        ("/l/%%j", False),
        (r"/l/\%j", False),
        ("/l/plain", False),
    ],
)
def test_whether_a_name_depends_on_a_job(pattern: str, depends: bool) -> None:
    """Only then a job has to be named."""
    assert has_symbols(pattern) is depends


@pytest.mark.parametrize(
    ("stdout", "job", "name"),
    [
        ("/gpfs/slurm-4.out", ELEMENT, "/gpfs/slurm-2_3.out"),
        ("/gpfs/slurm-2_3.out", ELEMENT, "/gpfs/slurm-2_3.out"),
        ("/gpfs/slurm-1.out", JOB, "/gpfs/slurm-1.out"),
        ("/gpfs/%A-%a.out", ELEMENT, "/gpfs/2-3.out"),
    ],
)
def test_the_default_output_of_an_array_element(stdout: str, job: Job, name: str) -> None:
    """Up to 23.11 squeue says slurm-JOBID.out, and no such file is ever there."""
    assert job_output_path(stdout, job) == name


@pytest.mark.parametrize("name", ["a/b", "../x", "..", ".", "/etc/shadow", "a\0b"])
def test_a_name_that_would_lead_elsewhere_fills_no_symbol(name: str) -> None:
    """A user chooses the name of a job; slurmstepd itself makes it a folder of the job's output."""
    named = replace(JOB, name=name)
    with pytest.raises(CannotTell, match="would lead to another folder"):
        fill_symbols("/logs/%x", named)
    assert fill_symbols("/logs/%j", named) == "/logs/1"


def test_a_name_stands_for_itself_in_a_pattern_of_the_shell() -> None:
    named = replace(JOB, name="*")
    assert fill_symbols("/logs/%x-*.log", named) == "/logs/[*]-*.log"
    assert fill_symbols("/logs/%x.log", named) == "/logs/*.log"


@pytest.mark.parametrize(
    ("pattern", "literal"),
    [
        ("/logs/a.log", True),
        ("/logs/%j", False),
        ("/home/%u/a", False),
        ("a.log", False),
        (r"/l\%j", True),
    ],
)
def test_whose_rights_a_configured_path_has(pattern: str, literal: bool) -> None:
    """A relative path is meant from the working directory of the job, which its user chose."""
    assert whose_path(pattern, JOB) == Whose(user="root", literal=literal)
    assert whose_path(pattern, None) == Whose(literal=True)
