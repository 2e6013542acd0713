"""Actions on jobs through the guard, on a real cluster: evidence first, then looked at again."""

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from sentinel.actions.action_rules import ActionRequester
from sentinel.actions.executor import ActionExecutor
from sentinel.actions.job_requests import StillLogSighting, make_job_request
from sentinel.clock import SystemClock
from sentinel.config.settings import Settings
from sentinel.core.actions import ActionOutcome, ActionRecord, Reply
from sentinel.core.cluster import Job
from sentinel.slurm.job_change import WorkingHands
from sentinel.wiring import actions, app
from tests.lab.cluster import Lab
from tests.lab.waiting import wait_until
from tests.stacks.training import Training
from tests.store.book_memory import MemoryBooks

ME = ActionRequester(name="progress", consent=True)


class Desk:
    """A sentinel on the lab's login node, its books in memory, its hands real."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.lab = lab
        self.settings = Settings(state=str(folder / "state"))
        self.clock = SystemClock()
        self.snapshot = actions.connect_slurm(self.settings, self.clock)
        self.hands = actions.make_slurm_hands(self.settings, self.snapshot)
        self.books = MemoryBooks()

    def actor(self, *, dry_run: bool = False, then: Callable[[], object] = bool) -> ActionExecutor:
        """`then` happens while evidence is taken."""
        real = self.hands

        class Meanwhile(WorkingHands):
            def evidence(self, job_id: str) -> Reply:
                reply = real.evidence(job_id)
                then()
                return reply

        mine = Meanwhile(self.snapshot, (), None, evidence=real._evidence)
        rules = actions.build_action_rules(self.settings)
        return ActionExecutor(rules, self.books, mine, self.clock, dry_run=dry_run)

    def job(self, job_id: str) -> Job:
        return next(j for j in self.hands.jobs(job_id) if j.state in ("RUNNING", "PENDING"))

    def ask(
        self,
        action: str,
        job_id: str,
        *,
        seen: StillLogSighting | None = None,
        params: Mapping[str, str] | None = None,
        actor: ActionExecutor | None = None,
    ) -> ActionRecord:
        request = make_job_request(
            action, self.job(job_id), "no progress", seen=seen, params=params
        )
        return (actor or self.actor()).execute_request(request, ME)


@pytest.fixture
def desk(fresh: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setenv("SLURM_CONF", fresh.env["SLURM_CONF"])
    return Desk(fresh, tmp_path)


def seen(path: Path) -> StillLogSighting:
    return StillLogSighting(path=str(path), size=path.stat().st_size)


def test_a_requeue_names_the_odd_rank_and_keeps_its_evidence_first(desk: Desk) -> None:
    """Afterwards the processes are gone; the record says where what they did can be read. What was
    gathered before is kept beside it."""
    training = Training(desk.lab, odd=5)
    log = desk.lab.work / "log"
    log.write_text("iteration 7\n")
    places = []
    for action in ("stacks", "requeue"):
        record = desk.ask(action, training.job, seen=seen(log))
        assert record.outcome is ActionOutcome.DONE
        assert "rank 5 (node-2) in load_batch (train.py:" in record.detail
        places.append(Path(record.detail.rpartition("evidence in ")[2]))
    assert len({*places}) == 2
    for place in places:
        assert "load_batch" in (place / "stacks.txt").read_text()
        assert "kernel.txt" in (place / "index.txt").read_text()
    assert "RUNNING" not in desk.lab.states(training.job)


@pytest.mark.parametrize("action", ["stacks", "requeue", "cancel", "killswitch"])
def test_a_log_that_moved_since_it_was_seen_is_no_hang(desk: Desk, action: str) -> None:
    """Nothing is done, and the log says why; before the proof as well as after it."""
    job = desk.lab.sbatch("sleep 600")
    desk.lab.wait_state(job, "RUNNING")
    log, file = desk.lab.work / "log", desk.lab.work / f"stop-{action}"
    log.write_text("iteration 7\n")
    stale = StillLogSighting(path=str(log), pattern=r"iteration (\d+)", number=6.0)
    record = desk.ask(action, job, seen=stale, params={"file": str(file)})
    assert (record.outcome, record.rule) == (ActionOutcome.REFUSED, "state")
    assert "its progress went from 6 to 7" in record.why
    if action == "stacks":
        return

    def moves() -> None:
        log.write_text("iteration 7\niteration 8\n")

    fresh = replace(stale, number=7.0)
    actor = desk.actor(then=moves)
    late = desk.ask(action, job, seen=fresh, params={"file": str(file)}, actor=actor)
    assert late.outcome is ActionOutcome.ERROR
    assert "not done, meanwhile its progress went from 7 to 8" in late.detail
    assert desk.lab.states(job) == ["RUNNING"]
    assert not file.exists()


def test_at_most_so_often_per_job_and_day(desk: Desk) -> None:
    """The third time a person has to look."""
    job = desk.lab.sbatch("trap : USR1; while :; do sleep 1 & wait; done")
    desk.lab.wait_state(job, "RUNNING")
    params = {"signal": "USR1", "to": "batch"}
    outcomes = [desk.ask("cancel", job, params=params) for _ in range(3)]
    assert [r.outcome for r in outcomes] == [
        ActionOutcome.DONE,
        ActionOutcome.DONE,
        ActionOutcome.REFUSED,
    ]
    assert outcomes[2].rule == "suspect"


def test_a_dry_run_changes_nothing_and_says_what_it_would_do(desk: Desk) -> None:
    """Its record is intended, with the commands."""
    job = desk.lab.sbatch("sleep 600")
    desk.lab.wait_state(job, "RUNNING")
    record = desk.ask("requeue", job, actor=desk.actor(dry_run=True))
    assert (record.outcome, record.commands) == (
        ActionOutcome.INTENDED,
        (("scontrol", "requeue", job),),
    )
    assert desk.lab.states(job) == ["RUNNING"]
    assert not Path(app.get_evidence_folder(desk.settings)).exists()


def test_without_consent_nothing_is_done(desk: Desk) -> None:
    """Off by default, as all actions."""
    job = desk.lab.sbatch("sleep 600")
    desk.lab.wait_state(job, "RUNNING")
    request = make_job_request("cancel", desk.job(job), "no progress")
    record = desk.actor().execute_request(request, ActionRequester(name="progress"))
    assert (record.outcome, record.rule) == (ActionOutcome.REFUSED, "disabled")


def test_a_signal_reaches_the_batch_shell_only_where_it_is_meant_to(desk: Desk) -> None:
    """`to: batch` is scancel --batch; the job goes on."""
    got = desk.lab.work / "got"
    job = desk.lab.sbatch(f"trap 'echo USR1 >{got}' USR1; sleep 600 & wait; sleep 600")
    desk.lab.wait_state(job, "RUNNING")
    record = desk.ask("cancel", job, params={"signal": "USR1", "to": "batch"})
    assert record.outcome is ActionOutcome.DONE
    wait_until(got.exists, "the signal")
    assert desk.lab.states(job) == ["RUNNING"]


def test_a_signal_that_is_none_is_refused(desk: Desk) -> None:
    """Before anything is done."""
    job = desk.lab.sbatch("sleep 600")
    desk.lab.wait_state(job, "RUNNING")
    record = desk.ask("cancel", job, params={"signal": "KILLALL"})
    assert (record.outcome, record.rule) == (ActionOutcome.REFUSED, "state")


def test_a_plain_cancel_ends_the_job(desk: Desk) -> None:
    job = desk.lab.sbatch("sleep 600")
    desk.lab.wait_state(job, "RUNNING")
    assert desk.ask("cancel", job).outcome is ActionOutcome.DONE
    desk.lab.wait_state(job, "CANCELLED")


@pytest.mark.parametrize("action", ["cancel", "requeue"])
def test_one_element_of_an_array_is_meant_even_if_it_has_the_arrays_number(
    desk: Desk, action: str
) -> None:
    """`scancel NUMBER` would end all elements; Slurm gives the last one the array's own."""
    array = desk.lab.sbatch("sleep 600", array="0-2")
    desk.lab.wait_state(array, "RUNNING")
    shared = next(j for j in desk.hands.jobs(array) if j.job_id == array)
    request = replace(make_job_request(action, shared, "no progress"), target=array)
    assert desk.actor().execute_request(request, ME).outcome is ActionOutcome.DONE
    others = [j.state for j in desk.hands.jobs(array) if j.id != shared.id and j.task]
    assert others.count("RUNNING") == 2


