"""What checks wish for is carried out after their report is written, and people hear of it once."""

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from sentinel.actions.action_rules import ActionRules
from sentinel.actions.executor import ActionExecutor
from sentinel.actions.service import ActionService
from sentinel.core.action_limits import ActionSettings, BreakerSettings, GuardSettings, Limits
from sentinel.core.actions import ActionOutcome, ActionRecord
from sentinel.core.cluster import Node
from sentinel.core.errors import StoreError
from sentinel.core.model import ActionRequest, Finding, Report, Status
from sentinel.core.ports import Context
from sentinel.core.values import Duration, Rate, Share
from sentinel.engine.engine import RuntimeConfig
from sentinel.store.memory import MemoryStore
from sentinel.testing import ALL_SEEN, START
from tests.actions.model import Host, SimSlurm, Time
from tests.actions.world import DRAINED, KINDS, node
from tests.engine.worlds import Book, Grouped, Scene, play, world
from tests.kinds import PlainCheck
from tests.store.book_memory import BookState, MemoryBooks

OWN = Limits(per_hour=1000, share=Share(100), per_node=Rate("3 in 7d"), cooldown=Duration(600))
CALM = BreakerSettings(nodes=1000, share=Share(100))


class Wishes(PlainCheck):
    """A check that finds these nodes drained and asks to undrain them."""

    def __init__(self, *targets: str, granted: bool = True) -> None:
        self.targets, self.granted = targets, granted
        self.seen: list[tuple[int, int]] = []

    def grants(self) -> Mapping[str, Limits | None]:
        return {"undrain": OWN} if self.granted else {}

    def run(self, ctx: Context) -> Report:
        assert ctx.logbook is not None
        first = self.targets[0]
        self.seen.append((len(ctx.logbook.records(first)), len(ctx.logbook.readings(first))))
        return Report(
            coverage=ALL_SEEN,
            findings=tuple(
                Finding(subject=t, status=Status.WARNING, summary="drained", labels={"node": t})
                for t in self.targets
            ),
            requests=self.requests(),
        )

    def requests(self) -> tuple[ActionRequest, ...]:
        return tuple(
            ActionRequest(
                action="undrain", target=t, reason="clean", evidence={"processes": "none"}
            )
            for t in self.targets
        )


class Full(MemoryBooks):
    """A log on a full disk."""

    def record_readings(self, *_args: object, **_more: object) -> list[object]:  # type: ignore[override]
        raise StoreError("database or disk is full")


class Stage:
    """A world whose hands hold a simulated Slurm."""

    def __init__(
        self,
        wishes: Wishes,
        nodes: list[Node],
        channel: Book,
        *,
        breaker: BreakerSettings = CALM,
        dry_run: bool = False,
        state: BookState | None = None,
        books: type[MemoryBooks] = MemoryBooks,
        settings: Mapping[str, ActionSettings] | None = None,
    ) -> None:
        self.time = Time()
        self.slurm, self.state = SimSlurm(self.time, nodes), state or BookState()
        self.log = books(self.state)
        clock = Host(self.time, "host")
        rules = ActionRules(
            kinds=KINDS, actions=settings or {}, guard=GuardSettings(breaker=breaker)
        )
        actor = ActionExecutor(rules, self.log, self.slurm, clock, dry_run=dry_run)
        base = world({"drained": wishes}, {"book": channel})
        base.action_service = ActionService(actor, self.log, self.slurm, clock)  # type: ignore[arg-type]
        if dry_run:
            base.plan = replace(base.plan, dry_run=True)
        self.world: RuntimeConfig = base


def drained(count: int) -> list[Node]:
    return [node(f"n{i}") for i in range(1, count + 1)]


def actions(book: Book) -> list[tuple[str, str, str]]:
    return [(n.subject, n.status.value, n.summary) for n in book.got if n.reason == "action"]


async def passes(scene: Scene, times: int = 1) -> None:
    for _ in range(times):
        await scene.engine.run_check("drained")
        await scene.engine.deliver_due()


