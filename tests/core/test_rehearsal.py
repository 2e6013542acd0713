"""Who would hear of what."""

from sentinel.core.model import Status
from sentinel.core.rehearsal import rehearse
from sentinel.core.settings import (
    ChannelConfig,
    CheckConfig,
    Common,
    Escalate,
    Hours,
    Match,
    Route,
    Settings,
)
from sentinel.core.values import Duration
from sentinel.testing import START


def heard(*routes: Route, **common: str) -> list[tuple[str, str, tuple[str, ...], tuple[str, ...]]]:
    settings = Settings(
        checks=(CheckConfig(name="disks", common=Common(kind="fs", **common), plugin=None),),  # type: ignore[arg-type]
        channels=tuple(ChannelConfig(name=n, kind="file", plugin=None) for n in ("mail", "sms")),
        routes=routes,
    )
    return [(r.check, r.severity.value, r.channels, r.later) for r in rehearse(settings, START)]


def test_without_routes_everybody_hears_everything() -> None:
    """Both severities, at once."""
    assert heard() == [
        ("disks", "warning", ("mail", "sms"), ()),
        ("disks", "critical", ("mail", "sms"), ()),
    ]


def test_an_alert_that_reaches_nobody_is_seen_beforehand() -> None:
    """The only route is for what is critical."""
    assert heard(Route(to=["mail"], match=Match(severity="critical")))[0][2] == ()


def test_escalation_is_told_as_later_and_hours_count_as_open() -> None:
    """What may happen, whatever the time of day at which somebody asks."""
    route = Route(
        to=["mail"],
        escalate=Escalate(after=Duration(1800), to=["sms"]),
        hours=Hours(days="sun", from_="03:00", until="03:01"),
    )
    assert heard(route)[0] == ("disks", "warning", ("mail",), ("sms",))


def test_a_cap_leaves_one_severity() -> None:
    """A check that never says critical is not asked about it."""
    assert [row[1] for row in heard(severity="warning")] == [Status.WARNING.value]