@pytest.mark.parametrize("action", ["cancel", "requeue", "hold"])
def test_a_heterogeneous_job_is_changed_as_a_whole(desk: Desk, action: str) -> None:
    """Slurm refuses to cancel or requeue one of its parts."""
    later = ["--begin=now+1hour"] if action == "hold" else []
    argv = ["sbatch", "--parsable", *later, "-N1", ":", "-N1"]
    job = desk.lab.ask(argv, stdin="#!/bin/sh\nexec sleep 600\n").strip()
    desk.lab.wait_state(job, "PENDING" if later else "RUNNING")
    record = desk.ask(action, job)
    assert (record.target, record.outcome) == (job, ActionOutcome.DONE)
    after = {"cancel": "CANCELLED None", "requeue": "PENDING BeginTime"}
    wanted = [after.get(action, "PENDING JobHeldUser")] * 2
    wait_until(
        lambda: [f"{j.state} {j.reason}" for j in desk.hands.jobs(job)] == wanted, "both parts"
    )


def test_a_job_that_may_not_be_requeued_goes_on(desk: Desk) -> None:
    """Slurm's refusal is told in its words, and nobody waits for what will not come."""
    job = desk.lab.sbatch("sleep 600", no_requeue=True)
    desk.lab.wait_state(job, "RUNNING")
    record = desk.ask("requeue", job)
    assert record.outcome is ActionOutcome.ERROR
    assert "Requested operation is presently disabled" in record.detail
    assert desk.lab.states(job) == ["RUNNING"]


