"""Two looks at all ranks of a job, some seconds apart, and what they show together. Pure.

One look proves nothing: healthy ranks stand in a collective at any moment. What stands at the same
line at both while its counters stand too, and what has moved, are the signs of verdict.RULE.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from sentinel.stacks.parse.group import Seat, seats
from sentinel.stacks.parse.model import Dump, Frame, Process
from sentinel.stacks.parse.ras import Odd
from sentinel.stacks.parse.standstill import Standstill
from sentinel.stacks.parse.standstill import told as recorded
from sentinel.stacks.parse.verdict import Fact
from sentinel.stacks.parse.words import place

STILL = 0.03
"""Cores below which a process computes nothing: threads that only watch wake up now and then."""
BUSY = 0.3
"""Cores from which on it does."""
MOVED = 2**20
"""Bytes between two looks from which on a rank reads or writes files: heartbeats are less."""
QUIET = 2**16
"""Bytes between two looks below which a call on a file has not gone on: threads beside it write."""
APART = 1.0
"""Seconds between two looks below which they are one."""
LEAST = 2
"""Ranks up to which none is alone: either may be wrong."""
DEPTH = 12
"""Innermost frames in which a collective is looked for: wrappers and hooks stand around it."""

# Functions that wait for other ranks or for one's own GPU, and the modules in which all do
# (torch/distributed/distributed_c10d.py, torch/cuda/__init__.py).
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
# A data loader and a queue send and receive too, to nobody's rank.
_PIPES = re.compile(r"(^|/)(multiprocessing|asyncio)/|(^|/)(socket|ssl|queue|threading)\.py")
# Where ranks may stand apart though all is right: between the stages of a pipeline, and on their own
# GPU, behind which any collective may be.
_PAIRED = re.compile(r"send|recv|synchronize|item|backward pass")
# Functions of work that takes long and is no step, by their names and those of their files. A class may
# stand before the function: py-spy 0.4 tells qualified names from Python 3.11 on (`Trainer.evaluate`).
# Not what trains as well (`train_and_test`), nor what a model does at every step (`predict_noise`,
# `importance_sampling`), nor `sample`: a data loader's functions are called so. One that hangs has to be told.
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
# What sounds like that and is around every step: activations that are computed anew
# (torch/utils/checkpoint.py, tensor_parallel/random.py of Megatron-LM, which was mpu/random.py, its
# `checkpoint_handler` and what it calls of Transformer Engine, DeepSpeed's activation_checkpointing/
# checkpointing.py, fairseq's checkpoint_activations.py, fairscale's and FSDP's checkpoint_wrapper.py, timm's
# `checkpoint_seq`, diffusers' `_gradient_checkpointing_func`), and the call of what was compiled before
# (torch/_dynamo/eval_frame.py: `compile_wrapper`). Seen on torch 2.13: its frames in tests/stacks.
_STEPS = re.compile(
    r"(^|/)torch/(_dynamo/eval_frame|utils/checkpoint)\.py|/(tensor_parallel|mpu)/random\.py"
    r"|/(checkpoint_wrapper|checkpoint_activations|activation_checkpoint|activation_checkpointing/checkpointing)\.py"
    r"|/transformer_engine/pytorch/distributed\.py|/megatron/.*:(\w+\.)?(checkpoint_handler|te_checkpoint)$"
    r"|/timm/models/.*:checkpoint_seq$|:(?![^:]*(sav|load|restor|writ))([^:]*[_.])?(gradient|activation)_checkpoint\w*$"
)
_DEBUGGER = re.compile(r"(^|/)(pdb|bdb|ipdb|pudb|debugpy|pydevd)(/|\.py)")
_DATA = re.compile(r"(^|/)torch/utils/data/|(^|/)(dataloader|dataset)\w*\.py")


class Rank(Struct, frozen=True, kw_only=True):
    """One rank at both looks; `below`: a worker of it that waits for a file at both."""

    seat: Seat
    before: Process
    now: Process
    below: Process | None = None

    @property
    def frames(self) -> tuple[Frame, ...]:
        return self.now.main.frames if self.now.main else ()

    @property
    def same(self) -> bool:
        """The same stack, line by line, at both looks."""
        before = self.before.main.frames if self.before.main else ()
        return bool(self.frames) and before == self.frames

    @property
    def loops(self) -> bool:
        """The same functions, and of the innermost one any line: so does a loop without a call."""
        before = self.before.main.frames if self.before.main else ()
        inner = [(f.function, f.path) for f in (*before[:1], *self.frames[:1])]
        return bool(self.frames) and before[1:] == self.frames[1:] and len({*inner}) == 1

    @property
    def runs(self) -> bool:
        """It burns its processor, or wants to at both looks: others may have it."""
        wants = self.before.state == self.now.state == "R"
        return self.cores is not None and self.cores >= (STILL if wants else BUSY)

    @property
    def cores(self) -> float | None:
        """Used between the looks; None where nobody could see it."""
        a, b = self.before.spent, self.now.spent
        return (b.cpu - a.cpu) / (b.at - a.at) if a and b and b.at - a.at >= APART else None

    @property
    def moved(self) -> int | None:
        """Bytes read and written between the looks."""
        a, b = self.before.spent, self.now.spent
        none = a is None or b is None or a.moved is None or b.moved is None
        return None if none else b.moved - a.moved  # type: ignore[union-attr, operator]

    @property
    def collective(self) -> str:
        """The outermost function in which it waits for others; empty: it is elsewhere."""
        inner = self.frames[:DEPTH]
        waits = [(f, name) for f in inner if _WAITS.fullmatch(name := _plain(f.function))]
        at = [name for f, name in waits if _MODULES.search(f.path or f.file)]
        if not at and waits and waits[0][0] is inner[0]:
            at = [name for f, name in waits[:1] if not _PIPES.search(f.path or f.file)]
        return _backward(at[-1]) if at else ""


def _plain(function: str) -> str:
    """Its own name, without the class or function around it; a comprehension is part of its function."""
    return _INSIDE.sub("", function).rpartition(".")[2]


def _backward(function: str) -> str:
    """What PyTorch's engine runs on its own threads has no frame of its own."""
    return "backward pass" if function == "_engine_run_backward" else function.strip("_")