def test_a_wish_is_carried_out_and_told() -> None:
    """The node is undrained, the message has the evidence, the check finds both in the log."""
    book, wishes = Book(), Wishes("n1")
    stage = Stage(wishes, drained(2), book)
    play(lambda scene: passes(scene, 2), stage.world)
    assert [c.node for c in stage.slurm.changes] == ["n1"]
    assert actions(book) == [("n1", "ok", "undrain n1: done: now IDLE")]
    message = next(n for n in book.got if n.reason == "action")
    assert "processes: none" in message.details
    assert message.commands == ("sentinel nodes list --history n1",)
    assert message.alert == next(n.alert for n in book.got if n.reason == "firing")
    assert wishes.seen == [(0, 1), (1, 2)]


class UsersWishes(Wishes):
    """Each target is a user's and has the user's name before a `-`."""

    def grants(self) -> Mapping[str, Limits | None]:
        return {"undrain": replace(OWN, per_hour=2)}

    def requests(self) -> tuple[ActionRequest, ...]:
        return tuple(
            replace(one, params={"user": one.target.partition("-")[0]})
            for one in super().requests()
        )


def test_the_wishes_of_one_user_do_not_use_up_what_may_be_done() -> None:
    """Of five for mallory and one for alice, two may be done: one of each."""
    targets = [*(f"mallory-{n}" for n in range(5)), "alice-1"]
    stage = Stage(UsersWishes(*targets), [node(name) for name in targets], Book())
    play(lambda scene: passes(scene, 1), stage.world)
    assert [c.node for c in stage.slurm.changes] == ["mallory-0", "alice-1"]


def test_without_a_grant_nothing_is_done_or_told() -> None:
    """The actions section decides then, and it is off by default."""
    book = Book()
    stage = Stage(Wishes("n1", granted=False), drained(1), book)
    play(passes, stage.world)
    assert (stage.slurm.changes, actions(book)) == ([], [])
    assert [r.rule for r in stage.log.records()] == ["disabled"]


def test_the_actions_section_consents_too() -> None:
    """`actions: {undrain: {enabled: true}}` serves every check that asks."""
    book = Book()
    on = {"undrain": ActionSettings(enabled=True, limits=OWN)}
    stage = Stage(Wishes("n1", granted=False), drained(1), book, settings=on)
    play(passes, stage.world)
    assert [c.node for c in stage.slurm.changes] == ["n1"]


def test_a_death_between_deed_and_word_loses_no_word() -> None:
    """What the log has and nobody heard of is told by the next sentinel, once."""
    book, state, store = Book(), BookState(), MemoryStore()
    first = Stage(Wishes("n1"), drained(1), book, state=state)
    service = first.world.action_service
    assert service is not None
    service.act_for_check(first.world.checks["drained"], Wishes("n1").requests())
    assert actions(book) == []
    second = Stage(Wishes("n1"), [node("n1", drained=False)], book, state=state)
    play(lambda scene: passes(scene, 2), second.world, store)
    assert actions(book) == [("n1", "ok", "undrain n1: done: now IDLE")]
    third = Stage(Wishes("n1"), [node("n1", drained=False)], book, state=state)
    play(passes, third.world, store)
    assert len(actions(book)) == 1


def test_what_turns_out_late_is_told_however_much_was_done_since() -> None:
    """A test of 300 nodes lies between the undrain that timed out and the look that finds it done."""
    book, state = Book(), BookState()
    open_ = ActionRecord(
        id="old",
        action="undrain",
        target="n1",
        reason="clean",
        by="drained",
        at=START,
        outcome=ActionOutcome.UNKNOWN,
    )
    tested = (
        replace(open_, id=f"t{n}", action="test", outcome=ActionOutcome.DONE) for n in range(300)
    )
    state.records = {r.id: r for r in (open_, *tested)}
    stage = Stage(Wishes("n1"), [node("n1", drained=False)], book, state=state)
    play(passes, stage.world)
    told = [summary for _, _, summary in actions(book) if summary.startswith("undrain")]
    assert told == ["undrain n1: done: when read again: IDLE"]


