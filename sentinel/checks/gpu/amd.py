"""AMD GPUs of nodes or of this machine, experimental: inventory, ECC and temperature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sentinel import proc
from sentinel.checks.gpu.sight import Sight
from sentinel.core.errors import CannotTell
from sentinel.gpu import amd
from sentinel.nodes.model import Answered, Unreached

if TYPE_CHECKING:
    from sentinel.core.ports import Context


def sights(names: Sequence[str], ctx: Context) -> tuple[dict[str, Sight], Mapping[str, Unreached]]:
    """What amd-smi tells of each node, and the nodes that told nothing. CannotTell."""
    if ctx.remote is None:
        raise CannotTell("there is no way to nodes here; see `remote` in the configuration")
    listed = ctx.remote.run(names, amd.LISTING, limit=ctx.limit / 2) if names else {}
    measured = ctx.remote.run(names, amd.METRICS, limit=ctx.limit / 2) if names else {}
    found, silent = dict[str, Sight](), dict[str, Unreached]()
    for name in names:
        one, two = listed[name], measured[name]
        if isinstance(one, Answered) and isinstance(two, Answered):
            found[name] = _sight(name, one.code or two.code, one.out, two.out)
        else:
            silent[name] = two if isinstance(one, Answered) else one  # type: ignore[assignment]
    return found, silent


def here(name: str, limit: float) -> Sight:
    """This machine's."""
    try:
        one = proc.run(list(amd.LISTING), limit=limit / 2)
        two = proc.run(list(amd.METRICS), limit=limit / 2)
    except (proc.NotFound, proc.TimedOut, proc.TooMuch) as error:
        return Sight(node=name, blind=f"amd-smi: {error}")
    return _sight(name, one.code or two.code, one.out, two.out)


def _sight(node: str, code: int, listing: bytes, metrics: bytes) -> Sight:
    if code:
        return Sight(node=node, blind=f"amd-smi ended with exit code {code}")
    texts = (raw.decode("utf-8", "backslashreplace") for raw in (listing, metrics))
    try:
        return Sight(node=node, inventory=amd.parse(*texts))
    except CannotTell as error:
        return Sight(node=node, blind=str(error))
