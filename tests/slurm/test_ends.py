"""How a job ended, from squeue's memory and from accounting."""

import random

import pytest

from sentinel.core.cluster import JobEnd
from sentinel.core.errors import CannotTell
from sentinel.slurm.ends import (
    choose_end,
    exit_status,
    read_sacct,
    read_squeue,
    sacct_columns,
    sacct_mark,
    squeue_columns,
)
from tests.slurm.answers import NONCE

MARK = sacct_mark(NONCE)


def remembered(**fields: bytes) -> bytes:
    """A record of `squeue -O`: a failed job but for the fields given."""
    job = {
        "job": b"15",
        "form": b"15",
        "state": b"FAILED",
        "reason": b"NonZeroExitCode",
        "nodes": b"n[1-2]",
        "start": b"1790000000",
        "end": b"1790000100",
        "exit": b"768",
        "array": b"15",
        "name": b"train",
        "user": b"alice",
        "partition": b"main",
        "submitted": b"1789999000",
        "workdir": b"/work",
        "derived": b"0:0",
        "count": b"2",
        "tasks": b"2",
        "allocated": b"cpu=8,node=2,gres/gpu=16",
        "per_job": b"N/A",
        "per_node": b"gres/gpu:8",
        "per_task": b"N/A",
        "per_socket": b"N/A",
        "stdout": b"/work/slurm-15.out",
    } | fields
    return f"{NONCE}|".encode().join(job.values()) + f"{NONCE}.\n".encode()


def booked(**fields: bytes) -> bytes:
    """A line of `sacct -p`: a job cancelled by uid 1000 but for the fields given."""
    job = {
        "job": b"15",
        "form": b"15",
        "state": b"CANCELLED by 1000",
        "exit": b"0:15",
        "start": b"1790000000",
        "end": b"1790000100",
        "nodes": b"n[1-2]",
        "reason": b"None",
        "name": b"train",
        "user": b"alice",
        "partition": b"main",
        "submitted": b"1789999000",
        "count": b"2",
        "allocated": b"billing=8,cpu=8,node=2",
    } | fields
    return line_of(*job.values())


def line_of(*fields: bytes) -> bytes:
    """A line of `sacct -p`: the fields, and the job id again."""
    return MARK.encode().join([*fields, fields[0], b"\n"])


def from_squeue(job_id: str, *records: bytes) -> JobEnd | None:
    return choose_end(read_squeue(b"".join(records), NONCE), job_id)


def from_sacct(job_id: str, *lines: bytes) -> JobEnd | None:
    return choose_end(read_sacct(b"".join(lines), MARK, columns_of(*lines)), job_id)


def columns_of(*lines: bytes) -> tuple[str, ...]:
    """The fields that these lines hold."""
    every = sacct_columns(["NNodes", "AllocTRES", "FailedNode"])
    return every[: lines[0].count(MARK.encode()) - 1] if lines else every


def test_what_squeue_remembers() -> None:
    """State, exit code, reason, nodes, times and the path of stdout."""
    assert from_squeue("15", remembered()) == JobEnd(
        job_id="15",
        state="FAILED",
        exit_code=3,
        reason="NonZeroExitCode",
        nodes="n[1-2]",
        started=1790000000,
        ended=1790000100,
        stdout="/work/slurm-15.out",
        source="squeue",
    )


@pytest.mark.parametrize(
    ("more", "size"),
    [
        ({}, (2, 16)),
        ({"allocated": b"N/A"}, (2, 16)),  # as it asks: 8 on each of 2 nodes
        ({"allocated": b"cpu=1", "per_node": b"N/A"}, (2, 0)),
        ({"allocated": b"", "per_node": b"N/A", "per_socket": b"gres:gpu:2"}, (2, None)),
        ({"count": b"two"}, (None, None)),
    ],
)
def test_of_what_size_a_run_was(
    more: dict[str, bytes], size: tuple[int | None, int | None]
) -> None:
    """What is no number hides nothing else."""
    (run,) = read_squeue(remembered(**more), NONCE)
    assert (run.state, run.node_count, run.gpus) == ("FAILED", *size)


@pytest.mark.parametrize(
    ("allocated", "gpus"), [(b"cpu=8,gres/gpu=16,node=2", 16), (b"cpu=8,node=2", None)]
)
def test_accounting_may_not_count_gpus(allocated: bytes, gpus: int | None) -> None:
    """AccountingStorageTRES of slurm.conf(5): without gres/gpu nobody knows how many there were."""
    line = booked(allocated=allocated)
    (run,) = read_sacct(line, MARK, columns_of(line))
    assert (run.node_count, run.gpus) == (2, gpus)


