"""One run over all nodes: finds problems in the sights, updates the ledger, and makes findings."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from sentinel.checks.gpu import judge, lemon, missing, open_xids, words
from sentinel.checks.gpu.guidance import Said, ask_for_help, guide_gpu, suggest_commands
from sentinel.checks.gpu.judge import Limits, Problem
from sentinel.checks.gpu.missing import Known
from sentinel.checks.gpu.open_xids import Open
from sentinel.checks.gpu.sight import Sight, ledger_events, plain
from sentinel.core.clock import Instant
from sentinel.core.cluster import Node
from sentinel.core.errors import StoreError
from sentinel.core.gpu_ledger import (
    NODE_PREFIX,
    GpuEvent,
    GpuLedger,
    GpuSighting,
    GpuStanding,
    LedgerEntry,
    Stay,
)
from sentinel.core.guidance import Guidance
from sentinel.core.model import Finding, Status, Value, get_worst_status
from sentinel.core.stored_memory import decode_memory
from sentinel.core.text import visible
from sentinel.gpu.ledger_update import FORGOT, blamed
from sentinel.gpu.model import Gpu
from sentinel.slurm.gres import count_gres_gpus as gpus_in

TOLD = 3
"""How many problems of one GPU its summary shows. The details show all of them."""


class Book(Struct, kw_only=True):
    """The answers of the ledger in this run."""

    entries: Sequence[LedgerEntry] = ()  # Entries of the ledger.
    lemons: Mapping[str, Sequence[Stay]] = {}  # the places of each lemon that is in a node now
    standings: Mapping[str, GpuStanding] = {}  # The status of each subject.
    # when a person declared an event void (µs UTC), by subject and kind of event
    forgotten: Mapping[tuple[str, str], int] = {}
    trouble: str = ""  # why the ledger could not be read
    on_node: dict[str, list[LedgerEntry]] = {}  # The entries of GPUs, by the node of each.

    def __post_init__(self) -> None:
        for entry in self.entries:
            if not entry.is_node:
                self.on_node.setdefault(entry.node, []).append(entry)

    @property
    def cleared(self) -> dict[str, int]:
        """When somebody said that a subject is repaired (µs UTC), by subject."""
        return {e.subject: e.cleared for e in self.entries if e.cleared}


class Round(Struct, frozen=True, kw_only=True):
    """The settings and observations by which one run judges."""

    expect: int | None  # How many GPUs each node must have. None: not configured.
    warn: Limits  # Limits of a warning.
    crit: Limits  # Limits of a critical alert.
    now: Instant  # When the run began.
    sights: Mapping[str, Sight]  # The observation of each node.
    slurm: Mapping[str, Node] = {}  # Each node, as Slurm shows it.
    memory: Mapping[str, Any] = {}  # what the last run stored
    one_shot: bool = False  # Whether this run has no state.

    def is_second_look(self, uuid: str) -> bool:
        """Whether some fields of the GPU could not be read at the last look either. Always True in
        a one-shot, which has no other look."""
        return self.one_shot or uuid in (decode_memory(self.memory.get("odd"), list[str]) or ())

    def said(self, node: str) -> int | None:
        """The number of GPUs of the node by the configuration or Slurm; None if neither says it."""
        listed, sight = self.slurm.get(node), self.sights.get(node)
        # Of a divided GPU Slurm lists the parts, whatever their type is called (gres.conf(5)).
        divided = sight is not None and any(gpu.mig for gpu in sight.gpus)
        gres = (gpus_in(listed.gres) or None) if listed and not divided else None
        return self.expect if self.expect is not None else gres

    def due(self, node: str) -> int | None:
        """The number of GPUs that the node has to have: by the configuration or Slurm, else as many
        as were there before. None if it is not known."""
        said = self.said(node)
        return said if said is not None else len(self.remembered(node)) or None

    def remembered(self, node: str) -> list[Known]:
        """The GPUs that were in the node at the last look."""
        return decode_memory(plain(self.memory, "known").get(node), list[Known]) or []

    def empty(self, sight: Sight) -> bool:
        """Whether the node shows no GPU and nobody says how many it has to have. That proves
        nothing."""
        none = sight.inventory is not None and not sight.inventory.gpus
        return none and self.due(sight.node) is None

    def saw(self, sight: Sight) -> bool:
        """Whether the GPUs of the node were seen, or were seen not to answer."""
        return sight.dark or (sight.inventory is not None and not self.empty(sight))

    def gone(self, sight: Sight, book: Book) -> list[Known | None]:
        """The missing GPUs of the node; empty if the node showed nothing at all."""
        if sight.inventory is None:
            return []
        listed = book.on_node.get(sight.node, [])
        known = missing.known_on(listed, self.remembered(sight.node))
        return missing.missing(sight, self.due(sight.node), known)


def keep_book(
    gpus: GpuLedger | None, this: Round, extra: Sequence[GpuEvent], opened: Sequence[Open] = ()
) -> Book:
    """Store the observations in the ledger. Read what it knows about the GPUs and their open
    events."""
    if gpus is None:
        return Book()
    try:
        before = gpus.read_entries()
        gpus.record_sightings(list(_sightings(this.sights)), this.now)
        gpus.add_events([*_events(this, Book(entries=before)), *extra])
        standings = gpus.read_standings(this.now)
        here = {gpu.uuid for sight in this.sights.values() for gpu in sight.gpus}
        bad = [uuid for uuid in here if uuid in standings and standings[uuid].judged == "lemon"]
        return Book(
            entries=before,
            standings=standings,
            lemons={uuid: gpus.read_stays(uuid) for uuid in bad},
            forgotten=_forgotten(gpus, before, opened),
        )
    except StoreError as error:
        return Book(trouble=str(error))


def _forgotten(
    gpus: GpuLedger, entries: Sequence[LedgerEntry], opened: Sequence[Open]
) -> dict[tuple[str, str], int]:
    """When each open event was forgotten by a person (µs UTC). If the ledger no longer knows a
    subject, all of its events were forgotten."""
    known = {entry.subject for entry in entries}
    found = {(one.subject, one.what): one.at for one in opened if one.subject not in known}
    for subject in {one.subject for one in opened} & known:
        for event in gpus.read_events(subject):
            if event.what.startswith(FORGOT):
                found.setdefault((subject, event.what.removeprefix(FORGOT)), event.at.wall)
    return found


def _sightings(sights: Mapping[str, Sight]) -> Iterator[GpuSighting]:
    for sight in sights.values():
        whole = {gpu.uuid: gpu for gpu in reversed(sight.gpus)}
        for gpu in whole.values():
            yield GpuSighting(
                uuid=gpu.uuid, node=sight.node, slot=gpu.bus, serial=gpu.serial, model=gpu.model
            )


def _events(this: Round, book: Book) -> Iterator[GpuEvent]:
    for sight in this.sights.values():
        events = [*ledger_events(sight)]
        for gpu in sight.gpus:
            events += judge.events(gpu, sight.node, sight.boot, this.now)
        events += missing.events(sight, this.gone(sight, book), this.now)
        there = len(sight.inventory.gpus) if sight.inventory else len(sight.uuids)
        yield from blamed(events, sight.node, max(there, this.due(sight.node) or 0))


def findings(this: Round, book: Book, opened: Sequence[Open]) -> list[Finding]:
    """One finding for each GPU that was seen or is missing, and for each node with a problem
    itself."""
    said: dict[str, Said] = {}
    common = words.widespread(this.sights)
    for sight in this.sights.values():
        _of_sight(said, sight, this, book, common)
    for one in opened:
        subject = one.subject.removeprefix(NODE_PREFIX)
        about = said.setdefault(subject, Said(node=one.node, problems=[]))
        about.problems.append(open_xids.problem(one, this.now))
        about.details.append(f"kernel log: {one.text}")
        about.advice.append(one.advice)
        if one.what == OFF_THE_BUS:  # older values of nvidia-smi are no longer true
            about.values = {k: v for k, v in about.values.items() if k in _NAMEPLATE}
    return [_finding(subject, about) for subject, about in said.items()]


def _of_sight(
    said: dict[str, Said], sight: Sight, this: Round, book: Book, common: Collection[str]
) -> None:
    for gpu in sight.gpus:
        about = Said(node=sight.node, problems=[], values=judge.values(gpu))
        about.well = _well(about.values, book.standings.get(gpu.uuid))
        if gpu.recovery in common:
            gpu = replace(gpu, recovery="")
        if gpu.troubles and gpu.answers and not this.is_second_look(gpu.uuid):
            about.well += f"; could not be read once: {gpu.troubles[0]}"
            gpu = replace(gpu, troubles=())
        if odd := sum(not word.mild for word in gpu.unknown):
            about.well += f"; sentinel does not know {odd} of its fields"
        about.problems += judge.problems(gpu, this.warn, this.crit)
        if gpu.uuid in said:  # another part of the same device was reported already
            said[gpu.uuid].problems += about.problems
        else:
            said[gpu.uuid] = about
    gone = this.gone(sight, book)
    for subject, problem in missing.problems(sight, this.due(sight.node) or 0, gone, this.now):
        said.setdefault(subject, Said(node=sight.node, problems=[])).problems.append(problem)
    _of_node(said, sight, this)


def _of_node(said: dict[str, Said], sight: Sight, this: Round) -> None:
    """Add a node whose GPUs do not answer at all, or that could not be read."""
    problems: list[Problem] = []
    if this.empty(sight):
        text = "no GPU was found; set `expect` to the number there should be"
        problems.append((Status.UNKNOWN, text))
    if sight.blind:
        problems.append((Status.CRITICAL if sight.dark else Status.UNKNOWN, sight.blind))
    if sight.log_blind:
        problems.append((Status.UNKNOWN, sight.log_blind))
    if sight.lost:
        text = f"{sight.lost} lines of the kernel's log were overwritten unread, perhaps an Xid"
        problems.append((Status.UNKNOWN, text))
    problems += map(_nameless, sight.nameless)
    problems += [(Status.WARNING, remark) for remark in words.troubling(sight)]
    if problems:
        said.setdefault(sight.node, Said(node=sight.node, problems=[])).problems += problems


def _nameless(gpu: Gpu) -> Problem:
    troubles = f" ({'; '.join(gpu.troubles[:3])})" if gpu.troubles else ""
    where = f"at {gpu.bus}" if gpu.bus else "in an unknown slot"
    status = Status.CRITICAL if troubles else Status.UNKNOWN
    return status, f"the GPU {where} does not tell its UUID{troubles}"


def _well(values: Mapping[str, Value], standing: GpuStanding | None) -> str:
    parts = []
    for name, unit in (("temperature_c", "°C"), ("power_w", " W"), ("utilization_percent", "%")):
        value = values.get(name)
        if isinstance(value, (int, float)):
            parts.append(f"{value:g}{unit}")
    if standing is not None and standing.judged == "suspect":
        parts.append(f"suspect ({lemon.held(standing)})")
    return ", ".join(parts) or "answers"


OFF_THE_BUS = "xid 79"
_NAMEPLATE = frozenset({"serial", "slot", "model"})


def _finding(subject: str, about: Said) -> Finding:
    problems = sorted(about.problems, key=lambda p: -p[0].rank)
    texts = list(dict.fromkeys(text for _, text in problems))
    status = get_worst_status(status for status, _ in problems)
    more = f" (and {len(texts) - TOLD} more)" if len(texts) > TOLD else ""
    return Finding(
        subject=subject,
        status=status,
        summary=visible("; ".join(texts[:TOLD])) + more + ask_for_help(about)
        if texts
        else about.well,
        values=about.values,
        details="\n".join([*texts[TOLD:], *about.details]),
        labels={"node": about.node},
        commands=suggest_commands(subject, about, status, texts),
        guidance=guide_gpu(about, status, texts[0]) if status is not Status.OK else Guidance(),
    )


def lemons(this: Round, book: Book) -> Iterator[tuple[str, str]]:
    """The lemons that are in a node now, with the node's name."""
    for sight in this.sights.values():
        for gpu in sight.gpus:
            if gpu.uuid in book.lemons:
                yield gpu.uuid, sight.node


