"""What the `chain` kind says of a chain."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from sentinel.chain.folder import ChainFolder
from sentinel.chain.journal import JournalEntry
from sentinel.chain.model import Chain
from sentinel.checks.chain import ChainCheck
from sentinel.checks.users import own_user_name
from sentinel.core.clock import SECOND
from sentinel.core.cluster import Job
from sentinel.core.errors import CannotTell
from sentinel.core.model import Status
from sentinel.core.settings import FilePath
from sentinel.core.values import clock_text
from sentinel.testing import START, FixedSlurm, context

CHAIN = Chain(name="s", every=600, command=("sentinel",), revision="r")
NOW = START.wall / SECOND


def job(name: str, state: str = "PENDING", reason: str = "BeginTime", number: int = 1) -> Job:
    return Job(
        str(number), str(number), str(number), "", name, own_user_name(), "main", state, reason, "", 0, "",
        None, None, None, None,
    )  # fmt: skip


REST = tuple(job(name) for name in CHAIN.strand_names[1:])


@pytest.fixture
def place(tmp_path: Path) -> ChainFolder:
    place = ChainFolder(str(tmp_path / "chain"))
    place.install_files(CHAIN, "")
    return place


def found(place: ChainFolder, *jobs: Job) -> dict[str, tuple[Status, str]]:
    report = ChainCheck(dir=FilePath(place.folder)).run(context(FixedSlurm(jobs=jobs)))
    return {f.subject: (f.status, f.summary) for f in report.findings}


@pytest.mark.parametrize(
    ("jobs", "status", "said"),
    [
        ((job("s-a"), *REST), Status.OK, "3 waiting, 0 at work"),
        ((job("s-a", "RUNNING"), *REST), Status.OK, "2 waiting, 1 at work"),
        ((job("s-a", "CONFIGURING"), *REST), Status.OK, "2 waiting, 1 at work"),
        ((*REST, job("other")), Status.WARNING, "no job named s-a is in the queue"),
        (
            (job("s-a", reason="JobHeldUser", number=9), *REST),
            Status.WARNING,
            "is held and will not start: job 9; the chain's other jobs go on",
        ),
        ((job("other"),), Status.CRITICAL, "none of the Slurm jobs that run sentinel is queued"),
    ],
)
def test_links(place: ChainFolder, jobs: tuple[Job, ...], status: Status, said: str) -> None:
    """One missing warns, none at all is critical."""
    seen = found(place, *jobs)["next jobs"]
    assert (seen[0], said in seen[1]) == (status, True)


def test_jobs_of_others_with_the_chains_names_say_nothing(place: ChainFolder) -> None:
    """They neither hide that the chain is broken, nor make an administrator release somebody's job.
    The snapshot holds everybody's jobs where another check of the pass needs them."""
    whole = (job("s-a"), *REST)
    hers = tuple(
        replace(job(name, reason=reason, number=70), user="mallory")
        for name in CHAIN.strand_names
        for reason in ("BeginTime", "JobHeldAdmin")
    )
    held = (job("s-a", reason="JobHeldUser", number=9), *REST)
    for mine in (whole, REST, held, ()):
        assert found(place, *mine, *hers) == found(place, *hers, *mine) == found(place, *mine)


@pytest.mark.parametrize(
    ("reason", "asks"),
    [("JobHeldUser", False), ("launch failed requeued held", False), ("JobHeldAdmin", True)],
)
def test_an_administrator_is_asked_only_for_what_an_administrator_holds(
    place: ChainFolder, reason: str, asks: bool
) -> None:
    """The owner may release every other job of the chain."""
    slurm = FixedSlurm(jobs=(job("s-a", reason=reason, number=9), *REST))
    report = ChainCheck(dir=FilePath(place.folder)).run(context(slurm))
    (said,) = (f.guidance for f in report.findings if f.subject == "next jobs")
    assert "scontrol release 9" in said.todo
    assert ("dministrator" in said.todo, bool(said.ask)) == (asks, asks)


