"""Obeying an alert never delays the next: what is learned from what follows an end, and what is not."""

import random
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from msgspec import structs

from benchmarks import nights
from sentinel.checks.job.memory import (
    GoneJob,
    Memory,
    SeenJob,
    SubmitDelay,
    dump_memory,
    load_memory,
)
from sentinel.checks.job.rhythm import explain_wait, find_wait, render_wait, suggest_gap_line
from sentinel.checks.job.succession import learn_delays
from sentinel.core.clock import shift_instant
from sentinel.core.cluster import JobEnd, JobRun, Submission
from sentinel.core.model import Status
from sentinel.core.values import Duration
from sentinel.testing import START, FixedSlurm, context
from tests.checks.job.making import Watch, check, job

NOW = START.wall // 1_000_000
DEATHS = ("FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "TIMEOUT", "BOOT_FAIL", "LAUNCH_FAILED",
          "RECONFIG_FAIL", "DEADLINE")  # fmt: skip


def gone(state: str = "FAILED", by: str = "", user: str = "alice") -> GoneJob:
    """A job that ended two seconds before it was noticed."""
    seen = SeenJob(id="10", job_id="10", name="train", user=user, partition="prod",
                nodes="node-[0-3]", state="RUNNING", reason="", started=NOW - 3600, first=START,
                since=START, waited=0.0)  # fmt: skip
    end = JobEnd(job_id="10", state=state, cancelled_by=by, nodes="node-[0-3]",
                 started=NOW - 3600, ended=NOW - 2)  # fmt: skip
    return GoneJob(seen=seen, at=START, asked=True, end=end)


def after(
    *seconds: float, kind: str = "FAILED", prompted: bool = False, automatic: bool = False
) -> Memory:
    """A memory of delays after such ends, a day apart at odd times of the clock."""
    drawn = random.Random(5)
    times = [NOW - 86400 * n - drawn.randint(0, 9000) for n in range(1, len(seconds) + 1)]
    delays = [
        SubmitDelay(one, at, prompted, automatic, (at - round(one) + told) * prompted)
        for at, one, told in zip(times, reversed(seconds), [*range(9, 90, 27)] * 9, strict=False)
    ]
    return Memory(delays={kind: tuple(reversed(delays))})


@pytest.mark.parametrize("state", DEATHS)
@pytest.mark.parametrize("seconds", [(), (60,), (60, 3600), (3600, 3600, 3600), (60, 1200, 18000)])
def test_without_a_rhythm_a_death_is_told_at_once(state: str, seconds: tuple[float, ...]) -> None:
    """Also where what comes, comes so late that waiting for it would be silence."""
    memory = after(*seconds, kind=state, prompted=True)
    assert find_wait(gone(state), memory).seconds == 30


@pytest.mark.parametrize("state", DEATHS)
def test_three_delays_alike_are_a_rhythm(state: str) -> None:
    """Within 20 % of the middle one; others between them change nothing."""
    memory = after(290, 20, 250, 5000, 300, kind=state)
    assert find_wait(gone(state), memory).seconds == 600
    apart = after(200, 250, 310, 5000, kind=state)
    assert find_wait(gone(state), apart).seconds == 30


@pytest.mark.parametrize("state", DEATHS)
def test_where_somebody_was_told_before_each_the_last_three_count(state: str) -> None:
    """Of a person's ten reactions some three are alike by chance. One job that came untold shows that
    no person submits them."""
    last = after(290, 250, 300, kind=state, prompted=True)
    assert find_wait(gone(state), last).seconds == 600
    between = after(290, 20, 250, 5000, 300, kind=state, prompted=True)
    assert find_wait(gone(state), between).seconds == 30
    one = [*between.delays[state][:-1], structs.replace(between.delays[state][-1], prompted=False)]
    assert find_wait(gone(state), Memory(delays={state: tuple(one)})).seconds == 600


@pytest.mark.parametrize(
    ("answers", "wait"), [((59, 50, 62), 30), ((59, 50, 66), 30), ((249, 26, 514), 900)]
)
def test_a_person_counts_from_the_message_and_a_launcher_from_the_end(
    answers: tuple[int, ...], wait: float
) -> None:
    """A chain's passes come by the clock: who answers each message at once comes as long after the last
    look at a job that Slurm has forgotten."""
    times = [(689, NOW - 50_000), (681, NOW - 30_003), (692, NOW - 10_001)]
    delays = [
        SubmitDelay(s, at, True, False, at - a) for (s, at), a in zip(times, answers, strict=True)
    ]
    assert find_wait(gone(), Memory(delays={"forgotten": tuple(delays)})).seconds == wait


