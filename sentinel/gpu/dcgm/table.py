"""Makes a Document from the table of `dcgmi diag` without -j. Pure.

Messages are cut every 45 characters, within words (DATA_INFO_TAG_LEN in dcgmi/Diag.cpp). The line
"Successfully ran diagnostic for group." comes after failures too and means nothing."""

from __future__ import annotations

import re

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.text import shortened, visible
from sentinel.gpu.dcgm.model import GPU, Document, Fault, Result, Status
from sentinel.gpu.errors import Unreadable

RULE = "+===========================+"
END = re.compile(r"^\+-{27}\+-{48}\+$")
_ROW = re.compile(r"^\|(.{27})\|(.*)$")
_HEAD = re.compile(r"^[|+]-----  (.+?)  -+\+")
_STATUS = re.compile(
    r"(?:GPU ?([0-9]{1,4}): )?(Pass|Fail|Warn|Skip)\b(?: - (All|GPUs?: [0-9, ]+))?$", re.IGNORECASE
)
_SAYS = re.compile(r"(Warning|Error|Info)\b", re.IGNORECASE)
_WIDTH = 45
_ROWS = 100
"""Rows of a test at most: since 4 there is one for each GPU."""

LONGEST = 4000


class _Cell(Struct):
    """A row, joined with the rows that continue it."""

    name: str
    text: str
    section: str


def looks_like(text: str) -> bool:
    """Whether any line has the table's two columns; the text may be an excerpt that begins and ends
    anywhere."""
    return any(_ROW.match(line) for line in text.split("\n", 2000)[:2000])


def document(text: str) -> Document:
    """The document of a table. Raises Unreadable for a table without any test."""
    lines = [line.rstrip() for line in text.split("\n")]
    cells = _cells(lines)
    results = _results([cell for cell in cells if cell.section != "Metadata"])
    if not results:
        raise Unreadable("dcgmi diag printed a table without a test")
    facts = {cell.name: cell.text for cell in cells if cell.section == "Metadata"}
    return Document(
        form="table",
        results=tuple(results),
        version=facts.get("DCGM Version", ""),
        driver=facts.get("Driver Version Detected", ""),
        gpus=_gpus(facts.get("GPU Device IDs Detected", "")),
        whole=_ends(lines),
        failing=any(r.status == "fail" for r in results),
    )


def _gpus(ids: str) -> tuple[int, ...]:
    """Numbers of the GPUs: `20b2,20b2` lists only the PCI device id of each, so they are just
    counted."""
    return tuple(range(len(re.findall(r"[0-9a-fA-F]{4}\b", ids))))


def _ends(lines: list[str]) -> bool:
    """Whether the closing rule is the last line of the table."""
    table = [line for line in lines if line.startswith(("|", "+"))]
    return bool(table) and END.match(table[-1]) is not None and RULE in "\n".join(table)


def _cells(lines: list[str]) -> list[_Cell]:
    """Rows with their continuations joined; without the table's header."""
    cells: list[_Cell] = []
    section = ""
    for line in lines:
        if head := _HEAD.match(line):
            section = head[1].strip()
        elif row := _ROW.match(line):
            name, said = row[1].strip(), _said(row[2])
            if name == "Diagnostic" and said.strip() == "Result":
                continue
            if name or not cells or _STATUS.match(said.strip()):
                cells.append(_Cell(name, said, section))
            elif len(cells[-1].text) < LONGEST:
                cells[-1].text += said
    for cell in cells:
        cell.name, cell.text = visible(cell.name), visible(cell.text.strip())
    return cells


def _said(right: str) -> str:
    """The text of a row's right column, 45 characters: a blank is before it, and the frame after
    it."""
    right = right[:-1] if right.endswith("|") else right
    return right[1 : 1 + _WIDTH]


def _results(cells: list[_Cell]) -> list[Result]:
    results: list[Result] = []
    test, overall = "", False
    for cell in cells:
        status = _STATUS.match(cell.text)
        says = _SAYS.match(cell.name)
        if says and not (status and says[1].lower() != "info"):
            _attach(results, cell, says[1].lower())
        elif status:
            if cell.name:
                test, overall = cell.name, not status[3]
            elif status[1] and overall and results and results[-1].test == test:
                results.pop()  # 4.x prints a row for all GPUs, then one for each
                overall = False
            results.append(_row(test, cell, status))
        elif cell.name:
            test = cell.name
            results.append(Result(test=test, category=cell.section, status="other", info=cell.text))
    return results


def _row(test: str, cell: _Cell, status: re.Match[str]) -> Result:
    word = status[2].lower()
    kinds: dict[str, Status] = {"pass": "pass", "fail": "fail", "warn": "fail", "skip": "skip"}
    numbers = status[1] or ("" if status[3] in (None, "All") else status[3])
    return Result(
        test=test or cell.section or "?",
        category=cell.section,
        status=kinds[word],
        ids=tuple(int(n) for n in re.findall("[0-9]+", numbers or "")),
    )


def _attach(results: list[Result], cell: _Cell, kind: str) -> None:
    """Add a message to the test above it; an error above all tests belongs to its section."""
    text = shortened(cell.text, LONGEST)
    last = results[-1] if results and results[-1].category == cell.section else None
    if kind == "info":
        if last:
            results[-1] = replace(last, info=text)
        return
    test = last.test if last else cell.section or "?"
    fault = Fault(text=text)
    at = _about(results, cell, test)
    if at is not None:
        results[at] = replace(results[at], faults=(*results[at].faults, fault))
        return
    results.append(
        Result(test=test, category=cell.section, status="fail", ids=_named(cell), faults=(fault,))
    )


def _about(results: list[Result], cell: _Cell, test: str) -> int | None:
    """The index of the row that a message is about: that of the GPU it names, or one for all GPUs.
    A failed row comes before a skipped one, that before a passed one. Up to 3.x, all rows of a test
    are above all of its messages (HelperDisplayGpuResults in dcgmi/Diag.cpp)."""
    rows = [
        at
        for at, one in enumerate(results[-_ROWS:], max(0, len(results) - _ROWS))
        if (one.test, one.category) == (test, cell.section)
    ]
    named = _named(cell)
    of = [at for at in rows if set(named) & set(results[at].ids)]
    wide = [at for at in rows if not named or not results[at].ids]
    ranks = {"fail": 2, "skip": 1}
    return max(of or wide, key=lambda at: (ranks.get(results[at].status, 0), at), default=None)


def _named(cell: _Cell) -> tuple[int, ...]:
    found = GPU.search(cell.name) or GPU.search(cell.text)
    return (int(found[1]),) if found else ()
