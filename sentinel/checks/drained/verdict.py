"""Makes a finding and requests from the conditions. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from sentinel.checks import hanging
from sentinel.checks.drained import leftover_processes
from sentinel.checks.drained.node_evidence import NodeEvidence, ProofItem, ProofRules
from sentinel.checks.drained.proof import is_momentary, is_proven
from sentinel.checks.process_owners import find_owners
from sentinel.core.actions import ActionOutcome, ActionRecord
from sentinel.core.clock import SECOND
from sentinel.core.guidance import ADMINISTRATOR, ActingCommand, Guidance, LookingCommand, look
from sentinel.core.model import ActionRequest, Finding, Status
from sentinel.core.text import shortened, visible
from sentinel.core.values import Duration, duration_text, since_text
from sentinel.nodes.probe import NodeIdentity
from sentinel.slurm.node_notes import read_notes
from sentinel.slurm.node_states import format_state, reason_params, unfit_flags

_ITEM_MARKS = {True: "+", False: "-", None: "?"}
ITEM_LEGEND = "Before it may work again (+ passed, - failed, ? not known):"
_ITEM_LABELS = {
    "history": "another reason for the drain",
    "responds": "the node could not be asked",
    "blocked": "hanging",
    "steps": "jobs",
    "gpus": "GPUs",
    "xids": "GPU errors (Xid)",
}
"""What people read in place of the name of an item."""

_PASSED_WORDS = {
    "drained": "no job there",
    "reservation": "not reserved",
    "history": "no other reason for the drain",
    "responds": "it answers",
    "blocked": "nothing hangs",
    "steps": "no process of a job",
    "users": "no process of users",
    "gpu processes": "no process on its GPUs",
    "gpus": "all GPUs there",
    "xids": "no GPU errors (Xid)",
}
"""What people read of an item that passed; of one that another kind proves, its name."""

_UNDRAIN_STEP = "Then undrain it (below: a preview; leave out --dry-run to undrain)."
_REBOOT_FIRST = f"reboot the node. {_UNDRAIN_STEP}"
_FIRST_STEPS = {
    "blocked": "No signal ends these processes. They wait in the kernel for a disk, a file server, a FUSE"
    " program or a driver; the brackets name it where it is known. As root, see whether it answers. Once"
    " it does, end the other processes that the details name (`kill -9 PID`). If it cannot be mended,"
    f" {_REBOOT_FIRST}",
    "steps": f"End these processes, as root on the node: `kill -9 PID`; if one stays, {_REBOOT_FIRST}",
    "gpu processes": f"End these processes, as root on the node (`kill PID`); a diagnostic ends by"
    f" itself. {_UNDRAIN_STEP}",
    "users": "Ask their users to end these processes, or end them as root on the node (`kill PID`)."
    f" {_UNDRAIN_STEP}",
}
"""What to do about a failed item, the first of them that failed."""

_REPAIR_FIRST = f"The details name what failed (-). Put that right first. {_UNDRAIN_STEP}"
_ASK_AGAIN = (
    "The details say what is not known. `sentinel nodes probe` below asks the node again; if it does not"
    " answer, see at its console whether it is up."
)
_SEE_YOURSELF = (
    f"The details say what is not known (?). See for yourself whether it is fine. {_UNDRAIN_STEP}"
)
_REASON_MEANINGS = {"Kill task failed": "Slurm could not end a job's processes"}
_REQUIRED_ITEMS = frozenset({"reservation", "history", "responds"})
"""Items without which not even left-over processes are ended."""

NEXT_LOOK_S = 1.0
"""Seconds. Any number does: what the next look finds again has no patience."""

_PROCESSES_PARAM = "processes"
"""The param of a clean-up that names the boot, and the processes that are to be ended."""

_CARRIED_OUT_OUTCOMES = frozenset(
    {ActionOutcome.DONE, ActionOutcome.NO_EFFECT, ActionOutcome.UNCLEAR}
)
"""The possible outcomes of a clean-up that was carried out."""

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
    """The finding about a drained node. `asked`: an undrain is requested. `before`: it was
    requested in an earlier run, without success.

    A node that goes back at once is no reason for a message. Nor is a node that cannot be judged
    just now, if this is the `first` such run. A node that was reported (`told`) stays a problem
    until it is back.
    """
    clean = is_proven(items)
    quiet = clean and asked and not before and not told
    return Finding(
        subject=sight.node.name,
        status=Status.OK if quiet else Status.WARNING,
        summary=visible(
            f"{_describe_verdict(sight, items, asked=asked, before=before)}; {_describe_age(sight)}"
        ),
        values={
            "reason": visible(sight.node.reason),
            "clean": clean,
            "state": format_state(sight.node),
        },
        details=""
        if clean
        else "\n".join(
            [
                *_list_items(items),
                *_describe_unkillable(sight),
                *_list_log_lines(sight),
            ]
        ),
        commands=_suggest_undrain_steps(sight, clean),
        acts=(_make_undrain(sight),) if clean else (),
        labels={"node": sight.node.name, "partition": ",".join(sight.node.partitions)},
        guidance=_guide_drained(sight, items, clean=clean, asked=asked, before=before),
        patience=NEXT_LOOK_S if first and is_momentary(items) and not told else 0.0,
    )


def _guide_drained(
    sight: NodeEvidence, items: Sequence[ProofItem], *, clean: bool, asked: bool, before: bool
) -> Guidance:
    name = visible(sight.node.name)
    failed = {item.name for item in items if item.good is False}
    step = next((text for part, text in _FIRST_STEPS.items() if part in failed), "")
    answers = any(item.name == "responds" and item.good for item in items)
    unclear = _REPAIR_FIRST if failed else _SEE_YOURSELF if answers else _ASK_AGAIN
    verdict = visible(_describe_verdict(sight, items, asked=asked, before=before))
    want = "undrain" if clean else "look at"
    return Guidance(
        impact="The node takes no jobs until somebody undrains it; other nodes go on.",
        todo=step or (f"Undrain it: `{_make_undrain(sight).render()}`." if clean else unclear),
        ask=f"{want} {name}: drained, {shortened(verdict, 200)}",
        headline="DRAINED",
    )


def request_undrain(sight: NodeEvidence, items: Sequence[ProofItem]) -> ActionRequest:
    """The request to give a proven node back. It is carried out only while the node is idle and its
    reason is the same."""
    return ActionRequest(
        action="undrain",
        target=sight.node.name,
        reason=f"proven clean after: {sight.node.reason}",
        params={**reason_params(sight.node), **read_notes(sight.node), "idle": "yes"},
        evidence=format_evidence(sight, items),
    )


def request_clean_up(
    sight: NodeEvidence, items: Sequence[ProofItem], rules: ProofRules
) -> ActionRequest | None:
    """The request to end the processes that a failed job left behind. None if nothing can be ended."""
    left = leftover_processes.find_left_over(sight, rules, find_unkillable_pids(sight))
    if not left.pids or any(i.name in _REQUIRED_ITEMS and not i.good for i in items):
        return None
    numbers = ", ".join(job for job in left.jobs if job.isdigit())
    params = {
        **reason_params(sight.node),
        **read_notes(sight.node),
        "jobs": ",".join(left.jobs),
        "first_uid": str(rules.first_uid),
        "uids": ",".join(map(str, left.uids)),
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
    """Processes that a clean-up in this boot should have ended, and that are still there. No
    clean-up is requested for them again."""
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
    """The request to reboot a node whose tasks stay in state D for `after`, and which is clean
    otherwise. None if that is not so."""
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
        params={**reason_params(node), **read_notes(node), "booted": booted, **completing},
        evidence=format_evidence(sight, items),
    )


def format_evidence(sight: NodeEvidence, items: Sequence[ProofItem]) -> dict[str, str]:
    """The entries for the audit log."""
    return {**{i.name: f"{_ITEM_MARKS[i.good]} {i.text}" for i in items}, **sight.logs}


def _list_items(items: Sequence[ProofItem]) -> list[str]:
    """The conditions that are not met, those that are not known, and one line with those that are
    met."""
    wrong = sorted((item for item in items if not item.good), key=lambda item: item.good is None)
    passed = [_PASSED_WORDS.get(item.name, item.name) for item in items if item.good]
    return [
        ITEM_LEGEND,
        *(f"{_ITEM_MARKS[i.good]} {_ITEM_LABELS.get(i.name, i.name)}: {i.text}" for i in wrong),
        *([f"+ {', '.join(passed)}"] if passed else []),
    ]


def find_failed_undrain(sight: NodeEvidence) -> ActionRecord | None:
    """The newest record of an undrain since the node got its reason. None if there is none, or if
    it succeeded."""
    since = (sight.node.reason_time or 0) * SECOND
    mine = (r for r in sight.records if r.action == "undrain" and r.at.wall >= since)
    newest = next(mine, None)
    done = newest is None or newest.outcome in (ActionOutcome.DONE, ActionOutcome.UNNEEDED)
    return None if done else newest


def _describe_age(sight: NodeEvidence) -> str:
    since, reason = sight.node.reason_time, shortened(sight.node.reason, 80)
    age = f" {since_text(since, sight.now)}" if since is not None else ""
    ending = "" if sight.completing is None else f"completing for {duration_text(sight.completing)}"
    meaning = _REASON_MEANINGS.get(reason, "")
    reason += f": {meaning}" if meaning else ""
    drained = f"drained{age} ({reason})" if "DRAIN" in sight.node.flags else ""
    return ", ".join(filter(None, [drained, ending]))


def _describe_verdict(
    sight: NodeEvidence, items: Sequence[ProofItem], *, asked: bool, before: bool
) -> str:
    bad = [item for item in items if item.good is False]
    unknown = [item for item in items if item.good is None]
    if sight.completing is not None and sight.node_probe:
        return hanging.describe_hanging(sight.node_probe, sight.sluids)
    if bad:
        return f"{_describe_bad_items(bad)}; not ready to return"
    if unknown:
        # A process in state D may be gone at the next run. Other unknown conditions stay, so they
        # are named first.
        first = min(unknown, key=lambda item: item.moment)
        label = _ITEM_LABELS.get(first.name, first.name)
        rest = _describe_rest(unknown, "unanswered")
        return f"{label}: {first.text}{rest}; not known whether it is ready to return"
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
    """The text of a task in state D if there is one, because it explains the other failures.
    Otherwise the text of the first item."""
    telling = min(items, key=lambda item: item.name != "blocked")
    return telling.text + _describe_rest(items, "failed")


def _describe_rest(items: Sequence[ProofItem], end: str) -> str:
    rest = len(items) - 1
    return f" ({rest} more check{'s' * (rest > 1)} {end})" if rest else ""


def _describe_unkillable(sight: NodeEvidence) -> list[str]:
    stay = sorted(find_unkillable_pids(sight))
    pids = ", ".join(map(str, stay))
    return [f"- clean_up: could not end {pids}; it is not tried again"] if stay else []


def _list_log_lines(sight: NodeEvidence) -> list[str]:
    return [line for name, text in sight.logs.items() for line in [f"{name}:", *text.splitlines()]]


def _suggest_undrain_steps(sight: NodeEvidence, clean: bool) -> tuple[LookingCommand, ...]:
    history = look("sentinel nodes list --history {}", sight.node.name)
    return (
        (history,)
        if clean
        else (
            look("sentinel nodes probe {}", sight.node.name),
            history,
            look("sentinel nodes undrain {} --dry-run", sight.node.name),
        )
    )


def _make_undrain(sight: NodeEvidence) -> ActingCommand:
    return ActingCommand(
        owner=ADMINISTRATOR, argv=("sentinel", "nodes", "undrain", sight.node.name)
    )


def _is_only_completing(sight: NodeEvidence, item: ProofItem) -> bool:
    """Whether the node is not idle only because it does not end a job."""
    node = sight.node
    only = node.state == "IDLE" and unfit_flags(node) == ["COMPLETING"]
    alone = only and not (sight.expediting or sight.paused)
    return item.name == "drained" and sight.completing is not None and alone


def _has_strangers(sight: NodeEvidence, rules: ProofRules) -> bool:
    """Whether the node has processes of users that belong to no job. True also if that could not be
    seen."""
    probe = sight.node_probe
    if probe is None or not isinstance(probe.processes, tuple) or not hasattr(probe.steps, "blind"):
        return True
    known = find_owners(probe, sight.sluids)
    found = (
        p
        for p in probe.processes
        if leftover_processes.is_user_process(p, rules) and p.pid not in known
    )
    return any(p.user not in rules.ignore_users for p in found)