def test_a_run_that_is_over_is_left_alone_and_so_is_the_next(desk: Desk) -> None:
    """Requeued meanwhile, it runs again under the same number: this one was not meant."""
    job = desk.lab.sbatch("sleep 600")
    desk.lab.wait_state(job, "RUNNING")
    request = make_job_request("cancel", desk.job(job), "no progress")
    earlier = replace(request, params={**request.params, "started": "1000000000"})
    record = desk.actor().execute_request(earlier, ME)
    assert (record.outcome, record.detail) == (ActionOutcome.UNNEEDED, "it was started anew since")
    foreign = replace(request, params={**request.params, "user": "bob"})
    record = desk.actor().execute_request(foreign, ME)
    assert (record.outcome, record.rule) == (ActionOutcome.REFUSED, "state")
    assert "it belongs to root" in record.why
    assert desk.lab.states(job) == ["RUNNING"]


def test_the_kill_switch_is_made_once_and_through_no_link(desk: Desk) -> None:
    """A link that a user put there leads nowhere; a file that is there is left alone."""
    job = desk.lab.sbatch("sleep 600")
    desk.lab.wait_state(job, "RUNNING")
    file, target = desk.lab.work / "KILL", desk.lab.work / "victim"
    record = desk.ask("killswitch", job, params={"file": str(file)})
    assert record.outcome is ActionOutcome.DONE
    assert file.read_text() == f"sentinel: job {job}: no progress\n"
    assert desk.ask("killswitch", job, params={"file": str(file)}).outcome is ActionOutcome.UNNEEDED
    link = desk.lab.work / "link"
    link.symlink_to(target)
    record = desk.ask("killswitch", job, params={"file": str(link)})
    assert record.outcome is ActionOutcome.ERROR
    assert not target.exists()


