"""What only shows when all sections are read: references between them, and what is missing."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

from msgspec import Struct

from sentinel.alerting.matchers import FACTS, Word, matchers, word
from sentinel.alerting.routing import DEFAULT_REPEAT
from sentinel.alerting.settings import Escalate, Inhibit, Match, Route, Window
from sentinel.alerting.silences import moment
from sentinel.config.nodes import Table, line_at
from sentinel.config.problems import Collector, Path, did_you_mean, near
from sentinel.config.registry import Registries
from sentinel.config.settings import Settings
from sentinel.config.shapes import fields
from sentinel.core import cron
from sentinel.core.declared import OWN as OWN_METRICS
from sentinel.core.errors import Invalid
from sentinel.core.model import Status
from sentinel.core.settings import ChannelConfig
from sentinel.core.text import visible

Lists = Mapping[str, Mapping[int, Any]]
"""Section -> place in the file -> what could be read there."""

OWN = "sentinel"
"""The name and kind of the check of sentinel itself, which nobody configures."""

SHORTEST_REPEAT = 60.0
"""Seconds; below that a channel is told again at every pass."""

_STATUS = tuple(status.value for status in Status)


class Review:
    """One look over everything; errors and warnings go to the collector."""

    def __init__(
        self,
        collector: Collector,
        root: Table,
        settings: Settings,
        registries: Registries,
    ) -> None:
        self._collector, self._root, self._settings = collector, root, settings
        self._kinds, self._action_kinds = registries.checks, registries.actions
        self._reads_channels = registries.channels is not None
        self._check_names = _names(root, "checks")
        self._channel_names = _names(root, "channels")

    def all(self, lists: Lists) -> None:
        """Everything there is to review; `lists` also holds what stands beside a fault."""
        for path, item in _objects(lists):
            if isinstance(item, Route | Escalate):
                self._recipients((*path, "to"), item.to)
            elif isinstance(item, Match):
                self._match(path, item)
            elif isinstance(item, Inhibit):
                self._same((*path, "same"), item.same)
            elif isinstance(item, Window):
                self._window(path, item)
        for channel in self._settings.channels:
            self._fallback(channel)
            if channel.common.per_hour < 0:
                path = ("channels", channel.name, "per_hour")
                self._error(path, "at least 1 message, or 0 for no cap")
        if OWN in self._check_names:
            problem = "this is what sentinel says about itself; take another name"
            self._error(("checks", OWN), problem)
        self._actions()
        self._clusters()
        self._unreached(lists["routes"])
        self._too_often(lists["routes"])
        self._repeats(lists["routes"])
        self._conflicts()
        self._metrics()
        self._nothing()

    def _error(self, path: Path, message: str) -> None:
        self._collector.error(line_at(self._root, path), path, message)

    def _warn(self, path: Path, message: str) -> None:
        self._collector.warn(line_at(self._root, path), path, message)

    def _recipients(self, path: Path, names: list[str]) -> None:
        if not names:
            self._error(path, "name at least one channel")
        for place, name in enumerate(names):
            if name not in self._channel_names:
                hint = did_you_mean(name, self._channel_names, "there are")
                self._error((*path, place), f"there is no channel '{name}'{hint}")

    def _fallback(self, channel: ChannelConfig) -> None:
        path, name = ("channels", channel.name, "fallback"), channel.common.fallback
        circle = self._circle(channel.name)
        if name and name not in self._channel_names:
            hint = did_you_mean(name, self._channel_names, "there are")
            self._error(path, f"there is no channel '{name}'{hint}")
        elif not name and channel.plugin.personal:
            self._warn(
                ("channels", channel.name),
                "what is about no user's job, or a user's without an address, reaches nobody:"
                " name a `fallback`",
            )
        elif len(circle) == 1:
            self._error(path, "a channel cannot stand in for itself")
        elif circle and channel.name == min(circle, key=self._channel_names.index):
            way = ", ".join((*circle, channel.name))
            self._error(path, f"fallbacks go round in a circle: {way}")

    def _circle(self, name: str) -> list[str]:
        """The channels that lead from this one back to it: what all of them refuse would go
        round for ever."""
        fallbacks = {channel.name: channel.common.fallback for channel in self._settings.channels}
        way = [name]
        while (following := fallbacks.get(way[-1], "")) and following not in way:
            way.append(following)
        return way if following == name else []

    def _actions(self) -> None:
        known = self._action_kinds.names() if self._action_kinds else ()
        for name in self._settings.actions if known else ():
            if name not in known:
                hint = did_you_mean(name, known)
                self._error(("actions", name), f"there is no action '{name}'{hint}")

    def _clusters(self) -> None:
        """What reaches into nodes, keeps a ledger of them or changes something goes by names of the
        cluster at hand: another one's node-0 is not meant."""
        known = tuple(self._settings.clusters)
        for name in known:
            if not name or name != visible(name).strip():
                self._error(
                    ("clusters", name), "a name holds no control characters or outer blanks"
                )
        if self._settings.cluster in known:
            self._error(("cluster",), "this is the name of another cluster in `clusters`")
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
                self._error(path, f"there is no cluster '{cluster}'{hint}")
            elif plugin.may_ask or plugin.looks_into_nodes:
                what = "changes" if plugin.may_ask else "looks into nodes of"
                self._error(path, f"it {what} the cluster at hand only: run a sentinel over there")

    def _match(self, path: Path, match: Match) -> None:
        for place, name, text in _words(path, match):
            try:
                self._word(place, name, text, word(name, text))
            except Invalid as error:
                self._error(place, str(error))
        for index, text in enumerate(match.matchers):
            place = (*path, "matchers", index)
            try:
                found = matchers(text)
            except Invalid as error:
                self._error(place, str(error))
                continue
            for one in found:
                self._label(place, one.name)
                self._word(place, one.name, one.word, word(one.name, one.word))

    def _word(self, place: Path, name: str, text: str, meant: Word) -> None:
        """A word that nothing there is can fit: a slip, where all there is is known."""
        kinds = {check.common.kind for check in self._settings.checks}
        if name in ("severity", "status") and not _hits(meant, _STATUS):
            self._error(place, f"'{text}' is no {name}{did_you_mean(text, _STATUS)}")
        elif name == "kind" and not _hits(meant, {*kinds, OWN, *self._kinds.names()}):
            hint = did_you_mean(text, self._kinds.names())
            self._error(place, f"there is no kind '{text}'{hint}")
        elif name == "check" and not _hits(meant, {*self._check_names, OWN}):
            hint = did_you_mean(text, self._check_names, "there are")
            self._warn(place, f"there is no check '{text}'{hint}")

    def _same(self, path: Path, names: list[str]) -> None:
        for place, name in enumerate(names):
            self._label((*path, place), name)

    def _label(self, place: Path, name: str) -> None:
        """A name that no check gives and that is nearly one of an alert's own."""
        given = {label for check in self._settings.checks for label in check.common.labels}
        if name not in given and name not in FACTS and (close := near(name, tuple(FACTS))):
            self._warn(place, f"no check gives a label '{name}' (did you mean '{close}'?)")

    def _window(self, path: Path, window: Window) -> None:
        try:
            if window.until is not None and _is_past(window.until):
                self._warn((*path, "until"), "lies in the past: this window silences nothing")
            if window.cron is not None:
                _judge_cron(window.cron)
            else:
                _judge_span(window)
        except Invalid as error:
            self._error((*path, *error.path), str(error))

    def _unreached(self, routes: Mapping[int, Route]) -> None:
        first = next((i for i, route in routes.items() if _takes_all(route)), None)
        for index in routes:
            if first is not None and index > first:
                self._warn(("routes", index), f"never reached: routes[{first}] takes every alert")
        heard = {name for route in routes.values() for name in _told(route)}
        heard |= {channel.common.fallback for channel in self._settings.channels}
        for name in self._channel_names if routes and self._reads_channels else ():
            if name not in heard:
                self._warn(("channels", name), "no route leads to this channel")

    def _too_often(self, routes: Mapping[int, Route]) -> None:
        for index, route in routes.items():
            if route.repeat is not None and route.repeat < SHORTEST_REPEAT:
                often = f"{route.repeat} is too often: every pass would tell it again; at least 1m"
                self._error(("routes", index, "repeat"), often)

    def _repeats(self, routes: Mapping[int, Route]) -> None:
        """Channels that forget what is not repeated in time."""
        plugins = {channel.name: channel.plugin for channel in self._settings.channels}
        for name, plugin in plugins.items():
            judge = plugin.judge_repeat
            if not routes and (wrong := judge(DEFAULT_REPEAT)):
                self._warn(("channels", name), wrong)
            for index, route in routes.items():
                repeat = DEFAULT_REPEAT if route.repeat is None else float(route.repeat)
                if name in _told(route) and (wrong := judge(repeat)):
                    self._warn(("routes", index, "repeat"), f"channel '{name}': {wrong}")

    def _conflicts(self) -> None:
        plugins = {check.name: check.plugin for check in self._settings.checks}
        for name, plugin in plugins.items():
            others = {n: p for n, p in plugins.items() if n != name}
            try:
                found = [(key.split("."), message) for key, message in plugin.conflicts(others)]
            except Exception as error:  # a third party's: the rest runs
                from sentinel.config.foreign import file_of, raised

                why = f"{file_of(plugin)}: {raised(error, plugin)}"
                self._warn(("checks", name), f"its `conflicts` could not be asked: {why}")
                continue
            for key, message in found:
                self._error(("checks", name, *key), message)

    def _metrics(self) -> None:
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
                    self._warn(("checks", check.name, "kind"), words)

    def _nothing(self) -> None:
        for section, names, what in (
            ("checks", self._check_names, "no check: nothing is watched"),
            ("channels", self._channel_names, "no channel: nobody is told"),
        ):
            if not names:
                self._warn((section,), what)


