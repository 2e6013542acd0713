"""Jobs that came and died between two looks, and what was learned from them."""

import random

import pytest

from sentinel.alerting.state_machine import AlertPolicy, advance_alert
from sentinel.checks.job.memory import Memory, SubmitDelay, dump_memory, load_memory
from sentinel.core.cluster import Job, JobRun
from sentinel.core.model import Finding, Key, Status
from tests.checks.job.making import NOW, Watch, check, job
from tests.checks.job.test_recall import Slurm, run


class ShortJobs:
    """A launcher that submits 40 s after an end. `lengths` of its jobs, the first of which is seen;
    then nothing comes any more. Slurm tells of those that are over when it is asked for the name."""

    def __init__(self, *lengths: float) -> None:
        self.watch, self.runs = Watch(check()), list[JobRun]()
        begun = -20.0
        for number, length in enumerate(lengths, 10):
            times = {"started": int(NOW + begun), "ended": int(NOW + begun + length)}
            self.runs.append(run(str(number), submitted=int(NOW + begun), exit_code=1, **times))
            begun += length + 40

    def look(self, now: float) -> Finding:
        """What a look says so many seconds after the first one."""
        self.watch.clock.advance(now - (self.watch.clock.now().wall // 1_000_000 - NOW))
        here, rows = NOW + now, list[Job]()
        for one in self.runs:
            if (one.started or 0) <= here < (one.ended or 0):
                rows.append(job(one.id, submitted=one.submitted, started=one.started))
        return self.watch.see(Slurm(*rows, runs=[r for r in self.runs if (r.ended or 0) <= here]))

    def know(self, seconds: float) -> None:
        """Three such gaps were seen before."""
        delays = tuple(SubmitDelay(seconds, NOW - 86400 * n - 977 * n * n) for n in (3, 2, 1))
        self.watch.memory = dump_memory(Memory(delays={"FAILED": delays}))

    @property
    def delays(self) -> list[float]:
        """What was learned."""
        memory = load_memory(self.watch.memory, Memory)
        return [one.seconds for some in memory.delays.values() for one in some]


def test_what_came_and_died_unseen_is_found_when_the_next_job_runs() -> None:
    """A job of 3 s between two looks: the gap was no 83 s, it was twice 40 s."""
    played = ShortJobs(21, 3, 60)  # over at 1 s; from 41 to 44 s; from 84 s on
    for now in (0, 5, 25, 30, 35, 40, 45, 60, 80, 85, 90):
        played.look(now)
    assert played.delays == [40, 40]


def test_of_several_that_came_unseen_each_gap_is_learned() -> None:
    """As after a message: one look finds both."""
    played = ShortJobs(21, 3, 3, 60)  # 41 to 44, 84 to 87, from 127 s on
    for now in (0, 5, 25, 30, 35, 60, 100, 130, 135):
        played.look(now)
    assert played.delays == [40, 40, 40]


def test_a_gap_with_nothing_in_it_is_learned_whole() -> None:
    played = ShortJobs(21, 60)
    for now in (0, 5, 25, 30, 40, 45, 50):
        played.look(now)
    assert played.delays == [40]


def test_slurm_is_asked_once_when_a_job_comes_back() -> None:
    """Not at each look at one that runs or is held, nor where nothing was dead."""
    watch = Watch(check())
    watch.look(job())
    dead = run("10", ended=NOW + 50)
    for rows, asked in (([], 1), ([job("11")], 1), ([job("11")], 0), ([job("11"), job("12")], 0)):
        watch.clock.advance(60)
        slurm = Slurm(*rows, runs=[dead])
        watch.see(slurm)
        assert len(slurm.asked) == asked


def test_a_known_rhythm_is_waited_for_anew_after_a_job_that_no_look_saw() -> None:
    """Told 80 s after the end of the last one. Without a rhythm nothing waits."""
    played = ShortJobs(21, 3)  # over at 1 s; from 41 to 44 s
    played.know(40)
    found = {now: played.look(now).patience for now in (0, 5, 40, 75, 80, 100)}
    assert found == {0: 0, 5: 80, 40: 80, 75: 119, 80: 119, 100: 119}
    unknown = ShortJobs(21, 3)
    assert [unknown.look(now).patience for now in (0, 5, 30, 45, 80)] == [0, 30, 30, 30, 30]


def test_jobs_that_die_unseen_for_ever_are_told_after_a_quarter_of_an_hour() -> None:
    """A launcher that goes on starting what dies at once is no training."""
    played = ShortJobs(21, *[3] * 40)
    played.know(40)
    told = [
        now
        for now in range(5, 1200, 5)
        if now % 43 not in (41, 42, 0) and played.look(now).patience <= now - 5
    ]
    assert 800 < told[0] <= 905


def test_the_run_before_a_requeue_is_no_job_that_died_unseen() -> None:
    """Accounting tells of it beside the one that runs, under the same id."""
    watch = Watch(check())
    watch.look(job())
    old = run("10", "NODE_FAIL", started=NOW - 3600, ended=NOW + 50, source="sacct")
    watch.clock.advance(60)
    watch.see(Slurm(runs=[old]))
    watch.clock.advance(60)
    watch.see(Slurm(job("10", started=NOW + 100), runs=[old]))
    assert load_memory(watch.memory, Memory).gone == ()


def play_launcher(seed: int) -> list[int]:
    """A launcher 40 s after each of six jobs of 3 to 9 s, with a look every 5 s; then nothing comes. The
    numbers of the ends that were told."""
    drawn, played = random.Random(seed), ShortJobs()
    begins = drawn.uniform(-8, 0)
    for number in range(10, 16):
        times = {"started": int(NOW + begins), "ended": int(NOW + begins + drawn.uniform(3, 9))}
        played.runs.append(run(str(number), submitted=int(NOW + begins), exit_code=1, **times))
        begins = times["ended"] - NOW + drawn.uniform(39, 42.5)
    key, alert, told, now = Key("lab", "training", "train"), None, list[int](), 0.0
    while now < begins + 200:
        finding, at = played.look(now), played.watch.clock.now()
        done = advance_alert(key, alert, finding, AlertPolicy(kind="job"), at)
        alert = done.alert
        if done.transition and done.transition.status is Status.CRITICAL:
            told.append(sum((one.ended or 0) <= NOW + now for one in played.runs) - 1)
        now += drawn.uniform(5, 5.3)
    return told


@pytest.mark.parametrize("seed", range(20))
def test_once_three_gaps_were_learned_short_jobs_are_told_only_at_their_end(seed: int) -> None:
    """Whichever of them the looks saw: the fourth and fifth gap are not told, the last end is."""
    assert [number for number in play_launcher(seed) if number >= 3] == [5]
