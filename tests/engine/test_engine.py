"""From a run to a message: the engine over a real (memory) store, a manual clock and small channels."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.alerting.settings import Match, Route
from sentinel.core.clock import Instant, shift_instant
from sentinel.core.errors import ChannelError, StoreError
from sentinel.core.model import Batch, CheckRun, Coverage, Report, Status
from sentinel.core.ports import Context
from sentinel.core.settings import ChannelCommon
from sentinel.engine import housekeeping
from sentinel.engine.tick import find_due_checks, run_pass
from sentinel.store.errors import Unstorable
from sentinel.store.memory import MemoryStore
from sentinel.testing import START
from tests.engine.worlds import Book, Grouped, Says, Scene, play, world
from tests.lab.waiting import wait_until

DOWN = ChannelError("connection refused")
NEVER = ChannelError("550 no such user", permanent=True, reason="refused")


def test_a_trouble_and_its_end_are_told_once_each() -> None:
    """bad, bad, good, good: firing, resolved."""
    disk, book = Says(), Book()

    async def story(scene: Scene) -> None:
        for status in (Status.CRITICAL, Status.CRITICAL, Status.OK, Status.OK):
            disk.status = status
            await scene.engine.run_check("disk")
            await scene.engine.deliver_due()
            scene.clock.advance(60)

    play(story, world({"disk": disk}, {"book": book}))
    assert book.reasons == ["firing", "resolved"]


def test_a_check_learns_when_somebody_was_told_of_its_subject() -> None:
    """The `job` check tells by it what a person did because of a message. Not while nobody was."""
    heard: list[Mapping[str, Instant]] = []

    class Hears(Says):
        def run(self, ctx: Context) -> Report:
            heard.append(dict(ctx.told))
            return super().run(ctx)

    disk = Hears(Status.CRITICAL)

    async def story(scene: Scene) -> None:
        for _ in range(3):
            await scene.engine.run_check("disk")
            await scene.engine.deliver_due()
            scene.clock.advance(60)

    play(story, world({"disk": disk}, {"book": Book()}))
    assert heard == [{}, {"/scratch": START}, {"/scratch": START}]


def test_a_check_learns_how_often_it_runs() -> None:
    """The `log` check tells by it what is a gap between two looks."""
    spacings: list[float | None] = []

    class Learns(Says):
        def run(self, ctx: Context) -> Report:
            spacings.append(ctx.every)
            return super().run(ctx)

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("disk")

    play(story, world({"disk": Learns()}, {}, every=600))
    play(story, world({"disk": Learns()}, {}, cron="0 6 * * *"))
    assert spacings == [600, None]


def test_what_a_check_remembers_comes_back_to_it() -> None:
    """Memory is part of the commit."""
    disk = Says()

    async def story(scene: Scene) -> None:
        for _ in range(3):
            await scene.engine.run_check("disk")
        assert scene.store.read_memory("disk") == {"runs": 3}

    play(story, world({"disk": disk}, {}))


def test_a_channel_that_is_down_gets_everything_in_order_once_it_is_up() -> None:
    """And the other channel does not wait for it."""
    disk, mail, book = Says(), Book(), Book()
    mail.error = DOWN

    async def story(scene: Scene) -> None:
        for status in (Status.WARNING, Status.CRITICAL, Status.OK):
            disk.status = status
            await scene.engine.run_check("disk")
            await scene.engine.deliver_due()
            scene.clock.advance(60)
        assert (mail.reasons, book.reasons) == ([], ["firing", "worse", "resolved"])
        mail.error = None
        scene.clock.advance(600)
        assert await scene.engine.deliver_due() is None

    play(story, world({"disk": disk}, {"mail": mail, "book": book}))
    assert mail.reasons == ["firing", "worse", "resolved"]


def test_what_was_refused_for_good_is_tried_again_when_its_end_comes() -> None:
    """The mistake may have been mended by then; nobody hears of the end alone."""
    disk, mail = Says(Status.CRITICAL), Book()
    mail.error = NEVER

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("disk")
        await scene.engine.deliver_due()
        mail.error, disk.status = None, Status.OK
        scene.clock.advance(1)
        await scene.engine.run_check("disk")
        await scene.engine.deliver_due()

    play(story, world({"disk": disk}, {"mail": mail}))
    assert mail.reasons == ["firing", "resolved"]


def test_an_end_waits_for_a_beginning_that_is_still_refused() -> None:
    """Both are tried again every hour, in their order."""
    disk, mail = Says(Status.CRITICAL), Book()
    mail.error = NEVER

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("disk")
        await scene.engine.deliver_due()
        disk.status = Status.OK
        scene.clock.advance(1)
        await scene.engine.run_check("disk")
        assert await scene.engine.deliver_due() == 3600
        mail.error = None
        scene.clock.advance(3599)
        await scene.engine.deliver_due()
        assert mail.reasons == []
        scene.clock.advance(1)
        await scene.engine.deliver_due()

    play(story, world({"disk": disk}, {"mail": mail}))
    assert mail.reasons == ["firing", "resolved"]


def test_a_refused_message_is_not_sent_after_a_newer_one() -> None:
    """What was overtaken is dropped, and the history says by what."""
    disk, mail = Says(Status.WARNING), Book()
    mail.error = NEVER

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("disk")
        await scene.engine.deliver_due()
        mail.error, disk.status = None, Status.CRITICAL
        await scene.engine.run_check("disk")
        await scene.engine.deliver_due()
        scene.clock.advance(7200)
        await scene.engine.deliver_due()
        [alert] = [a for a in scene.store.read_alerts() if a.key.subject]
        [(first, sent, why), _] = scene.store.read_deliveries(alert.id)
        assert (first.notification.reason, sent) == ("firing", None)
        assert why == f"overtaken by {alert.id}-2"

    play(story, world({"disk": disk}, {"mail": mail}))
    assert mail.reasons == ["worse"]


def test_nothing_is_sent_twice_by_two_rounds_at_once() -> None:
    """A drain that begins while a round is at work waits for it."""
    disk, book = Says(Status.CRITICAL), Book()

    async def slow() -> None:
        await asyncio.sleep(0.05)

    book.before = slow

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("disk")
        await asyncio.gather(
            scene.engine.deliver_due(), scene.engine.drain_outbox(5), scene.engine.deliver_due()
        )

    play(story, world({"disk": disk}, {"book": book}))
    assert book.reasons == ["firing"]


def test_a_restart_goes_on_where_the_last_one_ended() -> None:
    """Firing stays firing without being told again; its end is told."""
    disk, book = Says(Status.CRITICAL), Book()

    async def bad(scene: Scene) -> None:
        await scene.engine.run_check("disk")
        await scene.engine.deliver_due()

    async def good(scene: Scene) -> None:
        await scene.engine.run_check("disk")
        disk.status = Status.OK
        await scene.engine.run_check("disk")
        await scene.engine.deliver_due()

    store = play(bad, world({"disk": disk}, {"book": book}))
    play(good, world({"disk": disk}, {"book": book}), store)
    assert book.reasons == ["firing", "resolved"]


def test_a_check_taken_out_of_the_configuration_ends_its_alerts() -> None:
    """On reload and on restart: gone, for those who were told."""
    disk, book = Says(Status.CRITICAL), Book()

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("disk")
        await scene.engine.switch_config(world({"other": Says()}, {"book": book}))
        await scene.engine.deliver_due()
        assert await scene.engine.alerts() == []

    play(story, world({"disk": disk}, {"book": book}))
    assert book.reasons == ["firing", "gone"]


def test_a_run_that_a_reload_overtook_harms_nobody() -> None:
    """Its check is gone; runs committed with it are not lost."""

    async def story(scene: Scene) -> None:
        late = asyncio.ensure_future(scene.engine.run_check("late"))
        await asyncio.sleep(0.05)
        await scene.engine.switch_config(world({"other": Says()}, {}))
        await asyncio.gather(late, scene.engine.run_check("other"))
        assert {r.check for r in scene.store.read_runs()} == {"other"}

    play(story, world({"late": Slow(0.2)}, {}))


def test_a_check_is_not_started_beside_itself() -> None:
    """A slow check and an impatient schedule."""
    disk = Says()

    async def story(scene: Scene) -> None:
        await asyncio.gather(*(scene.engine.run_check("disk") for _ in range(5)))

    play(story, world({"disk": disk}, {}))
    assert disk.runs == 1


def test_a_blind_check_is_told_after_blind_after_runs() -> None:
    """And no alert about its subjects opens or closes."""
    disk, book = Says(None), Book()

    async def story(scene: Scene) -> None:
        for status in (None, None, None, Status.OK):
            disk.status = status
            await scene.engine.run_check("disk")
            await scene.engine.deliver_due()
            scene.clock.advance(60)

    play(story, world({"disk": disk}, {"book": book}))
    assert [(n.reason, n.subject, n.status) for n in book.got] == [
        ("firing", "", Status.UNKNOWN),
        ("resolved", "", Status.OK),
    ]


def test_a_channel_that_keeps_failing_is_told_through_the_others() -> None:
    """After five minutes for what may heal, at once for what will not; and its end."""
    disk, mail, book = Says(Status.CRITICAL), Book(), Book()
    mail.error = DOWN

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("disk")
        for _ in range(2):
            await scene.engine.deliver_due()
            await scene.engine.check_self()
            scene.clock.advance(299)
        assert book.reasons == ["firing"]
        scene.clock.advance(301)
        await scene.engine.check_self()
        mail.error = None
        await scene.engine.deliver_due()
        await scene.engine.check_self()
        await scene.engine.deliver_due()

    play(story, world({"disk": disk}, {"mail": mail, "book": book}))
    told = [(n.subject, n.reason) for n in book.got if n.check == housekeeping.SELF_CHECK_NAME]
    assert told == [("channel mail", "firing"), ("channel mail", "resolved")]


def test_a_restart_does_not_end_the_alert_about_a_channel() -> None:
    """Of a channel that was not tried yet nothing is known; an earlier failure is."""
    disk, mail, book = Says(Status.CRITICAL), Book(), Book()
    mail.error = NEVER

    async def refused(scene: Scene) -> None:
        await scene.engine.run_check("disk")
        await scene.engine.deliver_due()
        await scene.engine.check_self()
        await scene.engine.deliver_due()

    async def again(scene: Scene) -> None:
        await scene.engine.check_self()
        await scene.engine.deliver_due()

    store = play(refused, world({"disk": disk}, {"mail": mail, "book": book}))
    play(again, world({"disk": disk}, {"mail": mail, "book": book}), store)
    told = [(n.subject, n.reason) for n in book.got if n.check == housekeeping.SELF_CHECK_NAME]
    assert told == [("channel mail", "firing")]


def test_a_slow_channel_holds_up_no_other() -> None:
    """While one takes its time, the next message of the other goes out."""
    disk, mail, book = Says(Status.CRITICAL), Book(), Book()
    done = asyncio.Event()
    mail.before = done.wait  # type: ignore[assignment]

    async def story(scene: Scene) -> None:
        for status in (Status.CRITICAL, Status.OK):
            disk.status = status
            await scene.engine.run_check("disk")
            await scene.engine.begin_delivery()
            await asyncio.sleep(0.05)
        assert (mail.reasons, book.reasons) == ([], ["firing", "resolved"])
        done.set()
        await scene.engine.deliver_due()

    play(story, world({"disk": disk}, {"mail": mail, "book": book}))
    assert mail.reasons == ["firing", "resolved"]


def test_refused_recipients_are_told() -> None:
    """The others got the mail, so nothing is sent again; somebody must mend the list."""
    disk, mail, book = Says(Status.CRITICAL), Book(), Book()
    mail.refuses = ("bob@example.org: 550 no such user",)

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("disk")
        await scene.engine.deliver_due()
        await scene.engine.check_self()
        await scene.engine.deliver_due()

    play(story, world({"disk": disk}, {"mail": mail, "book": book}))
    assert len([n for n in mail.got if n.check == "disk"]) == 1
    told = next(n for n in book.got if n.check == housekeeping.SELF_CHECK_NAME)
    assert "bob@example.org: 550 no such user" in told.summary


def test_a_tick_runs_what_is_due_and_delivers() -> None:
    """The first time everything, then by the interval; --all regardless."""
    disk, book = Says(Status.CRITICAL), Book()

    async def story(scene: Scene) -> None:
        for seconds, expected in ((0, 1), (53, 1), (1, 2)):
            now = scene.clock.advance(seconds)
            await run_pass(scene.engine, now)
            assert disk.runs == expected
        await run_pass(scene.engine, scene.clock.now(), everything=True)
        assert disk.runs == 3

    play(story, world({"disk": disk}, {"book": book}))
    assert book.reasons == ["firing"]


@pytest.mark.parametrize(
    ("began", "took", "now", "is_due"),
    [(3.0, 20.0, 60.0, True), (0.0, 50.0, 59.0, True), (0.0, 0.1, 54.0, True), (7.0, 9.0, 60.0, False)],
)  # fmt: skip
def test_a_check_of_every_minute_runs_with_the_passes_of_every_minute(
    began: float, took: float, now: float, is_due: bool
) -> None:
    """Though its run takes a while, and passes are some seconds late or early. What the state has
    is when the run had ended."""
    ended = shift_instant(START, began + took)
    run = CheckRun(check="disk", kind="fs", at=ended, status=Status.OK, summary="", duration=took)
    found = find_due_checks(world({"disk": Says()}, {}), {"disk": run}, shift_instant(START, now))
    assert found == ["disk"] * is_due


class Unfit(MemoryStore):
    """A store that fails about one check, whatever is asked or written of it."""

    def read_memory(self, check: str) -> Mapping[str, Any]:
        if check == "odd":
            raise RuntimeError("can't start new thread")
        return super().read_memory(check)

    def commit(self, batch: Batch) -> None:
        if any(run.check == "odd" for run in batch.runs):
            raise RuntimeError("bug")
        super().commit(batch)


def test_a_check_that_fails_inside_keeps_no_pass_from_telling() -> None:
    """A bug of sentinel itself: it is logged, and costs what it touches."""
    book = Book()

    async def story(scene: Scene) -> None:
        await run_pass(scene.engine, scene.clock.now())

    checks: dict[str, object] = {"odd": Says(), "disk": Says(Status.CRITICAL)}
    play(story, world(checks, {"book": book}), Unfit())
    assert book.reasons == ["firing"]


def test_a_run_that_cannot_be_started_is_blind() -> None:
    """Nobody may take it for one that has seen nothing bad."""

    class Forgetful(Unfit):
        commit = MemoryStore.commit

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("odd")
        (run,) = await scene.engine.read_runs()
        assert run.blind
        assert run.summary.startswith("internal error: its run could not be started: RuntimeError")

    play(story, world({"odd": Says()}, {}), Forgetful())


def test_a_clock_set_back_makes_checks_due_at_once() -> None:
    """Rather than an hour late."""
    disk = Says()

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("disk")
        last = {r.check: r for r in await scene.engine.read_runs()}
        back = scene.clock.jump(-3600)
        assert find_due_checks(scene.engine.world, last, back) == ["disk"]

    play(story, world({"disk": disk}, {}))


def test_a_run_that_ends_while_another_is_committed_is_committed_too() -> None:
    """A crash test lost runs here once: `finished.append(await …)` looks the list up before it
    waits, and a commit takes the list away meanwhile."""

    async def story(scene: Scene) -> None:
        await asyncio.gather(*(scene.engine.run_check(name) for name in scene.engine.world.checks))
        assert {r.check for r in scene.store.read_runs()} == {"slow", "quick"}

    play(story, world({"slow": Slow(0.2), "quick": Slow(0.0)}, {}))


class Choosy(MemoryStore):
    """A store that cannot write what one check remembers."""

    def commit(self, batch: Batch) -> None:
        if "odd" in batch.memory:
            raise Unstorable("a dict cannot be stored")
        super().commit(batch)


def test_a_run_that_cannot_be_written_counts_as_blind_and_costs_no_other_its_alert() -> None:
    """Also when both are written together, and again and again."""
    book = Book()

    async def story(scene: Scene) -> None:
        for _ in range(3):
            await asyncio.gather(*(scene.engine.run_check(name) for name in ("odd", "disk")))
        await scene.engine.deliver_due()

    checks: dict[str, object] = {"odd": Says(Status.CRITICAL), "disk": Says(Status.CRITICAL)}
    play(story, world(checks, {"book": book}), Choosy())
    assert {(n.check, n.subject, n.reason) for n in book.got} == {
        ("disk", "/scratch", "firing"),
        ("odd", "", "firing"),
    }
    odd = next(n for n in book.got if n.check == "odd")
    assert "what it saw cannot be written" in odd.summary
    assert "a dict cannot be stored" in odd.summary


def test_a_check_whose_history_cannot_be_read_is_blind_and_says_why() -> None:
    """A state that is away is no bug of the check."""

    class Looks(Says):
        def run(self, ctx: Context) -> Report:
            ctx.history("/scratch", "used", 3600)
            return super().run(ctx)

    class Away(MemoryStore):
        def read_samples(self, *_args: object) -> list[tuple[Instant, float]]:
            raise StoreError("the server closed the connection")

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("disk")
        (run,) = await scene.engine.read_runs()
        assert run.blind
        assert run.summary == "its history cannot be read: the server closed the connection"

    play(story, world({"disk": Looks()}, {}), Away())


def test_a_pulse_that_fails_costs_the_run_nothing() -> None:
    """A line in a file is not worth an alert."""

    class Breathless(Says):
        def pulse(self, _report: Report, _now: Instant) -> tuple[str, str]:
            raise KeyError("job")

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("disk")
        await scene.engine.deliver_due()

    book = Book()
    play(story, world({"disk": Breathless(Status.CRITICAL)}, {"book": book}))
    assert book.reasons == ["firing"]


class Slow(Says):
    """A check that takes its time."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    def run(self, ctx: Context) -> Report:
        time.sleep(self._seconds)
        return super().run(ctx)


