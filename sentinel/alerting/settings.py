"""Which alerts are meant, who hears of them and when: `routes`, `silences`, `inhibit`, `flapping`."""

from collections.abc import Mapping

from msgspec import Struct, field

from sentinel.core.errors import Invalid
from sentinel.core.values import Duration

_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


class Match(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which alerts a route, silence or inhibition is about; every key given must fit.

    A value may be one word or a list of alternatives; words begin with `!=`, `=~` or `!~` where
    they are not plain. `matchers` are whole ones as in Alertmanager (core.matchers): each must fit.
    """

    severity: str | list[str] | None = None  # `warning` or `critical`.
    status: str | list[str] | None = None  # How bad it is now.
    check: str | list[str] | None = None  # Name of the check.
    kind: str | list[str] | None = None  # Kind of the check.
    cluster: str | list[str] | None = None  # Name of the cluster.
    subject: str | list[str] | None = None  # What the alert is about.
    node: str | list[str] | None = None  # Label `node`.
    user: str | list[str] | None = None  # Label `user`.
    partition: str | list[str] | None = None  # Label `partition`.
    job: str | list[str] | None = None  # Label `job`.
    labels: Mapping[str, str] = {}  # Further labels, by name.
    matchers: list[str] = []


class Hours(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When people may be told of what is not critical: `days: mon-fri, from: "08:00", until:
    "18:00"`, in the file's time zone. An end that is not after the beginning is on the next day;
    `days` are those on which it begins."""

    days: str = "mon-sun"
    from_: str = field(default="00:00", name="from")  # When the hours begin, HH:MM.
    until: str = "24:00"  # When they end, HH:MM.

    def __post_init__(self) -> None:
        self.parse_weekdays()
        _parse_minutes(self.from_, "from")
        _parse_minutes(self.until, "until")

    def parse_minutes(self) -> tuple[int, int]:
        """Beginning and end in minutes of the day."""
        return _parse_minutes(self.from_, "from"), _parse_minutes(self.until, "until")

    def parse_weekdays(self) -> frozenset[int]:
        """ISO numbers of the days, Monday is 1. A range may cross the weekend."""
        days: set[int] = set()
        for part in self.days.lower().split(","):
            first, dash, last = part.strip().partition("-")
            days |= set(_day_range(_parse_day(first), _parse_day(last if dash else first)))
        return frozenset(days)


class Escalate(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who else is told when nobody has acknowledged for so long."""

    after: Duration  # How long nobody has acknowledged.
    to: list[str]  # Names of the channels.


class Route(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who hears of what: the first route that matches decides, unless it says continue.

    `group_wait`: how long others of a group are waited for; `group_interval`: the least time
    between two messages about it.
    """

    to: list[str]  # Names of the channels.
    match: Match = Match()  # Which alerts it is for.
    repeat: Duration | None = None  # Time until a firing alert is told again; None: once a day.
    continue_: bool = field(default=False, name="continue")  # Whether the next route is asked too.
    group_by: list[str] | None = None  # Labels by which messages are joined.
    group_wait: Duration = Duration(0)
    group_interval: Duration = Duration(0)
    escalate: Escalate | None = None  # Who else is told when nobody acknowledges.
    hours: Hours | None = None  # When people may be told.


class Inhibit(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """While an alert that fits `when` fires, those that fit `mute` are not told; with
    `same: [node]` only those that are about the same node."""

    when: Match
    mute: Match
    same: list[str] = []  # Labels that both must have with the same value.


class SilenceWindow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A silence in the file: from one moment to another (ISO 8601, in the file's time zone), or
    at every `cron` for so long."""

    match: Match = Match()  # Which alerts it silences.
    from_: str | None = field(default=None, name="from")  # When it begins.
    until: str | None = None  # When it ends.
    cron: str | None = None
    for_: Duration | None = field(default=None, name="for")
    """How long it lasts after each time of `cron`."""
    reason: str = ""  # Why, for people.

    def __post_init__(self) -> None:
        fixed = [self.from_ is not None, self.until is not None]
        recurring = [self.cron is not None, self.for_ is not None]
        if [*fixed, *recurring] not in ([True, True, False, False], [False, False, True, True]):
            raise Invalid("needs `from` and `until`, or `cron` and `for`: a silence always ends")


class ReportSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The report of trainings that is sent once a week by the ordinary routes, at a time in the
    file's time zone: `weekly: mon 08:00`."""

    weekly: str  # Day of the week and time of the day.

    def __post_init__(self) -> None:
        self.parse_weekly()

    def parse_weekly(self) -> tuple[int, int]:
        """The ISO number of the day, and the minute of the day."""
        day, _, clock = self.weekly.strip().lower().partition(" ")
        if day not in _WEEKDAYS or not clock:
            raise Invalid('write a day and a time, like "mon 08:00"', "weekly")
        minute = _parse_minutes(clock.strip(), "weekly")
        if minute >= 24 * 60:
            raise Invalid("24:00 is 00:00 of the next day", "weekly")
        return _parse_day(day), minute


class Flapping(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An alert that changes so often within the window is told as flapping; 0: never."""

    changes: int = 6  # Firings and ends from which on an alert is flapping.
    window: Duration = Duration(3600)  # The time in which they are counted.


def _parse_minutes(text: str, key: str) -> int:
    hour, colon, minute = text.partition(":")
    if not (colon and hour.isdigit() and minute.isdigit() and len(minute) == 2):
        raise Invalid(f'{text!r} is no time of the day; write it like "08:00"', key)
    total = int(hour) * 60 + int(minute)
    if int(minute) > 59 or total > 24 * 60:
        raise Invalid(f"{text!r} is no time of the day (00:00 to 24:00)", key)
    return total


def _parse_day(text: str) -> int:
    if text not in _WEEKDAYS:
        raise Invalid(f"{text!r} is no day; write them like mon-fri or sat,sun", "days")
    return _WEEKDAYS.index(text) + 1


def _day_range(first: int, last: int) -> list[int]:
    return [(first - 1 + n) % 7 + 1 for n in range((last - first) % 7 + 1)]
