"""The one way in which sentinel changes anything: judge, write down, look again, do, look again.

Checks of the service and people's commands come through here alike. Each step can be the last
one before a crash: the log then says intended or unknown, and nothing more is done to that
target until somebody has read it again.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sentinel.actions import overtaken
from sentinel.actions.audit_log import (
    fingerprint,
    ineffective,
    judged,
    opened,
    request_of,
    said_before,
    tidy,
)
from sentinel.actions.cluster_view import Scene, survey
from sentinel.actions.guard import Case, crowded, judge
from sentinel.actions.marks import InUse, NotMarked, mark_of, marked, put, take_off
from sentinel.core.action_limits import ActionSettings, GuardSettings, Limits
from sentinel.core.actions import (
    ActionRecord,
    Answer,
    Decision,
    Look,
    Outcome,
    Past,
    Reply,
    Situation,
    bounded,
)
from sentinel.core.clock import Instant, elapsed
from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.kinds import Action
from sentinel.core.model import ActionRequest
from sentinel.core.ports import Books, Clock, Hands
from sentinel.core.values import duration_text

IN_FLIGHT = 120.0
"""Seconds from intent to change, at most: whoever was stopped for longer gives up."""

FRESH = 5.0
"""Seconds for the last look, at most: what a slow slurmctld or a process that was stopped for a
while saw may be old, and a person's change of the target since would be unseen."""

SETTLED = 600.0
"""Seconds after which a change that timed out can no longer happen: twice the life of the munge
credential that it carries (munge(7): 300 s)."""


class Rules(Struct, frozen=True, kw_only=True):
    """What the configuration allows. `kinds` are the loaded actions by name."""

    kinds: Mapping[str, Action]
    actions: Mapping[str, ActionSettings] = {}
    guard: GuardSettings = GuardSettings()


class NoSuchAction(SentinelError):
    """A check asks for a kind of action that is not installed."""


class Asker(Struct, frozen=True, kw_only=True):
    """Who wants it. A person's command and a check whose own settings switch the action on
    (`consent`) need no `enabled`; `limits` are the check's own; `forced` sets caps aside."""

    name: str
    consent: bool = False
    limits: Limits | None = None
    forced: bool = False
    by_hand: bool = False


