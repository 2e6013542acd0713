"""From a proof to a finding, and to what is asked for. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from sentinel.checks import hanging
from sentinel.checks.drained import leftover_processes
from sentinel.checks.drained.node_evidence import NodeEvidence, ProofItem, ProofRules
from sentinel.checks.drained.proof import is_momentary, is_proven
from sentinel.core.actions import ActionOutcome, ActionRecord
from sentinel.core.clock import SECOND
from sentinel.core.model import ActionRequest, Finding, Status
from sentinel.core.text import shortened, visible
from sentinel.core.values import Duration, duration_text
from sentinel.nodes.probe import NodeIdentity
from sentinel.slurm.node_states import format_state, reason_params, unfit_flags

_ITEM_MARKS = {True: "+", False: "-", None: "?"}
_REQUIRED_ITEMS = frozenset({"reservation", "history", "responds"})
"""Items without which not even left-over processes are ended."""

NEXT_LOOK_S = 1.0
"""Seconds. Any number does: what the next look finds again has no patience."""

_PROCESSES_PARAM = "processes"
"""The param of a clean-up that names the boot, and the processes that are to be ended."""

_CARRIED_OUT_OUTCOMES = frozenset(
    {ActionOutcome.DONE, ActionOutcome.NO_EFFECT, ActionOutcome.UNCLEAR}
)
"""What a clean-up that was carried out can come to."""

_REBOOT_CLEARED_ITEMS = frozenset({"blocked", "steps", "users", "gpu processes"})
"""Items that may be bad before a reboot; all others must be as good as before an undrain."""


def make_drain_finding(
    sight: NodeEvidence,
    items: Sequence[ProofItem],
    *,
    asked: bool,
    before: bool,
    told: bool,
    first: bool,
) -> Finding:
    """`asked`: an undrain is asked for; `before`: it was so in an earlier run, in vain.

    A node that goes back at once is not worth waking anybody, nor is one that cannot be judged for
    this moment only, if it is the `first` such look. One that people were `told` of stays their
    trouble until it is back.
    """
    clean = is_proven(items)
    quiet = clean and asked and not before and not told
    return Finding(
        subject=sight.node.name,
        status=Status.OK if quiet else Status.WARNING,
        summary=visible(
            f"{_describe_age(sight)}: {_describe_verdict(sight, items, asked=asked, before=before)}"
        ),
        values={
            "reason": visible(sight.node.reason),
            "clean": clean,
            "state": format_state(sight.node),
        },
        details=""
        if clean
        else "\n".join(
            [*map(format_item, items), *_describe_unkillable(sight), *_list_log_lines(sight)]
        ),
        commands=_suggest_commands(sight, clean),
        labels={"node": sight.node.name, "partition": ",".join(sight.node.partitions)},
        patience=NEXT_LOOK_S if first and is_momentary(items) and not told else 0.0,
    )


def request_undrain(sight: NodeEvidence, items: Sequence[ProofItem]) -> ActionRequest:
    """The wish to give a proven node back; only as long as it is idle and its reason the same."""
    return ActionRequest(
        action="undrain",
        target=sight.node.name,
        reason=f"proven clean after: {sight.node.reason}",
        params={**reason_params(sight.node), "idle": "yes"},
        evidence=format_evidence(sight, items),
    )


def request_clean_up(
    sight: NodeEvidence, items: Sequence[ProofItem], rules: ProofRules
) -> ActionRequest | None:
    """The wish to end what a failed job left behind, where something can be ended at all."""
    left = leftover_processes.find_left_over(sight, rules, find_unkillable_pids(sight))
    if not left.pids or any(i.name in _REQUIRED_ITEMS and not i.good for i in items):
        return None
    numbers = ", ".join(job for job in left.jobs if job.isdigit())
    params = {
        **reason_params(sight.node),
        "jobs": ",".join(left.jobs),
        "first_uid": str(rules.first_uid),
        "alone": ",".join(f"{uid}:{name}" for uid, name in left.alone.items()),
        _PROCESSES_PARAM: " ".join([_get_boot_id(sight), *map(str, left.pids)]),
    }
    return ActionRequest(
        action="clean_up",
        target=sight.node.name,
        reason=f"left behind by job {numbers}, which Slurm no longer has there",
        params=params,
        evidence=format_evidence(sight, items),
    )


def find_unkillable_pids(sight: NodeEvidence) -> frozenset[int]:
    """Processes that a clean-up of this boot was for, and that are still there: it is not asked for
    them again, however long they stay."""
    told = sight.node_probe.processes if sight.node_probe else None
    if not isinstance(told, tuple):
        return frozenset()
    tried = set[str]()
    for record in sight.records:
        boot, *pids = record.params.get(_PROCESSES_PARAM, "").split() or [""]
        if (
            record.action == "clean_up"
            and record.outcome in _CARRIED_OUT_OUTCOMES
            and boot == _get_boot_id(sight)
        ):
            tried.update(pids)
    return frozenset(p.pid for p in told if str(p.pid) in tried)


def _get_boot_id(sight: NodeEvidence) -> str:
    identity = sight.node_probe.identity if sight.node_probe else None
    return identity.boot if isinstance(identity, NodeIdentity) else "-"


def request_reboot(
    sight: NodeEvidence, items: Sequence[ProofItem], rules: ProofRules, after: Duration
) -> ActionRequest | None:
    """The wish to reboot a node whose tasks stay in state D for so long, and else is clean."""
    node, bad = sight.node, [item for item in items if not item.good]
    long = sight.wrong_since is not None and sight.now - sight.wrong_since >= after
    blocked = any(i.name == "blocked" and i.good is False for i in bad)
    others = [
        i for i in bad if i.name not in (*_REBOOT_CLEARED_ITEMS, *rules.proofs) or i.good is None
    ]
    others = [i for i in others if i.name not in rules.proofs and not _is_only_completing(sight, i)]
    if not (long and blocked) or others or _has_strangers(sight, rules):
        return None
    completing = {} if sight.completing is None else {"completing": "yes"}
    booted = "" if node.boot_time is None else str(node.boot_time)
    return ActionRequest(
        action="reboot",
        target=node.name,
        reason=f"tasks in state D since: {node.reason or 'it completes a job'}",
        params={**reason_params(node), "booted": booted, **completing},
        evidence=format_evidence(sight, items),
    )


def format_evidence(sight: NodeEvidence, items: Sequence[ProofItem]) -> dict[str, str]:
    """What goes into the audit log."""
    return {**{i.name: f"{_ITEM_MARKS[i.good]} {i.text}" for i in items}, **sight.logs}


def format_item(item: ProofItem) -> str:
    """An item in a line: + good, - bad, ? not known."""
    return f"{_ITEM_MARKS[item.good]} {item.name}: {item.text}"


def find_failed_undrain(sight: NodeEvidence) -> ActionRecord | None:
    """The newest record of an undrain since the node got its reason, if it came to nothing."""
    since = (sight.node.reason_time or 0) * SECOND
    mine = (r for r in sight.records if r.action == "undrain" and r.at.wall >= since)
    newest = next(mine, None)
    done = newest is None or newest.outcome in (ActionOutcome.DONE, ActionOutcome.UNNEEDED)
    return None if done else newest


def _describe_age(sight: NodeEvidence) -> str:
    since, reason = sight.node.reason_time, shortened(sight.node.reason, 80)
    age = f" for {duration_text(max(0, sight.now - since))}" if since is not None else ""
    ending = "" if sight.completing is None else f"completing for {duration_text(sight.completing)}"
    drained = f"drained{age} ({reason})" if "DRAIN" in sight.node.flags else ""
    return ", ".join(filter(None, [drained, ending]))


def _describe_verdict(
    sight: NodeEvidence, items: Sequence[ProofItem], *, asked: bool, before: bool
) -> str:
    bad = [item for item in items if item.good is False]
    unknown = [item for item in items if item.good is None]
    if sight.completing is not None and sight.node_probe:
        return f"not clean: {hanging.describe_hanging(sight.node_probe, sight.sluids)}"
    if bad:
        return f"not clean: {_describe_bad_items(bad)}"
    if unknown:
        # State D of this moment is over at the next look; what else is not known stays so.
        first = min(unknown, key=lambda item: item.moment)
        return f"cannot be proven clean: {first.name}: {first.text}" + _describe_rest(unknown)
    if not asked:
        return f"clean by {len(items)} proofs; undrain is not switched on"
    return f"clean by {len(items)} proofs, {_describe_failed_undrain(sight) if before else 'is given back'}"


def _describe_failed_undrain(sight: NodeEvidence) -> str:
    record = find_failed_undrain(sight)
    if record is None:
        return "but not yet given back"
    why = f" ({record.rule})" if record.rule else ""
    return f"but not given back: {record.outcome.value}{why}: {record.detail or record.why}"


def _describe_bad_items(items: Sequence[ProofItem]) -> str:
    """A task in state D explains the others."""
    telling = min(items, key=lambda item: item.name != "blocked")
    return telling.text + _describe_rest(items)


def _describe_rest(items: Sequence[ProofItem]) -> str:
    return f" (and {len(items) - 1} more)" if len(items) > 1 else ""


def _describe_unkillable(sight: NodeEvidence) -> list[str]:
    stay = sorted(find_unkillable_pids(sight))
    pids = ", ".join(map(str, stay))
    return [f"- clean_up: could not end {pids}; it is not tried again"] if stay else []


def _list_log_lines(sight: NodeEvidence) -> list[str]:
    return [line for name, text in sight.logs.items() for line in [f"{name}:", *text.splitlines()]]


def _suggest_commands(sight: NodeEvidence, clean: bool) -> tuple[str, ...]:
    name = visible(sight.node.name)
    history = f"sentinel nodes list --history {name}"
    return (f"sentinel nodes undrain {name}", history) if clean else (history,)


def _is_only_completing(sight: NodeEvidence, item: ProofItem) -> bool:
    """Whether nothing but the end of a job that does not come keeps the node from being idle."""
    node = sight.node
    only = node.state == "IDLE" and unfit_flags(node) == ["COMPLETING"] and not sight.expediting
    return item.name == "drained" and sight.completing is not None and only


def _has_strangers(sight: NodeEvidence, rules: ProofRules) -> bool:
    """Whether somebody is there whose processes belong to no job; blind counts as yes."""
    probe = sight.node_probe
    if probe is None or not isinstance(probe.processes, tuple) or not hasattr(probe.steps, "blind"):
        return True
    known = {p.pid for p in probe.steps.processes}  # type: ignore[union-attr]
    found = (
        p
        for p in probe.processes
        if leftover_processes.is_user_process(p, rules) and p.pid not in known
    )
    return any(p.user not in rules.ignore_users for p in found)
