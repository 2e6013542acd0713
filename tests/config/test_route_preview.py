"""Who would hear of what."""

from sentinel.alerting.settings import Escalate, Hours, Match, Route
from sentinel.config.route_preview import RoutePreview, preview_routes, unheard_previews
from sentinel.config.settings import Settings
from sentinel.core.model import Status
from sentinel.core.settings import ChannelConfig, CheckCommon, CheckConfig
from sentinel.core.values import Duration
from sentinel.plugin import Channel, Check
from sentinel.testing import START


def rows(*routes: Route, **common: object) -> list[RoutePreview]:
    settings = Settings(
        checks=(
            CheckConfig(name="disks", common=CheckCommon(kind="fs", **common), plugin=Check()),
        ),  # type: ignore[arg-type]
        channels=tuple(
            ChannelConfig(name=n, kind="file", plugin=Channel()) for n in ("mail", "sms")
        ),
        routes=routes,
    )
    return list(preview_routes(settings, START))


def heard(*routes: Route, **common: object) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(r.check, r.severity.value, r.channels) for r in rows(*routes, **common)]


def test_without_routes_everybody_hears_everything() -> None:
    """Both severities, blindness, and what sentinel says of itself."""
    both = ("mail", "sms")
    assert heard() == [
        ("disks", "warning", both),
        ("disks", "critical", both),
        ("disks", "unknown", both),
        ("sentinel", "warning", both),
        ("sentinel", "critical", both),
    ]


def test_an_alert_that_reaches_nobody_is_seen_beforehand() -> None:
    """Routes for both severities leave a check that goes blind to nobody."""
    routes = (
        Route(to=["mail"], match=Match(severity="critical")),
        Route(to=["sms"], match=Match(severity="warning", check="disks")),
    )
    lost = [(r.check, r.severity.value) for r in unheard_previews(rows(*routes))]
    assert lost == [("disks", "unknown"), ("sentinel", "warning")]


def test_the_route_that_decides_is_told() -> None:
    """By its place in the file; several where one says continue."""
    first = Route(to=["sms"], match=Match(severity="critical"), continue_=True)
    assert [r.routes for r in rows(first, Route(to=["mail"]))] == [(1,), (0, 1), (1,), (1,), (0, 1)]


def test_escalation_is_told_as_later_and_hours_count_as_open() -> None:
    """What may happen, whatever the time of day at which somebody asks."""
    route = Route(
        to=["mail"],
        escalate=Escalate(after=Duration(1800), to=["sms"]),
        hours=Hours(days="sun", from_="03:00", until="03:01"),
    )
    assert (rows(route)[0].channels, rows(route)[0].later) == (("mail",), ("sms",))


def test_a_cap_leaves_one_severity() -> None:
    """A check that never says critical may still go blind."""
    found = [row[1] for row in heard(severity="warning") if row[0] == "disks"]
    assert found == [Status.WARNING.value, Status.UNKNOWN.value]


def test_routes_by_subject_or_label_are_told_apart() -> None:
    """Which alerts they take only an alert can tell; labels of the check are known."""
    route = Route(to=["sms"], match=Match(node="gpu-*"))
    found = rows(route, Route(to=["mail"]))[0]
    assert (found.channels, found.maybe) == (("mail",), ("sms",))
    labelled = Route(to=["sms"], match=Match(labels={"team": "storage"}))
    assert rows(labelled, labels={"team": "storage"})[0].channels == ("sms",)
    assert rows(labelled, labels={"team": "other"})[0].maybe == ("sms",)
    other = Route(to=["sms"], match=Match(node="gpu-*", kind="job"))
    assert rows(other, Route(to=["mail"]))[0].maybe == ()
