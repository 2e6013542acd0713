"""What people must have heard, by a model so plain that it can be believed.

One trouble at a time: no outbox, no transactions, no groups, no retries. Times are seconds:
`mono` of the boot's clock, `wall` of the one on the wall.
"""

from collections import defaultdict

from sentinel.core.model import Status

REPEAT = 86400.0
ESCALATE = 1800.0
_ENDS = {Status.OK: "resolved", None: "gone"}


class Told:
    """What one channel knows of a trouble, and since when."""

    def __init__(self, severity: Status, at: float) -> None:
        self.severity, self.at = severity, at


class Trouble:
    """One subject that is bad."""

    def __init__(self, severity: Status, mono: float) -> None:
        self.severity, self.began = severity, mono
        self.acked = self.ack_told = False
        self.told: dict[str, Told] = {}


class Plain:
    """`heard`: by channel and subject the reasons, in order, of all that must be told once."""

    def __init__(self, always: list[str], later: list[str]) -> None:
        self.always, self.later = always, later
        self.troubles: dict[str, Trouble] = {}
        self.silent_until: dict[str, float] = {}
        self.heard: dict[tuple[str, str], list[str]] = defaultdict(list)

    def see(self, statuses: dict[str, Status | None], mono: float, wall: float) -> None:
        """One look at all subjects, and then all are told what they do not know."""
        for subject, status in statuses.items():
            self._look(subject, status, mono)
        for subject, trouble in self.troubles.items():
            if self.silent_until.get(subject, 0) <= wall:
                self._tell(subject, trouble, mono)

    def ack(self, subject: str) -> None:
        """Somebody has it, if there is anything to have."""
        if subject in self.troubles:
            self.troubles[subject].acked = True

    def _look(self, subject: str, status: Status | None, mono: float) -> None:
        trouble = self.troubles.get(subject)
        if status in _ENDS:
            if trouble:
                for channel in trouble.told:
                    self.heard[channel, subject].append(_ENDS[status])
                del self.troubles[subject]
        elif status is not None and status is not Status.UNKNOWN:
            if trouble is None:
                self.troubles[subject] = Trouble(status, mono)
            elif status.rank > trouble.severity.rank:
                trouble.severity = status

    def _tell(self, subject: str, trouble: Trouble, mono: float) -> None:
        knew, newer = [*trouble.told], set[str]()
        escalated = not trouble.acked and mono - trouble.began >= ESCALATE
        for channel in [*self.always, *(self.later if escalated else [])]:
            reason = self._reason(trouble, trouble.told.get(channel), mono)
            if reason:
                self.heard[channel, subject].append(reason)
                trouble.told[channel] = Told(trouble.severity, mono)
                newer.add(channel)
        if trouble.acked and not trouble.ack_told:  # what is newer says so too
            trouble.ack_told = True
            for channel in knew:
                self.heard[channel, subject] += [] if channel in newer else ["ack"]

    def _reason(self, trouble: Trouble, told: Told | None, mono: float) -> str:
        if told is None:
            return "firing"
        if trouble.severity.rank > told.severity.rank:
            return "worse"
        return "repeat" if not trouble.acked and mono - told.at >= REPEAT else ""
