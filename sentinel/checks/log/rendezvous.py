"""Ranks that announce themselves before the first step: who is missing, who came twice. Pure."""

from msgspec import Struct

from sentinel.core.text import ranges

MOST = 8192
"""Ranks that are counted, and announcements that one look reads."""


class World(Struct, frozen=True, kw_only=True):
    """`ranks` of `size` that said they initialise; `again`: some said so more than once."""

    size: int = 0
    ranks: tuple[int, ...] = ()
    again: bool = False

    @property
    def words(self) -> str:
        """`1 of 16 ranks joined (rank 0)`."""
        few = f"{len(self.ranks)} of {self.size} ranks joined (rank {ranges(self.ranks)})"
        if not self.again or len(self.ranks) >= self.size:
            return few
        return f"{few}, some more than once: a split world, see MASTER_ADDR and the number of tasks"


def joined(world: World, rank: int, size: int) -> World:
    """After one more announcement; another size is another start."""
    if size != world.size:
        world = World(size=size)
    if rank in world.ranks or len(world.ranks) >= MOST:
        return World(size=size, ranks=world.ranks, again=True)
    return World(size=size, ranks=(*world.ranks, rank), again=world.again)
