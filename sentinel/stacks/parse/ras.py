"""Reads the answer of NCCL's RAS for a whole job: text (from 2.24 on) or JSON (from 2.28.7 on).
Pure.

The formats: src/ras/client_support.cc of NCCL (rasOutAppend, jsonWrite…). A communicator of one
rank waits for nobody. The program that answers may be hostile, so an answer in another format is
refused.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.errors import CannotTell
from sentinel.core.text import shortened, visible

MOST = 100_000
"""How many ranks and lines of one answer are read."""

# Some releases leave out the comma after a list or number.
_NO_COMMA = re.compile(r'([\]}0-9"el])([ \t]*\r?\n[ \t]*")(?=[a-zA-Z_]+":)')
_SECTION = re.compile(r"#\d+-\d+ \(([0-9a-f]+)\) (MISMATCH|INCOMPLETE|ERROR)")
_DIFFERENT = re.compile(r"Communicator ranks have different (\w+) operation counts")
_MANY = re.compile(r"(\d{1,7}) ranks have (?:launched up to operation (\d{1,19})|not launched any)")
_RANK = re.compile(
    r"Rank (\d{1,7})(?: has (?:launched up to operation (\d{1,19})|not launched any operations))?"
    r" -- GPU (\S{1,20}) managed by process (\d{1,9}) on node (\S{1,255})"
)
_LOST = re.compile(r"Process (\d{1,9}) on node (\S{1,255}) managing GPUs? (\S{1,200})")


class OddProcess(Struct, frozen=True, kw_only=True):
    """A process that RAS names.

    `operation`: the collective that it has launched `launched` times while most ranks have launched
    it `most` times. Empty: RAS does not reach the process. `rank`: its rank in that communicator,
    -1 if it is not known.
    """

    communicator: str
    pid: int
    host: str
    gpu: str = ""
    rank: int = -1
    operation: str = ""
    launched: int = 0
    most: int = 0

    @property
    def odd_words(self) -> str:
        """`RAS: 79499 of 79500 AllReduce launched`."""
        if not self.operation:
            return "RAS does not reach it"
        return f"RAS: {self.launched} of {self.most} {self.operation} launched"


class RasAnswer(Struct, frozen=True, kw_only=True):
    """The odd processes, and how many operations each communicator of several ranks has launched in
    all. In the text form, only communicators are counted whose ranks differ."""

    odd: tuple[OddProcess, ...] = ()
    launched: Mapping[str, int] = {}

    def find_behind(self, before: Mapping[str, int]) -> tuple[OddProcess, ...]:
        """The ranks that are behind in a communicator whose counters are known to work. `before`
        has its earlier sum.

        Some releases never count: they report 0 for all ranks, or stay at the first value.
        """
        return tuple(
            odd
            for odd in self.odd
            if odd.operation
            if odd.communicator in before
            if self.launched.get(odd.communicator, 0) > before[odd.communicator]
        )

    @property
    def lost_processes(self) -> tuple[OddProcess, ...]:
        """The ranks that RAS does not reach."""
        return tuple(odd for odd in self.odd if not odd.operation)


def read_ras(text: str) -> RasAnswer:
    """Parse the answer. Raises CannotTell if it is no answer of RAS, or was cut off."""
    lines = text.replace("\r\n", "\n").split("\n")
    if not lines[0].startswith("SERVER PROTOCOL "):
        raise CannotTell(f"what listens there is not RAS: {shortened(visible(text), 60)!r}")
    body = "\n".join(line for line in lines[1:] if line != "OK" and line[:6] != "ERROR:").strip()
    if body.startswith("{"):
        return _read_json(body)
    if not body.startswith("NCCL version "):
        raise CannotTell(f"RAS answered in an unknown form: {shortened(visible(body), 60)!r}")
    if "\nWarnings" not in body:
        raise CannotTell("RAS's answer was cut off")
    return _read_text_form(body)


def _read_json(body: str) -> RasAnswer:
    try:
        try:
            told = json.loads(body)
        except json.JSONDecodeError:
            told = json.loads(_NO_COMMA.sub(r"\1,\2", body))
        comms = told["communicators"][:MOST]
        odd, launched = list[OddProcess](), dict[str, int]()
        for comm in comms:
            if int(comm["size"]) > 1:
                name = visible(f"{comm['hash']} {comm.get('secondary_hash', '')}"[:120])
                counts = [_launch_counts(rank) for rank in comm["ranks"]]
                launched[name] = sum(sum(count.values()) for count in counts)
                odd += [
                    _read_odd(name, rank)
                    for rank in comm.get("missing_ranks", ())
                    if _is_rank_gone(rank)
                ]
                odd += _ranks_behind(name, comm["ranks"], counts)
        return RasAnswer(odd=tuple(odd[:MOST]), launched=launched)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise CannotTell(f"RAS's JSON is not understood: {visible(str(error))[:100]}") from None


def _launch_counts(rank: Mapping[str, Any]) -> dict[str, int]:
    return {str(op): int(n) for op, n in rank.get("collective_counts", {}).items()}


def _is_rank_gone(rank: Mapping[str, Any]) -> bool:
    return bool(rank["status"]["considered_dead"] or rank["status"]["unresponsive"])


def _read_odd(name: str, rank: Mapping[str, Any], **more: Any) -> OddProcess:
    return OddProcess(
        communicator=name,
        pid=int(rank["pid"]),
        host=visible(str(rank["host"])[:255]),
        gpu=str(int(rank["cuda_dev"])),
        rank=int(rank["rank"]),
        **more,
    )


def _ranks_behind(name: str, ranks: Any, counts: list[dict[str, int]]) -> Iterator[OddProcess]:
    """The ranks that have launched an operation less often than most. Of two equal halves, the
    lower one is behind."""
    for operation in sorted({op for count in counts for op in count}):
        usual = Counter(count.get(operation, 0) for count in counts)
        most = max(usual, key=lambda n: (usual[n], n))
        for rank, count in zip(ranks, counts, strict=True):
            if (launched := count.get(operation, 0)) < most:
                shown = visible(operation[:40])
                yield _read_odd(name, rank, operation=shown, launched=launched, most=most)


class _TextReader:
    """Reads the sections of the text form, line by line."""

    def __init__(self) -> None:
        self.odd: list[OddProcess] = []
        self.launched: dict[str, int] = {}
        self._comm = self._kind = self._operation = ""
        self._groups: list[tuple[int, int, list[OddProcess]]] = []

    def take_line(self, line: str) -> None:
        if section := _SECTION.match(line):
            self._comm, self._kind = section[1], section[2]
        elif one := _DIFFERENT.search(line):
            self._operation, self._groups = visible(one[1][:40]), []
        elif self._operation:
            self._count_launched(line)
        elif (one := _RANK.search(line)) and self._kind == "INCOMPLETE":
            self.odd.append(self._read_named(one))
        elif one := _LOST.search(line):
            self.odd.append(
                OddProcess(communicator="", pid=int(one[1]), host=visible(one[2]), gpu=one[3])
            )

    def _count_launched(self, line: str) -> None:
        """Read how many ranks have launched how many operations, until an empty line."""
        if one := _MANY.search(line):
            self._groups.append((int(one[1]), int(one[2] or 0), []))
        elif one := _RANK.search(line):
            if " has " in line.partition(" -- ")[0]:
                self._groups.append((1, int(one[2] or 0), []))
            if self._groups:
                self._groups[-1][2].append(self._read_named(one))
        elif not line.strip():
            self.odd += _find_outliers(self._operation, self._groups)
            sum_ = sum(n * value for n, value, _ in self._groups)
            self.launched[self._comm] = self.launched.get(self._comm, 0) + sum_
            self._operation = ""

    def _read_named(self, one: re.Match[str]) -> OddProcess:
        return OddProcess(
            communicator=self._comm,
            pid=int(one[4]),
            host=visible(one[5]),
            gpu=one[3],
            rank=int(one[1]),
        )


def _read_text_form(body: str) -> RasAnswer:
    text = _TextReader()
    for line in [*body.split("\n")[:MOST], ""]:
        text.take_line(line)
    return RasAnswer(odd=tuple(text.odd), launched=text.launched)


def _find_outliers(
    operation: str, groups: list[tuple[int, int, list[OddProcess]]]
) -> Iterator[OddProcess]:
    most = max(groups, key=lambda g: (g[0], g[1]), default=(0, 0, []))[1]
    for _, value, named in groups:
        if value < most:
            yield from (replace(o, operation=operation, launched=value, most=most) for o in named)
