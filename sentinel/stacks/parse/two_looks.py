"""Compares two looks at all ranks of a job, some seconds apart. Pure.

One look proves nothing, because healthy ranks are in a collective at any moment. So the ranks'
stacks, processor time and bytes of both looks are compared. This finds the signs of verdict.RULE
that come from /proc and stacks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from sentinel.stacks.parse.model import JobProcess, StackFrame, StacksDump
from sentinel.stacks.parse.seats import RankSeat, find_seats
from sentinel.stacks.parse.verdict import WitnessFact
from sentinel.stacks.parse.words import frame_place

STILL = 0.03
"""With fewer cores, a process computes nothing. Threads that only watch wake up now and then."""
BUSY = 0.3
"""A rank that uses this many cores counts as busy."""
MOVED = 2**20
"""A rank that reads or writes this many bytes between two looks uses files. Heartbeats are smaller.
"""
QUIET = 2**16
"""If fewer bytes moved between two looks, a call on a file has not gone on. Threads beside it may
write."""
APART = 1.0
"""If fewer seconds are between two looks, they count as one."""
LEAST = 2
"""Up to this many ranks, none is alone, because any of them may be wrong."""
DEPTH = 12
"""How many innermost frames are searched for a collective, because wrappers and hooks are around
it."""

# Functions that wait for other ranks or for the rank's own GPU, and modules in which all functions
# do (torch/distributed/distributed_c10d.py, torch/cuda/__init__.py).
_WAITS = re.compile(
    r"_*(all_?reduce|all_?gather|reduce_scatter|all_?to_?all|broadcast|barrier|monitored_barrier"
    r"|gather|scatter|reduce|batch_isend_irecv|i?send|i?recv|synchronize|item|_engine_run_backward)"
    r"(_\w+)?"
)
_INSIDE = re.compile(r"(\.<locals>\.<\w+>){1,9}$")
_MODULES = re.compile(
    r"(^|/)torch/(distributed/(?!checkpoint|elastic|run)|cuda/)|(^|/)(horovod|mpi4py)/"
    r"|(^|/)torch/autograd/graph\.py"
)
# Data loaders and queues also have functions to send and receive, but not to another rank.
_PIPES = re.compile(r"(^|/)(multiprocessing|asyncio)/|(^|/)(socket|ssl|queue|threading)\.py")
# Places where healthy ranks may differ: between the stages of a pipeline, and while waiting for
# their own GPU, which may run any collective.
_PAIRED = re.compile(r"send|recv|synchronize|item|backward pass")
# Functions for long work that is not a training step, by their names and the names of their files.
# A class may stand before the function, because py-spy 0.4 prints qualified names since Python 3.11
# (`Trainer.evaluate`). Excluded are functions that also train (`train_and_test`), that a model runs
# at every step (`predict_noise`, `importance_sampling`), and `sample`: data loaders have functions
# with this name, and one that hangs has to be reported.
_PHASES = re.compile(
    r"(?!(\w+\.)*_*((pre|run_?)?train|fit)(_|$))(.*[_.])?(sav(e|es|ing)|load_state\w*|checkpoint(s|ing)?|ckpt"
    r"|serialization|restore|upload(?!_batch)\w*|push_to_hub|eval|evaluat(e|es|ing|ion|or)|val|(?<!is_)(?<!check_)valid"
    r"|validat(e|es|ing|ion)|test|estimate_loss|perplexity|compute_metrics|predict(?!_(?!step|loop))|prediction_(step|loop)|inference"
    r"|(?<![a-z]_)sampling|dd[ip]m_sampling|generat(e|es|ing|ion)|compil(e|es|ing|ation)|warm_?up)([_.]|$)"
)
_PHASE_FILES = re.compile(
    r"(^|/)torch/(_dynamo/(convert_frame|symbolic_convert|output_graph)\.py|distributed/checkpoint"
    r"|_inductor/(graph|scheduler|select_algorithm|async_compile|runtime/benchmarking)\.py|serialization\.py"
    r"|_inductor/runtime/triton_heuristics\.py:.*(precompile|benchmark|autotune_))"
    r"|/triton/(compiler|testing\.py|runtime/autotuner\.py:.*bench)"
)
# Names that look like such work, but occur around every step: activations that are recomputed
# (torch/utils/checkpoint.py, tensor_parallel/random.py of Megatron-LM, formerly mpu/random.py, its
# `checkpoint_handler` and the functions of Transformer Engine that it calls, DeepSpeed's
# activation_checkpointing/ checkpointing.py, fairseq's checkpoint_activations.py,
# checkpoint_wrapper.py of fairscale and FSDP, timm's `checkpoint_seq`, diffusers'
# `_gradient_checkpointing_func`), and calls of compiled code (torch/_dynamo/eval_frame.py:
# `compile_wrapper`). Seen on torch 2.13; its frames are in tests/stacks.
_STEPS = re.compile(
    r"(^|/)torch/(_dynamo/eval_frame|utils/checkpoint)\.py|/(tensor_parallel|mpu)/random\.py"
    r"|/(checkpoint_wrapper|checkpoint_activations|activation_checkpoint|activation_checkpointing/checkpointing)\.py"
    r"|/transformer_engine/pytorch/distributed\.py|/megatron/.*:(\w+\.)?(checkpoint_handler|te_checkpoint)$"
    r"|/timm/models/.*:checkpoint_seq$|:(?![^:]*(sav|load|restor|writ))([^:]*[_.])?(gradient|activation)_checkpoint\w*$"
)
_DEBUGGER = re.compile(r"(^|/)(pdb|bdb|ipdb|pudb|debugpy|pydevd)(/|\.py)")
_DATA = re.compile(r"(^|/)torch/utils/data/|(^|/)(dataloader|dataset)\w*\.py")


class RankPair(Struct, frozen=True, kw_only=True):
    """One rank in both looks. `below` is a worker of it that waits for a file in both looks."""

    seat: RankSeat
    before: JobProcess
    now: JobProcess
    below: JobProcess | None = None

    @property
    def latest_frames(self) -> tuple[StackFrame, ...]:
        return self.now.main_thread.frames if self.now.main_thread else ()

    @property
    def same_stack(self) -> bool:
        """Whether the stacks of both looks are the same, line by line."""
        before = self.before.main_thread.frames if self.before.main_thread else ()
        return bool(self.latest_frames) and before == self.latest_frames

    @property
    def is_looping(self) -> bool:
        """Whether both looks show the same functions. In the innermost one, the line may differ, as
        in a loop without a call."""
        before = self.before.main_thread.frames if self.before.main_thread else ()
        inner = [(f.function, f.path) for f in (*before[:1], *self.latest_frames[:1])]
        return (
            bool(self.latest_frames) and before[1:] == self.latest_frames[1:] and len({*inner}) == 1
        )

    @property
    def is_computing(self) -> bool:
        """Whether it computes. If it is ready to run in both looks, little processor time is
        enough, because other processes may have the processor."""
        wants = self.before.state == self.now.state == "R"
        return self.cores_used is not None and self.cores_used >= (STILL if wants else BUSY)

    @property
    def cores_used(self) -> float | None:
        """The cores that were used between the looks. None if that could not be seen."""
        a, b = self.before.spent, self.now.spent
        return (b.cpu - a.cpu) / (b.at - a.at) if a and b and b.at - a.at >= APART else None

    @property
    def bytes_moved(self) -> int | None:
        """Bytes read and written between the looks. None if that could not be seen."""
        a, b = self.before.spent, self.now.spent
        none = a is None or b is None or a.moved is None or b.moved is None
        return None if none else b.moved - a.moved  # type: ignore[union-attr, operator]

    @property
    def waiting_function(self) -> str:
        """The outermost function in which it waits for others. Empty if it does not."""
        inner = self.latest_frames[:DEPTH]
        waits = [(f, name) for f in inner if _WAITS.fullmatch(name := _plain_function(f.function))]
        at = [name for f, name in waits if _MODULES.search(f.path or f.file)]
        if not at and waits and waits[0][0] is inner[0]:
            at = [name for f, name in waits[:1] if not _PIPES.search(f.path or f.file)]
        return _backward_name(at[-1]) if at else ""


def _plain_function(function: str) -> str:
    """The name of the function, without the class or function around it. A comprehension counts as
    its function."""
    return _INSIDE.sub("", function).rpartition(".")[2]


def _backward_name(function: str) -> str:
    """A name for work on the threads of PyTorch's engine, which have no Python frames."""
    return "backward pass" if function == "_engine_run_backward" else function.strip("_")