class Outside:
    """A dead man's switch that remembers what it was told."""

    def __init__(self) -> None:
        self.heard: list[tuple[bool, str]] = []

    async def announce_start(self) -> None:
        pass

    async def send_heartbeat(self, well: bool, text: str) -> None:
        self.heard.append((well, text))


def test_the_heartbeat_is_good_only_while_every_check_sees() -> None:
    """A critical finding is a good pass; a blind check or one that never ran is not."""
    disk, outside = Says(Status.CRITICAL), Outside()
    a_world = world({"disk": disk}, {})
    a_world.pulse = outside

    async def story(scene: Scene) -> None:
        await scene.engine.send_heartbeat()
        await scene.engine.run_check("disk")
        await scene.engine.send_heartbeat()
        disk.status = None
        await scene.engine.run_check("disk")
        await scene.engine.send_heartbeat()

    play(story, a_world)
    assert [well for well, _ in outside.heard] == [False, True, False]
    assert outside.heard[2][1] == "disk is blind: no answer"


def test_what_a_channel_does_not_deliver_goes_to_its_fallback() -> None:
    """At once when refused for good, else after five minutes; the trouble and its end, once."""
    disk, mail, sms = Says(Status.CRITICAL), Book(), Book()
    mail.error = DOWN
    a_world = world({"disk": disk}, {"mail": mail, "sms": sms})
    a_world.plan = replace(a_world.plan, routes=[Route(to=["mail"], match=Match(check="disk"))])
    a_world.common = {"mail": ChannelCommon(kind="email", fallback="sms")}

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("disk")
        await scene.engine.deliver_due()
        scene.clock.advance(299)
        await scene.engine.deliver_due()
        assert sms.got == []
        scene.clock.advance(301)
        await scene.engine.deliver_due()
        assert sms.reasons == ["firing"]
        mail.error, disk.status = NEVER, Status.OK
        await scene.engine.run_check("disk")
        await scene.engine.deliver_due()
        await scene.engine.deliver_due()
        assert scene.store.read_outbox() == []

    play(story, a_world)
    assert sms.reasons == ["firing", "resolved"]
    assert "because mail does not deliver: connection refused" in sms.got[0].note