def test_what_accounting_has() -> None:
    """Who cancelled it is the uid that stands in the state."""
    assert from_sacct("15", booked()) == JobEnd(
        job_id="15",
        state="CANCELLED",
        exit_code=0,
        signal=15,
        cancelled_by="1000",
        nodes="n[1-2]",
        started=1790000000,
        ended=1790000100,
        source="sacct",
    )


@pytest.mark.parametrize(
    ("printed", "status"),
    [
        (b"0", (0, None)),
        (b"256", (1, None)),
        (b"768", (3, None)),
        (b"9", (0, 9)),
        (b"139", (0, 11)),
        (b"0:0", (0, None)),
        (b"3:0", (3, None)),
        (b"0:9", (0, 9)),
        (b"", (None, None)),
    ],
)
def test_exit_codes_of_all_versions(printed: bytes, status: tuple[int | None, int | None]) -> None:
    """A wait status up to 22.05 (139 is signal 11 with a core), `code:signal` since 23.02."""
    assert exit_status(printed) == status


@pytest.mark.parametrize(
    ("state", "reason", "signal"),
    [
        (b"NODE_FAIL", b"None", None),
        (b"NODE_FAIL", b"NodeDown", None),
        (b"FAILED", b"JobLaunchFailure", None),
        (b"CANCELLED", b"None", None),
        (b"FAILED", b"NonZeroExitCode", 1),
        (b"FAILED", b"RaisedSignal:1(Hangup)", 1),
    ],
)
def test_a_hangup_that_slurmctld_made_up_is_none(
    state: bytes, reason: bytes, signal: int | None
) -> None:
    """It writes `0:1` for whatever it ends itself; a SIGHUP has a reason that says so."""
    for status in (b"1", b"0:1"):
        end = from_squeue("15", remembered(state=state, reason=reason, exit=status))
        assert end is not None
        assert end.signal == signal
    end = from_squeue("15", remembered(state=b"NODE_FAIL", reason=b"None", exit=b"0:9"))
    assert end is not None
    assert end.signal == 9
    end = from_squeue("15", remembered(state=b"NODE_FAIL", reason=b"None", exit=b"1:0"))
    assert end is not None
    assert (end.exit_code, end.signal) == (None, None)


@pytest.mark.parametrize(
    "state",
    ["PENDING", "RUNNING", "COMPLETING", "SUSPENDED", "REQUEUED", "POWER_UP_NODE", "REQUEUED_CRON"],
)
def test_a_job_that_is_still_there_has_no_end(state: str) -> None:
    """Its end time is a plan and its exit code says nothing yet."""
    end = from_squeue("15", remembered(state=state.encode(), exit=b"0"))
    assert end is not None
    assert (end.state, end.ended, end.exit_code) == (state, None, None)


def test_only_the_job_asked_for_is_told() -> None:
    """Slurm lists an array's other elements too."""
    records = [
        remembered(job=b"16", form=b"15_0", state=b"COMPLETED"),
        remembered(job=b"17", form=b"15_1", state=b"TIMEOUT"),
        remembered(job=b"15", form=b"15_2", state=b"FAILED"),
    ]
    states = {job: from_squeue(job, *records) for job in ("15", "15_1", "16", "15_2", "18")}
    assert {job: end.state if end else None for job, end in states.items()} == {
        "15": "FAILED",
        "15_1": "TIMEOUT",
        "16": "COMPLETED",
        "15_2": "FAILED",
        "18": None,
    }


def test_a_requeued_job_ended_as_its_last_finished_run() -> None:
    """sacct -D lists every run; the one that waits again is no end."""
    runs = [
        booked(state=b"TIMEOUT"),
        booked(state=b"NODE_FAIL", nodes=b"n7"),
        booked(state=b"PENDING", start=b"Unknown", end=b"Unknown", nodes=b"None assigned"),
    ]
    end = from_sacct("15", *runs)
    assert end is not None
    assert (end.state, end.nodes) == ("NODE_FAIL", "n7")


def test_a_field_that_sacct_does_not_list_is_not_asked_for() -> None:
    """sacct refuses the whole question for it (_invalid_field() in src/sacct/options.c)."""
    assert len(sacct_columns(["State", "JobID"])) == 12
    short = line_of(*booked().split(MARK.encode())[:12])
    (run,) = read_sacct(short, MARK, sacct_columns([]))
    assert (run.state, run.node_count, run.gpus) == ("CANCELLED", None, None)


