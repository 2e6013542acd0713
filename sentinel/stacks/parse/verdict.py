"""Joins the facts about a quiet training from all witnesses by one rule. Pure.

RULE is the whole rule: what each sign proves, and what it does not prove. `join_facts` only counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.text import shortened

Witness = Literal["/proc", "stacks", "flight recorder", "RAS", "GPU", "kernel"]

SHOWN = 160
"""Characters of a list of ranks or nodes."""
TOLD = 3
"""How many facts about GPUs and kernels are reported."""


class TrainingState(str, Enum):
    """The state of the training."""

    HUNG = "hung"
    SLOW = "slow"
    FILES = "waiting for a file system"
    PHASE = "in a long phase"
    UNDECIDED = "not decided"


class WitnessSign(Struct, frozen=True, kw_only=True):
    """One sign that a witness can see. If it `decides`, it is enough alone. Otherwise it is only
    reported.

    It counts when the number has stood still for `patience` times its usual quiet time, and for
    `least` seconds. If it `yields`, it may be an effect: it does not count beside a sign of another
    state about the same ranks, which is then the cause. `node`: the next job on the node would be
    affected too, so it is a reason to drain the node.
    """

    witness: Witness
    says: TrainingState
    decides: bool = True
    patience: float = 3.0
    least: float = 45.0
    yields: bool = False
    node: bool = False
    proves: str
    proves_not: str


# Sources: states of proc(5); for collectives torch/csrc/distributed/c10d/FlightRecorder.hpp; RAS:
# https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/ras.html, whose OK
# means nothing (nccl#1730) and whose counts may stay 0 (nccl PR#2021); Xids:
# https://docs.nvidia.com/deploy/xid-errors/. RAS, GPU and kernel advise until tried on GPUs.
RULE: Mapping[str, WitnessSign] = {
    "gone": WitnessSign(
        witness="/proc",
        says=TrainingState.HUNG,
        proves="the rank has no process, or only a zombie, while others of its step live",
        proves_not="that it died: a rank that was done leaves too, but then the number is at its end",
    ),
    "stopped": WitnessSign(
        witness="/proc",
        says=TrainingState.HUNG,
        proves="a signal has stopped the rank (state T) at both looks",
        proves_not="who did it",
    ),
    "debugged": WitnessSign(
        witness="/proc",
        says=TrainingState.PHASE,
        patience=0.0,
        least=0.0,
        proves="somebody holds the rank in a debugger (state t, or pdb in its stack)",
        proves_not="that it went wrong: a person is there",
    ),
    "blocked": WitnessSign(
        witness="/proc",
        says=TrainingState.FILES,
        proves="the rank, or a worker of it, is in the same call on the same file at both looks, and"
        " no byte of it has moved",
        proves_not="that the file system is ill for others",
    ),
    "uninterruptible": WitnessSign(
        witness="/proc",
        says=TrainingState.HUNG,
        node=True,
        proves="the rank is in state D at both looks, on no file: a driver or memory",
        proves_not="which device",
    ),
    "transfers": WitnessSign(
        witness="/proc",
        says=TrainingState.PHASE,
        patience=0.0,
        least=0.0,
        proves="the rank reads or writes files: its counters of bytes go on",
        proves_not="that it ends",
    ),
    "phase": WitnessSign(
        witness="stacks",
        says=TrainingState.PHASE,
        patience=0.0,
        least=0.0,
        proves="a function that saves, evaluates, compiles or starts is in the stack of the odd rank,"
        " or of all",
        proves_not="that it ends",
    ),
    "works": WitnessSign(
        witness="stacks",
        says=TrainingState.SLOW,
        patience=0.0,
        least=0.0,
        proves="the rank is at different places at the two looks, while others wait in a collective",
        proves_not="that it ever comes: a loop without end moves too",
    ),
    "stands": WitnessSign(
        witness="stacks",
        says=TrainingState.HUNG,
        yields=True,
        proves="the rank is at the same line at both looks and uses no processor, while others wait"
        " in a collective",
        proves_not="that it would not have come: it may sleep for longer than anything before",
    ),
    "spins": WitnessSign(
        witness="stacks",
        says=TrainingState.HUNG,
        patience=5.0,
        least=60.0,
        yields=True,
        proves="the rank is in the same function at both looks and burns its processor, while others"
        " wait in a collective",
        proves_not="that it is a loop: one long call into C looks the same",
    ),
    "alone": WitnessSign(
        witness="stacks",
        says=TrainingState.HUNG,
        yields=True,
        proves="the rank is alone in another collective than all others, at the same line at both looks,"
        " and none uses a processor",
        proves_not="who of them is wrong, where its group has two ranks only",
    ),
    "idle": WitnessSign(
        witness="stacks",
        says=TrainingState.HUNG,
        yields=True,
        proves="all ranks are in collectives, at the same line at both looks, and use no processor",
        proves_not="who is missing; the few in another collective may be it",
    ),
    "together": WitnessSign(
        witness="stacks",
        says=TrainingState.HUNG,
        decides=False,
        proves="nothing: healthy ranks stand in the same collective at any two looks",
        proves_not="a hang",
    ),
    "recorded": WitnessSign(
        witness="flight recorder",
        says=TrainingState.HUNG,
        proves="which rank has not enqueued, or not finished, the collective in which others wait",
        proves_not="why",
    ),
    "behind": WitnessSign(
        witness="RAS",
        says=TrainingState.HUNG,
        decides=False,
        proves="the rank has launched fewer operations, in a communicator that was seen counting",
        proves_not="a hang, where the counts never moved: some releases always say 0",
    ),
    "lost": WitnessSign(
        witness="RAS",
        says=TrainingState.HUNG,
        decides=False,
        proves="RAS does not reach the rank's process",
        proves_not="that it is gone; and its OK proves nothing at all",
    ),
    "computes": WitnessSign(
        witness="GPU",
        says=TrainingState.SLOW,
        decides=False,
        proves="its GPU draws much power while all others wait",
        proves_not="that it ends",
    ),
    "draws nothing": WitnessSign(
        witness="GPU",
        says=TrainingState.HUNG,
        decides=False,
        proves="its GPU is idle while all others spin",
        proves_not="why",
    ),
    "kernel": WitnessSign(
        witness="kernel",
        says=TrainingState.HUNG,
        decides=False,
        proves="the node's kernel told of a program's Xid, a killed process or a lost link since the last"
        " step",
        proves_not="that the job was hit by it",
    ),
    "device": WitnessSign(
        witness="kernel",
        says=TrainingState.HUNG,
        decides=False,
        node=True,
        proves="the node's kernel told of an Xid that asks for the device itself since the last step",
        proves_not="that the job was hit by it",
    ),
}  # fmt: skip


class WitnessFact(Struct, frozen=True, kw_only=True):
    """A sign that was seen (a key of RULE). `ranks` are the odd ones. `collective` is where
    `waiting` others wait for them, called at `line`. `words` are for people."""

    sign: str
    words: str
    ranks: tuple[int, ...] = ()
    nodes: tuple[str, ...] = ()
    collective: str = ""
    waiting: int = 0
    line: str = ""


class ProgressNumber(Struct, frozen=True, kw_only=True):
    """The number that has to advance. `quiet`: for how many seconds it has stood still. `usual`:
    for how many it usually does. `moved`: it has advanced meanwhile. `phase`: the name of a known
    phase, empty if there is none."""

    quiet: float
    usual: float
    moved: bool = False
    phase: str = ""


class HangVerdict(Struct, frozen=True, kw_only=True):
    """The state of the training, the ranks that cause it as far as they are known, and the facts.
    `disagreement`: the witnesses that contradict each other, in words."""

    kind: TrainingState
    ranks: tuple[int, ...] = ()
    nodes: tuple[str, ...] = ()
    collective: str = ""
    waiting: int = 0
    line: str = ""
    evidence: tuple[WitnessFact, ...] = ()
    disagreement: str = ""

    @property
    def is_sure(self) -> bool:
        """Whether it stands still for a reason that was seen. Then people may be notified."""
        return self.kind in (TrainingState.HUNG, TrainingState.FILES)

    @property
    def proven_nodes(self) -> tuple[str, ...]:
        """The nodes of the ranks that cause it. Empty if that is not sure, or if witnesses
        disagree."""
        return self.nodes if self.is_sure and not self.disagreement else ()

    @property
    def node_fault(self) -> str:
        """The problem of the culprit's node itself. Empty if the program may be at fault."""
        mine = [f for f in self.evidence if RULE[f.sign].node and {*f.nodes} & {*self.proven_nodes}]
        return mine[0].words if mine and len(self.proven_nodes) == 1 else ""