def test_an_end_of_unknown_time_does_not_hide_the_rhythm_of_others() -> None:
    """Three delays from a known end, and the newest from one that Slurm has forgotten. With fewer known
    ones nothing is left out."""
    known = after(1804, 1801, 1800).delays["FAILED"]
    vague = SubmitDelay(2079, NOW - 5, True, False, NOW - 1400)
    memory = Memory(delays={"FAILED": known, "forgotten": (vague,)})
    assert round(find_wait(gone(), memory).seconds) == 1984
    few = Memory(delays={"FAILED": known[1:], "forgotten": (vague,)})
    assert find_wait(gone(), few).seconds == 30


def test_the_answers_of_a_person_hardly_ever_delay_a_message() -> None:
    """They come a minute after the message, more or less."""
    drawn, waits = random.Random(4), list[float]()
    for count in [3, 4, 6, 8, 10] * 200:
        answers = [60 * drawn.lognormvariate(0, 0.6) for _ in range(count)]
        waits.append(find_wait(gone(), after(*answers, prompted=True)).seconds)
    assert len([one for one in waits if one > 90]) < len(waits) / 12


def test_answers_to_messages_at_the_same_minutes_are_no_cron() -> None:
    """A chain's passes come by the clock, and so do the answers. What was not told shows cron."""
    slot = NOW // 600 * 600
    delays = [
        SubmitDelay(s, slot - n * 6600 + 62, True, False, slot - n * 6600 + 5)
        for n, s in ((3, 540), (2, 100), (1, 300))
    ]
    assert find_wait(gone(), Memory(delays={"FAILED": tuple(delays)})).seconds == 30
    delays[1] = structs.replace(delays[1], told_at=0)
    assert "by the clock" in find_wait(gone(), Memory(delays={"FAILED": tuple(delays)})).why


@pytest.mark.parametrize(("seconds", "wait"), [(440, 880), (600, 900), (890, 900)])
def test_a_death_waits_fifteen_minutes_at_most(seconds: float, wait: float) -> None:
    """For what may be a person's reaction, too."""
    assert find_wait(gone(), after(*[seconds] * 3)).seconds == wait


@pytest.mark.parametrize("state", DEATHS)
@pytest.mark.parametrize(
    ("seconds", "wait"), [(901, 991), (1800, 1980), (3270, 3597), (3280, 30), (7200, 30)]
)
def test_a_punctual_launcher_is_waited_for_up_to_an_hour(
    state: str, seconds: float, wait: float
) -> None:
    """A tenth longer than it ever took. If that is more than an hour, waiting would be silence."""
    found = find_wait(gone(state), after(*[seconds] * 3, kind=state, prompted=True))
    assert round(found.seconds) == wait


@pytest.mark.parametrize(
    ("seconds", "wait"),
    [
        ((1800, 1800), 30),
        ((1800, 1950, 1800), 30),
        ((1800, 1802, 1804, 14000), 30),
        ((14000, 1800, 1802, 1804), 1984),
        ((100, 101, 102, 1800, 1802, 1804), 1984),
        ((1800, 1802, 1804, 100, 101, 102), 204),
    ],
)
def test_only_the_last_three_say_that_a_launcher_comes_late(
    seconds: tuple[float, ...], wait: float
) -> None:
    """Within 5 %: of ten reactions of a person some three are always somewhat alike."""
    assert round(find_wait(gone(), after(*seconds, prompted=True)).seconds) == wait


def test_people_are_hardly_ever_as_punctual_as_a_late_launcher() -> None:
    """Reactions after 20 minutes on average, ten of which are remembered."""
    drawn = random.Random(4)
    waits = []
    for _ in range(500):
        reactions = [1200 * drawn.lognormvariate(0, 0.6) for _ in range(10)]
        waits.append(find_wait(gone(), after(*reactions, prompted=True)).seconds)
    assert len([one for one in waits if one > 900]) <= 5