def lemon_findings(this: Round, book: Book) -> Iterator[Finding]:
    """One finding for each lemon and its node."""
    for uuid, node in lemons(this, book):
        held = book.standings[uuid]
        yield lemon.finding(uuid, node, held, book.lemons[uuid], this.now)


def remembered(
    this: Round, opened: Sequence[Open], kept: bool, extra: Mapping[str, Any]
) -> dict[str, Any]:
    """The memory of the check for the next run.

    With a ledger (`kept`) the GPUs of a node are only remembered if neither the configuration nor
    Slurm says how many GPUs the node has to have.
    """
    cursors = dict(plain(this.memory, "cursors"))
    cursors |= {n: to_builtins(s.cursor) for n, s in this.sights.items() if s.cursor}
    known = dict(plain(this.memory, "known"))
    known |= {n: _known(s, this) for n, s in this.sights.items() if s.inventory}
    if kept:
        known = {n: gpus for n, gpus in known.items() if this.said(n) is None}
    odd = [g.uuid for s in this.sights.values() for g in s.gpus if g.troubles]
    kept_of_it = {"cursors": cursors, "known": known, "open": to_builtins(list(opened))}
    return {**kept_of_it, **({"odd": odd} if odd else {}), **extra}


def _known(sight: Sight, this: Round) -> list[dict[str, Any]]:
    """The GPUs that are in the node now, and those that are still missing."""
    there = [{"uuid": g.uuid, "slot": g.bus, "seen": this.now.wall} for g in sight.gpus]
    gone = [to_builtins(k) for k in this.gone(sight, Book()) if k]
    return [*there, *gone]