def test_a_breaker_is_one_message_however_many_nodes_wait() -> None:
    """200 nodes drained at once: nothing is done, one message says why, and it is not repeated."""
    group = Grouped()
    calm = [node(f"n{i}", drained=False) for i in range(1, 201)]
    breaker = BreakerSettings(nodes=50, share=Share(20))
    stage = Stage(Wishes(*(f"n{i}" for i in range(1, 201))), calm, group, breaker=breaker)

    async def story(scene: Scene) -> None:
        stage.log.record_readings(calm, scene.clock.now())
        for i in range(1, 201):
            stage.slurm.set(f"n{i}", flags=DRAINED, reason="Kill task failed", reason_user="root")
        await passes(scene, 3)

    play(story, stage.world)
    assert stage.slurm.changes == []
    told = actions(group)
    assert len(told) == 1
    assert told[0][0] == "n[1-200]"
    assert "not done: 200 of 200 nodes left service" in told[0][2]


def test_a_suspect_is_a_persons_business() -> None:
    """After three recoveries in seven days the refusal is told, once."""
    book = Book()
    stage = Stage(Wishes("n1"), drained(1), book)

    async def story(scene: Scene) -> None:
        for _ in range(5):
            await passes(scene)
            stage.time.now += 3600
            stage.slurm.set("n1", flags=DRAINED, reason="Kill task failed", reason_user="root")

    play(story, stage.world)
    assert len(stage.slurm.changes) == 3
    assert [s for _, s, _ in actions(book)] == ["ok", "ok", "ok", "warning"]
    assert "a person has to look at n1" in actions(book)[-1][2]


def test_a_dry_run_says_what_it_would_do() -> None:
    """Nothing is changed or written down, and the word comes once."""
    book = Book()
    stage = Stage(Wishes("n1"), drained(1), book, dry_run=True)
    play(lambda scene: passes(scene, 2), stage.world)
    assert (stage.slurm.changes, stage.log.records()) == ([], [])
    assert [(s, t) for s, _, t in actions(book)] == [
        ("n1", "undrain n1: would be done (1 of 1000 in this hour)")
    ]
    assert book.got[-1].dry_run


def test_what_cannot_be_written_down_is_not_done() -> None:
    """The check itself goes on, and sentinel says about itself that it does not act."""
    book = Book()
    stage = Stage(Wishes("n1"), drained(1), book, books=Full)

    async def story(scene: Scene) -> None:
        await passes(scene)
        await scene.engine.check_self()
        await scene.engine.deliver_due()

    play(story, stage.world)
    assert stage.slurm.changes == []
    own = [n.summary for n in book.got if n.check == "sentinel"]
    assert own == [
        "no action is taken, the log of actions cannot be written: database or disk is full"
    ]


def test_a_lost_state_stops_actions_for_an_hour() -> None:
    """Who does not know what was done before keeps still; then caps are right again."""
    book = Book()
    stage = Stage(Wishes("n1"), drained(1), book)
    service = stage.world.action_service
    assert service is not None
    service.pause_actions("the state was damaged and set aside")
    play(passes, stage.world)
    assert stage.slurm.changes == []
    assert [r.rule for r in stage.log.records()] == ["maintenance"]
    stage.time.now += 3601
    play(passes, stage.world)
    assert [c.node for c in stage.slurm.changes] == ["n1"]


@pytest.mark.parametrize("silent", [True, False])
def test_a_silence_covers_actions(silent: bool) -> None:
    """A node that is silenced is silent about what is done to it too; the log has it."""
    from sentinel.alerting.settings import Match
    from sentinel.alerting.silences import Silence
    from sentinel.core.clock import SECOND

    book = Book()
    stage = Stage(Wishes("n1"), drained(1), book)

    async def story(scene: Scene) -> None:
        if silent:
            now = scene.clock.now()
            scene.store.put_silence(
                Silence(
                    id="s", match=Match(node="n1"), starts=now.wall,
                    ends=now.wall + 3600 * SECOND, reason="rack work", who="ops",
                )
            )  # fmt: skip
        await passes(scene)

    play(story, stage.world)
    assert len(stage.log.records()) == 1
    assert bool(actions(book)) is not silent