def facts(first: Dump, second: Dump) -> tuple[Fact, ...]:
    """What was seen of all ranks; of one that was not read at both looks nothing is told, and a
    torn stack is not seen."""
    ranks, gone = _paired(first, second)
    odd = [r for r in ranks if not _waits(r)]
    waiting = [r for r in ranks if _waits(r)]
    where = Counter(r.collective for r in waiting).most_common(1)
    what, count = (where[0][0], len(waiting)) if where else ("", 0)
    found = [_gone(seat, what, count) for seat in gone] if ranks else []
    for rank in odd:
        if fact := _fact(rank, what, count, few=len(odd) <= max(1, len(waiting))):
            found.append(fact)
    if waiting and not (odd or gone or first.missed or second.missed):
        found.append(_all(waiting))
    return _merged(found)


def partial(first: Dump, second: Dump) -> bool:
    """Whether a look lacks what the other has, of a process that was there at both: one more pair may
    show all. What nobody can read at either is no reason."""
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


def _paired(first: Dump, second: Dump) -> tuple[list[Rank], list[Seat]]:
    """Ranks that were seen twice, and those whose process is gone at the second look, on nodes that
    answered."""
    before = {(s.step, s.rank, s.node): s.process for s in seats(first) if s.process}
    below = _workers(first, second)
    missed = {m.node for m in second.missed}
    ranks, gone = list[Rank](), list[Seat]()
    for seat in seats(second):
        now, was = seat.process, before.get((seat.step, seat.rank, seat.node))
        if now is None or now.state in ("Z", "X"):
            if seat.rank is not None and seat.node not in missed and (seat.node or not missed):
                gone.append(seat)
        elif was is not None and was.pid == now.pid and seat.rank is not None:
            ranks.append(Rank(seat=seat, before=was, now=now, below=below.get((now.node, now.pid))))
    return ranks, gone


