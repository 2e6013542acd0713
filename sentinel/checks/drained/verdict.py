"""From a proof to a finding, and to what is asked for. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from sentinel.checks import hanging
from sentinel.checks.drained import people
from sentinel.checks.drained.proof import of_this_moment, proven
from sentinel.checks.drained.sight import Item, Rules, Sight
from sentinel.core.actions import ActionRecord, Outcome
from sentinel.core.clock import SECOND
from sentinel.core.model import ActionRequest, Finding, Status
from sentinel.core.text import shortened, visible
from sentinel.core.values import Duration, duration_text
from sentinel.nodes.probe import Identity
from sentinel.slurm.node_states import seen, state_of, unfit_flags

_MARKS = {True: "+", False: "-", None: "?"}
_BEFORE_ANYTHING = frozenset({"reservation", "history", "responds"})
"""Items without which not even left-over processes are ended."""

NEXT_LOOK = 1.0
"""Seconds. Any number does: what the next look finds again has no patience."""

_TRIED = "processes"
"""The param of a clean-up that names the boot, and the processes that are to be ended."""

_DONE = frozenset({Outcome.DONE, Outcome.NO_EFFECT, Outcome.UNCLEAR})
"""What a clean-up that was carried out can come to."""

_CLEARED_BY_REBOOT = frozenset({"blocked", "steps", "users", "gpu processes"})
"""Items that may be bad before a reboot; all others must be as good as before an undrain."""


def finding(
    sight: Sight, items: Sequence[Item], *, asked: bool, before: bool, told: bool, first: bool
) -> Finding:
    """`asked`: an undrain is asked for; `before`: it was so in an earlier run, in vain.

    A node that goes back at once is not worth waking anybody, nor is one that cannot be judged for
    this moment only, if it is the `first` such look. One that people were `told` of stays their
    trouble until it is back.
    """
    clean = proven(items)
    quiet = clean and asked and not before and not told
    return Finding(
        subject=sight.node.name,
        status=Status.OK if quiet else Status.WARNING,
        summary=visible(f"{_age(sight)}: {_verdict(sight, items, asked=asked, before=before)}"),
        values={
            "reason": visible(sight.node.reason),
            "clean": clean,
            "state": state_of(sight.node),
        },
        details="" if clean else "\n".join([*map(shown, items), *_stay(sight), *_log_lines(sight)]),
        commands=_commands(sight, clean),
        labels={"node": sight.node.name, "partition": ",".join(sight.node.partitions)},
        patience=NEXT_LOOK if first and of_this_moment(items) and not told else 0.0,
    )


def undrain(sight: Sight, items: Sequence[Item]) -> ActionRequest:
    """The wish to give a proven node back; only as long as it is idle and its reason the same."""
    return ActionRequest(
        action="undrain",
        target=sight.node.name,
        reason=f"proven clean after: {sight.node.reason}",
        params={**seen(sight.node), "idle": "yes"},
        evidence=evidence(sight, items),
    )


def clean_up(sight: Sight, items: Sequence[Item], rules: Rules) -> ActionRequest | None:
    """The wish to end what a failed job left behind, where something can be ended at all."""
    left = people.left(sight, rules, in_vain(sight))
    if not left.pids or any(i.name in _BEFORE_ANYTHING and not i.good for i in items):
        return None
    numbers = ", ".join(job for job in left.jobs if job.isdigit())
    params = {
        **seen(sight.node),
        "jobs": ",".join(left.jobs),
        "first_uid": str(rules.first_uid),
        "alone": ",".join(f"{uid}:{name}" for uid, name in left.alone.items()),
        _TRIED: " ".join([_boot(sight), *map(str, left.pids)]),
    }
    return ActionRequest(
        action="clean_up",
        target=sight.node.name,
        reason=f"left behind by job {numbers}, which Slurm no longer has there",
        params=params,
        evidence=evidence(sight, items),
    )


def in_vain(sight: Sight) -> frozenset[int]:
    """Processes that a clean-up of this boot was for, and that are still there: it is not asked for
    them again, however long they stay."""
    told = sight.probe.processes if sight.probe else None
    if not isinstance(told, tuple):
        return frozenset()
    tried = set[str]()
    for record in sight.records:
        boot, *pids = record.params.get(_TRIED, "").split() or [""]
        if record.action == "clean_up" and record.outcome in _DONE and boot == _boot(sight):
            tried.update(pids)
    return frozenset(p.pid for p in told if str(p.pid) in tried)


def _boot(sight: Sight) -> str:
    identity = sight.probe.identity if sight.probe else None
    return identity.boot if isinstance(identity, Identity) else "-"


def reboot(
    sight: Sight, items: Sequence[Item], rules: Rules, after: Duration
) -> ActionRequest | None:
    """The wish to reboot a node whose tasks stay in state D for so long, and else is clean."""
    node, bad = sight.node, [item for item in items if not item.good]
    long = sight.since is not None and sight.now - sight.since >= after
    blocked = any(i.name == "blocked" and i.good is False for i in bad)
    others = [
        i for i in bad if i.name not in (*_CLEARED_BY_REBOOT, *rules.proofs) or i.good is None
    ]
    others = [i for i in others if i.name not in rules.proofs and not _only_completing(sight, i)]
    if not (long and blocked) or others or _strangers(sight, rules):
        return None
    completing = {} if sight.completing is None else {"completing": "yes"}
    booted = "" if node.boot_time is None else str(node.boot_time)
    return ActionRequest(
        action="reboot",
        target=node.name,
        reason=f"tasks in state D since: {node.reason or 'it completes a job'}",
        params={**seen(node), "booted": booted, **completing},
        evidence=evidence(sight, items),
    )


def evidence(sight: Sight, items: Sequence[Item]) -> dict[str, str]:
    """What goes into the audit log."""
    return {**{i.name: f"{_MARKS[i.good]} {i.text}" for i in items}, **sight.logs}


def shown(item: Item) -> str:
    """An item in a line: + good, - bad, ? not known."""
    return f"{_MARKS[item.good]} {item.name}: {item.text}"


def last_attempt(sight: Sight) -> ActionRecord | None:
    """The newest record of an undrain since the node got its reason, if it came to nothing."""
    since = (sight.node.reason_time or 0) * SECOND
    mine = (r for r in sight.records if r.action == "undrain" and r.at.wall >= since)
    newest = next(mine, None)
    done = newest is None or newest.outcome in (Outcome.DONE, Outcome.UNNEEDED)
    return None if done else newest


def _age(sight: Sight) -> str:
    since, reason = sight.node.reason_time, shortened(sight.node.reason, 80)
    age = f" for {duration_text(max(0, sight.now - since))}" if since is not None else ""
    ending = "" if sight.completing is None else f"completing for {duration_text(sight.completing)}"
    drained = f"drained{age} ({reason})" if "DRAIN" in sight.node.flags else ""
    return ", ".join(filter(None, [drained, ending]))


def _verdict(sight: Sight, items: Sequence[Item], *, asked: bool, before: bool) -> str:
    bad = [item for item in items if item.good is False]
    unknown = [item for item in items if item.good is None]
    if sight.completing is not None and sight.probe:
        return f"not clean: {hanging.told(sight.probe, sight.sluids)}"
    if bad:
        return f"not clean: {_first(bad)}"
    if unknown:
        # State D of this moment is over at the next look; what else is not known stays so.
        first = min(unknown, key=lambda item: item.moment)
        return f"cannot be proven clean: {first.name}: {first.text}" + _rest(unknown)
    if not asked:
        return f"clean by {len(items)} proofs; undrain is not switched on"
    return f"clean by {len(items)} proofs, {_attempt(sight) if before else 'is given back'}"


def _attempt(sight: Sight) -> str:
    record = last_attempt(sight)
    if record is None:
        return "but not yet given back"
    why = f" ({record.rule})" if record.rule else ""
    return f"but not given back: {record.outcome.value}{why}: {record.detail or record.why}"


def _first(items: Sequence[Item]) -> str:
    """A task in state D explains the others."""
    telling = min(items, key=lambda item: item.name != "blocked")
    return telling.text + _rest(items)


def _rest(items: Sequence[Item]) -> str:
    return f" (and {len(items) - 1} more)" if len(items) > 1 else ""


def _stay(sight: Sight) -> list[str]:
    stay = sorted(in_vain(sight))
    pids = ", ".join(map(str, stay))
    return [f"- clean_up: could not end {pids}; it is not tried again"] if stay else []


def _log_lines(sight: Sight) -> list[str]:
    return [line for name, text in sight.logs.items() for line in [f"{name}:", *text.splitlines()]]


def _commands(sight: Sight, clean: bool) -> tuple[str, ...]:
    name = visible(sight.node.name)
    history = f"sentinel nodes list --history {name}"
    return (f"sentinel nodes undrain {name}", history) if clean else (history,)


def _only_completing(sight: Sight, item: Item) -> bool:
    """Whether nothing but the end of a job that does not come keeps the node from being idle."""
    node = sight.node
    only = node.state == "IDLE" and unfit_flags(node) == ["COMPLETING"] and not sight.expediting
    return item.name == "drained" and sight.completing is not None and only


def _strangers(sight: Sight, rules: Rules) -> bool:
    """Whether somebody is there whose processes belong to no job; blind counts as yes."""
    probe = sight.probe
    if probe is None or not isinstance(probe.processes, tuple) or not hasattr(probe.steps, "blind"):
        return True
    known = {p.pid for p in probe.steps.processes}  # type: ignore[union-attr]
    found = (p for p in probe.processes if people.is_users(p, rules) and p.pid not in known)
    return any(p.user not in rules.ignore_users for p in found)
