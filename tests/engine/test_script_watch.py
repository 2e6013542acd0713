"""Wishes in batch scripts: each script is read once, few in a pass, users take turns, and nothing is
forgotten by a restart."""

from collections.abc import Mapping, Sequence

import pytest
from msgspec.structs import replace

from sentinel.core.cluster import Job
from sentinel.core.errors import CannotTell
from sentinel.core.model import Report
from sentinel.core.script_memory import KnownScript, count_scripts, describe_scripts
from sentinel.engine.script_watch import ScriptWatch
from sentinel.slurm.rights import QueueRights, SlurmUser
from sentinel.slurm.script_wishes import (
    MAX_SCRIPTS_PER_PASS,
    ScriptUnreadable,
    attach_wishes,
)
from sentinel.store.memory import MemoryStore
from sentinel.testing import ALL_SEEN, job
from tests.engine.worlds import Book, Scene, play, world
from tests.kinds import PlainCheck

SCRIPT = b"#!/bin/sh\n#SENTINEL off\nsrun train\n"


class Scripts:
    """A cluster with these jobs. Each has the script of its id, else SCRIPT."""

    def __init__(self, *jobs: Job, user: str = "root", admin: bool = True) -> None:
        self.queue: Sequence[Job] | None = jobs
        self.scripts: dict[str, bytes | CannotTell] = {}
        self.asked: list[str] = []
        self.known: Mapping[str, KnownScript] = {}
        self._rights = QueueRights(SlurmUser(0, user), admin=admin, private=False)

    def last(self) -> tuple[object, Sequence[Job] | None]:
        return None, self.queue

    def rights(self) -> QueueRights:
        return self._rights

    def read_script(self, job_id: str) -> bytes:
        self.asked.append(job_id)
        found = self.scripts.get(job_id, SCRIPT)
        if isinstance(found, CannotTell):
            raise found
        return found

    def use_script_wishes(self, known: Mapping[str, KnownScript]) -> None:
        self.known = known


class Service:
    """A watch over the scripts, and what its state has."""

    def __init__(self, source: Scripts) -> None:
        self.source, self.stored = source, dict[str, object]()
        self.restart()

    def restart(self) -> None:
        self.watch = ScriptWatch()
        self.watch.recall_scripts(self.stored)
        self.watch.switch_sources({"": self.source})

    def make_pass(self) -> list[str]:
        """The ids of the jobs whose scripts it read."""
        before = len(self.source.asked)
        watched = tuple(one.job_id for one in self.source.queue or ())
        report = Report(coverage=ALL_SEEN, findings=(), watched_jobs=watched)
        self.watch.note_report("trainings", "", report)
        self.stored = dict(self.watch.read_scripts() or self.stored)
        return self.source.asked[before:]

    @property
    def wishes(self) -> dict[str, str]:
        """The wishes that jobs have from now on."""
        jobs = attach_wishes(tuple(self.source.queue or ()), self.source.known)
        return {job.id: job.wish for job in jobs if job.wish}


def test_a_script_is_read_once_whatever_happens() -> None:
    """A restart, a requeue, another pass; an array has one script."""
    array = [job(f"20_{n}", job_id=str(20 + n), array_id="20", task=str(n)) for n in range(3)]
    service = Service(Scripts(job("10"), *array))
    assert service.make_pass() == ["10", "22"]
    assert service.wishes == dict.fromkeys(("10", "20_0", "20_1", "20_2"), "sentinel: off")
    assert service.make_pass() == []
    service.restart()
    assert service.wishes == dict.fromkeys(("10", "20_0", "20_1", "20_2"), "sentinel: off")
    service.source.queue = [job("10", "PENDING", submitted=9)]
    assert service.make_pass() == []
    service.source.queue = [job("10", user="bob")]
    assert service.wishes == {}
    assert service.make_pass() == ["10"]


def test_a_job_that_has_left_is_forgotten_and_an_answer_that_is_missing_forgets_nothing() -> None:
    """So the state stays small."""
    service = Service(Scripts(job("10"), job("11")))
    service.make_pass()
    service.source.queue = None
    service.make_pass()
    service.source.queue = [job("11")]
    assert service.make_pass() == []
    assert count_scripts(service.stored).read == 1


def test_the_comment_wins_and_its_script_is_not_read() -> None:
    """Also where the comment comes later; that of another tool is no wish."""
    service = Service(Scripts(job("10", wish="sentinel: stale=1h"), job("11")))
    assert service.make_pass() == ["11"]
    service.source.queue = [job("10"), job("11", wish="sentinel: stale=2h")]
    assert service.wishes == {"11": "sentinel: stale=2h"}
    assert service.make_pass() == ["10"]


