"""The work of sentinel on itself: it notices trouble of its state, deletes old rows, and watches
its peer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from sentinel.actions.runner import ActionRunner
from sentinel.alerting.observations import RunOutcome
from sentinel.alerting.state import Store
from sentinel.alerting.state_machine import AlertPolicy
from sentinel.core.clock import SECOND, Instant, get_elapsed_s
from sentinel.core.errors import CannotTell, Fenced, StoreError
from sentinel.core.guidance import Guidance, look
from sentinel.core.model import Batch, Finding, Report, Status, covered
from sentinel.core.ports import Clock
from sentinel.core.text import visible
from sentinel.core.values import duration_text
from sentinel.engine.runtime import RuntimeConfig
from sentinel.proc import threads

if TYPE_CHECKING:
    from sentinel.engine.peer_check import PeerLook, PeerWatch

SELF_CHECK_NAME = "sentinel"
"""The name and kind of this check. No configured check may have it."""

CONFIGURATION_SUBJECT = "configuration"
"""The subject of alerts about the configuration file."""

PACKAGE_SUBJECT = "version"
"""The subject of problems with another installed version."""

PARTS_SUBJECT = "installation"
"""The subject of problems with parts that cannot be imported."""

TRUST_SUBJECT = "trust"
"""The subject of what others could change, and of the secrets that they could get."""

SELF_CHECK_POLICY = AlertPolicy(kind=SELF_CHECK_NAME)
CHANNEL_PATIENCE_S = 300.0
"""Seconds for which a channel may fail before other channels report it. A retry usually succeeds
sooner."""


NOTICE_TROUBLE_S = 86400.0
"""Seconds for which a notice (a damaged state was set aside) counts as trouble."""


class Notices:
    """Past events. They are reported, and after a day they no longer count as a problem."""

    def __init__(self, texts: Iterable[str], now: Instant) -> None:
        self._kept: list[tuple[Instant, str]] = []
        self.add_texts(texts, now)

    def add_texts(self, texts: Iterable[str], now: Instant) -> None:
        """Add these notices."""
        self._kept += [(now, text) for text in texts]

    def get_current(self, now: Instant) -> list[str]:
        """The notices that still count. The others are forgotten."""
        self._kept = [
            (at, text) for at, text in self._kept if get_elapsed_s(at, now) < NOTICE_TROUBLE_S
        ]
        return [text for _, text in self._kept]


def explain_unwritten_state(store: Store, now: Instant) -> list[str]:
    """Why the state cannot be written now. Empty if it can."""
    trouble, refused = store.trouble, store.refused_journals
    if trouble is None:
        return list(refused)
    age = duration_text(get_elapsed_s(trouble.since, now))
    lost = "; so many that samples are lost" if trouble.lost_detail else ""
    where = trouble.kept_in or "memory, which ends with this process"
    told = f"{trouble.why}; not written for {age}, {trouble.waiting} writes wait in {where}{lost}"
    return [told, *refused]


class ChannelTrouble(Struct, frozen=True):
    """The problem of a channel that accepts no messages. `sure`: waiting will not help."""

    since: Instant  # When it began.
    text: str  # The error text of the channel.
    sure: bool = False


def make_self_outcome(
    state: Iterable[str],
    channels: Mapping[str, ChannelTrouble | None],
    names: Iterable[str],
    now: Instant,
    more: Sequence[Finding] = (),
    memory: Mapping[str, Any] | None = None,
) -> RunOutcome:
    """The run of the check that watches sentinel. `state` are its troubles, one line each, empty if
    all is well.

    Nothing is known of a channel that is not in `channels`. This neither opens nor ends an alert
    about it.
    """
    findings = [_judge_state(list(state))]
    findings += [_judge_channel(name, channels, now) for name in names]
    findings += more
    seen = [f.subject for f in findings if f.status is not Status.UNKNOWN]
    return RunOutcome(
        check=SELF_CHECK_NAME,
        kind=SELF_CHECK_NAME,
        itself=Finding(subject="", status=Status.OK, summary="running"),
        report=Report(
            findings=tuple(findings),
            coverage=covered("subjects", [f.subject for f in findings], seen),
            memory=memory,
        ),
        seconds=0.0,
    )


def _judge_state(troubles: list[str]) -> Finding:
    if not troubles:
        return Finding(subject="state", status=Status.OK, summary="written")
    summary = "; ".join(visible(t) for t in troubles)
    return Finding(subject="state", status=Status.CRITICAL, summary=summary)


def _judge_configuration(invalid: str) -> Finding:
    """Judge the configuration. `invalid` has a line for each error, with file and line."""
    if not invalid:
        return Finding(subject=CONFIGURATION_SUBJECT, status=Status.OK, summary="valid")
    first, *others = invalid.splitlines()
    more = f" (and {len(others)} more)" if others else ""
    return Finding(
        subject=CONFIGURATION_SUBJECT,
        status=Status.WARNING,
        summary=visible(
            f"{first}{more}; until the file is valid the last good one is in force, without actions"
        ),
        details="\n".join(visible(line) for line in others),
        commands=(look("sentinel config check"),),
    )


def _judge_package(trouble: str) -> Finding:
    """Judge the files from which this service was started."""
    if not trouble:
        return Finding(subject=PACKAGE_SUBJECT, status=Status.OK, summary="as it was started")
    return Finding(
        subject=PACKAGE_SUBJECT,
        status=Status.WARNING,
        summary=visible(trouble),
        commands=(look("sentinel config check"), look("sentinel state check")),
    )


def _judge_unloaded(parts: Mapping[str, str]) -> Finding:
    """Judge what could be imported at the start. `parts`: why not, by `check NAME` or `channel
    NAME`."""
    if not parts:
        return Finding(subject=PARTS_SUBJECT, status=Status.OK, summary="all parts are loaded")
    which = "; ".join(f"{name}: {why}" for name, why in parts.items())
    return Finding(
        subject=PARTS_SUBJECT,
        status=Status.WARNING,
        summary=visible(f"cannot be loaded, while the rest runs: {which}"),
        guidance=Guidance(
            impact="What it would have seen or sent is missing.",
            todo="Install sentinel again, and restart it. Each start tries it again.",
        ),
        commands=(look("sentinel config check"),),
    )


def _judge_trust(list_doubts: Callable[[], Sequence[str]]) -> Finding:
    """Judge who could change what the configuration names."""
    try:
        doubts = list_doubts()
    except CannotTell as error:
        return Finding(subject=TRUST_SUBJECT, status=Status.UNKNOWN, summary=str(error))
    if not doubts:
        return Finding(
            subject=TRUST_SUBJECT, status=Status.OK, summary="nobody else could change it"
        )
    more = f" (and {len(doubts) - 1} more)" if doubts[1:] else ""
    return Finding(
        subject=TRUST_SUBJECT,
        status=Status.WARNING,
        summary=f"the next release refuses what works now: {doubts[0]}{more}",
        details="\n".join(doubts),
        commands=(look("sentinel doctor"),),
        guidance=Guidance(
            impact="Whoever may write there acts through sentinel, and whoever gets a secret may use"
            " it. A script and its copy both run.",
            todo="Take that right away, as the line in brackets does, or name the user in `trust` or the"
            " group in `trust_groups` of the configuration; send secrets by https; rename a script that"
            " is no copy. `sentinel doctor` below lists all of them.",
        ),
    )


def _judge_channel(
    name: str, channels: Mapping[str, ChannelTrouble | None], now: Instant
) -> Finding:
    subject = f"channel {name}"
    if name not in channels:
        return Finding(subject=subject, status=Status.UNKNOWN, summary="nothing sent yet")
    trouble = channels[name]
    if trouble is None:
        return Finding(subject=subject, status=Status.OK, summary="delivers")
    age = get_elapsed_s(trouble.since, now)
    if not trouble.sure and age < CHANNEL_PATIENCE_S:
        return Finding(subject=subject, status=Status.OK, summary="retrying")
    since = f" (for {duration_text(age)})" if age >= 1 else ""
    summary = visible(trouble.text) + since
    return Finding(
        subject=subject,
        status=Status.WARNING,
        summary=summary,
        commands=(look("sentinel notify test {}", name),),
    )


HOUSEKEEPING_KEY = "sentinel/housekeeping"
"""The state stores under this name when it was pruned last, because the process of a tick does not
live so long."""

PRUNE_INTERVAL_S = 3600.0
"""Seconds between two rounds of pruning. Each round deletes the rows of an hour, so none takes
long."""

_LOG = logging.getLogger("sentinel")
StoreCall = Callable[..., Awaitable[Any]]


class SelfCheck:
    """Watches sentinel itself. `call` runs a method of the store in a thread, because it may block.
    `notices` are those from the start."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        call: StoreCall,
        action_runner: ActionRunner,
        notices: Sequence[str],
    ) -> None:
        self._store, self._clock, self._call = store, clock, call
        self._action_runner = action_runner
        self.package_trouble: str | None = None
        """Why the service keeps its version although another one is installed. None if nobody
        checks that."""
        self._notices = Notices(notices, clock.now())

    async def take_start_notices(self) -> None:
        """Treat the notices from the start like later ones."""
        await self._action_runner.pause_after_lost_state(
            self._notices.get_current(self._clock.now())
        )

    async def take_new_notices(self) -> None:
        """Take the notices about the state since the last time. This is done before anything relies
        on the state's memory."""
        told = await self._call(self._store.take_notices)
        self._notices.add_texts(told, self._clock.now())
        await self._action_runner.pause_after_lost_state(told)

    async def check_self(
        self, world: RuntimeConfig, channels: Mapping[str, ChannelTrouble | None]
    ) -> RunOutcome:
        """The run of the check that watches sentinel."""
        await self.take_new_notices()
        peer = await self._check_peer(world.peer) if world.peer else None
        now = self._clock.now()
        own = [self._action_runner.trouble] if self._action_runner.trouble else []
        state = [*self._notices.get_current(now), *own, *explain_unwritten_state(self._store, now)]
        more, memory = ([peer.finding], peer.memory) if peer else ([], None)
        more = [*more, _judge_configuration(world.invalid)]
        if world.unloaded is not None:
            more.append(_judge_unloaded(world.unloaded))
        if world.doubts is not None:
            looking = threads.run_in_thread("trust", partial(_judge_trust, world.doubts))
            more.append(await asyncio.wrap_future(looking))
        if self.package_trouble is not None:
            more.append(_judge_package(self.package_trouble))
        return make_self_outcome(state, channels, world.channels, now, more, memory)

    async def prune_hourly(self, world: RuntimeConfig) -> None:
        """Delete old rows, once an hour. If that cannot be written (a full disk), the self-check
        reports it, and nothing else waits for it."""
        now = self._clock.now()
        last = (await self._call(self._store.read_memory, HOUSEKEEPING_KEY)).get("pruned")
        if isinstance(last, int) and 0 <= now.wall - last < PRUNE_INTERVAL_S * SECOND:
            return
        try:
            memory = {
                HOUSEKEEPING_KEY: {"pruned": now.wall}
            }  # stored first, so that a failed round is not repeated at once
            await self._call(self._store.commit, Batch(at=now, memory=memory))
            await self._prune_stores(world)
        except Fenced:
            raise
        except StoreError as error:
            _LOG.warning("the state was not pruned: %s", error)

    async def _prune_stores(self, world: RuntimeConfig) -> None:
        now = self._clock.now()
        await self._call(self._store.prune, now)
        await self._action_runner.prune_audit_log(now)
        if self._store.trouble is not None:
            return  # the ledger is stored in the same place
        if world.gpus is not None:
            await self._call(world.gpus.prune, now)

    async def _check_peer(self, watch: PeerWatch) -> PeerLook:
        memory = await self._call(self._store.read_memory, SELF_CHECK_NAME)
        now = self._clock.now()
        return await asyncio.wrap_future(
            threads.run_in_thread("peer", lambda: watch.check_peer(memory, now))
        )