def _objects(lists: Lists) -> Iterator[tuple[Path, Struct]]:
    """Every settings object in the lists, with its path."""
    for section, items in lists.items():
        for index, item in items.items():
            yield from _within_object((section, index), item)


def _within_object(path: Path, item: Any) -> Iterator[tuple[Path, Struct]]:
    if isinstance(item, Struct):
        yield path, item
        for key, info in fields(type(item)).items():
            yield from _within_object((*path, key), getattr(item, info.name))


def _judge_span(window: Window) -> None:
    begin = moment(window.from_ or "", timezone.utc, "from")
    if moment(window.until or "", timezone.utc, "until") <= begin:
        raise Invalid("ends before it begins", "until")


def _is_past(until: str) -> bool:
    """Whether it has ended in every time zone."""
    end = moment(until, timezone.utc, "until")
    return datetime.now(timezone.utc) - end > timedelta(days=1)


def _judge_cron(text: str) -> None:
    try:
        cron.parse(text)
    except Invalid as error:
        raise Invalid(str(error), "cron") from None


def _names(root: Table, section: str) -> tuple[str, ...]:
    named = root.entries[section].value if section in root.entries else None
    return tuple(named.entries) if isinstance(named, Table) else ()


def _wanted(value: str | list[str] | None, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, list):
        yield from (((*path, index), word) for index, word in enumerate(value))
    elif value is not None:
        yield path, value


def _words(path: Path, match: Match) -> Iterator[tuple[Path, str, str]]:
    """Every word of a match, where it stands, and the name that it is about."""
    for name in FACTS:
        for place, text in _wanted(getattr(match, name), (*path, name)):
            yield place, name, text
    for name, text in match.labels.items():
        yield (*path, "labels", name), name, text


def _hits(meant: Word, names: Iterable[str]) -> bool:
    return any(meant.hits(name) for name in names)


def _takes_all(route: Route) -> bool:
    return route.match == Match() and not route.continue_


def _told(route: Route) -> list[str]:
    return [*route.to, *(route.escalate.to if route.escalate else ())]