def join_facts(facts: Iterable[WitnessFact], number: ProgressNumber) -> HangVerdict:
    """The verdict of all witnesses together. A training whose number has moved does not hang,
    whatever they say."""
    facts = tuple(facts)
    if number.moved:
        slow = [f for f in facts if f.ranks and f.sign in ("works", "stands", "spins")]
        return _make_verdict(TrainingState.SLOW if slow else TrainingState.UNDECIDED, slow, facts)
    if number.phase:
        return _make_verdict(TrainingState.PHASE, (), facts)
    deciding = [f for f in facts if _counts_now(RULE[f.sign], number)]
    deciding = [f for f in deciding if not _is_effect(f, deciding)]
    kinds = sorted({RULE[f.sign].says for f in deciding}, key=lambda kind: kind.value)
    if not kinds:
        return _make_verdict(TrainingState.UNDECIDED, (), facts)
    if len(kinds) > 1 and {*kinds} != {TrainingState.HUNG, TrainingState.FILES}:
        return _make_verdict(TrainingState.UNDECIDED, (), facts, _disagreement_words(deciding))
    return _make_verdict(
        TrainingState.HUNG if TrainingState.HUNG in kinds else kinds[0], deciding, facts
    )


def narrow_verdict(verdict: HangVerdict, ranks: tuple[int, ...]) -> HangVerdict:
    """The same verdict about only these of its ranks. Their nodes are kept only if no fact includes
    other ranks beside them."""
    mine = [f for f in verdict.evidence if {*f.ranks} & {*ranks}]
    alone = all({*f.ranks} <= {*ranks} for f in mine)
    nodes = tuple(dict.fromkeys(n for f in mine for n in f.nodes)) if alone else ()
    return replace(verdict, ranks=ranks, nodes=nodes)


