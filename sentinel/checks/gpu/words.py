"""Reports words of GPU tools that are not known here: one note for each word, however many GPUs and
nodes print it. Nothing is concluded from such a word, and all other fields are judged. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from sentinel.checks.gpu.sight import Sight
from sentinel.core.model import Finding, Status
from sentinel.gpu.advice import recovery
from sentinel.gpu.model import Inventory, UnknownWord

MAX_WORDS = 50
"""How many notes one run makes at most."""

MAX_NAMES = 20
"""How many GPUs a note names at most."""

_TROUBLE = re.compile(r"corrupt|error|fail|fault|lost|unable|exit code", re.IGNORECASE)

RECOVERY = "gpu_recovery_action"
SEVERAL = 3
"""If at least this number of GPUs, and half of all, ask for the same unknown action, it is no
coincidence."""


class Saying(NamedTuple):
    """The GPUs for which a word is printed, their nodes, the tool, and the first driver."""

    gpus: list[str]  # The GPUs, as `UUID on NODE`.
    nodes: dict[str, None]  # Names of the nodes.
    tool: str  # The tool that printed the word.
    driver: str  # Version of the driver.


def findings(sights: Mapping[str, Sight]) -> Iterator[Finding]:
    """A note for each unknown word: a warning, unless the word means "no" or "none"."""
    common = widespread(sights)
    said = {
        word: saying
        for word, saying in _said(sights).items()
        if word.field != RECOVERY or word.word in common
    }
    for word, saying in list(said.items())[:MAX_WORDS]:
        yield _note(word, saying)
    if len(said) > MAX_WORDS:
        text = f"{len(said) - MAX_WORDS} more words of GPU tools that sentinel does not know"
        yield Finding(subject="words", status=Status.WARNING, summary=text)


def widespread(sights: Mapping[str, Sight]) -> frozenset[str]:
    """Unknown recovery actions that half of all GPUs ask for. That is a new word for something that
    is the same everywhere, and not a trouble of each GPU."""
    actions = [g.recovery for s in sights.values() for g in s.gpus]
    counts = {word: actions.count(word) for word in {*actions} if recovery(word or "None") is None}
    return frozenset(w for w, n in counts.items() if n >= SEVERAL and 2 * n >= len(actions))


def troubling(sight: Sight) -> list[str]:
    """Remarks of the tool about the whole node that sound like trouble."""
    remarks = sight.inventory.remarks if sight.inventory else ()
    return [remark for remark in remarks if _TROUBLE.search(remark)]


def _said(sights: Mapping[str, Sight]) -> dict[UnknownWord, Saying]:
    said: dict[UnknownWord, Saying] = {}
    for sight in sights.values():
        if sight.inventory is None:
            continue
        for word, who in _words(sight.inventory):
            new = Saying([], {}, _tool(sight.inventory), sight.inventory.driver)
            saying = said.setdefault(word, new)
            saying.nodes[sight.node] = None
            saying.gpus.append(f"{who} on {sight.node}")
    return said


def _words(inventory: Inventory) -> Iterator[tuple[UnknownWord, str]]:
    for gpu in inventory.gpus:
        yield from ((word, gpu.uuid or gpu.bus or "a GPU") for word in gpu.unknown)
    for remark in inventory.remarks:
        if not _TROUBLE.search(remark):
            yield UnknownWord(field="beside the page", word=remark, mild=True), "its tool"


def _tool(inventory: Inventory) -> str:
    return "amd-smi" if inventory.form == "amd-smi" else "nvidia-smi"


def _note(word: UnknownWord, saying: Saying) -> Finding:
    more = f" and {len(saying.gpus) - 1} more" if len(saying.gpus) > 1 else ""
    where = f"{saying.gpus[0]}{more}"
    if len(saying.nodes) > 1:
        where = f"on {len(saying.nodes)} nodes, among them {next(iter(saying.nodes))}"
    driver = f" of driver {saying.driver}" if saying.driver else ""
    return Finding(
        subject=f"{saying.tool} {word.field}: {word.word}",
        status=Status.OK if word.mild else Status.WARNING,
        summary=f"{saying.tool}{driver} says '{word.word}' in {word.field}, which sentinel does not know: "
        f"nothing is concluded from it ({where})",
        details="\n".join(saying.gpus[:MAX_NAMES]),
    )
