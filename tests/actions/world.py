"""Sentinels on one state, seen from outside: what they did, and what they wrote about it."""

from collections.abc import Callable, Mapping, Sequence

from sentinel.actions.action_rules import ActionRequester, ActionRules
from sentinel.actions.drain import DrainAction
from sentinel.actions.executor import ActionExecutor
from sentinel.actions.undrain import UndrainAction
from sentinel.core.action_limits import ActionSettings, BreakerSettings, GuardSettings, Limits
from sentinel.core.actions import ActionOutcome, ActionRecord
from sentinel.core.clock import SECOND
from sentinel.core.cluster import Node
from sentinel.core.model import ActionRequest
from sentinel.core.ports import AuditLog
from sentinel.core.values import Duration, Rate, Share
from sentinel.plugin import Action
from sentinel.slurm.node_states import describe_node
from tests.actions.model import Change, Crash, Host, SimSlurm, Time

KINDS: Mapping[str, Action] = {"drain": DrainAction(), "undrain": UndrainAction()}
LIMITS = Limits(per_hour=2, share=Share(40), per_node=Rate("2 in 7d"), cooldown=Duration(600))
SETTINGS = {kind: ActionSettings(enabled=True, limits=LIMITS) for kind in KINDS}
NEVER = GuardSettings(breaker=BreakerSettings(nodes=1000, share=Share(100)))
SERVICE = ActionRequester(name="drained")
DRAINED = frozenset({"DRAIN"})


def node(name: str, *, drained: bool = True, partition: str = "prod") -> Node:
    if not drained:
        return Node(name=name, state="IDLE", partitions=(partition,))
    return Node(
        name=name,
        state="IDLE",
        flags=DRAINED,
        reason="Kill task failed",
        reason_user="root",
        reason_time=1_700_000_000,
        partitions=(partition,),
    )


class World:
    """Two hosts with a sentinel each, over one Slurm and one state."""

    def __init__(
        self,
        open_books: Callable[[], AuditLog],
        nodes: Sequence[Node],
        *,
        hosts: int = 2,
        guard: GuardSettings = NEVER,
    ) -> None:
        self.time = Time()
        self.slurm = SimSlurm(self.time, nodes)
        self.hosts = [Host(self.time, f"host{i}") for i in range(hosts)]
        self._open, self.guard = open_books, guard
        self.books = open_books()
        self.actors = [self._actor(i) for i in range(2)]
        self.doubts: list[str] = []
        self.slurm.before = self._about_to_change
        self._crash_at = ""
        self._numbers = 0

    def _actor(self, number: int, *, dry_run: bool = False) -> ActionExecutor:
        rules = ActionRules(kinds=KINDS, actions=SETTINGS, guard=self.guard)
        host = self.hosts[number % len(self.hosts)]
        return ActionExecutor(rules, self._open(), self.slurm, host, dry_run=dry_run)

    def dry(self) -> ActionExecutor:
        return self._actor(0, dry_run=True)

    def ask(
        self,
        actor: int,
        action: str,
        target: str,
        crash: str = "",
        asker: ActionRequester = SERVICE,
    ) -> ActionRecord | None:
        """None where the sentinel died in it; it is started again at once, as systemd would."""
        self._numbers += 1
        request = ActionRequest(action=action, target=target, reason=f"number {self._numbers}")
        self._crash_at = crash
        self.slurm.after = self._after_change
        try:
            return self.actors[actor].execute_request(request, asker)
        except Crash:
            self._crash_at = ""
            self.actors[actor] = self._actor(actor)
            self.actors[actor].resolve_open_records()
            return None
        finally:
            self._crash_at = ""

    def records(self) -> list[ActionRecord]:
        """Oldest first."""
        return list(reversed(self.books.records(limit=10_000)))

    def when(self, record: ActionRecord) -> float:
        """The true time of an intent."""
        began = {boot: t for host in self.hosts for boot, t in host.began.items()}
        return began[record.at.boot] + record.at.mono / SECOND

    def _about_to_change(self, change: Change) -> None:
        """Whoever changes a node holds the only open record about it."""
        if self._crash_at == "before":
            raise Crash
        about = [r for r in self.books.read_unresolved() if r.target == change.node]
        if len(about) != 1:
            self.doubts.append(f"{change.node} is changed with {len(about)} open records")
        change.record = about[0].id if about else ""
        now = describe_node(self.slurm.by_name[change.node])
        if about and about[0].evidence["seen"] != now:
            self.doubts.append(f"proof {about[0].evidence['seen']}, changed {now}")

    def _after_change(self) -> None:
        if self._crash_at == "after":
            raise Crash


def tried(world: World, action: str) -> list[ActionRecord]:
    return [r for r in world.records() if r.action == action and r.outcome.is_attempted]


def busiest_hour(world: World, action: str, members: Sequence[str] | None = None) -> int:
    """The most intents of a kind within any true hour, about these nodes."""
    times = [world.when(r) for r in tried(world, action) if not members or r.target in members]
    return max((sum(t <= u < t + 3600 for u in times) for t in times), default=0)


def busiest_node(world: World, action: str, window: float) -> int:
    """The most effective actions of a kind on one node within the window."""
    per_node: dict[str, list[float]] = {}
    for record in tried(world, action):
        if record.outcome.has_effect:
            per_node.setdefault(record.target, []).append(world.when(record))
    counts = [sum(t <= u < t + window for u in times) for times in per_node.values() for t in times]
    return max(counts, default=0)


def truth(world: World) -> list[str]:
    """Where the log contradicts what happened: a change that happened was never denied."""
    by_id = {r.id: r for r in world.records()}
    lies = []
    for change in world.slurm.changes:
        outcome = by_id[change.record].outcome
        what = f"{change.state} of {change.node}"
        if change.happened and not outcome.has_effect:
            lies.append(f"{what} happened, the log says {outcome.value}")
        if not change.happened and change.state == "DRAIN" and outcome is ActionOutcome.DONE:
            lies.append(f"{what} never happened, the log says done")
    return lies
