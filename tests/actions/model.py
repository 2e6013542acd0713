"""A Slurm that behaves as the real one was seen to, with faults on demand, and hosts whose clocks jump."""

from collections.abc import Callable, Sequence
from enum import Enum

from msgspec.structs import replace

from sentinel.core.actions import Answer, Reply
from sentinel.core.clock import SECOND, Instant
from sentinel.core.cluster import Controller, Node
from sentinel.core.errors import CannotTell

EPOCH = 1_800_000_000
MUNGE_TTL = 300.0
"""Seconds after which slurmctld refuses a request that it had not looked at yet."""
LOG_TIME = "[2026-11-21T04:10:00.000]"


class Fault(str, Enum):
    """What becomes of the next change."""

    NONE = "none"
    REFUSED = "refused"
    LOST = "lost"  # times out, never arrives
    LATE = "late"  # times out, happens when slurmctld wakes up
    DEAF = "deaf"  # accepted, without effect
    BLIND = "blind"  # happens, but nothing can be read afterwards


class Crash(BaseException):
    """kill -9: nothing of ours runs after it."""


class Time:
    """The truth, in seconds."""

    def __init__(self) -> None:
        self.now = 0.0


class Host:
    """A machine: its boot's clock is right, its wall clock is what somebody set it to."""

    def __init__(self, time: Time, name: str) -> None:
        self._time, self._name = time, name
        self._boots = 0
        self.skew = 0.0
        self.began: dict[str, float] = {}
        self.boot()

    def boot(self) -> None:
        self._boots += 1
        self._boot = f"{self._name}-{self._boots}"
        self.began[self._boot] = self._time.now

    def now(self) -> Instant:
        wall = EPOCH + self._time.now + self.skew
        since = self._time.now - self.began[self._boot]
        return Instant(wall=int(wall * SECOND), boot=self._boot, mono=int(since * SECOND))


class Change:
    """A change as slurmctld met it."""

    def __init__(self, argv: Sequence[str], at: float) -> None:
        words = dict(word.partition("=")[::2] for word in argv[2:])
        self.node, self.state, self.reason = (
            words["NodeName"],
            words.get("State"),
            words.get("Reason"),
        )
        self.comment = words.get("Comment")
        self.at, self.happened, self.record = at, False, ""


class SimSlurm:
    """core.ports.Hands over nodes in memory. `before` and `after` a change are hooks of tests."""

    def __init__(self, time: Time, nodes: Sequence[Node]) -> None:
        self._time = time
        self.by_name = {node.name: node for node in nodes}
        self.fault = Fault.NONE
        self.up = True
        self.changes: list[Change] = []
        self.late: list[Change] = []
        self.before: Callable[[Change], None] = lambda change: None
        self.after: Callable[[], None] = lambda: None
        self.on_read: Callable[[], None] = lambda: None
        self.on_list: Callable[[], None] = lambda: None
        self._blind = False
        self.log: list[str] | None = None

    def log_end(self) -> str:
        if self.log is None:
            raise CannotTell("no such file")
        return str(len(self.log))

    def log_since(self, end: str) -> str:
        return "".join(f"{LOG_TIME} {line}\n" for line in (self.log or [])[int(end) :])

    def author(self, node: str, reason: str) -> str:
        return ""

    def nodes_asked(self) -> None:
        """At once, each time."""

    def nodes(self, after: Instant | None = None) -> Sequence[Node]:
        self._answer()
        found = list(self.by_name.values())
        self.on_list()
        return found

    def controller(self) -> Controller:
        self._answer()
        return Controller(primary="ctl", primary_up=True, latency=0.01)

    def node(self, name: str) -> Node | None:
        self.on_read()
        if self._blind:
            self._blind = False
            raise CannotTell("slurm_load_node error: Socket timed out on send/recv operation")
        self._answer()
        return self.by_name.get(name)

    def change(self, argv: Sequence[str]) -> Reply:
        change = Change(argv, self._time.now)
        self.before(change)
        self.changes.append(change)
        reply = self._meet(change)
        self.after()
        return reply

    def wake(self) -> None:
        """What waited at slurmctld's door is looked at now."""
        for change in self.late:
            if self._time.now - change.at < MUNGE_TTL:
                self._apply(change)
        self.late = []

    def set(self, name: str, **values: object) -> None:
        """An administrator at work; slurmctld logs it as it does."""
        self.by_name[name] = replace(self.by_name[name], **values)
        if self.log is not None and values.get("reason"):
            self.log.append(f"update_node: node {name} reason set to: {values['reason']}")
        if self.log is not None and "flags" in values:
            state = "DRAINED" if "DRAIN" in self.by_name[name].flags else "IDLE"
            self.log.append(f"update_node: node {name} state set to {state}")

    def _meet(self, change: Change) -> Reply:
        fault, self.fault = self.fault, Fault.NONE
        if fault is Fault.REFUSED:
            return Reply(Answer.REFUSED, "slurm_update error: Invalid node state specified")
        if fault in (Fault.LOST, Fault.LATE):
            self.late += [change] if fault is Fault.LATE else []
            self._blind = True
            return Reply(Answer.UNSURE, "Socket timed out on send/recv operation")
        if fault is not Fault.DEAF:
            self._apply(change)
        self._blind = fault is Fault.BLIND
        return Reply(Answer.ACCEPTED)

    def _apply(self, change: Change) -> None:
        node = self.by_name[change.node]
        change.happened = True
        when = int(EPOCH + self._time.now)
        if change.comment is not None:
            self.by_name[node.name] = replace(node, comment=change.comment)
        elif change.state == "DRAIN":
            flags = node.flags | {"DRAIN"}
            self.set(
                node.name, flags=flags, reason=change.reason, reason_user="root", reason_time=when
            )
        else:
            self.set(node.name, flags=node.flags - {"DRAIN"}, reason="", reason_time=None)

    def _answer(self) -> None:
        if not self.up:
            raise CannotTell("Unable to contact slurm controller (connect failure)")
