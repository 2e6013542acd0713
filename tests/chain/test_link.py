"""The life of one link, with a queue that refuses and a clock of its own."""

import time
from pathlib import Path

import pytest

from sentinel.chain.folder import BadChainFolder, ChainFolder, mount_point
from sentinel.chain.link import RESERVE_S, LinkRunner, PassResult
from sentinel.chain.model import Chain
from sentinel.chain.queue import SubmissionRefused
from sentinel.core.errors import CannotTell, SentinelError
from tests.lab.fuse import Fuse

CHAIN = Chain(name="s", every=600, command=("sentinel",), time_limit=7200)
START = 6000.0 * 600


class Queue:
    """Refuses so many times, then takes everything."""

    def __init__(self, refusals: int, error: SentinelError) -> None:
        self.left, self.error = refusals, error
        self.asked = 0
        self.requeued: list[str] = []

    def mend_chain(self, me: str = "") -> tuple[bool, list[str]]:
        self.asked += 1
        if self.asked <= self.left:
            raise self.error
        return True, []

    def requeue_link(self, job: str) -> None:
        self.requeued.append(job)


class Life:
    """A link that runs on a clock which only its own sleeping and working moves."""

    def __init__(self, place: ChainFolder, queue: Queue | None, *, pass_takes: float = 3.0) -> None:
        self.now, self.takes = START + 1, pass_takes
        self.said: list[str] = []
        self.passes: list[float] = []
        self.allowed: list[float] = []
        self.runner = LinkRunner(
            CHAIN,
            place,
            queue,
            self._pass,
            self.said.append,
            job="7",
            now=lambda: self.now,
            clock=lambda: self.now,
            sleep=self._sleep,
        )

    def _sleep(self, seconds: float) -> None:
        self.now += seconds

    def _pass(self, seconds: float) -> PassResult:
        self.passes.append(self.now)
        self.allowed.append(seconds)
        self.now += self.takes
        return PassResult("ran")


@pytest.fixture
def place(tmp_path: Path) -> ChainFolder:
    made = ChainFolder(str(tmp_path))
    made.install_files(CHAIN, "")
    return made


ERRORS = [SubmissionRefused("sbatch: QOSMaxSubmitJobPerUserLimit"), CannotTell("squeue: no answer")]


def test_a_link_ends_within_seconds(place: ChainFolder) -> None:
    """Its successors wait, its slot is run."""
    life = Life(place, Queue(0, ERRORS[0]))
    assert life.runner.run_link()
    assert life.now - START < 10
    assert [e.what for e in place.read_journal()] == ["begin", "ran"]


def test_a_pass_has_all_the_time_that_its_link_has_left(place: ChainFolder) -> None:
    """Up to two minutes before the job's limit: a pass of a second could deliver nothing."""
    life = Life(place, Queue(0, ERRORS[0]))
    life.runner.run_link()
    assert life.allowed == [CHAIN.time_limit - RESERVE_S]


def test_at_the_end_of_its_time_a_pass_still_has_a_second(place: ChainFolder) -> None:
    """The last slot begins after the reserve has been used up: no limit is zero or below."""
    life = Life(place, Queue(10_000, ERRORS[0]))
    life.takes = 595.0
    life.runner.run_link()
    assert min(life.allowed) >= 1.0
    assert life.allowed == sorted(life.allowed, reverse=True)


@pytest.mark.parametrize("error", ERRORS, ids=["refused", "blind"])
def test_while_nothing_is_taken_it_makes_the_passes_of_its_successors(
    place: ChainFolder, error: SentinelError
) -> None:
    """For an hour: each slot once, on time, then it ends."""
    life = Life(place, Queue(40, error))
    assert life.runner.run_link()
    slots = [CHAIN.slot_at(moment) for moment in life.passes]
    assert slots == [CHAIN.slot_at(START) + 600 * n for n in range(len(slots))]
    assert len(slots) > 5
    assert all(moment - CHAIN.slot_at(moment) < 15 for moment in life.passes)