class Actor:
    """Carries requests out. Not for several threads; several processes may each have one."""

    def __init__(
        self, rules: Rules, books: Books, hands: Hands, clock: Clock, *, dry_run: bool = False
    ) -> None:
        self._rules, self._books, self._hands, self._clock = rules, books, hands, clock
        self._dry_run = dry_run
        self._imagined: list[ActionRecord] = []

    def survey(self) -> Scene:
        """Slurm as requests are judged by; one look serves several until something was changed."""
        return survey(self._hands)

    def act(self, request: ActionRequest, asker: Asker, scene: Scene | None = None) -> ActionRecord:
        """What became of it. A dry run's record is `intended` where a real one would act.

        Raises StoreError: what cannot be written down is not done.
        """
        request = replace(request, reason=tidy(request.reason))
        kind = self._kind(request)
        # What has nothing to do with Slurm is neither held up by its illness nor waits for it.
        if kind.returns:
            scene = self._fresh()
        scene = Scene({}, {}) if kind.apart else scene or self.survey()
        look = Look(text="not seen") if scene.unwell else self._first_look(kind, request, scene)
        record = self._draft(kind, request, asker, look)
        if look.unneeded:
            return replace(record, outcome=Outcome.UNNEEDED, detail=look.unneeded)
        situation = self._situation(request, asker, scene, look)
        record = self._intend(record, request, asker, situation)
        if self._dry_run or not record.outcome.open:
            return record
        if not (kind.returns and self._rules.guard.mark) or asker.forced:
            return self._carry_out(kind, request, record, look)
        return self._marked(kind, request, record, look, situation, asker)

    def resolve(self, targets: Sequence[str] | None = None) -> list[ActionRecord]:
        """Read again what is open (None: all of it); returns what is known now.

        To be called at every start and before requests about the same targets.
        """
        mine = [r for r in self._books.unresolved() if targets is None or r.target in targets]
        return [done for record in mine if (done := self._resolve(record))]

    # Counting with others

    def _fresh(self) -> Scene:
        """Slurm as it is at this moment: others may return nodes too, and they count."""
        now = self._clock.now()
        scene = survey(self._hands, after=now)
        if scene.by_name and not self._dry_run:
            self._books.observe(list(scene.by_name.values()), now)
        return scene

    def _marked(
        self,
        kind: Action,
        request: ActionRequest,
        record: ActionRecord,
        look: Look,
        situation: Situation,
        asker: Asker,
    ) -> ActionRecord:
        """Mark the node, look again, and go on if all that are marked by now leave room."""
        mark = mark_of(record.id, self._clock.now())
        try:
            put(self._hands, record.target, mark)
        except InUse as error:
            mark, situation = f"none: {error}", replace(situation, waits=not asker.by_hand)
        except NotMarked as error:
            return self._conclude(record, Outcome.WITHDRAWN, str(error))
        record = replace(record, evidence=bounded({"mark": mark, **record.evidence}))
        objection = self._room_left(request, record, situation, asker)
        done = (
            self._conclude(record, Outcome.WITHDRAWN, objection)
            if objection
            else self._carry_out(kind, request, record, look)
        )
        if done.outcome is Outcome.WITHDRAWN:
            take_off(self._hands, record.target, mark)
        return done

    def _room_left(
        self, request: ActionRequest, record: ActionRecord, situation: Situation, asker: Asker
    ) -> str:
        """Why the caps leave no room any more; the request's own record is not counted."""
        scene = self._fresh()
        if scene.unwell:
            return f"it was marked, and then Slurm was unwell: {scene.unwell}"
        now, past = self._clock.now(), self._books.past(record.target)
        past = replace(past, records=tuple(r for r in past.records if r.id != record.id))
        situation = replace(situation, marked=marked(scene.by_name.values(), now))
        limits = asker.limits or self._limits(request.action)
        return crowded(Case(request, past, limits, situation, now))

    # Deciding

    def _first_look(self, kind: Action, request: ActionRequest, scene: Scene) -> Look:
        """Nodes are in the survey; whatever else is asked for anew."""
        if not kind.asks_anew:
            return kind.look(request, scene)
        try:
            return kind.look(request, self._hands)
        except CannotTell as error:
            return Look(text="not seen", not_ready=f"it cannot be seen: {error}")

    def _situation(
        self, request: ActionRequest, asker: Asker, scene: Scene, look: Look
    ) -> Situation:
        settings = self._rules.actions.get(request.action, ActionSettings())
        node = scene.node(request.target)
        return Situation(
            enabled=asker.consent or settings.enabled,
            nodes=len(scene.by_name),
            partitions={p: scene.members[p] for p in (node.partitions if node else ())},
            unwell=scene.unwell,
            not_ready=look.not_ready,
            maintenance=self._rules.guard.maintenance,
            forced=asker.forced,
            breaker=self._rules.guard.breaker,
            returning=frozenset(n for n, kind in self._rules.kinds.items() if kind.returns),
            marked=marked(scene.by_name.values(), self._clock.now()),
            waits=not (self._rules.guard.mark or asker.by_hand),
        )

    def _intend(
        self, record: ActionRecord, request: ActionRequest, asker: Asker, situation: Situation
    ) -> ActionRecord:
        limits = asker.limits or self._limits(request.action)

        def decide(past: Past) -> Decision:
            now = self._clock.now()
            past = replace(past, records=(*past.records, *self._imagined))
            verdict = judge(request, past, limits, situation, now)
            told = judged(replace(record, at=now), verdict)
            switch = None if asker.by_hand else opened(situation, past, now)
            return Decision(record=told, write=not said_before(told, past), breaker=switch)

        if not self._dry_run:
            return self._books.intend(record.target, decide).record
        told = decide(self._books.past(record.target)).record
        self._imagined += [replace(told, outcome=Outcome.DONE)] if told.outcome.open else []
        return told

    def _kind(self, request: ActionRequest) -> Action:
        kind = self._rules.kinds.get(request.action)
        if kind is None:
            known = ", ".join(sorted(self._rules.kinds))
            raise NoSuchAction(f"there is no action {request.action!r}; known: {known}")
        return kind

    def _limits(self, action: str) -> Limits:
        configured = self._rules.actions.get(action, ActionSettings()).limits
        return configured or self._rules.kinds[action].limits

    def _draft(
        self, kind: Action, request: ActionRequest, asker: Asker, look: Look
    ) -> ActionRecord:
        return ActionRecord(
            id=os.urandom(6).hex(),
            action=request.action,
            target=request.target,
            reason=request.reason,
            by=asker.name,
            at=self._clock.now(),
            outcome=Outcome.INTENDED,
            params=bounded(request.params),
            evidence=bounded({"seen": look.text, **request.evidence}),
            commands=kind.commands(request),
            forced=asker.forced,
            subject=request.subject,
            mark=fingerprint(look),
            log=overtaken.log_end(self._hands) if kind.replaces_reason else "",
        )

    # Doing

    def _carry_out(
        self, kind: Action, request: ActionRequest, record: ActionRecord, proof: Look
    ) -> ActionRecord:
        begun, objection = self._clock.now(), "others took it for given up"
        if self._still_intended(record):
            begun, objection = self._clock.now(), self._verify(kind, request, record, proof)
        if objection:
            return self._conclude(record, Outcome.WITHDRAWN, objection)
        reply = self._send(kind, record)
        seconds = elapsed(begun, self._clock.now())
        outcome, detail = self._confirm(kind, request, record, reply)
        if reply.answer is Answer.REFUSED:
            return self._conclude(record, outcome, detail)
        return self._close(kind, record, outcome, detail, seconds)

    def _verify(
        self, kind: Action, request: ActionRequest, record: ActionRecord, proof: Look
    ) -> str:
        """Why it must not be done after all. Slurm has no compare-and-set, so this look is the last
        thing before the change."""
        begun = self._clock.now()
        try:
            look = kind.look(request, self._hands)
        except CannotTell as error:
            return f"it could not be read again: {error}"
        if look.unneeded or look.not_ready:
            return f"meanwhile {look.unneeded or look.not_ready}"
        if look.mark != proof.mark:
            return f"it changed meanwhile: was {proof.text}; is {look.text}"
        now = self._clock.now()
        if elapsed(record.at, now) >= IN_FLIGHT:
            return "this process was held up, and others may have acted"
        if kind.replaces_reason and elapsed(begun, now) > FRESH:
            slow = duration_text(elapsed(begun, now))
            return f"the last look was held up for {slow}, and others may have acted"
        return ""

    def _close(
        self,
        kind: Action,
        record: ActionRecord,
        outcome: Outcome,
        detail: str,
        seconds: float | None,
    ) -> ActionRecord:
        """Conclude, and where the node's reason was replaced look whether it was the one seen."""
        if not kind.replaces_reason:
            return self._conclude(record, outcome, detail)
        window = overtaken.window(kind, record, self._hands, seconds)
        if window.erased:
            record, mended = overtaken.mend(kind, record, window.erased, self._hands)
            outcome, detail = Outcome.UNCLEAR, mended
        if not outcome.open:
            told = bounded({overtaken.WINDOW: window.text, **record.evidence})
            record = replace(record, evidence=told)
        return self._conclude(record, outcome, detail)

    def _still_intended(self, record: ActionRecord) -> bool:
        ids = {r.id for r in self._books.unresolved() if r.outcome is Outcome.INTENDED}
        return record.id in ids and elapsed(record.at, self._clock.now()) < IN_FLIGHT

    def _send(self, kind: Action, record: ActionRecord) -> Reply:
        done = kind.perform(request_of(record), self._hands)
        if done is not None:
            return done
        reply = Reply(Answer.ACCEPTED)
        for command in record.commands:
            reply = self._hands.change(command)
            if reply.answer is not Answer.ACCEPTED:
                break
        return reply

    def _confirm(
        self, kind: Action, request: ActionRequest, record: ActionRecord, reply: Reply
    ) -> tuple[Outcome, str]:
        try:
            look = kind.look(request, self._hands)
        except CannotTell as error:
            said = reply.text or "Slurm accepted it"
            return Outcome.UNKNOWN, f"{said}; it could not be read afterwards: {error}"
        ended_by_itself = reply.answer is Answer.REFUSED and kind.asks_anew
        if look.done and not ended_by_itself:
            return Outcome.DONE, "; ".join(filter(None, [f"now {look.text}", reply.text]))
        if reply.answer is Answer.ACCEPTED and kind.leaves_no_trace:
            return Outcome.DONE, reply.text or f"now {look.text}"
        if reply.answer is Answer.REFUSED:
            return Outcome.ERROR, reply.text
        if reply.answer is Answer.UNSURE:
            return Outcome.UNKNOWN, f"{reply.text}; still {look.text}, it may happen later"
        return ineffective(record, look), f"Slurm accepted it, and yet it is {look.text}"

    def _conclude(self, record: ActionRecord, outcome: Outcome, detail: str) -> ActionRecord:
        ended = None if outcome.open else self._clock.now()
        ended_record = replace(record, outcome=outcome, detail=detail, ended=ended)
        self._books.conclude(ended_record)
        return ended_record

    # Finding out

    def _resolve(self, record: ActionRecord) -> ActionRecord | None:
        now = self._clock.now()
        kind = self._rules.kinds.get(record.action)
        fresh = record.outcome is Outcome.INTENDED and elapsed(record.at, now) < IN_FLIGHT
        if fresh:
            return None  # somebody may be at it
        if kind is None:
            gone = f"not seen: no action {record.action} is installed"
            return self._wait_on(record, Look(text=gone, mark=gone), now)
        try:
            look = kind.look(request_of(record), self._hands)
        except CannotTell as error:
            return self._conclude(record, Outcome.UNKNOWN, f"it could not be read: {error}")
        if look.done:
            return self._close(kind, record, Outcome.DONE, f"when read again: {look.text}", None)
        return self._wait_on(record, look, now)

    def _wait_on(self, record: ActionRecord, look: Look, now: Instant) -> ActionRecord:
        """Until nothing can come any more, by a clock that did not jump: that of one boot."""
        mine = [i for i in (record.at, *record.checked) if i.boot == now.boot]
        if not mine:
            record, mine = replace(record, checked=(*record.checked, now)), [now]
        age = max(elapsed(i, now) for i in mine)
        if age < SETTLED:
            return self._conclude(record, Outcome.UNKNOWN, f"not yet: {look.text}")
        passed = f"after {duration_text(age)} it is {look.text}"
        return self._conclude(record, ineffective(record, look), passed)
