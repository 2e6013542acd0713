"""Finds out whether somebody drained a node between the last look and the change. Slurm has no
compare-and-set. slurmctld's log shows it afterwards, and then the node is drained again."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from sentinel.actions.audit_log import rebuild_request
from sentinel.core.actions import ActionRecord, Answer
from sentinel.core.cluster import ControllerLogEntry
from sentinel.core.errors import CannotTell
from sentinel.core.guidance import quote_command
from sentinel.core.kinds import Action
from sentinel.core.ports import Hands
from sentinel.core.text import shortened, visible
from sentinel.core.values import duration_text
from sentinel.slurm.node_states import describe_node, tag_reason
from sentinel.slurm.slurmctld_log import entry_author, erased_reasons

WINDOW_EVIDENCE_KEY = "window"
"""The item of a record's evidence that says whether the window was watched, and how long it was."""
UNKNOWN_AUTHOR_TEXT = "author not known"
MAX_REASON_CHARS = 150
MAX_REDRAIN_ROUNDS = 3
"""How often a node is drained again, if that replaces the reason of another person again."""


class ChangeWindow(Struct, frozen=True, kw_only=True):
    """What happened on the node between the last observation and the change."""

    text: str  # Words for the log.
    erased: tuple[ControllerLogEntry, ...] = ()  # Reasons that the change has erased.


def find_log_end(hands: Hands) -> str:
    """The end of slurmctld's log. Empty if it cannot be read."""
    try:
        return hands.log_end()
    except CannotTell:
        return ""


def inspect_change_window(
    kind: Action, record: ActionRecord, hands: Hands, seconds: float | None
) -> ChangeWindow:
    """Whether anybody drained the node between the last look and the change. If `seconds` is None,
    the length of that time is not known.

    The log counts as read only if it shows our own change.
    """
    long = "nobody knows how long" if seconds is None else _format_length(seconds)
    own = partial(kind.logged, rebuild_request(record))
    try:
        # log_end() says why the log cannot be read
        log = hands.log_since(record.log or hands.log_end())
        found = erased_reasons(log, record.target, own)
    except CannotTell as error:
        return ChangeWindow(text=f"unwatched, {long}: slurmctld's log: {error}")
    if found is None:
        return ChangeWindow(text=f"unwatched, {long}: slurmctld's log does not show this change")
    if not found:
        return ChangeWindow(text=f"watched, {long}: nothing came between, by slurmctld's log")
    told = "; ".join(
        f"{_quote_reason(e)} by {entry_author(e) or UNKNOWN_AUTHOR_TEXT}" for e in found
    )
    return ChangeWindow(text=f"watched, {long}: drained meanwhile: {told}", erased=found)


def drain_again(
    kind: Action, record: ActionRecord, found: Sequence[ControllerLogEntry], hands: Hands
) -> tuple[ActionRecord, str]:
    """Drain the node again, with the erased reason in the new one. Returns the record with the
    commands and the outcome.

    If this replaced another reason, it is done once more. Accounting is asked for the author
    afterwards, because the node takes jobs meanwhile.
    """
    if newer := _describe_later_drain(record, hands):
        told = "; ".join(
            f"'{_quote_reason(e)}' by {entry_author(e) or UNKNOWN_AUTHOR_TEXT}" for e in found
        )
        return record, f"it replaced {told}; not drained again, as by now it is {newer}"
    taken_back = kind.takes_back(rebuild_request(record))
    for command in taken_back:
        hands.change(command)
    ran, lost, trouble = list(taken_back), list(found), ""
    for _ in range(MAX_REDRAIN_ROUNDS):
        end, command = find_log_end(hands), _make_drain_command(record, lost, {})
        ran, trouble = [*ran, command], _explain_drain_failure(hands, command)
        again = _list_replaced_reasons(end, record.target, command, hands)
        if trouble or not again:
            break
        lost += again
    record = replace(record, commands=(*record.commands, *ran))
    told = "; ".join(
        f"'{_quote_reason(e)}' by {entry_author(e) or UNKNOWN_AUTHOR_TEXT}" for e in lost
    )
    if trouble:
        named = f"NodeName={record.target}"
        by_hand = quote_command("scontrol", "update", named, "State=DRAIN", "Reason=...")
        return record, f"it replaced {told}, and could NOT be drained again ({trouble}): {by_hand}"
    names = {e.text: hands.author(record.target, e.text) for e in lost if not entry_author(e)}
    if any(names.values()):
        told = "; ".join(f"'{_quote_reason(e)}' by {_get_author(e, names)}" for e in lost)
        _add_authors(record, ran[-1], _make_drain_command(record, lost, names), hands)
    return record, f"it replaced {told}, given between the last look and the change; drained again"


def _describe_later_drain(record: ActionRecord, hands: Hands) -> str:
    """The state of the node, if somebody else drained it after us. Then its reason must not be
    replaced. Empty otherwise."""
    try:
        node = hands.node(record.target)
    except CannotTell:
        return ""
    if node is None or "DRAIN" not in node.flags:
        return ""
    return "" if node.reason.startswith(tag_reason(record.reason)) else describe_node(node)


def _make_drain_command(
    record: ActionRecord, lost: Sequence[ControllerLogEntry], names: dict[str, str]
) -> tuple[str, ...]:
    reasons = "; ".join(f"{_quote_reason(e)} (by {_get_author(e, names)})" for e in lost)
    reason = tag_reason(f"drained again: {reasons}: an {record.action} came at the same moment")
    return ("scontrol", "update", f"NodeName={record.target}", "State=DRAIN", f"Reason={reason}")


def _explain_drain_failure(hands: Hands, command: tuple[str, ...]) -> str:
    """Why the node is not drained now. Empty if it is, or if it cannot be seen and the command was
    accepted."""
    reply = hands.change(command)
    target = command[2].partition("=")[2]
    try:
        node = hands.node(target)
    except CannotTell as error:
        return "" if reply.answer is Answer.ACCEPTED else f"{reply.text}; {error}"
    if node is None or "DRAIN" not in node.flags:
        return reply.text or (describe_node(node) if node else "Slurm knows no such node")
    return ""


def _list_replaced_reasons(
    end: str, target: str, command: tuple[str, ...], hands: Hands
) -> tuple[ControllerLogEntry, ...] | None:
    """The reasons that this drain itself has replaced unseen. None if the log does not show it."""
    reason = command[-1].partition("=")[2]
    try:
        log = hands.log_since(end)
    except CannotTell:
        return None
    return erased_reasons(log, target, lambda entry: entry.text == reason)


def _add_authors(
    record: ActionRecord, drained: tuple[str, ...], named: tuple[str, ...], hands: Hands
) -> None:
    """Replace the reason by one with the authors, if the reason is still ours."""
    try:
        node = hands.node(record.target)
    except CannotTell:
        return
    if node is not None and node.reason == drained[-1].partition("=")[2]:
        hands.change(named)


def _get_author(entry: ControllerLogEntry, names: dict[str, str]) -> str:
    return entry_author(entry) or names.get(entry.text) or UNKNOWN_AUTHOR_TEXT


def _quote_reason(entry: ControllerLogEntry) -> str:
    return shortened(visible(entry.text), MAX_REASON_CHARS)


def _format_length(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else duration_text(seconds)