def test_the_last_resort_is_to_be_its_own_successor(place: ChainFolder) -> None:
    """Before its time limit, since a requeue is no submission."""
    queue = Queue(10_000, ERRORS[0])
    life = Life(place, queue)
    assert not life.runner.run_link()
    assert queue.requeued == ["7"]
    assert 7200 - 200 < life.now - START < 7200


def test_a_slot_that_another_has_run_is_not_run_again(place: ChainFolder) -> None:
    """After a requeue, or when two were late together."""
    Life(place, Queue(0, ERRORS[0])).runner.run_link()
    again = Life(place, Queue(0, ERRORS[0]))
    again.runner._job = "8"
    assert again.runner.run_link()
    assert again.passes == []
    assert place.read_journal()[-1].text == "run by 7 already"


def test_beside_another_link_at_work_nothing_is_run(place: ChainFolder) -> None:
    """Whoever began works on alone."""
    with place.lock_slot() as alone:
        assert alone
        life = Life(place, Queue(0, ERRORS[0]))
        life.runner.run_link()
        assert life.passes == []
    assert [e.what for e in place.read_journal()] == ["busy"]


def test_a_slot_whose_link_died_is_run_again(place: ChainFolder) -> None:
    """Begun is not run."""

    class Died(Exception):
        pass

    life = Life(place, None)
    life.runner._pass = _raising(Died())
    with pytest.raises(Died):
        life.runner.run_link()
    second = Life(place, None)
    second.runner.run_link()
    assert len(second.passes) == 1


@pytest.mark.parametrize("when", ["before", "while it rests"])
def test_a_chain_whose_folder_was_removed_ends(place: ChainFolder, when: str) -> None:
    """No successor, no pass that would make the folder anew, no requeue, and well within a minute."""
    queue = Queue(10_000, ERRORS[0])
    life = Life(place, queue)

    def gone(seconds: float) -> None:
        life.now += seconds
        if life.now - START > 10 or when == "before":
            place.remove_files()

    life.runner._sleep = gone
    assert life.runner.run_link()
    assert queue.requeued == []
    assert len(life.passes) == (0 if when == "before" else 1)
    assert life.now - START < 60
    assert not Path(place.folder).exists()


def test_a_file_system_that_is_away_is_no_removal(place: ChainFolder, tmp_path: Path) -> None:
    """Its mount point is a plain folder then; a link goes on trying."""
    away = ChainFolder(str(tmp_path / "scratch/chain"))
    assert away.was_removed(mount_point(str(tmp_path)))
    assert not away.was_removed(str(tmp_path))
    assert not place.was_removed(mount_point(str(tmp_path)))


def test_a_folder_that_hangs_ends_no_link(place: ChainFolder, as_root: None) -> None:
    """Its slot is run and its successors are looked after, each look given up after its limit; the
    first thing that a link reads there says why it ends."""
    with Fuse(Path(place.folder)) as fuse:
        fuse.hold("lookup", "getattr", "open", "opendir")
        slow = ChainFolder(place.folder, 0.2)
        with pytest.raises(BadChainFolder, match=r"chain\.json: no answer within 0 s"):
            slow.read_chain()
        queue, began = Queue(0, ERRORS[0]), time.monotonic()
        life = Life(ChainFolder(place.folder, 0.2), queue)
        assert life.runner.run_link()
        assert (queue.asked, len(life.passes)) == (1, 1)
        assert time.monotonic() - began < 5  # one look hung, and no other was begun
        assert fuse.withheld() == 2
        fuse.release()


def test_a_journal_that_cannot_be_read_ends_no_link(place: ChainFolder) -> None:
    """A slot run twice is better than one that nobody runs."""
    Path(place.folder, "links.jsonl").mkdir()
    life = Life(place, Queue(0, ERRORS[0]))
    assert life.runner.run_link()
    assert len(life.passes) == 1


def _raising(error: Exception):  # type: ignore[no-untyped-def]
    def pass_(_: float) -> PassResult:
        raise error

    return pass_
