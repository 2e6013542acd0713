"""Checks the whole configuration: references between sections, and missing parts."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

from msgspec import Struct

from sentinel.alerting.matchers import ALERT_FACTS, ParsedWord, parse_matchers, parse_word
from sentinel.alerting.routing import DEFAULT_REPEAT_S
from sentinel.alerting.settings import Escalate, Inhibit, Match, Route, SilenceWindow
from sentinel.alerting.silences import parse_moment
from sentinel.config.foreign import describe_error, kind_file
from sentinel.config.near_misses import did_you_mean, nearest_word
from sentinel.config.nodes import TableNode, line_at
from sentinel.config.problems import Path, ProblemCollector
from sentinel.config.registry import KindRegistries
from sentinel.config.settings import Settings
from sentinel.config.shapes import settings_fields
from sentinel.core import cron
from sentinel.core.declared import OWN_METRIC_NAMES as OWN_METRICS
from sentinel.core.errors import Invalid
from sentinel.core.model import Status
from sentinel.core.settings import ChannelConfig
from sentinel.core.text import visible

Lists = Mapping[str, Mapping[int, Any]]
"""Section -> place in the file -> what could be read there."""

OWN = "sentinel"
"""The name and kind of the check of sentinel itself, which nobody configures."""

SHORTEST_REPEAT = 60.0
"""Seconds. With a shorter repeat, a channel would get a message in every pass."""

_STATUS = tuple(status.value for status in Status)


class ConfigReview:
    """Reviews the whole configuration. Errors and warnings go to the collector."""

    def __init__(
        self,
        collector: ProblemCollector,
        root: TableNode,
        settings: Settings,
        registries: KindRegistries,
    ) -> None:
        self._collector, self._root, self._settings = collector, root, settings
        self._kinds, self._action_kinds = registries.checks, registries.actions
        self._reads_channels = registries.channels is not None
        self._check_names = _entry_names(root, "checks")
        self._channel_names = _entry_names(root, "channels")

    def review_all(self, lists: Lists) -> None:
        """The data for the review. `lists` also has the sections that contain errors."""
        for path, item in _settings_objects(lists):
            if isinstance(item, Route | Escalate):
                self._review_recipients((*path, "to"), item.to)
            elif isinstance(item, Match):
                self._review_match(path, item)
            elif isinstance(item, Inhibit):
                self._review_same((*path, "same"), item.same)
            elif isinstance(item, SilenceWindow):
                self._review_window(path, item)
        for channel in self._settings.channels:
            self._review_fallback(channel)
            if channel.common.per_hour < 0:
                path = ("channels", channel.name, "per_hour")
                self._add_error(path, "at least 1 message, or 0 for no cap")
        if OWN in self._check_names:
            problem = "this is what sentinel says about itself; take another name"
            self._add_error(("checks", OWN), problem)
        self._review_actions()
        self._review_clusters()
        self._review_unreached(lists["routes"])
        self._review_repeats_too_often(lists["routes"])
        self._review_repeats(lists["routes"])
        self._review_conflicts()
        self._review_metrics()
        self._review_nothing()

    def _add_error(self, path: Path, message: str) -> None:
        self._collector.add_error(line_at(self._root, path), path, message)

    def _add_warning(self, path: Path, message: str) -> None:
        self._collector.add_warning(line_at(self._root, path), path, message)

    def _review_recipients(self, path: Path, names: list[str]) -> None:
        if not names:
            self._add_error(path, "name at least one channel")
        for place, name in enumerate(names):
            if name not in self._channel_names:
                hint = did_you_mean(name, self._channel_names, "there are")
                self._add_error((*path, place), f"there is no channel '{name}'{hint}")

    def _review_fallback(self, channel: ChannelConfig) -> None:
        path, name = ("channels", channel.name, "fallback"), channel.common.fallback
        circle = self._fallback_circle(channel.name)
        if name and name not in self._channel_names:
            hint = did_you_mean(name, self._channel_names, "there are")
            self._add_error(path, f"there is no channel '{name}'{hint}")
        elif not name and channel.plugin.personal:
            self._add_warning(
                ("channels", channel.name),
                "what is about no user's job, or a user's without an address, reaches nobody:"
                " name a `fallback`",
            )
        elif len(circle) == 1:
            self._add_error(path, "a channel cannot stand in for itself")
        elif circle and channel.name == min(circle, key=self._channel_names.index):
            way = ", ".join((*circle, channel.name))
            self._add_error(path, f"fallbacks go round in a circle: {way}")

    def _fallback_circle(self, name: str) -> list[str]:
        """The channels that lead from this one back to it: what all of them refuse would go
        round for ever."""
        fallbacks = {channel.name: channel.common.fallback for channel in self._settings.channels}
        way = [name]
        while (following := fallbacks.get(way[-1], "")) and following not in way:
            way.append(following)
        return way if following == name else []

    def _review_actions(self) -> None:
        known = self._action_kinds.kind_names() if self._action_kinds else ()
        for name in self._settings.actions if known else ():
            if name not in known:
                hint = did_you_mean(name, known)
                self._add_error(("actions", name), f"there is no action '{name}'{hint}")

    def _review_clusters(self) -> None:
        """Checks of another cluster must not use names of nodes of the local one. They must not
        reach into nodes, keep the ledger or change anything."""
        known = tuple(self._settings.clusters)
        for name in known:
            if not name or name != visible(name).strip():
                self._add_error(
                    ("clusters", name), "a name holds no control characters or outer blanks"
                )
        if self._settings.cluster in known:
            self._add_error(("cluster",), "this is the name of another cluster in `clusters`")
        for check in self._settings.checks:
            path, plugin = ("checks", check.name, "cluster"), check.plugin
            if not (cluster := check.common.cluster):
                continue
            if cluster not in known:
                hint = (
                    did_you_mean(cluster, known, "there are")
                    if known
                    else "; name it in `clusters`"
                )
                self._add_error(path, f"there is no cluster '{cluster}'{hint}")
            elif plugin.may_ask or plugin.looks_into_nodes:
                what = "changes" if plugin.may_ask else "looks into nodes of"
                self._add_error(
                    path, f"it {what} the cluster at hand only: run a sentinel over there"
                )

    def _review_match(self, path: Path, match: Match) -> None:
        for place, name, text in _match_words(path, match):
            try:
                self._review_word(place, name, text, parse_word(name, text))
            except Invalid as error:
                self._add_error(place, str(error))
        for index, text in enumerate(match.matchers):
            place = (*path, "matchers", index)
            try:
                found = parse_matchers(text)
            except Invalid as error:
                self._add_error(place, str(error))
                continue
            for one in found:
                self._review_label(place, one.name)
                self._review_word(place, one.name, one.word, parse_word(one.name, one.word))

    def _review_word(self, place: Path, name: str, text: str, meant: ParsedWord) -> None:
        """A word that nothing there is can fit: a slip, where all there is is known."""
        kinds = {check.common.kind for check in self._settings.checks}
        if name in ("severity", "status") and not _hits_any(meant, _STATUS):
            self._add_error(place, f"'{text}' is no {name}{did_you_mean(text, _STATUS)}")
        elif name == "kind" and not _hits_any(meant, {*kinds, OWN, *self._kinds.kind_names()}):
            hint = did_you_mean(text, self._kinds.kind_names())
            self._add_error(place, f"there is no kind '{text}'{hint}")
        elif name == "check" and not _hits_any(meant, {*self._check_names, OWN}):
            hint = did_you_mean(text, self._check_names, "there are")
            self._add_warning(place, f"there is no check '{text}'{hint}")

    def _review_same(self, path: Path, names: list[str]) -> None:
        for place, name in enumerate(names):
            self._review_label((*path, place), name)

    def _review_label(self, place: Path, name: str) -> None:
        """A name that no check gives and that is nearly one of an alert's own."""
        given = {label for check in self._settings.checks for label in check.common.labels}
        if (
            name not in given
            and name not in ALERT_FACTS
            and (close := nearest_word(name, tuple(ALERT_FACTS)))
        ):
            self._add_warning(place, f"no check gives a label '{name}' (did you mean '{close}'?)")

    def _review_window(self, path: Path, window: SilenceWindow) -> None:
        try:
            if window.until is not None and _is_past(window.until):
                self._add_warning(
                    (*path, "until"), "lies in the past: this window silences nothing"
                )
            if window.cron is not None:
                _judge_cron(window.cron)
            else:
                _judge_span(window)
        except Invalid as error:
            self._add_error((*path, *error.path), str(error))

    def _review_unreached(self, routes: Mapping[int, Route]) -> None:
        first = next((i for i, route in routes.items() if _takes_all(route)), None)
        for index in routes:
            if first is not None and index > first:
                self._add_warning(
                    ("routes", index), f"never reached: routes[{first}] takes every alert"
                )
        heard = {name for route in routes.values() for name in _route_channels(route)}
        heard |= {channel.common.fallback for channel in self._settings.channels}
        for name in self._channel_names if routes and self._reads_channels else ():
            if name not in heard:
                self._add_warning(("channels", name), "no route leads to this channel")

    def _review_repeats_too_often(self, routes: Mapping[int, Route]) -> None:
        for index, route in routes.items():
            if route.repeat is not None and route.repeat < SHORTEST_REPEAT:
                often = f"{route.repeat} is too often: each pass would send it again; at least 1m"
                self._add_error(("routes", index, "repeat"), often)

    def _review_repeats(self, routes: Mapping[int, Route]) -> None:
        """Report channels that forget an alert which is not repeated in time."""
        plugins = {channel.name: channel.plugin for channel in self._settings.channels}
        for name, plugin in plugins.items():
            judge = plugin.judge_repeat
            if not routes and (wrong := judge(DEFAULT_REPEAT_S)):
                self._add_warning(("channels", name), wrong)
            for index, route in routes.items():
                repeat = DEFAULT_REPEAT_S if route.repeat is None else float(route.repeat)
                if name in _route_channels(route) and (wrong := judge(repeat)):
                    self._add_warning(("routes", index, "repeat"), f"channel '{name}': {wrong}")

    def _review_conflicts(self) -> None:
        plugins = {check.name: check.plugin for check in self._settings.checks}
        for name, plugin in plugins.items():
            others = {n: p for n, p in plugins.items() if n != name}
            try:
                found = [(key.split("."), message) for key, message in plugin.conflicts(others)]
            # a plugin's code may raise anything; the other checks still run
            except Exception as error:
                why = f"{kind_file(plugin)}: {describe_error(error, plugin)}"
                self._add_warning(("checks", name), f"its `conflicts` could not be asked: {why}")
                continue
            for key, message in found:
                self._add_error(("checks", name, *key), message)

    def _review_metrics(self) -> None:
        """Numbers that are left out, since one of that name has other labels or is sentinel's."""
        first: dict[str, tuple[str, tuple[str, ...]]] = {}
        for check in self._settings.checks:
            for metric in check.plugin.METRICS:
                name, why = metric.name, ""
                own = metric.all_labels
                owner, labels = first.setdefault(name, (check.name, own))
                if name in OWN_METRICS:
                    why = "sentinel has one of that name"
                elif labels != own:
                    why = f"that of check '{owner}' has the labels {', '.join(labels)}"
                if why:
                    words = f"its metric sentinel_{name} is not exported: {why}; rename it"
                    self._add_warning(("checks", check.name, "kind"), words)

    def _review_nothing(self) -> None:
        for section, names, what in (
            ("checks", self._check_names, "no check: nothing is watched"),
            ("channels", self._channel_names, "no channel: nobody is told"),
        ):
            if not names:
                self._add_warning((section,), what)


