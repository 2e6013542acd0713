"""The only way in which sentinel changes anything: judge, record, look again, act, look again.

Requests of checks and people's commands both come through here. After a crash at any step, the log
has the outcome intended or unknown, and nothing more is done to that target until somebody has
looked at it again.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from msgspec.structs import replace

from sentinel.actions import change_window
from sentinel.actions.action_rules import ActionRequester, ActionRules
from sentinel.actions.audit_log import (
    apply_verdict,
    get_ineffective_outcome,
    is_repeated_refusal,
    make_breaker_switch,
    make_fingerprint,
    normalize_reason,
    rebuild_request,
)
from sentinel.actions.cluster_view import ClusterView, make_cluster_view
from sentinel.actions.guard import GuardCase, explain_full_caps, judge_request
from sentinel.actions.marks import (
    CommentInUseError,
    NotMarkedError,
    find_marked_nodes,
    make_mark,
    remove_mark,
    write_mark,
)
from sentinel.core.action_limits import ActionSettings
from sentinel.core.actions import (
    ActionHistory,
    ActionOutcome,
    ActionRecord,
    Answer,
    GuardDecision,
    Look,
    Reply,
    Situation,
    limit_evidence,
)
from sentinel.core.clock import Instant, get_elapsed_s
from sentinel.core.errors import CannotAsk, CannotTell
from sentinel.core.kinds import Action
from sentinel.core.model import ActionRequest
from sentinel.core.ports import AuditLog, Clock, Hands
from sentinel.core.values import duration_text

MAX_IN_FLIGHT_S = 120.0
"""The longest time in seconds from the intent to the change. A process that was stopped for longer
gives up."""

MAX_LAST_LOOK_S = 5.0
"""Seconds for the last look before the change. If it takes longer, because slurmctld is slow or
this process was stopped, a person may have changed the target since."""

SETTLED_AFTER_S = 600.0
"""Seconds after which a change that timed out can no longer happen: twice the life of its munge
credential (munge(7): 300 s)."""


class ActionExecutor:
    """Carries out requests. It is not for several threads. Several processes may each have one."""

    def __init__(
        self,
        rules: ActionRules,
        audit_log: AuditLog,
        hands: Hands,
        clock: Clock,
        *,
        dry_run: bool = False,
    ) -> None:
        self._rules, self._audit_log, self._hands, self._clock = rules, audit_log, hands, clock
        self._dry_run = dry_run
        self._imagined: list[ActionRecord] = []

    def survey_cluster(self) -> ClusterView:
        """The state of Slurm for several requests, until something was changed."""
        return make_cluster_view(self._hands)

    def execute_request(
        self, request: ActionRequest, asker: ActionRequester, scene: ClusterView | None = None
    ) -> ActionRecord:
        """Carry out a request and return its record. In a dry run it is `intended` if it would be
        done. Raises StoreError. An action that cannot be recorded is not done."""
        request = replace(request, reason=normalize_reason(request.reason))
        kind = self._rules.get_kind(request.action)
        # Actions without Slurm need not wait while Slurm does not answer.
        if kind.returns:
            scene = self._survey_afresh()
        scene = ClusterView({}, {}) if kind.apart else scene or self.survey_cluster()
        look = (
            Look(text="not seen") if scene.unwell else self._take_first_look(kind, request, scene)
        )
        record = self._draft_record(kind, request, asker, look)
        if look.unneeded:
            return replace(record, outcome=ActionOutcome.UNNEEDED, detail=look.unneeded)
        situation = self._describe_situation(request, asker, scene, look)
        record = self._intend_action(record, request, asker, situation)
        if self._dry_run or not record.outcome.is_open:
            return record
        if not (kind.returns and self._rules.guard.mark) or asker.forced:
            return self._carry_out(kind, request, record, look)
        return self._mark_and_carry_out(kind, request, record, look, situation, asker)

    def resolve_open_records(self, targets: Sequence[str] | None = None) -> list[ActionRecord]:
        """Check open records again (None: all of them), and return their present outcome.

        It must be called at each start, and before requests about the same targets.
        """
        mine = [
            r for r in self._audit_log.read_unresolved() if targets is None or r.target in targets
        ]
        return [done for record in mine if (done := self._resolve_record(record))]

    # Count together with other processes

    def _survey_afresh(self) -> ClusterView:
        """The state of Slurm at this moment. Others may return nodes to service too, and they
        count."""
        now = self._clock.now()
        scene = make_cluster_view(self._hands, after=now)
        if scene.by_name and not self._dry_run:
            self._audit_log.record_readings(list(scene.by_name.values()), now)
        return scene

    def _mark_and_carry_out(
        self,
        kind: Action,
        request: ActionRequest,
        record: ActionRecord,
        look: Look,
        situation: Situation,
        asker: ActionRequester,
    ) -> ActionRecord:
        """Mark the node, look again, and act if all nodes marked by now leave room."""
        mark = make_mark(record.id, self._clock.now())
        try:
            write_mark(self._hands, record.target, mark)
        except CommentInUseError as error:
            mark, situation = f"none: {error}", replace(situation, waits=not asker.by_hand)
        except NotMarkedError as error:
            return self._conclude_record(record, ActionOutcome.WITHDRAWN, str(error))
        record = replace(record, evidence=limit_evidence({"mark": mark, **record.evidence}))
        objection = self._explain_no_room_left(request, record, situation, asker)
        done = (
            self._conclude_record(record, ActionOutcome.WITHDRAWN, objection)
            if objection
            else self._carry_out(kind, request, record, look)
        )
        if done.outcome is ActionOutcome.WITHDRAWN:
            remove_mark(self._hands, record.target, mark)
        return done

    def _explain_no_room_left(
        self,
        request: ActionRequest,
        record: ActionRecord,
        situation: Situation,
        asker: ActionRequester,
    ) -> str:
        """Why the caps leave no room. The request's own record does not count. Empty if they do."""
        scene = self._survey_afresh()
        if scene.unwell:
            return f"it was marked, and then Slurm had trouble: {scene.unwell}"
        now, past = self._clock.now(), self._audit_log.read_past_actions(record.target)
        past = replace(past, records=tuple(r for r in past.records if r.id != record.id))
        situation = replace(situation, marked=find_marked_nodes(scene.by_name.values(), now))
        limits = asker.limits or self._rules.get_limits(request.action)
        return explain_full_caps(GuardCase(request, past, limits, situation, now))

    # Decide

    def _take_first_look(self, kind: Action, request: ActionRequest, scene: ClusterView) -> Look:
        """The first observation. Nodes are in the survey, other targets are asked for."""
        if not kind.asks_anew:
            return kind.look(request, scene)
        try:
            return kind.look(request, self._hands)
        except CannotTell as error:
            return Look(text="not seen", not_ready=f"it cannot be seen: {error}")

    def _describe_situation(
        self, request: ActionRequest, asker: ActionRequester, scene: ClusterView, look: Look
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
            marked=find_marked_nodes(scene.by_name.values(), self._clock.now()),
            waits=not (self._rules.guard.mark or asker.by_hand),
            shared=os.geteuid() == 0 and not asker.by_hand,
        )

    def _intend_action(
        self,
        record: ActionRecord,
        request: ActionRequest,
        asker: ActionRequester,
        situation: Situation,
    ) -> ActionRecord:
        limits = asker.limits or self._rules.get_limits(request.action)

        def decide_request(past: ActionHistory) -> GuardDecision:
            now = self._clock.now()
            past = replace(past, records=(*past.records, *self._imagined))
            verdict = judge_request(request, past, limits, situation, now)
            told = apply_verdict(replace(record, at=now), verdict)
            switch = None if asker.by_hand else make_breaker_switch(situation, past, now)
            return GuardDecision(
                record=told, write=not is_repeated_refusal(told, past), breaker=switch
            )

        if not self._dry_run:
            return self._audit_log.record_intent(record.target, decide_request).record
        told = decide_request(self._audit_log.read_past_actions(record.target)).record
        self._imagined += (
            [replace(told, outcome=ActionOutcome.DONE)] if told.outcome.is_open else []
        )
        return told

    def _draft_record(
        self, kind: Action, request: ActionRequest, asker: ActionRequester, look: Look
    ) -> ActionRecord:
        return ActionRecord(
            id=os.urandom(6).hex(),
            action=request.action,
            target=request.target,
            reason=request.reason,
            by=asker.name,
            at=self._clock.now(),
            outcome=ActionOutcome.INTENDED,
            params=limit_evidence(request.params),
            evidence=limit_evidence({"seen": look.text, **request.evidence}),
            commands=kind.commands(request),
            forced=asker.forced,
            subject=request.subject,
            mark=make_fingerprint(look),
            log=change_window.find_log_end(self._hands) if kind.replaces_reason else "",
        )

    # Act

    def _carry_out(
        self, kind: Action, request: ActionRequest, record: ActionRecord, proof: Look
    ) -> ActionRecord:
        begun, objection = self._clock.now(), "another process had counted it as given up"
        if self._is_still_intended(record):
            begun, objection = (
                self._clock.now(),
                self._explain_changed_target(kind, request, record, proof),
            )
        if objection:
            return self._conclude_record(record, ActionOutcome.WITHDRAWN, objection)
        try:
            reply = self._send_commands(kind, record)
        except CannotAsk as error:
            return self._conclude_record(record, ActionOutcome.WITHDRAWN, f"not begun: {error}")
        seconds = get_elapsed_s(begun, self._clock.now())
        outcome, detail = self._confirm_outcome(kind, request, record, reply)
        if reply.answer is Answer.REFUSED:
            return self._conclude_record(record, outcome, detail)
        return self._close_record(kind, record, outcome, detail, seconds)

    def _explain_changed_target(
        self, kind: Action, request: ActionRequest, record: ActionRecord, proof: Look
    ) -> str:
        """Why the action must not be done after all. Slurm has no compare-and-set, so this look is
        the last step before the change."""
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
        if get_elapsed_s(record.at, now) >= MAX_IN_FLIGHT_S:
            return "this process was held up, and others may have acted"
        if kind.replaces_reason and get_elapsed_s(begun, now) > MAX_LAST_LOOK_S:
            slow = duration_text(get_elapsed_s(begun, now))
            return f"the last look was held up for {slow}, and others may have acted"
        return ""

    def _close_record(
        self,
        kind: Action,
        record: ActionRecord,
        outcome: ActionOutcome,
        detail: str,
        seconds: float | None,
    ) -> ActionRecord:
        """Conclude the record, after a check whether the replaced reason was the one seen."""
        if not kind.replaces_reason:
            return self._conclude_record(record, outcome, detail)
        window = change_window.inspect_change_window(kind, record, self._hands, seconds)
        if window.erased:
            record, mended = change_window.drain_again(kind, record, window.erased, self._hands)
            outcome, detail = ActionOutcome.UNCLEAR, mended
        if not outcome.is_open:
            told = limit_evidence(
                {change_window.WINDOW_EVIDENCE_KEY: window.text, **record.evidence}
            )
            record = replace(record, evidence=told)
        return self._conclude_record(record, outcome, detail)

    def _is_still_intended(self, record: ActionRecord) -> bool:
        ids = {
            r.id for r in self._audit_log.read_unresolved() if r.outcome is ActionOutcome.INTENDED
        }
        return record.id in ids and get_elapsed_s(record.at, self._clock.now()) < MAX_IN_FLIGHT_S

    def _send_commands(self, kind: Action, record: ActionRecord) -> Reply:
        done = kind.perform(rebuild_request(record), self._hands)
        if done is not None:
            return done
        reply = Reply(Answer.ACCEPTED)
        for command in record.commands:
            reply = self._hands.change(command)
            if reply.answer is not Answer.ACCEPTED:
                break
        return reply

    def _confirm_outcome(
        self, kind: Action, request: ActionRequest, record: ActionRecord, reply: Reply
    ) -> tuple[ActionOutcome, str]:
        ended_by_itself = reply.answer is Answer.REFUSED and kind.asks_anew
        try:
            look = kind.look(request, self._hands)
        except CannotTell as error:
            said = reply.text or "Slurm accepted it"
            outcome = ActionOutcome.ERROR if ended_by_itself else ActionOutcome.UNKNOWN
            return outcome, f"{said}; it could not be read afterwards: {error}"
        if look.done and not ended_by_itself:
            return ActionOutcome.DONE, "; ".join(filter(None, [f"now {look.text}", reply.text]))
        if reply.answer is Answer.ACCEPTED and kind.leaves_no_trace:
            return ActionOutcome.DONE, reply.text or f"now {look.text}"
        if reply.answer is Answer.REFUSED:
            return ActionOutcome.ERROR, reply.text
        if reply.answer is Answer.UNSURE:
            return ActionOutcome.UNKNOWN, f"{reply.text}; still {look.text}, it may happen later"
        return get_ineffective_outcome(
            record, look
        ), f"Slurm accepted it, and yet it is {look.text}"

    def _conclude_record(
        self, record: ActionRecord, outcome: ActionOutcome, detail: str
    ) -> ActionRecord:
        ended = None if outcome.is_open else self._clock.now()
        ended_record = replace(record, outcome=outcome, detail=detail, ended=ended)
        self._audit_log.record_outcome(ended_record)
        return ended_record

    # Find out the outcome

    def _resolve_record(self, record: ActionRecord) -> ActionRecord | None:
        now = self._clock.now()
        kind = self._rules.kinds.get(record.action)
        fresh = (
            record.outcome is ActionOutcome.INTENDED
            and get_elapsed_s(record.at, now) < MAX_IN_FLIGHT_S
        )
        if fresh:
            return None  # another process may be doing it now
        if kind is None:
            gone = f"not seen: no action {record.action} is installed"
            return self._wait_or_conclude(record, Look(text=gone, mark=gone), now)
        try:
            look = kind.look(rebuild_request(record), self._hands)
        except CannotTell as error:
            return self._conclude_record(
                record, ActionOutcome.UNKNOWN, f"it could not be read: {error}"
            )
        if look.done:
            return self._close_record(
                kind, record, ActionOutcome.DONE, f"when read again: {look.text}", None
            )
        return self._wait_or_conclude(record, look, now)

    def _wait_or_conclude(self, record: ActionRecord, look: Look, now: Instant) -> ActionRecord:
        """Conclude the record if the change can no longer happen, by the clock of one boot."""
        mine = [i for i in (record.at, *record.checked) if i.boot == now.boot]
        if not mine:
            record, mine = replace(record, checked=(*record.checked, now)), [now]
        age = max(get_elapsed_s(i, now) for i in mine)
        if age < SETTLED_AFTER_S:
            return self._conclude_record(record, ActionOutcome.UNKNOWN, f"not yet: {look.text}")
        passed = f"after {duration_text(age)} it is {look.text}"
        return self._conclude_record(record, get_ineffective_outcome(record, look), passed)
