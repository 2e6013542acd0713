"""Messages to the authors of wishes: each to that one user, by the operator's ways, and few a day. Pure.

They change no alert, and no channel gets them that does not tell each user of their own jobs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sentinel.alerting.notifications import NotificationPlan, make_notification
from sentinel.alerting.owners import DAY_S, OWNER_LABEL
from sentinel.alerting.routing import find_listeners
from sentinel.alerting.silences import Orders, find_silence, window_silences
from sentinel.core.clock import SECOND, Instant
from sentinel.core.holds import MessageGroup
from sentinel.core.letters import WISH_REASON, Letter
from sentinel.core.model import Alert, Key, Outgoing, Status, Transition

LETTERS_KEY = "sentinel/letters"
"""Under this name the state remembers which letters were sent."""

MAX_LETTERS_PER_DAY = 20
"""Letters to one user within a day. The last one says that there are no more."""

_LAST_NOTE = f"more than {MAX_LETTERS_PER_DAY} a day about your own wishes are not sent"


class SentLetters(Struct, frozen=True):
    """When each letter was sent, in microseconds, by user and id. Those of the last day are kept."""

    sent: dict[str, dict[str, int]] = {}

    def without_old(self, now: Instant) -> "SentLetters":
        """The letters of the last day. A clock that was set back forgets none."""
        since = now.wall - int(DAY_S * SECOND)
        kept = {
            user: {name: at for name, at in mine.items() if at > since}
            for user, mine in self.sent.items()
        }
        return SentLetters({user: mine for user, mine in kept.items() if mine})


class LetterDesk:
    """Makes the outbox rows of letters. `sent` has those of the last day, and grows."""

    def __init__(
        self, plan: NotificationPlan, now: Instant, orders: Orders, sent: SentLetters
    ) -> None:
        self._plan, self._now = plan, now
        self._silences = (*orders.silences, *window_silences(plan.windows, now, plan.zone))
        self._sent = {user: dict(mine) for user, mine in sent.without_old(now).sent.items()}

    @property
    def sent(self) -> SentLetters:
        """All letters of the last day, these too."""
        return SentLetters({user: mine for user, mine in self._sent.items() if mine})

    def make_rows(self, check: str, letters: Sequence[Letter]) -> list[Outgoing]:
        """The rows of the letters that are due. None of a user who had as many as a day allows."""
        return [row for letter in letters for row in self._make_letter_rows(check, letter)]

    def _make_letter_rows(self, check: str, letter: Letter) -> Iterator[Outgoing]:
        mine = self._sent.setdefault(letter.user, {})
        if (letter.id in mine) is not letter.over:
            return
        if letter.over:
            mine[f"{letter.id} over"] = mine.pop(letter.id)
        elif len(mine) >= MAX_LETTERS_PER_DAY:
            return
        alert = self._make_alert(check, letter)
        names = self._find_channels(alert)
        if not names:
            return
        if not letter.over:
            mine[letter.id] = self._now.wall
        last = len(mine) >= MAX_LETTERS_PER_DAY and not letter.over
        message = make_notification(
            alert, self._make_transition(alert, letter), self._plan, _LAST_NOTE if last else ""
        )
        message = replace(
            message,
            details=letter.details,
            commands=tuple(command.render() for command in letter.commands),
            acts=(),
        )
        for name in names:
            bundle = MessageGroup(route=WISH_REASON, owner=letter.user)
            yield Outgoing(channel=name, notification=message, created=self._now, bundle=bundle)

    def _find_channels(self, alert: Alert) -> list[str]:
        """The channels that would tell this user of such an alert."""
        plan = self._plan
        if find_silence(alert, self._silences, self._now):
            return []
        heard = find_listeners(alert, plan.routes, plan.channels, self._now, plan.zone)
        return [name for name in heard if name in plan.personal]

    def _make_alert(self, check: str, letter: Letter) -> Alert:
        """A substitute by which routes and silences are matched. It is never stored."""
        policy = self._plan.policies[check]
        labels = {"job": letter.job, **policy.labels, OWNER_LABEL: letter.user}
        return Alert(
            key=Key(self._plan.cluster_of(check), check, letter.subject),
            id="",
            kind=policy.kind,
            status=Status(letter.severity),
            severity=Status(letter.severity),
            summary=letter.summary,
            since=self._now,
            last=self._now,
            labels={name: text for name, text in labels.items() if text},
        )

    def _make_transition(self, alert: Alert, letter: Letter) -> Transition:
        return Transition(
            id=f"{letter.id}-{self._now.wall}" + ("-over" if letter.over else ""),
            alert="",
            key=alert.key,
            kind=alert.kind,
            reason=WISH_REASON,
            status=Status(letter.severity),
            severity=Status(letter.severity),
            summary=letter.summary,
            at=self._now,
            since=self._now,
        )


def write_letters(
    reports: Iterable[tuple[str, Sequence[Letter]]],
    plan: NotificationPlan,
    now: Instant,
    orders: Orders,
    sent: SentLetters,
) -> tuple[list[Outgoing], Mapping[str, object] | None]:
    """The rows for the letters of these checks, and what to remember. None: nothing new."""
    desk = LetterDesk(plan, now, orders, sent)
    rows = [row for check, letters in reports for row in desk.make_rows(check, letters)]
    return rows, {"sent": desk.sent.sent} if rows else None