def test_what_cannot_be_a_hand_is_learned_at_once() -> None:
    """One requeue, or one submission from a node of the job, is enough."""
    assert find_wait(gone(), after(240, automatic=True)).seconds == 480
    assert find_wait(gone(), after(240)).seconds == 30
    assert find_wait(gone(), after(5, automatic=True)).seconds == 120


def test_a_launcher_under_cron_is_known_by_the_minutes_of_the_clock() -> None:
    """Deaths at any time, submissions at :00, :10, :20 of the hour: the next is waited for."""
    slot = NOW // 600 * 600
    delays = tuple(SubmitDelay(s, slot - n * 6600 + 2) for n, s in ((3, 540), (2, 100), (1, 300)))
    wait = find_wait(gone(), Memory(delays={"FAILED": delays}))
    assert wait.seconds == (slot + 602 - NOW) % 600 + 60
    assert "every 10m by the clock" in wait.why
    odd = tuple(SubmitDelay(d.seconds, d.at + 97 * n) for n, d in enumerate(delays))
    assert find_wait(gone(), Memory(delays={"FAILED": odd})).seconds == 30


@pytest.mark.parametrize(("period", "words"), [(300, "5m"), (600, "10m"), (900, "15m")])
def test_the_longest_period_that_fits_all_is_believed(period: int, words: str) -> None:
    """What comes every 10 minutes fits 5 too: half of its gaps would be told."""
    at = [NOW - NOW % 3600 - 86400 * n + period * m for n, m in ((4, 0), (3, 1), (2, 2), (1, 4))]
    delays = tuple(SubmitDelay(s, one) for s, one in zip((90, 250, 140, 30), at, strict=True))
    wait = find_wait(gone("FAILED"), Memory(delays={"FAILED": delays}))
    assert f"every {words} by the clock" in wait.why


def test_a_rhythm_seen_after_other_ends_counts_where_the_kind_does_not_matter() -> None:
    """After FAILED and TIMEOUT alike; after TIMEOUT alone it may be the job's own trap."""
    both = Memory(delays={"FAILED": (SubmitDelay(180, NOW - 9999),),
                          "TIMEOUT": (SubmitDelay(181, NOW - 5551), SubmitDelay(183, NOW - 3333))})  # fmt: skip
    assert find_wait(gone("NODE_FAIL"), both).seconds == 366
    one = after(180, 181, 183, kind="TIMEOUT")
    assert find_wait(gone("NODE_FAIL"), one).seconds == 30


def test_of_several_rhythms_the_longest_wait_counts() -> None:
    """Under cron three gaps may be alike by chance; the next one is as long as the clock says."""
    slot = NOW // 600 * 600
    alike = [SubmitDelay(s, slot + 2 - n * 6600) for n, s in ((3, 10), (2, 11), (1, 12))]
    wait = find_wait(gone(), Memory(delays={"FAILED": tuple(alike)}))
    assert wait.seconds == (slot + 602 - NOW) % 600 + 60
    assert "by the clock" in wait.why
    kinds = ("FAILED", "TIMEOUT", "NODE_FAIL")
    mixed = Memory(delays={kind: (one,) for kind, one in zip(kinds, alike, strict=True)})
    assert find_wait(gone("OUT_OF_MEMORY"), mixed).seconds == wait.seconds


def test_what_slurm_forgot_may_have_been_of_any_kind() -> None:
    forgotten = GoneJob(seen=gone().seen, at=START, asked=True)
    assert find_wait(forgotten, after(100, 101, 102, kind="TIMEOUT")).seconds == 204
    assert find_wait(forgotten, Memory()).seconds == 30


@pytest.mark.parametrize(
    ("seconds", "wait"), [((), 600), ((300,), 4 * 3600), ((3600, 5 * 3600), 11 * 3600)]
)
def test_a_scancel_of_nobody_known_is_not_told_sooner_than_before(
    seconds: tuple[float, ...], wait: float
) -> None:
    """Its owner may edit and test; and nothing waits for twelve hours."""
    last, memory = gone("CANCELLED"), after(*seconds, kind="CANCELLED")
    assert find_wait(last, memory).seconds == wait
    assert find_wait(gone("CANCELLED", by="root"), memory).seconds == 30