def _workers(first: Dump, second: Dump) -> Mapping[tuple[str, int], Process]:
    """Children that wait for the same file at both looks, by node and parent: a loader's."""
    before = {(p.node, p.pid): p for n in first.nodes for p in n.processes}
    return {
        (p.node, p.parent): p
        for n in second.nodes
        for p in n.processes
        if (was := before.get((p.node, p.pid))) and _stuck_on_file(was, p)
    }


def _stuck_on_file(was: Process, now: Process) -> bool:
    same = (was.doing, was.path) == (now.doing, now.path)
    file = now.path.startswith("/") and not now.path.startswith(("/dev/", "/proc/"))
    return same and file and was.pid == now.pid and _stood(was, now)


def _stood(was: Process, now: Process) -> bool:
    """Whether its counters were seen to stand: who writes much is in state D at most looks."""
    a, b = was.spent, now.spent
    if a is None or b is None or b.at - a.at < APART:
        return False
    moved = b.moved - a.moved if a.moved is not None and b.moved is not None else 0
    return b.cpu - a.cpu <= STILL * (b.at - a.at) and moved < QUIET


def _waits(rank: Rank) -> bool:
    """In a collective at both looks. A backward pass that uses its processor computes."""
    before = Rank(seat=rank.seat, before=rank.before, now=rank.before)
    if rank.now.state in ("T", "t", "D") or not (rank.collective and before.collective):
        return False
    return rank.collective != "backward pass" or rank.same


def _fact(rank: Rank, what: str, waiting: int, *, few: bool) -> Fact | None:
    """The one sign that tells most of a rank that is not with the others."""
    sign, words = _sign(rank, waiting if few else 0)
    if not sign:
        return None
    return Fact(
        sign=sign,
        words=words,
        ranks=(rank.seat.rank,) if rank.seat.rank is not None else (),
        nodes=(rank.seat.node,),
        collective=what if few else "",
        waiting=waiting if few else 0,
        line=_line(rank.frames),
    )


def _sign(rank: Rank, waiting: int) -> tuple[str, str]:
    """What the kernel knows comes before what the stack shows."""
    before, now = rank.before.state, rank.now.state
    if now == "t" or any(_DEBUGGER.search(f.path or f.file) for f in rank.frames):
        return "debugged", "somebody holds it in a debugger"
    if now == before == "T":
        return "stopped", "a signal has stopped it (state T)"
    if _stuck_on_file(rank.before, rank.now):
        return "blocked", f"{rank.now.doing} {rank.now.path}"
    if rank.below is not None:
        return "blocked", f"its worker {rank.below.pid} is {rank.below.doing} {rank.below.path}"
    if now == before == "D" and _stood(rank.before, rank.now):
        kernel = rank.now.blocked.wchan if rank.now.blocked else ""
        return "uninterruptible", f"state D{' in ' + kernel if kernel not in ('', '0') else ''}"
    if phase := _phase(rank.frames):
        return "phase", f"in {phase}"
    if rank.moved is not None and rank.moved >= MOVED:
        return "transfers", f"{rank.moved / 2**20:.0f} MiB read or written between two looks"
    return _elsewhere(rank) if waiting else ("", "")


def _elsewhere(rank: Rank) -> tuple[str, str]:
    """It stands, burns its processor or moves where others wait for it."""
    if not rank.frames or rank.cores is None:
        return "", ""
    at = f"in {_line(rank.frames)}"
    if rank.loops and rank.runs:
        return "spins", f"{at}, it burns {rank.cores:.1f} cores"
    if not rank.same:
        return "works", at
    if rank.cores <= STILL:
        data = any(_DATA.search(f.path or f.file) for f in rank.frames)
        return "stands", f"{at}, {'it waits for data' if data else 'it uses no processor'}"
    return "", ""


def _phase(frames: Sequence[Frame]) -> str:
    """The function that says that this is no step."""
    for frame in frames:
        # Who made a function may have ended long ago.
        own = frame.function.rpartition("<locals>.")[2]
        where = f"{frame.path or frame.file}:{own}"
        if not _STEPS.search(where) and (_PHASES.match(own) or _PHASE_FILES.search(where)):
            return _line((frame,))
    return ""


