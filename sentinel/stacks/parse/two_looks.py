"""Two looks at all ranks of a job, some seconds apart, and what they show together. Pure.

One look proves nothing: healthy ranks stand in a collective at any moment. What stands at the same
line at both while its counters stand too, and what has moved, are the signs of verdict.RULE.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from sentinel.stacks.parse.group import RankSeat, find_seats
from sentinel.stacks.parse.model import JobProcess, StackFrame, StacksDump
from sentinel.stacks.parse.ras import OddProcess
from sentinel.stacks.parse.standstill import Standstill
from sentinel.stacks.parse.standstill import describe_standstill as recorded
from sentinel.stacks.parse.verdict import WitnessFact
from sentinel.stacks.parse.words import frame_place

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


class RankPair(Struct, frozen=True, kw_only=True):
    """One rank at both looks; `below`: a worker of it that waits for a file at both."""

    seat: RankSeat
    before: JobProcess
    now: JobProcess
    below: JobProcess | None = None

    @property
    def latest_frames(self) -> tuple[StackFrame, ...]:
        return self.now.main_thread.frames if self.now.main_thread else ()

    @property
    def same_stack(self) -> bool:
        """The same stack, line by line, at both looks."""
        before = self.before.main_thread.frames if self.before.main_thread else ()
        return bool(self.latest_frames) and before == self.latest_frames

    @property
    def is_looping(self) -> bool:
        """The same functions, and of the innermost one any line: so does a loop without a call."""
        before = self.before.main_thread.frames if self.before.main_thread else ()
        inner = [(f.function, f.path) for f in (*before[:1], *self.latest_frames[:1])]
        return (
            bool(self.latest_frames) and before[1:] == self.latest_frames[1:] and len({*inner}) == 1
        )

    @property
    def is_computing(self) -> bool:
        """It burns its processor, or wants to at both looks: others may have it."""
        wants = self.before.state == self.now.state == "R"
        return self.cores_used is not None and self.cores_used >= (STILL if wants else BUSY)

    @property
    def cores_used(self) -> float | None:
        """Used between the looks; None where nobody could see it."""
        a, b = self.before.spent, self.now.spent
        return (b.cpu - a.cpu) / (b.at - a.at) if a and b and b.at - a.at >= APART else None

    @property
    def bytes_moved(self) -> int | None:
        """Bytes read and written between the looks."""
        a, b = self.before.spent, self.now.spent
        none = a is None or b is None or a.moved is None or b.moved is None
        return None if none else b.moved - a.moved  # type: ignore[union-attr, operator]

    @property
    def waiting_function(self) -> str:
        """The outermost function in which it waits for others; empty: it is elsewhere."""
        inner = self.latest_frames[:DEPTH]
        waits = [(f, name) for f in inner if _WAITS.fullmatch(name := _plain_function(f.function))]
        at = [name for f, name in waits if _MODULES.search(f.path or f.file)]
        if not at and waits and waits[0][0] is inner[0]:
            at = [name for f, name in waits[:1] if not _PIPES.search(f.path or f.file)]
        return _backward_name(at[-1]) if at else ""


def _plain_function(function: str) -> str:
    """Its own name, without the class or function around it; a comprehension is part of its function."""
    return _INSIDE.sub("", function).rpartition(".")[2]


def _backward_name(function: str) -> str:
    """What PyTorch's engine runs on its own threads has no frame of its own."""
    return "backward pass" if function == "_engine_run_backward" else function.strip("_")


def stack_facts(first: StacksDump, second: StacksDump) -> tuple[WitnessFact, ...]:
    """What was seen of all ranks; of one that was not read at both looks nothing is told, and a
    torn stack is not seen."""
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
    return _merge_facts(found)


def is_partial_look(first: StacksDump, second: StacksDump) -> bool:
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


def _pair_ranks(first: StacksDump, second: StacksDump) -> tuple[list[RankPair], list[RankSeat]]:
    """Ranks that were seen twice, and those whose process is gone at the second look, on nodes that
    answered."""
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
    """Children that wait for the same file at both looks, by node and parent: a loader's."""
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
    """Whether its counters were seen to stand: who writes much is in state D at most looks."""
    a, b = was.spent, now.spent
    if a is None or b is None or b.at - a.at < APART:
        return False
    moved = b.moved - a.moved if a.moved is not None and b.moved is not None else 0
    return b.cpu - a.cpu <= STILL * (b.at - a.at) and moved < QUIET


def _waits_in_collective(rank: RankPair) -> bool:
    """In a collective at both looks. A backward pass that uses its processor computes."""
    before = RankPair(seat=rank.seat, before=rank.before, now=rank.before)
    if rank.now.state in ("T", "t", "D") or not (rank.waiting_function and before.waiting_function):
        return False
    return rank.waiting_function != "backward pass" or rank.same_stack


def _rank_fact(rank: RankPair, what: str, waiting: int, *, few: bool) -> WitnessFact | None:
    """The one sign that tells most of a rank that is not with the others."""
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
    """What the kernel knows comes before what the stack shows."""
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
    """It stands, burns its processor or moves where others wait for it."""
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
    """The function that says that this is no step."""
    for frame in frames:
        # Who made a function may have ended long ago.
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
    """All wait. Those few that wait elsewhere are named in words: in a pipeline many places are
    right at once, so they are no culprits for that. One that is alone in a collective that is none
    of a pipeline's is: none of its own group is with it."""
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


def _merge_facts(found: Iterable[WitnessFact]) -> tuple[WitnessFact, ...]:
    """Ranks with the same sign and words as one fact."""
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


# -- other witnesses -----------------------------------------------------------------------


def recorder_facts(found: Standstill) -> tuple[WitnessFact, ...]:
    """What the flight recorder's dumps say."""
    return tuple(
        WitnessFact(
            sign="recorded",
            words=recorded(Standstill(culprits=(one,), ranks=found.ranks, circle=found.circle)),
            ranks=one.ranks,
            collective=one.collective,
            waiting=one.waiting,
            line=one.place,
        )
        for one in found.culprits
    )


def ras_facts(odd: Iterable[OddProcess], dump: StacksDump) -> tuple[WitnessFact, ...]:
    """By the number of the process, where only one has it: RAS counts ranks in each communicator, not
    in the job."""
    sitting = [s for s in find_seats(dump) if s.process]
    times = Counter(s.process.pid for s in sitting if s.process)
    by_pid = {s.process.pid: s for s in sitting if s.process and times[s.process.pid] == 1}
    found = []
    for one in odd:
        seat = by_pid.get(one.pid)
        rank = (seat.rank,) if seat and seat.rank is not None else ()
        node = (seat.node,) if seat else (one.host,)
        sign = "behind" if one.operation else "lost"
        found.append(WitnessFact(sign=sign, words=one.odd_words, ranks=rank, nodes=node))
    return _merge_facts(found)