@pytest.mark.parametrize("state", ["COMPLETED", "PREEMPTED"])
def test_a_plan_waits_ten_minutes_and_never_twelve_hours(state: str) -> None:
    assert find_wait(gone(state), Memory()).seconds == 600
    assert find_wait(gone(state), after(3000, 3001, 3002, kind=state)).seconds == 6004
    assert find_wait(gone(state), after(*[14000] * 3, kind=state)).seconds == 4 * 3600


def test_lost_by_slurmctld_is_judged_by_what_accounting_says() -> None:
    """A state that was lost makes no death of what COMPLETED."""
    lost = gone("COMPLETED")
    assert find_wait(GoneJob(seen=lost.seen, at=START, asked=True, end=lost.end, lost=NOW),
                    Memory()).seconds == 600  # fmt: skip
    unknown = GoneJob(seen=lost.seen, at=START, asked=True, lost=NOW)
    assert find_wait(unknown, Memory()).seconds == 30


def test_gap_in_the_file_counts() -> None:
    """Twelve hours, if somebody says so; for every end."""
    watch = Watch(check(gap=Duration(12 * 3600)))
    watch.look(job())
    dead = JobRun(job_id="10", id="10", name="train", user="alice", state="FAILED", nodes="n1",
               started=NOW - 3600, ended=NOW + 50, source="squeue")  # fmt: skip
    finding = watch.look(after=60, ends=[dead])
    assert (finding.status, finding.patience) == (Status.CRITICAL, 12 * 3600)
    assert "because `gap: 12h` in the file says so" in finding.summary


def test_the_line_for_the_file_has_twice_the_measured_delay() -> None:
    """Only where a job came within fifteen minutes, and where no rhythm is known."""
    assert "`gap: 12m`" in suggest_gap_line(gone(), after(3, 345))
    assert suggest_gap_line(gone(), after(1200)) == ""
    assert suggest_gap_line(gone(), after(300, 301, 302)) == ""
    assert suggest_gap_line(gone(), Memory()) == ""
    assert suggest_gap_line(gone(), after(3, 345, prompted=True)) == "", "who obeyed a message"


def test_the_wait_is_said_with_its_end_and_its_reason() -> None:
    """In the zone of whoever reads; nothing once it is over."""
    wait = find_wait(gone(), after(300, 301, 302))
    zone = ZoneInfo("UTC")
    said = render_wait(wait, START, START, zone)
    assert said == (
        "waits until 08:10, because a job has followed such an end 3 times, after up to 5m 02s"
    )
    assert render_wait(wait, START, shift_instant(START, 590), zone) == ""
    assert render_wait(find_wait(gone(), Memory()), START, START, zone) == ""


def test_what_was_seen_is_said_when_it_is_told() -> None:
    assert explain_wait(gone(), Memory()) == ""
    assert "new jobs came 1m and 1h after" in explain_wait(gone(), after(60, 3600))
    assert "3 times" in explain_wait(gone(), after(300, 301, 302))
    obeyed, own = after(60, 3600, prompted=True), after(400)
    both = Memory(delays={"FAILED": (*obeyed.delays["FAILED"], *own.delays["FAILED"])})
    assert explain_wait(gone(), obeyed) == ""
    assert "new jobs came 6m 40s after" in explain_wait(gone(), both)


# What is learned, and how it is marked.


def dead_and_back(told: bool = False, host: str = "login1", submitted: int = 200) -> Memory:
    """A job dies; another is submitted so many seconds later, from that host."""
    dead = JobRun(job_id="10", id="10", name="train", user="alice", state="FAILED", nodes="node-[0-3]",
               started=NOW - 3600, ended=NOW + 50, source="squeue")  # fmt: skip
    watch = Watch(check())
    watch.look(job())
    watch.look(after=60, ends=[dead])
    watch.clock.advance(240)
    new = job("11", submitted=NOW + 50 + submitted, started=NOW + 51 + submitted)
    how = Submission(id="11", name="train", user="alice", workdir="/w", host=host)
    slurm = FixedSlurm(jobs=[new], ends={"10": dead}, submissions={"11": how})
    more = {"told": {"train": shift_instant(START, 95)}} if told else {}
    report = watch.check.run(context(slurm, watch.clock.now(), memory=watch.memory, **more))
    assert report.memory is not None
    return load_memory(report.memory, Memory)