def test_a_capped_channel_tells_the_rest_in_its_last_message_and_then_waits() -> None:
    """Three messages an hour: two alone, the third with all that is left, then silence."""
    disks = {f"disk{i}": Says(Status.CRITICAL) for i in range(6)}
    late, mail = Says(Status.CRITICAL), Grouped()
    a_world = world({**disks, "late": late}, {"mail": mail})
    a_world.common = {"mail": ChannelCommon(kind="email", per_hour=3)}

    async def story(scene: Scene) -> None:
        for name in disks:
            await scene.engine.run_check(name)
        await scene.engine.deliver_due()
        assert mail.sizes == [1, 1, 4]
        await scene.engine.run_check("late")
        assert await scene.engine.deliver_due() == 3600.0
        scene.clock.advance(3600)
        await scene.engine.deliver_due()
        assert mail.sizes == [1, 1, 4, 1]

    play(story, a_world)


class Patient(Says):
    """A trouble that has to last a moment; each look takes that long on the clock of the test."""

    scene: Scene

    def run(self, ctx: Context) -> Report:
        report = super().run(ctx)
        if self.runs > 1:
            self.scene.clock.advance(0.05)
        return replace(report, findings=tuple(replace(f, patience=0.05) for f in report.findings))


@pytest.mark.parametrize(("lasts", "told"), [(True, ["firing"]), (False, [])])
def test_a_second_look_is_part_of_the_pass(lasts: bool, told: list[str]) -> None:
    """What has to last for a moment is told by the pass that saw it first, or has passed."""
    dead, book = Patient(Status.CRITICAL), Book()

    async def story(scene: Scene) -> None:
        dead.scene = scene
        looks = scene.engine.run_check("job")
        if not lasts:
            work = asyncio.ensure_future(looks)
            while not scene.store.read_alerts():
                await asyncio.sleep(0)
            dead.status = Status.OK
            looks = asyncio.wait_for(work, 60)
        await looks
        await scene.engine.deliver_due()
        await scene.engine.run_check("job")

    play(story, world({"job": dead}, {"book": book}))
    assert book.reasons == told
    assert dead.runs == 3