def test_the_failed_node_is_asked_for_where_sacct_knows_it() -> None:
    """FailedNode exists from 23.02 on; an unknown field is an error of sacct."""
    assert sacct_columns(["State", "FailedNode"])[-1] == "FailedNode"
    assert "FailedNode" not in sacct_columns(["State", "NodeList"])
    end = from_sacct("15", booked(state=b"NODE_FAIL", reason=b"None", failed=b"n2"))
    assert end is not None
    assert end.failed_node == "n2"


def test_nothing_is_remembered() -> None:
    """No row is None, not an error."""
    assert from_squeue("15") is None
    assert from_sacct("15") is None


def test_a_path_may_hold_anything() -> None:
    """stdout is the user's own text; it cannot end the record."""
    end = from_squeue("15", remembered(stdout=b"/tmp/x\n16|16|COMPLETED\xff"))
    assert end is not None
    assert (end.state, end.stdout) == ("FAILED", "/tmp/x\n16|16|COMPLETED\\xff")


@pytest.mark.parametrize(
    "answer",
    [
        remembered()[:-1],
        remembered() + remembered()[:20],
        remembered(exit=b"badly"),
        remembered(end=b"2026-11-21T01:28:53"),
        remembered() + b"more\n",
        remembered(job=f"1{NONCE}|".encode()),
    ],
)
def test_a_broken_answer_of_squeue_is_cannot_tell(answer: bytes) -> None:
    """Cut, of another form, or with text that Slurm does not print."""
    with pytest.raises(CannotTell, match="squeue's answer about a job"):
        read_squeue(answer, NONCE)


@pytest.mark.parametrize(
    "answer", [booked()[:-1], booked() + b"sacct: error\n", booked(exit=b"1:x")]
)
def test_a_broken_answer_of_sacct_is_cannot_tell(answer: bytes) -> None:
    """Likewise."""
    with pytest.raises(CannotTell, match="sacct's answer"):
        read_sacct(answer, MARK, sacct_columns([]))


PIECES = (MARK, MARK, MARK[:20], "\n15", "15", "\n16", "16", "\n", "FAILED", "x", "1790000000")


@pytest.mark.parametrize("seed", range(300))
@pytest.mark.parametrize("optional", [[], ["NNodes", "AllocTRES", "FailedNode"]])
def test_a_name_that_holds_the_mark_forges_no_run(seed: int, optional: list[str]) -> None:
    """Who shares the host with sacct reads its arguments, and renames a job before slurmdbd is
    asked. Accounting keeps 255 bytes of a name."""
    chance = random.Random(seed)
    columns = sacct_columns(optional)

    def line(job: bytes, user: bytes, name: bytes) -> bytes:
        fields = booked(job=job, form=job, user=user, name=name, failed=b"n1").split(MARK.encode())
        return line_of(*fields[: len(columns)])

    def forged(job: bytes) -> bytes:
        name = "".join(chance.choice(PIECES) for _ in range(12)).encode()[:255]
        return line(job, b"mallory", b"@NAME@").replace(b"@NAME@", name)

    victims = [line(job, b"alice", b"train") for job in (b"15", b"17", b"19")]
    answer = b"".join([forged(b"14"), victims[0], forged(b"16"), forged(b"18"), *victims[1:]])
    runs = read_sacct(answer, MARK, columns)
    assert [(r.job_id, r.name) for r in runs if r.user == "alice"] == [
        (job, "train") for job in ("15", "17", "19")
    ]
    others = {r.job_id for r in runs if r.user != "alice"}
    assert others <= {"14", "16", "18"}


def test_words_of_a_wrapper_before_the_answer_are_no_field() -> None:
    """A site's own sacct may greet."""
    (run,) = read_sacct(b"Welcome\n" + booked(), MARK, columns_of(booked()))
    assert run.job_id == "15"


def test_no_field_is_cut() -> None:
    """-O cuts at 20 bytes unless a mark, which may not open with a digit, follows the colon."""
    assert squeue_columns("xN").split(",")[0] == "JobID:xN|"
    assert ",WorkDir:xN|,DerivedEC:xN|,NumNodes:xN|" in squeue_columns("xN")
    assert squeue_columns("xN").endswith(",tres-per-task:xN|,tres-per-socket:xN|,STDOUT:xN.")