def _gone(seat: Seat, what: str, waiting: int) -> Fact:
    words = "it has ended and nobody has noticed" if seat.process else "it has no process any more"
    return Fact(
        sign="gone",
        words=words,
        ranks=(seat.rank,) if seat.rank is not None else (),
        nodes=(seat.node,) if seat.node else (),
        collective=what,
        waiting=waiting,
    )


def _all(waiting: Sequence[Rank]) -> Fact:
    """All wait. Those few that wait elsewhere are named in words: in a pipeline many places are
    right at once, so they are no culprits for that. One that is alone in a collective that is none
    of a pipeline's is: none of its own group is with it."""
    places = Counter(r.collective for r in waiting)
    most = places.most_common(1)[0][0]
    few = sorted(r.seat.rank or 0 for r in waiting if r.collective != most)
    told = f"all {len(waiting)} ranks are in the {most}"
    if few:
        told = f"{len(waiting) - len(few)} ranks are in the {most}; elsewhere: rank " + ", ".join(
            f"{r.seat.rank} in the {r.collective}" for r in waiting if r.seat.rank in few[:4]
        )
    if phase := next((p for r in waiting if (p := _phase(r.frames))), ""):
        return Fact(sign="phase", words=f"{told}, called by {phase}", line=phase)
    idle = all(r.same and r.cores is not None and r.cores <= STILL for r in waiting)
    place = _line(waiting[0].frames)
    lone = next((r for r in waiting if r.collective != most), waiting[0])
    if idle and len(few) == 1 and len(waiting) > LEAST and not _PAIRED.search(" ".join(places)):
        seat, words = lone.seat, f"it is alone in the {lone.collective}"
        return Fact(
            sign="alone", words=words, ranks=tuple(few), nodes=(seat.node,), collective=most,
            waiting=len(waiting) - 1, line=_line(lone.frames),
        )  # fmt: skip
    return Fact(sign="idle" if idle else "together", words=told, collective=most, line=place)


def _merged(found: Iterable[Fact]) -> tuple[Fact, ...]:
    """Ranks with the same sign and words as one fact."""
    kept: dict[tuple[str, str], Fact] = {}
    for fact in found:
        key = (fact.sign, fact.words)
        if one := kept.get(key):
            ranks, nodes = (*one.ranks, *fact.ranks), dict.fromkeys((*one.nodes, *fact.nodes))
            fact = Fact(
                sign=one.sign, words=one.words, ranks=ranks, nodes=tuple(nodes),
                collective=one.collective, waiting=one.waiting, line=one.line,
            )  # fmt: skip
        kept[key] = fact
    return tuple(kept.values())


def _line(frames: Sequence[Frame]) -> str:
    return place(frames) if frames else ""


# -- other witnesses -----------------------------------------------------------------------


def of_recorder(found: Standstill) -> tuple[Fact, ...]:
    """What the flight recorder's dumps say."""
    return tuple(
        Fact(
            sign="recorded",
            words=recorded(Standstill(culprits=(one,), ranks=found.ranks, circle=found.circle)),
            ranks=one.ranks,
            collective=one.collective,
            waiting=one.waiting,
            line=one.place,
        )
        for one in found.culprits
    )


def of_ras(odd: Iterable[Odd], dump: Dump) -> tuple[Fact, ...]:
    """By the number of the process, where only one has it: RAS counts ranks in each communicator, not
    in the job."""
    sitting = [s for s in seats(dump) if s.process]
    times = Counter(s.process.pid for s in sitting if s.process)
    by_pid = {s.process.pid: s for s in sitting if s.process and times[s.process.pid] == 1}
    found = []
    for one in odd:
        seat = by_pid.get(one.pid)
        rank = (seat.rank,) if seat and seat.rank is not None else ()
        node = (seat.node,) if seat else (one.host,)
        sign = "behind" if one.operation else "lost"
        found.append(Fact(sign=sign, words=one.words, ranks=rank, nodes=node))
    return _merged(found)