def stack_facts(first: StacksDump, second: StacksDump) -> tuple[WitnessFact, ...]:
    """The facts about all ranks. Ranks that were not read in both looks are left out. A stack that
    changed while it was read counts as not seen."""
    ranks, gone = _pair_ranks(first, second)
    odd = [r for r in ranks if not _waits_in_collective(r)]
    waiting = [r for r in ranks if _waits_in_collective(r)]
    where = Counter(r.waiting_function for r in waiting).most_common(1)
    what, count = (where[0][0], len(waiting)) if where else ("", 0)
    found = [_gone_fact(seat, what, count) for seat in gone] if ranks else []
    for rank in odd:
        if fact := _rank_fact(rank, what, count, few=len(odd) <= max(1, len(waiting))):
            found.append(fact)
    if waiting and not (odd or gone or first.missed or second.missed):
        found.append(_all_wait_fact(waiting))
    return merge_facts(found)


def is_partial_look(first: StacksDump, second: StacksDump) -> bool:
    """Whether one look lacks something that the other has about a process that exists in both. Then
    one more pair may show all. It is False if neither look could read it."""
    if {m.node for m in first.missed} != {m.node for m in second.missed}:
        return True
    before = {(p.node, p.pid): p for n in first.nodes for p in n.processes}
    both = [
        (was, p) for n in second.nodes for p in n.processes if (was := before.get((p.node, p.pid)))
    ]
    return any(
        bool(a.threads) != bool(b.threads)
        or (a.spent is None) != (b.spent is None)
        or (a.spent is not None and b.spent is not None and b.spent.at - a.spent.at < APART)
        for a, b in both
    )


