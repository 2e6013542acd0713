"""The proof that a drained node is clean, item by item. Pure; what was not seen is not clean."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sentinel.checks import hanging
from sentinel.checks.drained import gpus, people
from sentinel.checks.drained.reasons import (
    fits,
    hidden,
    left_over,
    note_in,
    seen_from_the_start,
    typed_by,
)
from sentinel.checks.drained.sight import Item, Rules, Sight
from sentinel.core.text import shortened, visible
from sentinel.core.values import duration_text
from sentinel.nodes.model import Answered
from sentinel.nodes.probe import Identity, NodeProbe, Unread
from sentinel.slurm.job_states import EXPEDITED
from sentinel.slurm.node_states import UP, state_of, unfit

VFORK = frozenset({"kernel_clone", "_do_fork", "do_fork", "wait_for_vfork_done"})
"""Where the parent waits in state D until its child has replaced itself (vfork(2))."""

YOUNG = 3
"""Seconds of age below which state D may be the probe's own ps waiting for its pages."""

MILD = frozenset(
    [
        "DRAIN",
        "CLOUD",
        "DYNAMIC",
        "DYNAMIC_FUTURE",
        "DYNAMIC_NORM",
        "PERFCTRS",
        "PLANNED",
        "RESERVED",
    ]
)
"""Flags that are no reason to leave a node alone; one that no Slurm until 26.05 has is."""

BOOT_SLACK = 120
"""Seconds by which slurmd's and the node's own account of its boot may differ."""


_NOT_SEEN = (
    "it was drained while sentinel did not look, and nobody knows what its reason replaced; "
    "undrain it by hand once, or give `slurmctld_log`"
)


def by_slurm(sight: Sight, rules: Rules) -> list[Item]:
    """What Slurm and the ledger say; a node that fails here is not to be touched."""
    return [_state(sight), _reservation(sight), _history(sight, rules)]


def by_node(sight: Sight, rules: Rules) -> list[Item]:
    """What the node itself says."""
    if sight.probe is None:
        return [Item(name="responds", good=None, text=_silence(sight))]
    return [item(sight, sight.probe, rules) for item in ITEMS]


def by_commands(sight: Sight, rules: Rules) -> list[Item]:
    """What the configured proofs say; they run only where everything else is good."""
    return [_ran(name, sight) for name in rules.proofs]


def askable(sight: Sight) -> bool:
    """Whether there is a point in asking the node: it is there, and nobody's reservation."""
    flags = sight.node.flags
    return sight.node.state in UP and not flags & {"NOT_RESPONDING", "MAINTENANCE"}


def proven(items: Sequence[Item]) -> bool:
    """All of them; none is not enough."""
    return bool(items) and all(item.good for item in items)


def _state(sight: Sight) -> Item:
    node, text = sight.node, state_of(sight.node)
    if sight.expediting:
        return _no("drained", _kept(sight))
    if why := unfit(node):
        return Item(name="drained", good=False, text=f"it is {why}")
    if strange := sorted(node.flags - MILD):
        text = f"it is {strange[0]}, and nobody here knows what that means for it"
        return Item(name="drained", good=None, text=visible(text))
    if node.state != "IDLE":
        return Item(name="drained", good=False, text=f"jobs still run there ({text})")
    return Item(name="drained", good=True, text=f"{text}, no job there")


def _kept(sight: Sight) -> str:
    """A job that is requeued with `expedite` starts when the epilogs on all its nodes have ended."""
    jobs, since = ", ".join(sight.expediting), sight.node.reason_time
    text = f"job {jobs} is EXPEDITING there: it starts again when its epilog here has ended"
    if since is None or sight.now - since < EXPEDITED:
        return visible(text)
    return visible(
        f"{text}, which it has not for {duration_text(sight.now - since)}; it needs a person: end "
        f"what hangs there, set the node DOWN, or give the job up (scancel {jobs})"
    )


def _reservation(sight: Sight) -> Item:
    reserved = "MAINTENANCE" in sight.node.flags
    text = "in a maintenance reservation" if reserved else "in no maintenance reservation"
    return Item(name="reservation", good=not reserved, text=text)