def _settings_objects(lists: Lists) -> Iterator[tuple[Path, Struct]]:
    """Every settings object in the lists, with its path."""
    for section, items in lists.items():
        for index, item in items.items():
            yield from _objects_within((section, index), item)


def _objects_within(path: Path, item: Any) -> Iterator[tuple[Path, Struct]]:
    if isinstance(item, Struct):
        yield path, item
        for key, info in settings_fields(type(item)).items():
            yield from _objects_within((*path, key), getattr(item, info.name))


def _judge_span(window: SilenceWindow) -> None:
    begin = parse_moment(window.from_ or "", timezone.utc, "from")
    if parse_moment(window.until or "", timezone.utc, "until") <= begin:
        raise Invalid("ends before it begins", "until")


def _is_past(until: str) -> bool:
    """Whether it has ended in every time zone."""
    end = parse_moment(until, timezone.utc, "until")
    return datetime.now(timezone.utc) - end > timedelta(days=1)


def _judge_cron(text: str) -> None:
    try:
        cron.parse_cron(text)
    except Invalid as error:
        raise Invalid(str(error), "cron") from None


def _entry_names(root: TableNode, section: str) -> tuple[str, ...]:
    named = root.entries[section].value if section in root.entries else None
    return tuple(named.entries) if isinstance(named, TableNode) else ()


def _wanted_words(value: str | list[str] | None, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, list):
        yield from (((*path, index), word) for index, word in enumerate(value))
    elif value is not None:
        yield path, value


def _match_words(path: Path, match: Match) -> Iterator[tuple[Path, str, str]]:
    """Every word of a match, with its place and the label that it is about."""
    for name in ALERT_FACTS:
        for place, text in _wanted_words(getattr(match, name), (*path, name)):
            yield place, name, text
    for name, text in match.labels.items():
        yield (*path, "labels", name), name, text


def _hits_any(meant: ParsedWord, names: Iterable[str]) -> bool:
    return any(meant.hits(name) for name in names)


def _takes_all(route: Route) -> bool:
    return route.match == Match() and not route.continue_


def _route_channels(route: Route) -> list[str]:
    return [*route.to, *(route.escalate.to if route.escalate else ())]