def decides_after_s(facts: Iterable[WitnessFact], number: ProgressNumber) -> float:
    """The quiet time in seconds from which these facts decide, if they do not change. 0: they
    decide already, or never."""
    facts = tuple(facts)
    times = {_least_quiet_s(RULE[f.sign], number) for f in facts if RULE[f.sign].decides}
    later = sorted(at for at in times if at > number.quiet)
    return next((at for at in later if join_facts(facts, replace(number, quiet=at)).is_sure), 0.0)


def _counts_now(sign: WitnessSign, number: ProgressNumber) -> bool:
    return sign.decides and number.quiet >= _least_quiet_s(sign, number)


def _least_quiet_s(sign: WitnessSign, number: ProgressNumber) -> float:
    return max(sign.least, sign.patience * number.usual)


def _is_effect(fact: WitnessFact, others: Sequence[WitnessFact]) -> bool:
    """Whether another fact is the cause of this one: it is a sign of another state, and its ranks
    include all ranks of this one. A fact without ranks is the effect of any such sign."""
    mine, says = {*fact.ranks}, RULE[fact.sign].says
    return RULE[fact.sign].yields and any(
        RULE[o.sign].says is not says
        and not RULE[o.sign].yields
        and (mine <= {*o.ranks} or not mine)
        for o in others
    )


def _make_verdict(
    kind: TrainingState,
    deciding: Sequence[WitnessFact],
    facts: tuple[WitnessFact, ...],
    against: str = "",
) -> HangVerdict:
    ranks, clash = _agreed_ranks(deciding)
    mine = [f for f in deciding if {*f.ranks} & {*ranks}] or [*deciding]
    first = max(mine, key=lambda f: (bool(f.collective), f.waiting), default=None)
    doubt = [f for f in facts if not RULE[f.sign].decides and f.ranks and ranks]
    other = next((f for f in doubt if not {*f.ranks} & {*ranks}), None)
    if other and not clash and not against:
        against = _disagreement_words([*mine[:1], other])
    return HangVerdict(
        kind=kind,
        ranks=ranks,
        nodes=tuple(dict.fromkeys(n for f in mine for n in f.nodes)) if ranks else (),
        collective=first.collective if first else "",
        waiting=first.waiting if first else 0,
        line=first.line if first else "",
        evidence=facts,
        disagreement=clash or against,
    )


def _agreed_ranks(deciding: Sequence[WitnessFact]) -> tuple[tuple[int, ...], str]:
    """The ranks on which all witnesses agree that name any, and the disagreement in words. If they
    have no rank in common, none is named."""
    by: dict[str, set[int]] = {}
    for fact in deciding:
        if fact.ranks:
            by.setdefault(RULE[fact.sign].witness, set()).update(fact.ranks)
    if not by:
        return (), ""
    both = set.intersection(*by.values())
    if not both:
        return (), _disagreement_words([f for f in deciding if f.ranks])
    return tuple(sorted(both)), ""


def _disagreement_words(facts: Sequence[WitnessFact]) -> str:
    told = dict.fromkeys(f"{RULE[f.sign].witness}: {f.words}" for f in facts)
    return shortened("witnesses disagree: " + "; but ".join(told), 400)
