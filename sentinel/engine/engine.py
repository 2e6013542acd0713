"""The only way through sentinel: run checks, commit their reports, deliver the messages due.

`run` calls it from the scheduler, `tick` calls it once. There is no third way.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from sentinel.actions.runner import ActionRunner, may_request_actions
from sentinel.alerting.handover import Handover
from sentinel.alerting.observations import RunOutcome
from sentinel.alerting.pending_checks import PendingChecks
from sentinel.alerting.routing import lookback_s
from sentinel.alerting.silences import Ack, Orders, Silence
from sentinel.alerting.state import Store
from sentinel.core.clock import SECOND, Instant
from sentinel.core.due import get_interval_s, is_scheduled_run
from sentinel.core.errors import CannotTell, Fenced, StoreError
from sentinel.core.model import Alert, CheckRun
from sentinel.core.ports import Clock, Context
from sentinel.core.script_memory import SCRIPTS_KEY
from sentinel.core.settings import CheckConfig
from sentinel.core.text import visible
from sentinel.engine import heartbeat, leader_election, pulse_log
from sentinel.engine.closing import STATE_TIMEOUT_S, close_stores, wait_or_warn
from sentinel.engine.delivery import Delivery
from sentinel.engine.external_events import ExternalEvents
from sentinel.engine.housekeeping import SelfCheck
from sentinel.engine.pipeline import Pipeline
from sentinel.engine.runner import CheckRunner, make_outcome
from sentinel.engine.runtime import RuntimeConfig as RuntimeConfig
from sentinel.engine.script_watch import ScriptWatch
from sentinel.proc import threads
from sentinel.status import last_seen

if TYPE_CHECKING:
    from sentinel.alerting.signed_links import LinkSigner

MAX_CONCURRENT_CHECKS = 32
"""How many checks run at once. Each may need one or two child processes."""

MAX_SECOND_LOOKS = 3
"""How many second looks one pass has. During the first wait, others may begin to need one."""

HEARING_TIMEOUT_S = 40.0
_LOG = logging.getLogger("sentinel")
Result = TypeVar("Result")
History = Sequence[tuple[Instant, float]]
HistoryReader = Callable[[str, str, float], History]


class Engine:
    """Owns the store (through one thread) and all work that is under way."""

    def __init__(
        self, world: RuntimeConfig, store: Store, clock: Clock, notices: Sequence[str] = ()
    ) -> None:
        self.world = world
        self.committed, self.troubled = asyncio.Event(), asyncio.Event()
        self._store, self._clock = store, clock
        self._db = threads.StoreThread("state")
        self._action_runner = ActionRunner(
            world.action_service, lambda: store.get_lease_left_s() > 0
        )
        self._self_check = SelfCheck(
            store, clock, self._db.call_async, self._action_runner, notices
        )
        self._runner, self._scripts = CheckRunner(), ScriptWatch()
        self._delivery = Delivery(
            store, world.channels, clock, self._db.call_async, self.committed.set
        )
        self._delivery.common = world.common
        self._external_events = ExternalEvents(store, clock, self._db.call_async)
        self._finished: list[RunOutcome] = []
        self._commits = asyncio.Lock()
        self._reads = asyncio.Lock()
        self._slots = asyncio.Semaphore(MAX_CONCURRENT_CHECKS)
        self._busy: set[str] = set()
        self._looking_again: set[str] = set()
        self.asked: dict[str, tuple[RunOutcome, float]] = {}
        """Checks whose report asks for a run that is left to `run_rechecks`, with when the first began."""
        self._at_work: set[str] = set()
        self._unseen: set[str] = set()
        self._keeping: asyncio.Future[None] | None = None
        self._started = False

    async def start_leading(self, holder: str) -> None:
        """Become the leader of the state and read it. Raises StoreBusy if another process leads."""
        await self._db.call_async(self._store.take_lead, holder, self._clock.now())
        if self._store.term and (self._keeping is None or self._keeping.done()):
            keeping = leader_election.keep_lease(
                self._store, self._db.call_async, self._store.term, self.troubled.set
            )
            self._keeping = asyncio.ensure_future(keeping)
            self._keeping.add_done_callback(lambda f: f.cancelled() or f.exception())
        self._pipeline = await self._db.call_async(
            Pipeline, self._store, self.world.plan, self._clock
        )
        self._started = True
        self._scripts.recall_scripts(
            await self._db.call_async(self._store.read_memory, SCRIPTS_KEY)
        )
        self._scripts.switch_sources(self.world.scripts)
        await self.take_over_alerts()
        await self._db.call_async(self._pipeline.replace_plan, self.world.plan)
        await self._delivery.recall_earlier_sends(lookback_s(self.world.plan.routes))
        await self._self_check.take_start_notices()

    async def take_over_alerts(self, handed: Handover | None = None) -> None:
        """See Pipeline.take_over_alerts."""
        if await self._db.call_async(self._pipeline.take_over_alerts, handed):
            self.committed.set()

    def expect_first_look(self, names: Iterable[str]) -> None:
        """Send the findings of these checks as one message, if the state is new."""
        if self._pipeline.new:
            self._pipeline.new, self._unseen = False, set(names)

    def mark_looked(self, name: str) -> None:
        """Note that the check has reported, or will not report."""
        self._at_work.discard(name)
        self._unseen.discard(name)

    async def wait_for_lost_lead(self) -> None:
        """Raise Fenced when this engine can no longer lead. Otherwise never return."""
        if self._keeping is not None:
            await asyncio.shield(self._keeping)

    async def switch_config(self, world: RuntimeConfig) -> None:
        """Continue with another configuration. A standby will begin with it."""
        gpus, self.world = self.world.gpus, world
        self._unseen.intersection_update(world.checks)
        self._delivery.channels, self._delivery.common = world.channels, world.common
        self._action_runner.switch_service(world.action_service)
        self._scripts.switch_sources(world.scripts)
        if gpus is not None and gpus is not world.gpus:
            await self._db.call_async(gpus.close)
        if self._started:
            await self._db.call_async(self._pipeline.replace_plan, world.plan)

    async def run_check(self, name: str, *, asked: bool = True) -> None:
        """Run a check once, commit the result, then carry out its requests. Does nothing while it
        runs. If a second run soon decides something, it is included. If not `asked`, a second run
        that only the report requests is left to `run_rechecks`."""
        began = time.monotonic()
        outcome = await self._run_and_commit(name)
        if name in self._looking_again:
            return
        self._looking_again.add(name)
        try:
            for _ in range(MAX_SECOND_LOOKS):
                wait = (
                    self._pipeline.get_second_look_wait(outcome, asked=asked) if outcome else None
                )
                if wait is None:
                    return
                await asyncio.sleep(wait)
                outcome = await self._run_and_commit(name, began)
        finally:
            self._looking_again.discard(name)
            if outcome and outcome.report and outcome.report.again and not asked:
                self.asked[name] = outcome, began

    async def run_rechecks(self, name: str, until: float) -> None:
        """Run the check again as its last report requests, if a run as long as the one before ends
        by `until` (of time.monotonic)."""
        outcome, began = self.asked.pop(name, (None, 0.0))
        for _ in range(MAX_SECOND_LOOKS):
            wait = self._pipeline.get_second_look_wait(outcome) if outcome else None
            if outcome is None or wait is None or time.monotonic() + wait + outcome.seconds > until:
                return
            await asyncio.sleep(wait)
            outcome = await self._run_and_commit(name, began)

    async def _run_and_commit(self, name: str, began: float | None = None) -> RunOutcome | None:
        """`began` is the start of the check's first run in this pass. None: this is the first."""
        config = self.world.checks.get(name)
        if config is None or name in self._busy:
            return None
        self._busy.add(name)
        self._at_work.add(name)
        try:
            async with self._slots:
                may_act = may_request_actions(config) and await self._action_runner.record_nodes()
                after = time.monotonic() - began if began is not None else 0.0
                outcome = replace(await self._run_or_blind(config, first=not after), after=after)
            self._finished.append(outcome)
            self._scripts.note_report(name, config.common.cluster, outcome.report)
            self.mark_looked(name)
            await self.commit_finished()
            if may_act:
                await self._perform_requests(config, outcome)
            return outcome
        finally:
            self._busy.discard(name)
            self.mark_looked(name)

    async def commit_finished(self) -> None:
        """Write all runs that have ended, in one transaction. Several callers share one."""
        async with self._commits:
            outcomes, self._finished = self._finished, []
            if not outcomes:
                return
            self._pipeline.pending_checks = self._get_pending_checks()
            batch = await self._db.call_async(self._pipeline.absorb_outcomes, outcomes)
        if batch.outbox:
            self.committed.set()

    async def deliver_due(self) -> float | None:
        """Send once. Returns the seconds until the next message is due, None if all are sent."""
        self.committed.clear()
        return await self._delivery.send_due()

    async def begin_delivery(self) -> float | None:
        """Like `deliver_due`, but without a wait. `committed` is set when a channel has ended."""
        self.committed.clear()
        return await self._delivery.begin_sending()

    async def retry_refused_messages(self) -> None:
        """See Delivery.retry_refused."""
        await self._delivery.retry_refused()

    async def end_delivery_waits(self) -> None:
        """See Delivery.end_waits."""
        await self._delivery.end_waits()

    async def drain_outbox(self, seconds: float) -> bool:
        """Send all that can be sent within the limit. Returns whether nothing is left."""
        return await self._delivery.drain_outbox(seconds)

    async def check_self(self) -> None:
        """Commit the findings about sentinel's own state and channels. `troubled` is set if they
        should not wait."""
        self.troubled.clear()
        seen = await self._self_check.check_self(self.world, self._delivery.trouble)
        self._finished.append(seen)
        await self.commit_finished()

    def note_package(self, trouble: str) -> None:
        """Store the text about another installed version, for the self-check. Empty: there is none."""
        self._self_check.package_trouble = trouble
        self.troubled.set()

    def note_unloaded(self, parts: Mapping[str, str]) -> None:
        """Store what cannot be imported, for the self-check; see RuntimeConfig."""
        for name, why in parts.items():
            _LOG.error("%s cannot be loaded: %s", name, visible(why))
        _LOG.info("all modules are loaded" if not parts else "all other modules are loaded")
        self.world = replace(self.world, unloaded=parts)
        self.troubled.set()

    async def prune_state(self) -> None:
        """Delete old rows, unless that was done within the last hour."""
        await self._self_check.prune_hourly(self.world)

    async def poll_cluster(self) -> None:
        """Store the state of Slurm's nodes and jobs for the web page and the metrics; see
        engine.cluster_snapshot."""
        sight, now = self.world.sight, self._clock.now()
        if sight is not None and not sight.busy:
            await self._store_aside(last_seen.NODES_KEY, lambda: sight.poll_nodes(now))

    async def read_scripts(self) -> None:
        """Read wishes in batch scripts whose turn has come; see engine.script_watch."""
        if not self._scripts.busy:
            await self._store_aside(SCRIPTS_KEY, self._scripts.read_scripts)

    async def _store_aside(self, key: str, work: Callable[[], Mapping[str, Any] | None]) -> None:
        """Work in a thread. What it returns is stored under this name with the next runs."""
        running = asyncio.wrap_future(threads.run_in_thread(key, work))
        with contextlib.suppress(asyncio.TimeoutError):
            seen = await asyncio.wait_for(running, HEARING_TIMEOUT_S)
            if seen is not None:
                self._pipeline.pending_memory[key] = seen

    @property
    def is_state_failing(self) -> bool:
        """Whether the state cannot be written just now."""
        return self._store.trouble is not None

    @property
    def commits(self) -> int:
        """A number that grows whenever something is written."""
        return self._pipeline.commits

    async def read(self, reading: Callable[[Store], Result]) -> Result:
        """Read from the state, in the state's own thread. One at a time: whoever opens pages without
        end puts no more than one reading before what checks write and channels send."""
        async with self._reads:
            return await self._db.call_async(reading, self._store)

    async def review_alerts(self) -> None:
        """Commit messages that are due without a new observation: repeats, and alerts whose silence
        has ended."""
        async with self._commits:
            self._pipeline.pending_checks = self._get_pending_checks()
            batch = await self._db.call_async(self._pipeline.review_alerts)
        if batch.outbox:
            self.committed.set()

    async def report_week(self) -> None:
        """Commit the weekly report of trainings, if it is due."""
        async with self._commits:
            is_written = await self._db.call_async(self._pipeline.report_week)
        if is_written:
            self.committed.set()

    async def poll_external_events(self) -> None:
        """Read external events: maintenance in Slurm, and acknowledgements given elsewhere."""
        world = self.world
        whose = world.plan.cluster if world.clusters else ""
        work = self._external_events.poll_events(
            world.calendar, world.channels, await self.alerts(), whose
        )
        with contextlib.suppress(asyncio.TimeoutError):
            if await asyncio.wait_for(work, HEARING_TIMEOUT_S):
                await self.review_alerts()

    def set_link_signer(self, signer: LinkSigner) -> None:
        """From now on, messages to people contain links for their answers."""
        self._delivery.signer = signer

    async def orders(self) -> Orders:
        """The orders that people have given."""
        return await self._db.call_async(self._store.read_orders)

    async def order(self, order: Ack | Silence) -> None:
        """Store a person's order, and notify the people whom it concerns."""
        if isinstance(order, Ack):
            await self._db.call_async(self._store.put_ack, order)
        else:
            await self._db.call_async(self._store.put_silence, order)
        await self.review_alerts()

    async def send_heartbeat(self) -> None:
        """Tell the dead man's switch, if there is one, whether all checks run and see."""
        if self.world.pulse is not None and self._store.get_lease_left_s() > 0:
            now = self._clock.now()
            await heartbeat.send_heartbeat(
                self.world.pulse, await self.read_runs(), self.world.checks, now
            )

    async def announce_start(self) -> None:
        """Tell the dead man's switch, if there is one, that the service or the pass begins."""
        if self.world.pulse is not None:
            await heartbeat.send_start_signal(self.world.pulse)

    async def read_runs(self) -> list[CheckRun]:
        """The last run of every check."""
        return await self._db.call_async(self._store.read_runs)

    async def alerts(self) -> list[Alert]:
        """Pending and firing alerts."""
        return self._pipeline.active_alerts

    def stop_acting(self) -> None:
        """Start no action for any check from now on. Actions under way are finished."""
        self._action_runner.stop_new_actions()

    async def close(self) -> None:
        """Stop leading. Threads that hang are left behind as daemon threads."""
        self.stop_acting()
        if self._keeping is not None:
            self._keeping.cancel()
        closed = self._db.call_async(close_stores, self._store, self.world.gpus)
        await wait_or_warn(closed, "the state was not closed in order")
        await wait_or_warn(
            self._action_runner.finish_actions(),
            "an action was cut short; the next start looks at it",
        )
        self._db.stop_thread()

    def _get_pending_checks(self) -> PendingChecks:
        checks = self.world.checks
        at_work = {name: checks[name].common.kind for name in self._at_work if name in checks}
        return PendingChecks(checks=at_work, first=bool(self._unseen), set_up=self._pipeline.set_up)

    async def _perform_requests(self, config: CheckConfig, outcome: RunOutcome) -> None:
        """Act only upon committed requests: a sentinel that does not lead cannot commit, so it does
        not get here. Do nothing without the lease, or if the check's configuration has changed."""
        if self.world.checks.get(config.name) != config or self._store.get_lease_left_s() <= 0:
            return
        await self._self_check.take_new_notices()
        requests = outcome.report.requests if outcome.report else ()
        done = await self._action_runner.run_actions(config, requests)
        if done is None:
            return
        batch = await self._db.call_async(self._pipeline.announce_actions, done)
        if batch.outbox:
            self.committed.set()

    async def _run_or_blind(self, config: CheckConfig, *, first: bool) -> RunOutcome:
        """Run the check. If it cannot be started (no thread is left), the run saw nothing."""
        try:
            return await self._run_in_thread(config, first=first)
        except Fenced:
            raise
        except Exception as error:
            _LOG.exception("check %s: its run could not be started", config.name)
            why = f"internal error: its run could not be started: {error!r}"
            return make_outcome(config, None, why, 0.0)

    async def _run_in_thread(self, config: CheckConfig, *, first: bool) -> RunOutcome:
        world, cluster = self.world, config.common.cluster
        # Nodes, actions and GPUs are stored by name only: they are those of the local cluster.
        ctx = Context(
            name=config.name,
            now=self._clock.now(),
            limit=config.timeout_s,
            slurm=world.clusters[cluster] if cluster else world.slurm,
            memory=await self._db.call_async(self._store.read_memory, config.name),
            history=self._make_history_reader(config.name),
            remote=None if cluster else world.remote,
            logbook=world.action_service.audit_log
            if world.action_service and not cluster
            else None,
            gpus=None if cluster else world.gpus,
            due=first and is_scheduled_run(config, self._clock.now(), world.zone),
            told=self._pipeline.get_last_notified(config.name),
            for_=config.common.for_,
            every=None if config.common.cron else get_interval_s(config),
            zone=world.zone,
        )
        work = threads.run_in_thread(f"run {config.name}", lambda: self._runner.run(config, ctx))
        outcome = await asyncio.wrap_future(work)
        pulse_log.write_pulse_line(config, outcome, ctx.now)
        return outcome

    def _make_history_reader(self, check: str) -> HistoryReader:
        def read_recent_samples(subject: str, name: str, seconds: float) -> History:
            since = self._clock.now().wall - int(seconds * SECOND)
            try:
                return self._db.call_and_wait(
                    STATE_TIMEOUT_S, self._store.read_samples, check, subject, name, since
                )
            except (StoreError, TimeoutError) as error:
                why = str(error) or f"no answer within {STATE_TIMEOUT_S:.0f}s"
                raise CannotTell(f"its history cannot be read: {why}") from error

        return read_recent_samples