def test_a_relay_without_a_successor_would_end_with_its_link(place: ChainFolder) -> None:
    """Told while there is somebody to tell it."""
    place.install_files(replace(CHAIN, mode="relay", strands=1, time_limit=86400), "")
    seen = found(place, job("s-a", "RUNNING"))["next jobs"]
    text = "no next job waits behind the one that runs: watching stops when the present job ends"
    assert seen == (Status.WARNING, text)
    last = replace(job("s-a", "RUNNING"), ends=int(NOW) + 3600)
    until = f", {clock_text(NOW + 3600, NOW)} at the latest"
    assert found(place, last)["next jobs"] == (Status.WARNING, text + until)
    held = job("s-a", reason="JobHeldUser", number=9)
    assert found(place, last, held)["next jobs"][1].endswith(until)
    assert found(place, held)["next jobs"][1].endswith("until somebody releases it")
    assert found(place, job("s-a", "RUNNING"), job("s-a", number=2))["next jobs"][0] is Status.OK


@pytest.mark.parametrize(
    ("ago", "status", "said"),
    [
        ([600, 0], Status.OK, "passes: 2 of 2 ran"),
        ([6000, 0], Status.WARNING, "nothing was watched for 1h 30m"),
        ([6000, 4000], Status.CRITICAL, "no pass for"),
        ([], Status.OK, "no pass yet"),
    ],
)
def test_slots(place: ChainFolder, ago: list[int], status: Status, said: str) -> None:
    """Blind time is told by the pass that ends it, and while it lasts by whoever else looks."""
    for seconds in ago:
        slot = CHAIN.slot_at(NOW - seconds)
        place.append_entry(JournalEntry(slot=slot, what="ran", at=NOW - seconds, job="1"))
    seen = found(place, job("s-a"), job("s-b"))["slots"]
    assert (seen[0], said in seen[1]) == (status, True)


@pytest.mark.parametrize(("mode", "status"), [("crontab", Status.CRITICAL), ("relay", Status.OK)])
def test_a_chain_that_never_ran_is_told(place: ChainFolder, mode: str, status: Status) -> None:
    """No cron daemon, or no free node since it was installed; a relay makes no passes itself."""
    chain = replace(CHAIN, mode=mode, strands=1, time_limit=86400, installed=int(NOW) - 3600)
    place.install_files(chain, "")
    assert found(place, job("s-a"))["slots"][0] is status
    place.install_files(replace(chain, installed=int(NOW) - 1200), "")
    assert found(place, job("s-a"))["slots"] == (Status.OK, "no pass yet")


def test_a_queue_that_cannot_be_seen_is_no_empty_one(place: ChainFolder) -> None:
    """Blind, not critical."""
    with pytest.raises(CannotTell):
        ChainCheck(dir=FilePath(place.folder)).run(context(FixedSlurm()))


def test_a_chain_that_was_taken_away_is_no_answer(tmp_path: Path) -> None:
    """Nobody can say how it is."""
    with pytest.raises(CannotTell, match="no chain is installed"):
        ChainCheck(dir=FilePath(str(tmp_path))).run(context(FixedSlurm(jobs=())))


def test_a_journal_that_cannot_be_read_is_no_empty_one(place: ChainFolder) -> None:
    """It is blind, and says where."""
    Path(place.folder, "links.jsonl").mkdir()
    with pytest.raises(CannotTell, match=r"links\.jsonl: Is a directory"):
        found(place)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"name": 3}', '{"name":"s","every":1,"command":[]}']
)
def test_a_damaged_file_is_told_with_its_remedy(place: ChainFolder, text: str) -> None:
    """In one line."""
    Path(place.folder, "chain.json").write_text(text)
    with pytest.raises(CannotTell, match="write it anew with: sentinel cron install"):
        found(place)