def test_an_explicit_for_waits_for_the_next_run() -> None:
    """However short it is: whoever wrote it has `every` in mind."""
    dead = Patient(Status.CRITICAL)
    here = world({"job": dead}, {})
    policy = replace(here.plan.policies["job"], for_=0.05)
    plan = replace(here.plan, policies={**here.plan.policies, "job": policy})

    async def story(scene: Scene) -> None:
        dead.scene = scene
        await scene.engine.run_check("job")

    play(story, replace(here, plan=plan))
    assert dead.runs == 1


class Undecided(Says):
    """Sees something, though another look soon has to decide it."""

    def __init__(self, again: float) -> None:
        super().__init__(Status.OK)
        self.again = again

    def run(self, ctx: Context) -> Report:
        report = super().run(ctx)
        if self.runs > 1:
            self.status = Status.CRITICAL
            return super().run(ctx)
        return replace(report, again=self.again)


@pytest.mark.parametrize("for_", [None, 0.05])
@pytest.mark.parametrize(("again", "runs"), [(0.05, 3), (3600.0, 1)])
def test_a_report_may_ask_for_the_next_run_within_the_pass(
    again: float, runs: int, for_: float | None
) -> None:
    """A hang that is only suspected yet does not wait a minute; what lies farther off comes at its time."""
    here = world({"job": (job := Undecided(again))}, {"book": (book := Book())})
    policy = replace(here.plan.policies["job"], for_=for_)
    plan = replace(here.plan, policies={**here.plan.policies, "job": policy})

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("job")
        await scene.engine.deliver_due()

    play(story, replace(here, plan=plan))
    assert job.runs == runs
    assert book.reasons == ["firing"] * (runs > 1 and for_ is None)