@pytest.mark.parametrize(
    ("more", "delay"),
    [
        ({}, SubmitDelay(200, NOW + 250)),
        ({"told": True}, SubmitDelay(200, NOW + 250, prompted=True, told_at=NOW + 95)),
        ({"told": True, "submitted": 20}, SubmitDelay(20, NOW + 70)),
        ({"host": "node-2"}, SubmitDelay(200, NOW + 250, automatic=True)),
        ({"host": "node-2.example.org"}, SubmitDelay(200, NOW + 250, automatic=True)),
        ({"host": ""}, SubmitDelay(200, NOW + 250)),
        ({"submitted": -30}, SubmitDelay(0, NOW + 20, automatic=True)),
    ],
)
def test_a_delay_is_marked_by_who_may_have_made_it(
    more: dict[str, Any], delay: SubmitDelay
) -> None:
    """`prompted`: submitted after a message about this end; `automatic`: it cannot be a hand."""
    assert dead_and_back(**more).delays == {"FAILED": (delay,)}


def test_what_slurm_forgot_ended_when_it_was_last_seen_to_run() -> None:
    """Between two passes of a chain. A person who answers hours later is no launcher that came
    right after the last look."""
    watch = Watch(check())
    watch.look(job())
    for _ in range(4):
        watch.look(after=600)
    watch.look(job("11", submitted=NOW + 2900, started=NOW + 2901), after=600)
    assert load_memory(watch.memory, Memory).delays == {
        "forgotten": (SubmitDelay(2900, NOW + 2900),)
    }


def test_a_requeue_is_no_hand() -> None:
    watch = Watch(check())
    watch.look(job())
    dead = JobRun(job_id="10", id="10", name="train", user="alice", state="NODE_FAIL", nodes="n1",
               started=NOW - 3600, ended=NOW + 50, source="squeue")  # fmt: skip
    watch.look(after=60, ends=[dead])
    watch.look(job("10", "PENDING", "BeginTime"), after=60)
    ((delay,),) = load_memory(watch.memory, Memory).delays.values()
    assert (delay.seconds, delay.automatic) == (60, True)


def test_ten_delays_are_kept() -> None:
    memory = after(*range(100, 2000, 190))
    last = gone()
    before = Memory(gone=(last,), delays=memory.delays)
    new = job("11", submitted=NOW + 33, started=NOW + 34)
    kept = learn_delays(before, before, [new], shift_instant(START, 60)).delays["FAILED"]
    assert len(kept) == 10
    assert kept[-1].seconds == 35


def test_what_older_states_learned_is_dropped() -> None:
    """They learned a gap of hours from one person who obeyed an alert."""
    old = {
        **dump_memory(Memory(gone=(gone(),))),
        "followed": {"FAILED": {"count": 3, "longest": 11000}},
    }
    memory = load_memory(old, Memory)
    assert memory.gone == (gone(),)
    assert find_wait(gone(), memory).seconds == 30


def test_nights_of_every_behaviour() -> None:
    """A sample of `python -m benchmarks.nights`: no death is missed, told twice or left open, none of
    which no rhythm was seen is told late, no gap of a known rhythm is told, and no hand that was told
    once delays the next beyond a quarter of an hour."""
    played = nights.play(len(nights.BEHAVIOURS), deaths=(2, 3))
    for name, one in played.items():
        assert (one.missed, one.repeats, one.unended, one.late, one.false_known) == (0,) * 5, name
        assert max(one.told_after, default=0) <= 900 + nights.EVERY_S, name
    for name in ("array", "afterany", "launcher, 10 s", "cancels and edits"):
        assert played[name].false == 0, name


def test_a_chain_tells_a_death_within_a_pass() -> None:
    """A pass every 10 minutes, behind which slurmctld has forgotten the job."""
    for name in ("hand, 20 min", "array", "own trap"):
        played = nights.Night(nights.BEHAVIOURS[name], random.Random(7), 1, every_s=600).play()
        assert (played.missed, played.repeats, played.unended, played.late) == (0,) * 4, name


@pytest.mark.parametrize("minutes", [1, 60, 300])
def test_the_third_death_is_told_as_fast_as_the_first(minutes: int) -> None:
    """Also where each message was obeyed after a minute, an hour, five hours."""
    hand = nights.Behaviour(lambda *_: minutes * 60.0, hand=True, state="FAILED")
    told = nights.Night(hand, random.Random(3), 2).play().told_after
    assert len(told) == 3
    assert max(told) <= nights.PROMPT_S