def _pair_ranks(first: StacksDump, second: StacksDump) -> tuple[list[RankPair], list[RankSeat]]:
    """The ranks that were seen in both looks, and those without a process at the second look on
    nodes that answered."""
    before = {(s.step, s.rank, s.node): s.process for s in find_seats(first) if s.process}
    below = _waiting_workers(first, second)
    missed = {m.node for m in second.missed}
    ranks, gone = list[RankPair](), list[RankSeat]()
    for seat in find_seats(second):
        now, was = seat.process, before.get((seat.step, seat.rank, seat.node))
        if now is None or now.state in ("Z", "X"):
            if seat.rank is not None and seat.node not in missed and (seat.node or not missed):
                gone.append(seat)
        elif was is not None and was.pid == now.pid and seat.rank is not None:
            ranks.append(
                RankPair(seat=seat, before=was, now=now, below=below.get((now.node, now.pid)))
            )
    return ranks, gone


def _waiting_workers(first: StacksDump, second: StacksDump) -> Mapping[tuple[str, int], JobProcess]:
    """Children that wait for the same file in both looks, by node and parent, such as those of a
    data loader."""
    before = {(p.node, p.pid): p for n in first.nodes for p in n.processes}
    return {
        (p.node, p.parent): p
        for n in second.nodes
        for p in n.processes
        if (was := before.get((p.node, p.pid))) and _is_stuck_on_file(was, p)
    }


def _is_stuck_on_file(was: JobProcess, now: JobProcess) -> bool:
    same = (was.doing, was.path) == (now.doing, now.path)
    file = now.path.startswith("/") and not now.path.startswith(("/dev/", "/proc/"))
    return same and file and was.pid == now.pid and _counters_stood(was, now)


def _counters_stood(was: JobProcess, now: JobProcess) -> bool:
    """Whether its counters were seen to stand. A process that writes much is in state D at most
    looks, so the state alone is not enough."""
    a, b = was.spent, now.spent
    if a is None or b is None or b.at - a.at < APART:
        return False
    moved = b.moved - a.moved if a.moved is not None and b.moved is not None else 0
    return b.cpu - a.cpu <= STILL * (b.at - a.at) and moved < QUIET


def _waits_in_collective(rank: RankPair) -> bool:
    """Whether it is in a collective in both looks. A backward pass that uses its processor
    computes."""
    before = RankPair(seat=rank.seat, before=rank.before, now=rank.before)
    if rank.now.state in ("T", "t", "D") or not (rank.waiting_function and before.waiting_function):
        return False
    return rank.waiting_function != "backward pass" or rank.same_stack


def _rank_fact(rank: RankPair, what: str, waiting: int, *, few: bool) -> WitnessFact | None:
    """The fact with the most important sign of a rank that does not wait with the others. None if
    there is no sign."""
    sign, words = _rank_sign(rank, waiting if few else 0)
    if not sign:
        return None
    return WitnessFact(
        sign=sign,
        words=words,
        ranks=(rank.seat.rank,) if rank.seat.rank is not None else (),
        nodes=(rank.seat.node,),
        collective=what if few else "",
        waiting=waiting if few else 0,
        line=_place_line(rank.latest_frames),
    )


def _rank_sign(rank: RankPair, waiting: int) -> tuple[str, str]:
    """The most important sign and its words. Signs from the kernel come before those of the
    stack."""
    before, now = rank.before.state, rank.now.state
    if now == "t" or any(_DEBUGGER.search(f.path or f.file) for f in rank.latest_frames):
        return "debugged", "somebody holds it in a debugger"
    if now == before == "T":
        return "stopped", "a signal has stopped it (state T)"
    if _is_stuck_on_file(rank.before, rank.now):
        return "blocked", f"{rank.now.doing} {rank.now.path}"
    if rank.below is not None:
        return "blocked", f"its worker {rank.below.pid} is {rank.below.doing} {rank.below.path}"
    if now == before == "D" and _counters_stood(rank.before, rank.now):
        kernel = rank.now.blocked.wchan if rank.now.blocked else ""
        return "uninterruptible", f"state D{' in ' + kernel if kernel not in ('', '0') else ''}"
    if phase := _phase_function(rank.latest_frames):
        return "phase", f"in {phase}"
    if rank.bytes_moved is not None and rank.bytes_moved >= MOVED:
        return "transfers", f"{rank.bytes_moved / 2**20:.0f} MiB read or written between two looks"
    return _elsewhere_sign(rank) if waiting else ("", "")