def test_a_tick_tells_what_it_has_found_before_it_looks_again() -> None:
    """A suspicion about one training holds back nobody else's alert."""
    book, told = Book(), []

    class Suspects(Undecided):
        def run(self, ctx: Context) -> Report:
            told.append(list(book.reasons))
            return super().run(ctx)

    job, disk = Suspects(0.05), Says(Status.CRITICAL)

    async def story(scene: Scene) -> None:
        await scene.engine.check_self()
        runs, delivered = await run_pass(scene.engine, scene.clock.now())
        assert delivered
        assert {run.check: bool(run.after) for run in runs} == {"job": True, "disk": False}

    play(story, world({"job": job, "disk": disk}, {"book": book}))
    assert told == [[], ["firing"]]
    assert book.reasons == ["firing", "firing"]


def test_a_tick_makes_no_further_run_when_the_next_check_is_due() -> None:
    """A tick that goes on would keep the next one from beginning."""

    async def story(scene: Scene) -> None:
        await run_pass(scene.engine, scene.clock.now())

    job = Undecided(0.5)
    play(story, world({"job": job, "disk": Says()}, {}, every=600))
    assert job.status is Status.CRITICAL, "the second run was made"
    job = Undecided(0.5)
    play(story, world({"job": job, "disk": Says()}, {}, every=0.4))
    assert job.runs == 1


