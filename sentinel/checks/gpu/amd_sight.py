"""Reads inventory, ECC counters and temperatures of AMD GPUs, on nodes or on this machine
(experimental)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sentinel import proc
from sentinel.checks.gpu.sight import Sight
from sentinel.core.errors import CannotTell
from sentinel.core.long_lines import decode_document, decode_lines
from sentinel.core.node_answers import Answered, Unreached
from sentinel.core.text import shortened
from sentinel.gpu import amd

if TYPE_CHECKING:
    from sentinel.core.ports import Context


def sights(names: Sequence[str], ctx: Context) -> tuple[dict[str, Sight], Mapping[str, Unreached]]:
    """What amd-smi reports for each node, and the nodes that gave no answer. Raises CannotTell."""
    if ctx.remote is None:
        raise CannotTell("there is no way to nodes here; see `remote` in the configuration")
    listed = ctx.remote.run(names, amd.LISTING, limit=ctx.limit / 2) if names else {}
    measured = ctx.remote.run(names, amd.METRICS, limit=ctx.limit / 2) if names else {}
    found, silent = dict[str, Sight](), dict[str, Unreached]()
    for name in names:
        one, two = listed[name], measured[name]
        if isinstance(one, Answered) and isinstance(two, Answered):
            found[name] = _sight(name, one, two)
        else:
            silent[name] = two if isinstance(one, Answered) else one  # type: ignore[assignment]
    return found, silent


def here(name: str, limit: float) -> Sight:
    """What amd-smi reports on this machine."""
    try:
        one = proc.run(list(amd.LISTING), limit=limit / 2)
        two = proc.run(list(amd.METRICS), limit=limit / 2)
    except (proc.CommandNotFound, proc.TimedOut, proc.TooMuchOutput) as error:
        return Sight(node=name, blind=f"amd-smi: {error}")
    return _sight(name, one, two)


def _sight(node: str, listing: Answered | proc.Done, metrics: Answered | proc.Done) -> Sight:
    """The sight of a node. A whole answer is judged with any exit code, which then becomes a
    remark; without one the code is a part of the reason."""
    code = listing.code or metrics.code
    texts = (decode_document(part.out) for part in (listing, metrics))
    try:
        found = amd.parse(*texts)
    except CannotTell as error:
        said = decode_lines(listing.err or metrics.err).strip()
        first = shortened(said.partition("\n")[0], 200)
        more = f" ({first})" if first else ""
        ended = f"amd-smi ended with exit code {code}{more}: " if code else ""
        return Sight(node=node, blind=f"{ended}{error}")
    if code:
        said = f"amd-smi ended with exit code {code}"
        found = replace(found, remarks=(*found.remarks, said))
    return Sight(node=node, inventory=found)