def _elsewhere_sign(rank: RankPair) -> tuple[str, str]:
    """The sign of a rank for which others wait: it stands, burns its processor, or moves."""
    if not rank.latest_frames or rank.cores_used is None:
        return "", ""
    at = f"in {_place_line(rank.latest_frames)}"
    if rank.is_looping and rank.is_computing:
        return "spins", f"{at}, it burns {rank.cores_used:.1f} cores"
    if not rank.same_stack:
        return "works", at
    if rank.cores_used <= STILL:
        data = any(_DATA.search(f.path or f.file) for f in rank.latest_frames)
        return "stands", f"{at}, {'it waits for data' if data else 'it uses no processor'}"
    return "", ""


def _phase_function(frames: Sequence[StackFrame]) -> str:
    """The function that shows that this is no training step. Empty if there is none."""
    for frame in frames:
        # The function that created this one may have ended long ago.
        own = frame.function.rpartition("<locals>.")[2]
        where = f"{frame.path or frame.file}:{own}"
        if not _STEPS.search(where) and (_PHASES.match(own) or _PHASE_FILES.search(where)):
            return _place_line((frame,))
    return ""


def _gone_fact(seat: RankSeat, what: str, waiting: int) -> WitnessFact:
    words = "it has ended and nobody has noticed" if seat.process else "it has no process any more"
    return WitnessFact(
        sign="gone",
        words=words,
        ranks=(seat.rank,) if seat.rank is not None else (),
        nodes=(seat.node,) if seat.node else (),
        collective=what,
        waiting=waiting,
    )


def _all_wait_fact(waiting: Sequence[RankPair]) -> WitnessFact:
    """The fact if all ranks wait. The few that wait in another collective are named in words. In a
    pipeline many places are right at once, so these ranks are no culprits. One rank that is alone
    in a collective is a culprit if no function of a pipeline is in the stacks, because none of its
    own group is with it."""
    places = Counter(r.waiting_function for r in waiting)
    most = places.most_common(1)[0][0]
    few = sorted(r.seat.rank or 0 for r in waiting if r.waiting_function != most)
    told = f"all {len(waiting)} ranks are in the {most}"
    if few:
        told = f"{len(waiting) - len(few)} ranks are in the {most}; elsewhere: rank " + ", ".join(
            f"{r.seat.rank} in the {r.waiting_function}" for r in waiting if r.seat.rank in few[:4]
        )
    if phase := next((p for r in waiting if (p := _phase_function(r.latest_frames))), ""):
        return WitnessFact(sign="phase", words=f"{told}, called by {phase}", line=phase)
    idle = all(r.same_stack and r.cores_used is not None and r.cores_used <= STILL for r in waiting)
    place = _place_line(waiting[0].latest_frames)
    lone = next((r for r in waiting if r.waiting_function != most), waiting[0])
    if idle and len(few) == 1 and len(waiting) > LEAST and not _PAIRED.search(" ".join(places)):
        seat, words = lone.seat, f"it is alone in the {lone.waiting_function}"
        return WitnessFact(
            sign="alone", words=words, ranks=tuple(few), nodes=(seat.node,), collective=most,
            waiting=len(waiting) - 1, line=_place_line(lone.latest_frames),
        )  # fmt: skip
    return WitnessFact(sign="idle" if idle else "together", words=told, collective=most, line=place)


def merge_facts(found: Iterable[WitnessFact]) -> tuple[WitnessFact, ...]:
    """Join the facts about ranks with the same sign and words."""
    kept: dict[tuple[str, str], WitnessFact] = {}
    for fact in found:
        key = (fact.sign, fact.words)
        if one := kept.get(key):
            ranks, nodes = (*one.ranks, *fact.ranks), dict.fromkeys((*one.nodes, *fact.nodes))
            fact = WitnessFact(
                sign=one.sign, words=one.words, ranks=ranks, nodes=tuple(nodes),
                collective=one.collective, waiting=one.waiting, line=one.line,
            )  # fmt: skip
        kept[key] = fact
    return tuple(kept.values())


def _place_line(frames: Sequence[StackFrame]) -> str:
    return frame_place(frames) if frames else ""
