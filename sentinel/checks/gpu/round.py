"""One run over all nodes: sights into problems, the ledger in between, problems into findings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from sentinel.checks.gpu import judge, lemon, missing, open_xids, words
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
from sentinel.core.model import Finding, Status, Value, get_worst_status
from sentinel.core.stored_memory import decode_memory
from sentinel.core.text import visible
from sentinel.gpu.ledger_update import FORGOT, blamed
from sentinel.gpu.model import Gpu
from sentinel.slurm.gres import count_gres_gpus as gpus_in

TOLD = 3
"""Problems of one GPU that fit its summary; all of them are in the details."""


class Book(Struct, kw_only=True):
    """What the ledger said in this run; `trouble` where it could not be asked.

    `lemons`: where those that are here now have been. `forgotten`: when somebody said of which events
    of which subject that they never happened (µs UTC).
    """

    entries: Sequence[LedgerEntry] = ()
    lemons: Mapping[str, Sequence[Stay]] = {}
    standings: Mapping[str, GpuStanding] = {}
    forgotten: Mapping[tuple[str, str], int] = {}
    trouble: str = ""

    @property
    def cleared(self) -> dict[str, int]:
        """When somebody said that a subject is mended (µs UTC)."""
        return {e.subject: e.cleared for e in self.entries if e.cleared}


class Round(Struct, frozen=True, kw_only=True):
    """All that one run judges by: limits, GPUs a node has to have (None: not said), sights.

    `memory` is what the last run remembered.
    """

    expect: int | None
    warn: Limits
    crit: Limits
    now: Instant
    sights: Mapping[str, Sight]
    slurm: Mapping[str, Node] = {}
    memory: Mapping[str, Any] = {}
    one_shot: bool = False

    def is_second_look(self, uuid: str) -> bool:
        """Whether some of its fields could not be read at the last look either; a one-shot has no
        other look."""
        return self.one_shot or uuid in (decode_memory(self.memory.get("odd"), list[str]) or ())

    def said(self, node: str) -> int | None:
        """How many GPUs the file or Slurm says that it has."""
        listed = self.slurm.get(node)
        gres = (gpus_in(listed.gres) or None) if listed else None
        return self.expect if self.expect is not None else gres

    def due(self, node: str) -> int | None:
        """How many it has to have: as said, else as many as were there before."""
        said = self.said(node)
        return said if said is not None else len(self.remembered(node)) or None

    def remembered(self, node: str) -> list[Known]:
        """Those that were there at the last look."""
        return decode_memory(plain(self.memory, "known").get(node), list[Known]) or []

    def empty(self, sight: Sight) -> bool:
        """Whether it shows no GPU at all and nobody says how many there have to be: that proves
        nothing."""
        none = sight.inventory is not None and not sight.inventory.gpus
        return none and self.due(sight.node) is None

    def saw(self, sight: Sight) -> bool:
        """Whether its GPUs were seen, or seen not to answer."""
        return sight.dark or (sight.inventory is not None and not self.empty(sight))

    def gone(self, sight: Sight, book: Book) -> list[Known | None]:
        """Those that are missing; nothing is said of a node that showed nothing at all."""
        if sight.inventory is None:
            return []
        known = missing.known_on(sight.node, book.entries, self.remembered(sight.node))
        return missing.missing(sight, self.due(sight.node), known)


def keep_book(
    gpus: GpuLedger | None, this: Round, extra: Sequence[GpuEvent], opened: Sequence[Open] = ()
) -> Book:
    """Tell the ledger what was seen, and ask what it holds of it and of what is open."""
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
    """Of what is open. A subject that the ledger does not know any more had only such events."""
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


class Said(Struct, kw_only=True):
    """What is found about one subject."""

    node: str
    problems: list[Problem]
    well: str = ""
    values: Mapping[str, Value] = {}
    details: list[str] = []


def findings(this: Round, book: Book, opened: Sequence[Open]) -> list[Finding]:
    """One for each GPU seen or missed, and for each node of which there is more to say."""
    said: dict[str, Said] = {}
    for sight in this.sights.values():
        _of_sight(said, sight, this, book)
    for one in opened:
        subject = one.subject.removeprefix(NODE_PREFIX)
        about = said.setdefault(subject, Said(node=one.node, problems=[]))
        about.problems.append(open_xids.problem(one, this.now))
        about.details.append(f"{one.what}: {one.text}")
    return [_finding(subject, about) for subject, about in said.items()]


def _of_sight(said: dict[str, Said], sight: Sight, this: Round, book: Book) -> None:
    common = words.widespread(this.sights)
    for gpu in sight.gpus:
        about = Said(node=sight.node, problems=[], values=judge.values(gpu))
        about.well = _well(about.values, book.standings.get(gpu.uuid))
        if gpu.recovery in common:
            gpu = replace(gpu, recovery="")
        if gpu.troubles and gpu.answers and not this.is_second_look(gpu.uuid):
            about.well += f"; could not be read once: {gpu.troubles[0]}"
            gpu = replace(gpu, troubles=())
        if odd := sum(not word.mild for word in gpu.unknown):
            about.well += f"; {odd} of its fields not known here"
        about.problems += judge.problems(gpu, this.warn, this.crit)
        if gpu.uuid in said:  # another part of the same device
            said[gpu.uuid].problems += about.problems
        else:
            said[gpu.uuid] = about
    gone = this.gone(sight, book)
    for subject, problem in missing.problems(sight, this.due(sight.node) or 0, gone, this.now):
        said.setdefault(subject, Said(node=sight.node, problems=[])).problems.append(problem)
    _of_node(said, sight, this)


def _of_node(said: dict[str, Said], sight: Sight, this: Round) -> None:
    """A node whose GPUs do not answer at all, or that could not be read."""
    problems: list[Problem] = []
    if this.empty(sight):
        text = "no GPU is there, and nobody says how many have to be; set `expect`"
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


def _finding(subject: str, about: Said) -> Finding:
    problems = sorted(about.problems, key=lambda p: -p[0].rank)
    texts = list(dict.fromkeys(text for _, text in problems))
    status = get_worst_status(status for status, _ in problems)
    more = f" (and {len(texts) - TOLD} more)" if len(texts) > TOLD else ""
    return Finding(
        subject=subject,
        status=status,
        summary=visible("; ".join(texts[:TOLD])) + more if texts else about.well,
        values=about.values,
        details="\n".join([*texts[TOLD:], *about.details]),
        labels={"node": about.node},
        commands=_commands(subject, about, status),
    )


def _commands(subject: str, about: Said, status: Status) -> tuple[str, ...]:
    if status is Status.OK:
        return ()
    if not subject.startswith("GPU-"):
        return (f"sentinel nodes probe --gpus {about.node}", f"ssh {about.node} nvidia-smi")
    return (
        f"sentinel gpus show {subject}",
        f"ssh {about.node} nvidia-smi -q -i {subject}",
        f"sentinel diag run {about.node}",
    )


def lemons(this: Round, book: Book) -> Iterator[tuple[str, str]]:
    """Each that is there now, with its node."""
    for sight in this.sights.values():
        for gpu in sight.gpus:
            if gpu.uuid in book.lemons:
                yield gpu.uuid, sight.node


def lemon_findings(this: Round, book: Book) -> Iterator[Finding]:
    """One for each of them and its place."""
    for uuid, node in lemons(this, book):
        held = book.standings[uuid]
        yield lemon.finding(uuid, node, held, book.lemons[uuid], this.now)


def remembered(
    this: Round, opened: Sequence[Open], kept: bool, extra: Mapping[str, Any]
) -> dict[str, Any]:
    """For the next run. With a ledger (`kept`) it need not know the GPUs itself, but where only
    their number of before tells how many there have to be."""
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
    """Those there now, and those that are missed still."""
    there = [{"uuid": g.uuid, "slot": g.bus, "seen": this.now.wall} for g in sight.gpus]
    gone = [to_builtins(k) for k in this.gone(sight, Book()) if k]
    return [*there, *gone]


# Subjects that were in trouble and cannot be seen now: unknown, which ends no alert. Pure.


def unseen(
    before: Mapping[str, object],
    found: Iterable[Finding],
    sights: Mapping[str, Sight],
    nodes: Collection[str],
) -> Iterator[Finding]:
    """Of the subjects that were not well at the last run (`before`, with their nodes) those of
    which this run says nothing, as their node, still one of `nodes`, does not show its GPUs.

    A lemon (`GPU-…@node`) that is seen elsewhere is no longer there.
    """
    said = {finding.subject for finding in found}
    elsewhere = {gpu.uuid for sight in sights.values() for gpu in sight.gpus}
    for subject, node in ((str(s), str(n)) for s, n in before.items()):
        sight, (uuid, at, _) = sights.get(node), subject.partition("@")
        shown = sight is not None and sight.inventory is not None
        if shown or subject in said or node not in nodes or (at and uuid in elsewhere):
            continue
        yield Finding(
            subject=subject,
            status=Status.UNKNOWN,
            summary=f"the GPUs of {node} cannot be seen now; it was not well when they last could",
            labels={"node": node},
            commands=(f"sentinel nodes probe --gpus {node}",),
        )


def told(findings: Iterable[Finding], before: Mapping[str, object]) -> dict[str, str]:
    """What the next run shall know: each subject that is not well, with its node; one that is
    unknown only if it was not well before."""
    return {
        f.subject: f.labels["node"]
        for f in findings
        if "node" in f.labels
        and (f.status.bad or (f.status is Status.UNKNOWN and f.subject in before))
    }