def test_the_next_pass_is_due_by_the_first_run_of_the_last() -> None:
    """A further run in it, late and long, does not make the next one skip the check."""
    job = Undecided(0.05)
    here = world({"job": job}, {}, every=60)

    async def story(scene: Scene) -> None:
        begun = scene.clock.now()
        await scene.engine.run_check("job")
        (run,) = await scene.engine.read_runs()
        assert 0.05 < run.after < 60
        late = {"job": replace(run, at=shift_instant(begun, 25.0), duration=10.0, after=15.0)}
        assert find_due_checks(here, late, shift_instant(begun, 59)) == ["job"]
        assert find_due_checks(here, late, shift_instant(begun, 50)) == []

    play(story, here)


def test_blindness_is_counted_once_a_pass() -> None:
    """Another run of the same pass is no second one without sight: a short stall would be told."""

    class Partly(Undecided):
        def run(self, ctx: Context) -> Report:
            seen = Coverage(of="logs", meant=2, unseen=("log-b",))
            return replace(super().run(ctx), coverage=seen, again=self.again)

    job, book = Partly(0.01), Book()

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("job")
        await scene.engine.deliver_due()
        assert [n.subject for n in book.got] == ["/scratch"]
        scene.clock.advance(60)
        await scene.engine.run_check("job")
        await scene.engine.deliver_due()
        assert [n.subject for n in book.got] == ["/scratch", ""]

    play(story, world({"job": job}, {"book": book}, blind_after=2))