def test_one_user_with_thousands_of_jobs_starves_nobody() -> None:
    """Twenty a pass: 30 others are read within two passes, whoever came first."""
    many = [job(str(n), user="mallory") for n in range(100, 5100)]
    others = [job(str(n), user=f"u{n}") for n in range(6000, 6030)]
    service = Service(Scripts(*many, *others))
    passes = [service.make_pass() for _ in range(4)]
    assert [len(ids) for ids in passes] == [MAX_SCRIPTS_PER_PASS] * 4
    assert {one.id for one in others} <= {*passes[0], *passes[1]}
    waiting = 5030 - 4 * MAX_SCRIPTS_PER_PASS
    assert count_scripts(service.stored).waiting == waiting
    assert [*describe_scripts(service.stored)] == [
        f"{waiting} jobs are not watched yet by the #SENTINEL line of the script, which waits to be read"
    ]
    late = job("9000", user="late")
    service.source.queue = [*many, *others, late]
    assert service.make_pass()[0] == "9000"


def test_running_jobs_come_first() -> None:
    """They may die before those that wait begin."""
    waiting = [job(str(n), "PENDING") for n in range(100, 150)]
    service = Service(Scripts(*waiting, job("200")))
    assert service.make_pass()[0] == "200"


@pytest.mark.parametrize(("user", "read"), [("alice", ["10"]), ("svc", [])])
def test_an_ordinary_user_reads_own_scripts_only(user: str, read: list[str]) -> None:
    """Slurm would refuse the others."""
    jobs = (job("10", user="alice"), job("11", user="bob"))
    service = Service(Scripts(*jobs, user=user, admin=False))
    assert service.make_pass() == read
    assert count_scripts(service.stored).forbidden == 2 - len(read)
    assert "NOT watched: cannot read the scripts of " in [*describe_scripts(service.stored)][-1]


def test_a_script_that_slurm_does_not_give_is_told_and_not_asked_again() -> None:
    """The next ones are read all the same."""
    source = Scripts(job("10"), job("11"))
    source.scripts["10"] = ScriptUnreadable("Invalid user id")
    service = Service(source)
    assert service.make_pass() == ["10", "11"]
    words = "NOT watched: cannot read the batch script: Invalid user id"
    assert [*describe_scripts(service.stored)] == [f"{words} (job 10)"]
    first, second = attach_wishes(tuple(source.queue or ()), source.known)
    assert (first.wish_trouble, second.wish_trouble) == (words, "")
    assert service.make_pass() == []


def test_a_slurm_that_is_silent_is_asked_once_and_nothing_is_remembered() -> None:
    """It is asked again in the next pass, and about another user's job first."""
    source = Scripts(job("10", user="a"), job("11", user="b"))
    source.scripts = dict.fromkeys(("10", "11"), CannotTell("slurmctld cannot be reached"))
    service = Service(source)
    assert service.make_pass() == ["10"]
    assert "slurmctld cannot be reached" in next(iter(describe_scripts(service.stored)))
    assert service.make_pass() == ["11"]
    source.scripts = {}
    assert sorted(service.make_pass()) == ["10", "11"]
    assert [*describe_scripts(service.stored)] == []


@pytest.mark.parametrize(
    ("script", "wish", "trouble"),
    [
        (b"#!/bin/sh\nsrun train\n#SENTINEL off\n", "", ""),
        (b"", "", ""),
        (b"#!/bin/sh\n# gr\xfc\xdfe\n#SENTINEL off\n", "sentinel: off", ""),
        (b"#SENTINEL off\n#SENTINEL off\n", "", "the script has 2 lines that begin with #SENTINEL"),
        (b"#SENTINEL " + b"x" * 5000, "sentinel: " + "x" * 1024, ""),
        (b"\x7fELF\0\0" * 1000, "", ""),
    ],
)
def test_any_bytes_are_a_script(script: bytes, wish: str, trouble: str) -> None:
    """What is too long is cut where it is refused."""
    source = Scripts(job("10"))
    source.scripts["10"] = script
    service = Service(source)
    service.make_pass()
    (found,) = attach_wishes(tuple(source.queue or ()), source.known)
    assert found.wish == wish
    assert found.wish_trouble.startswith(trouble)
    assert bool(found.wish_trouble) == bool(trouble)


class Watches(PlainCheck):
    """A check that watches these jobs."""

    def __init__(self, *jobs: Job) -> None:
        self.job_ids = tuple(one.job_id for one in jobs)

    def run(self, ctx: object) -> Report:
        return Report(coverage=ALL_SEEN, findings=(), watched_jobs=self.job_ids)


def test_the_state_remembers_across_engines() -> None:
    """An engine without a source reads nothing, and keeps what was read."""
    source, store = Scripts(job("10")), MemoryStore()

    async def look(scene: Scene) -> None:
        await scene.engine.run_check("jobs")
        await scene.engine.read_scripts()
        await scene.engine.check_self()

    runtime = world({"jobs": Watches(job("10"))}, {"book": Book()})
    play(look, runtime, store)
    assert source.asked == []
    for _ in range(2):
        play(look, replace(runtime, scripts={"": source}), store)
        assert source.asked == ["10"]
        assert source.known["10"].wish == "sentinel: off"