def test_a_killswitch_is_written_into_nothing_that_its_owner_put_there_meanwhile(
    desk: Desk,
) -> None:
    """Root would write into a disk to which a link leads: noclobber of sh(1) is about files alone."""
    job = desk.lab.sbatch("sleep 600")
    desk.lab.wait_state(job, "RUNNING")
    file, pipe = desk.lab.work / "stop-link", desk.lab.work / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    actor = desk.actor(then=lambda: file.symlink_to(pipe))
    record = desk.ask("killswitch", job, params={"file": str(file)}, actor=actor)
    assert (record.outcome, "File exists" in record.detail) == (ActionOutcome.ERROR, True), (
        record.detail
    )
    assert os.read(reader, 100) == b""
    os.close(reader)


@pytest.mark.parametrize("way", ["link/stop", "runs/../elsewhere/stop"])
def test_a_killswitch_is_made_in_its_own_directory_alone(desk: Desk, way: str) -> None:
    """Its path may hold the job's name, and the directories on the way be its owner's: a link or ..
    would have root make /etc/nologin."""
    job = desk.lab.sbatch("sleep 600")
    desk.lab.wait_state(job, "RUNNING")
    place = desk.lab.work / "killswitch"
    for name in ("elsewhere", "runs"):
        (place / name).mkdir(parents=True)
    (place / "link").symlink_to("elsewhere")
    record = desk.ask("killswitch", job, params={"file": f"{place}/{way}"})
    assert record.outcome is ActionOutcome.ERROR
    assert f"it is in {place}/elsewhere by a link or .. on the way" in record.detail
    assert not (place / "elsewhere/stop").exists()
    shutil.rmtree(place)


def test_hold_keeps_pending_elements_and_leaves_the_running_one(desk: Desk) -> None:
    """Held as by their owner, who may release them; nothing is lost from the queue."""
    array = desk.lab.sbatch("sleep 600", array="0-4%1")
    wait_until(lambda: "RUNNING" in desk.lab.states(array), "the first element")
    record = desk.ask("hold", array)
    assert record.outcome is ActionOutcome.DONE
    reasons = desk.lab.ask(["squeue", "-h", "-r", "-j", array, "-o", "%T %r"]).splitlines()
    assert [r for r in reasons if r.startswith("PENDING")] == ["PENDING JobHeldUser"] * 4
    assert sum(r.startswith("RUNNING") for r in reasons) == 1
    assert desk.ask("hold", array).outcome is ActionOutcome.UNNEEDED


def test_exclude_adds_a_node_to_those_that_a_pending_job_avoids(desk: Desk) -> None:
    """Its own list is kept; a job of somebody else, or one that changed since, is left alone."""
    job = desk.lab.sbatch("sleep 1", hold=True, exclude="node-0")
    params = {"node": "node-3", "exclude": "node-0"}
    assert desk.ask("exclude", job, params={**params, "user": "bob"}).rule == "state"
    assert desk.ask("exclude", job, params={**params, "exclude": ""}).rule == "state"
    record = desk.ask("exclude", job, params=params)
    assert record.outcome is ActionOutcome.DONE
    assert desk.lab.ask(["squeue", "-h", "-j", job, "-o", "%x"]).strip() == "node-[0,3]"
    assert desk.ask("exclude", job, params=params).outcome is ActionOutcome.UNNEEDED


def test_a_path_that_hangs_is_not_taken_for_one_that_stands_still(desk: Desk) -> None:
    """Whoever cannot look refuses: a hanging file system is no proof of a hanging job."""
    job = desk.lab.sbatch("sleep 600")
    desk.lab.wait_state(job, "RUNNING")
    desk.lab.fuse.hold("getattr", "lookup")
    record = desk.ask(
        "cancel", job, seen=StillLogSighting(path=f"{desk.lab.fuse.point}/data", size=5)
    )
    assert (record.outcome, record.rule) == (ActionOutcome.REFUSED, "state")
    assert "cannot be seen" in record.why