class Until(Says):
    """One that does not end before an alert of this check is known."""

    def __init__(self, other: str, subject: str) -> None:
        super().__init__(Status.CRITICAL, subject)
        self.other, self.store = other, MemoryStore()

    def run(self, ctx: Context) -> Report:
        wait_until(
            lambda: any(a.key.check == self.other for a in self.store.read_alerts()), self.other
        )
        return super().run(ctx)


def _pass(cause: Until, known: bool) -> list[str]:
    """What is told in a pass in which an effect is seen before its cause; `known`: the state is
    not new."""
    sizes, book = Says(Status.CRITICAL, "/s/a"), Book()
    begun = world({"sizes": sizes, "space": cause}, {"book": book})
    as_du = {"common": replace(begun.checks["sizes"].common, kind="du")}
    checks = {**begun.checks, "sizes": replace(begun.checks["sizes"], **as_du)}
    du = replace(begun.plan.policies["sizes"], kind="du")
    plan = replace(begun.plan, policies={**begun.plan.policies, "sizes": du})

    async def story(scene: Scene) -> None:
        if known:
            await scene.engine.check_self()
        cause.store = scene.store
        if known:
            await asyncio.gather(scene.engine.run_check("space"), scene.engine.run_check("sizes"))
            await scene.engine.deliver_due()
        else:
            await run_pass(scene.engine, scene.clock.now())

    play(story, replace(begun, checks=checks, plan=plan))
    return [f"{n.check}: {n.note}" for n in book.got if n.check != housekeeping.SELF_CHECK_NAME]


def test_an_effect_that_is_seen_before_its_cause_is_not_told_by_itself() -> None:
    """Both are at work in one pass; what is committed first waits for what may explain it."""
    assert _pass(Until("sizes", "/s"), known=True) == ["space: same incident: sizes /s/a"]


def test_a_first_pass_is_told_as_one() -> None:
    """Only where nothing was looked at before."""
    (told,) = _pass(Until("sizes", "/s"), known=False)
    assert told.startswith("space: first pass (1 du, 1 fs, 1 ")
    assert "): this problem may be older" in told