def _history(sight: Sight, rules: Rules) -> Item:
    """Only the reasons of this absence from service count, and all of them."""
    if sight.completing is not None and "DRAIN" not in sight.node.flags:
        return Item(name="history", good=True, text="it is not drained, no reason can be lost")
    if not fits(sight.node.reason, rules.reasons):
        return _no("history", f"it is drained for another reason: '{visible(sight.node.reason)}'")
    if giver := typed_by(sight.node):
        return _no("history", f"its reason was given by {visible(giver)}, not by Slurm")
    if note := note_in(sight.node.reason):
        return _no("history", f"its reason goes on with somebody's note: '{visible(note)}'")
    if sight.readings is None:
        return Item(name="history", good=None, text="no ledger of reasons here")
    if found := hidden(sight.readings, sight.history.reasons, rules.reasons):
        return _no("history", f"its reason replaced another one: '{visible(found)}'")
    if left_over(sight.node, sight.readings):
        return _no(
            "history", "its reason is that of an earlier time; why it left now, nobody tells"
        )
    if trouble := sight.history.trouble:
        return Item(name="history", good=None, text=visible(f"slurmctld's log: {trouble}"))
    if not (seen_from_the_start(sight.readings) or sight.history.whole):
        return Item(name="history", good=None, text=_NOT_SEEN)
    return Item(name="history", good=True, text="no other reason since it left service")


def _responds(sight: Sight, probe: NodeProbe, rules: Rules) -> Item:
    """A name that leads to another host would prove that one clean."""
    told = probe.identity
    if isinstance(told, Unread):
        return _unread("responds", told)
    name = visible(told.hostname)
    if _same_host(sight, told, rules):
        return Item(name="responds", good=True, text=f"as {name}")
    return _no("responds", f"{name} answered in its place")


def _same_host(sight: Sight, told: Identity, rules: Rules) -> bool:
    """By its name; by its boot where its own name is that of no other node."""
    node, full = sight.node.name.lower(), told.hostname.lower()
    name, booted = full.partition(".")[0], sight.node.boot_time
    if full in rules.names - {node}:
        return False
    if name == node.partition(".")[0]:
        return True
    near = booted is not None and abs(told.time - told.uptime - booted) < BOOT_SLACK
    return near and name not in rules.names


def _silence(sight: Sight) -> str:
    if sight.answer is None:
        return "it was not asked"
    kind = "".join(f" {c.lower()}" if c.isupper() else c for c in type(sight.answer).__name__)
    why = getattr(sight.answer, "why", "")
    return visible(f"{kind.strip()}: {why}" if why else kind.strip())


def _blocked(sight: Sight, probe: NodeProbe, rules: Rules) -> Item:
    """Threads of the kernel wait like that all the time, and so does who has just forked."""
    told = probe.blocked
    if told is None or isinstance(told, Unread):
        return _unread("blocked", told)
    stuck = [b for b in told if not b.kernel and b.wait not in VFORK]
    if not stuck:
        return Item(name="blocked", good=True, text="no task in state D")
    lasting = [b for b in stuck if b.pid in _old(probe)]
    shown = ", ".join(
        f"{b.name}({b.pid}) in {b.wait}{hanging.waits(b.pid, probe)}"
        for b in (lasting or stuck)[:5]
    )
    if not lasting:
        text = f"in state D for this moment, to be looked at again: {shown}"
        return Item(name="blocked", good=None, text=visible(text))
    more = f" and {len(lasting) - 5} more" if len(lasting) > 5 else ""
    return _no("blocked", visible(f"in state D: {shown}{more}"))


def _old(probe: NodeProbe) -> frozenset[int]:
    """Processes that are older than this look, where that is known."""
    told, identity = probe.processes, probe.identity
    if not isinstance(told, tuple) or isinstance(identity, Unread):
        return (
            frozenset(b.pid for b in probe.blocked)
            if isinstance(probe.blocked, tuple)
            else frozenset()
        )
    return frozenset(p.pid for p in told if p.started < identity.time - YOUNG)


def _ran(name: str, sight: Sight) -> Item:
    answer = sight.ran.get(name)
    if answer is None:
        return Item(name=name, good=None, text="not run while something else is not proven")
    if not isinstance(answer, Answered):
        return Item(name=name, good=None, text=visible(f"did not end: {answer.why}"))
    said = (answer.err.strip() or answer.out.strip()).decode("utf-8", "backslashreplace")
    last = shortened(visible(said.rpartition("\n")[2]), 200)
    text = f"exit code {answer.code}" + (f": {last}" if last else "")
    return Item(name=name, good=answer.code == 0, text=text)


def _no(name: str, text: str) -> Item:
    return Item(name=name, good=False, text=text)


def _unread(name: str, told: Unread | None) -> Item:
    return Item(name=name, good=None, text=people.unread(told))


ITEMS: tuple[Callable[[Sight, NodeProbe, Rules], Item], ...] = (
    _responds,
    _blocked,
    people.steps,
    people.users,
    gpus.processes,
    gpus.present,
    gpus.xids,
)
