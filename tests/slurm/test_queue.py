"""Jobs from squeue's answer: whole and true, or CannotTell."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel.core.cluster import Job
from sentinel.core.errors import CannotTell
from sentinel.core.long_lines import MAX_LINE_CHARS, is_cut
from sentinel.slurm.queue import read_jobs, read_queue, read_sluids, squeue_format
from sentinel.slurm.words import decode_text
from tests.slurm.answers import NONCE, PLAIN_JOB, listed, row

USERS_TEXTS = (
    "name",
    "dependency",
    "workdir",
    "command",
    "reason",
    "exclude",
    "account",
    "comment",
)
HOSTILE = st.binary(max_size=400) | st.sampled_from(
    [
        b"x\n999|root|RUNNING",
        b"\x1b[31mred",
        b"",
        b"%i%j",
        b"(null)",
        b"xQm9uY2UxMjN|",
        row(id=b"999", state=b"RUNNING").replace(NONCE.encode(), b"xGuessedBefo"),
        b"\r\n" * 100,
    ]
)


def test_a_row_is_a_job() -> None:
    """Every field is where it belongs."""
    assert read_jobs(row(), NONCE) == [PLAIN_JOB]


def test_a_list_has_a_header() -> None:
    """It proves that squeue had an answer: an empty queue is one, empty output is none."""
    assert read_queue(listed(), NONCE) == []
    assert read_queue(listed(row()), NONCE) == [PLAIN_JOB]
    with pytest.raises(CannotTell, match="printed nothing, not even its header"):
        read_queue(b"", NONCE)
    with pytest.raises(CannotTell, match="not in the form asked for"):
        read_queue(row(), NONCE)


@pytest.mark.parametrize(
    ("fields", "attribute", "value"),
    [
        ({"id": b"15_3", "job": b"18", "task": b"3"}, "id", "15_3"),
        ({"id": b"15_3", "job": b"18", "task": b"3"}, "job_id", "18"),
        ({"id": b"15_3", "job": b"18", "task": b"3"}, "array_id", "15"),
        ({"id": b"15_[0-5,9%2]", "task": b"0-5,9%2"}, "elements", 7),
        ({"id": b"15_[0-100:4]", "task": b"0-100:4"}, "elements", 26),
        ({"id": b"15_[0-100:4]", "task": b"0-100:4"}, "task", "0-100:4"),
        ({"id": b"15+1", "job": b"16", "array": b"16"}, "id", "15+1"),
        ({"started": b"1790000100"}, "started", 1790000100),
        ({"ends": b"NONE"}, "ends", None),
        ({"limit": b"UNLIMITED"}, "time_limit", None),
        ({"nodes": b"n[1-16]"}, "nodes", "n[1-16]"),
        ({"exclude": b"n[17-18]"}, "exclude", "n[17-18]"),
        ({"reason": b"launch failed requeued held"}, "reason", "launch failed requeued held"),
        ({"user": b"DOM\\jane doe"}, "user", "DOM\\jane doe"),
        ({"name": "größe".encode()}, "name", "größe"),
        ({"name": b"\xff\xfe"}, "name", "\\xff\\xfe"),
        ({"name": b"(null)"}, "name", "(null)"),
        ({"name": b"n" * 300}, "name", "n" * 300),
        ({"account": b"ops"}, "account", "ops"),
        ({"comment": b"sentinel: off"}, "wish", "sentinel: off"),
        ({"comment": b" Sentinel: stale=15m\n"}, "wish", "Sentinel: stale=15m\n"),
        ({"comment": b"sentinel: \xff"}, "wish", "sentinel: \\xff"),
        ({"comment": b"sentinel:" + b"x" * 5000}, "wish", "sentinel:" + "x" * 1025),
        ({"comment": b"sentinel:" + "é".encode() * 1024}, "wish", "sentinel:" + "é" * 1024),
        ({"comment": b'{"APS": "sentinel: off"}'}, "wish", ""),
        ({"comment": b"00:12:00"}, "wish", ""),
        ({"comment": b"x" * 1024}, "wish", ""),
        ({"comment": b"sentinel:" + b"x" * 1015}, "wish", "sentinel:" + "x" * 1015),
        ({"comment": "größe".encode("latin-1")}, "wish", ""),
        ({"comment": b""}, "wish", ""),
        ({"dependency": b"singleton(unfulfilled)"}, "dependency", "singleton(unfulfilled)"),
    ],
)
def test_fields_are_read_as_slurm_means_them(
    fields: dict[str, bytes], attribute: str, value: object
) -> None:
    """One field of the row decides one attribute of the job."""
    [job] = read_jobs(row(**fields), NONCE)
    assert getattr(job, attribute) == value


def test_no_row_is_no_job() -> None:
    """An empty queue is an answer."""
    assert read_jobs(b"", NONCE) == []


@given(texts=st.lists(st.fixed_dictionaries(dict.fromkeys(USERS_TEXTS, HOSTILE)), max_size=6))
@settings(max_examples=200, deadline=None)
def test_no_text_of_a_user_changes_another_row(texts: list[dict[str, bytes]]) -> None:
    """Whatever users write, each row stays one row and its machine-made fields stay true."""
    rows = [row(id=b"%d" % n, job=b"%d" % n, **fields) for n, fields in enumerate(texts, 1)]
    jobs = read_jobs(row(id=b"0", job=b"0") + b"".join(rows) + row(id=b"9", job=b"9"), NONCE)
    assert [job.job_id for job in jobs] == ["0", *(str(n + 1) for n in range(len(texts))), "9"]
    assert {(job.user, job.state, job.node_count) for job in jobs} == {("alice", "PENDING", 16)}
    assert [job.name for job in jobs[1:-1]] == [decode_text(fields["name"]) for fields in texts]


def test_an_answer_that_is_cut_anywhere_is_not_a_shorter_list() -> None:
    """A client that was killed while printing leaves half a row: no row counts then."""
    whole = row(id=b"1", job=b"1") + row(id=b"2", job=b"2")
    ends = {0, len(whole) // 2, len(whole)}
    for length in set(range(len(whole))) - ends:
        with pytest.raises(CannotTell):
            read_jobs(whole[:length], NONCE)


@pytest.mark.parametrize(
    "broken",
    [
        row().replace(b"train.sh", b"train.sh" + NONCE.encode() + b";more"),
        row().replace(b"15 15 15", b"15 15"),
        row(job=b""),
        row(job=b"15x"),
        row(submitted=b"2026-11-21T01:28:53"),
        row(count=b"many"),
        row(limit=b"soon"),
        row(task=b"1,3,..."),
        row().replace(NONCE.encode(), b"xAnotherCall"),
        b"squeue: error: something\n",
    ],
)
def test_another_form_is_cannot_tell(broken: bytes) -> None:
    """One row in another form makes the whole answer unknown, in one line that says where."""
    with pytest.raises(CannotTell, match=r"not in the form asked for, after \d+ jobs") as error:
        read_jobs(row() + broken + row(), NONCE)
    assert "\n" not in str(error.value)


def test_many_pieces_are_one_list() -> None:
    """Answers larger than a piece, and rows larger than a piece, lose nothing."""
    rows = [row(id=b"%d" % n, job=b"%d" % n, command=b"c" * (n % 700)) for n in range(4000)]
    rows.insert(7, row(id=b"99999", job=b"99999", name=b"n" * (3 << 20)))
    jobs = read_jobs(b"".join(rows), NONCE)
    assert len({job.job_id for job in jobs}) == 4001
    assert [len(job.command) for job in jobs if job.job_id != "99999"] == [
        n % 700 for n in range(4000)
    ]
    assert len(jobs[7].name) <= MAX_LINE_CHARS
    assert is_cut(jobs[7].name)


def test_the_format_asks_for_no_width_and_ends_each_field() -> None:
    """A width would cut names; squeue copies what stands between the letters."""
    assert squeue_format("N") == (
        "%i %A %F %K %V %S %e %NN|%uN;%aN;%PN;%TN;%rN;%lN;%DN;%xN|%jN|%EN|%kN|%ZN;%oN."
    )


SLUIDS = b"""\
JOBID                           SLUID
12                              sDTDM8106N2P00
13                              sDTDM8106N2P01
14                              s0000000000000
15                              sDTDM8106N2P02
16                              sDTDM8106N2P02
"""


def test_sluids_lead_to_jobs() -> None:
    """That of no job at all, and one that two have, lead nowhere."""
    assert read_sluids(SLUIDS) == {"sDTDM8106N2P00": "12", "sDTDM8106N2P01": "13"}
    assert read_sluids(SLUIDS.partition(b"12")[0]) == {}


@pytest.mark.parametrize(
    "broken", [b"12", b"12 sDTDM8106N2P0", b"x sDTDM8106N2P00", b"12 sDTDM8106N2P0I", b"12 a b"]
)
def test_a_list_of_sluids_in_another_form_is_cannot_tell(broken: bytes) -> None:
    """Nothing of it is believed."""
    with pytest.raises(CannotTell, match="no list of SLUIDs"):
        read_sluids(SLUIDS + broken + b"\n")
    with pytest.raises(CannotTell, match="no list of SLUIDs"):
        read_sluids(SLUIDS.partition(b"\n")[2])
    with pytest.raises(CannotTell, match="no list of SLUIDs"):
        read_sluids(b"")


def test_a_job_is_made_with_names() -> None:
    """Checks and their tests build jobs by keyword; what most rows lack has a default."""
    fields = {name: getattr(PLAIN_JOB, name) for name in Job.__struct_fields__[:16]}
    assert Job(**fields).elements == 1
