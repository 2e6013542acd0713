"""Ranks that announce themselves before the first step: which are missing, and which came twice.
Pure."""

from msgspec import Struct

from sentinel.core.text import format_ranges

MAX_RANKS = 8192
"""How many ranks are counted, and how many announcements a run reads."""


class JoinedRanks(Struct, frozen=True, kw_only=True):
    """The ranks out of `size` that said that they initialise. `again` means that some said it more
    than once, or that there are more than MAX_RANKS."""

    size: int = 0
    ranks: tuple[int, ...] = ()
    again: bool = False

    @property
    def summary_text(self) -> str:
        """For example `1 of 16 ranks joined (rank 0)`."""
        few = f"{len(self.ranks)} of {self.size} ranks joined (rank {format_ranges(self.ranks)})"
        if not self.again or len(self.ranks) >= self.size:
            return few
        return f"{few}, some more than once: a split world, see MASTER_ADDR and the number of tasks"


def add_rank(world: JoinedRanks, rank: int, size: int) -> JoinedRanks:
    """The ranks after one more announcement. Another size means another start."""
    if size != world.size:
        world = JoinedRanks(size=size)
    if rank in world.ranks or len(world.ranks) >= MAX_RANKS:
        return JoinedRanks(size=size, ranks=world.ranks, again=True)
    return JoinedRanks(size=size, ranks=(*world.ranks, rank), again=world.again)
