"""Slurm's maintenance reservations as silences. Pure."""

from collections.abc import Collection, Iterable, Iterator

from msgspec.structs import replace

from sentinel.alerting.matchers import escape_literal
from sentinel.alerting.settings import Match
from sentinel.alerting.silences import SLURM_ORIGIN, Silence
from sentinel.core.clock import SECOND, Instant
from sentinel.core.cluster import Reservation
from sentinel.core.digests import blake2b

MAINTENANCE_PREFIX = "slurm-"
"""Silences from Slurm have ids that begin with this. The ids of people's silences are hexadecimal.
"""


def maintenance_changes(
    reservations: Iterable[Reservation],
    silences: Iterable[Silence],
    every_node: Collection[str],
    now: Instant,
    cluster: str = "",
) -> list[Silence]:
    """The changes that make the silences match Slurm's reservations.

    `every_node` are all nodes of the cluster. A reservation of all of them silences everything. A
    silence that a person has ended stays ended. If a reservation gets another end or other nodes,
    its silence and its incident keep their ids. If there are several clusters, only alerts of
    `cluster` are silenced.
    """
    match = Match(cluster=escape_literal(cluster)) if cluster else Match()
    known = {s.id: s for s in silences if s.id.startswith(MAINTENANCE_PREFIX)}
    wanted = {s.id: s for s in _wanted_silences(reservations, frozenset(every_node), now)}
    gone = (s for s in known.values() if s.id not in wanted and s.ends > now.wall)
    told = (replace(s, match=match) for s in wanted.values())
    new = [s for s in told if (was := known.get(s.id, s)) is s or (was.who == s.who and was != s)]
    return [*new, *(replace(s, ends=now.wall) for s in gone)]


def _wanted_silences(
    reservations: Iterable[Reservation], every_node: frozenset[str], now: Instant
) -> Iterator[Silence]:
    """The silences for these reservations. A reservation with the flag TIME_FLOAT is left out.

    Its start moves on with the time (scontrol(1)), so it never begins, and each pass would create a
    new silence.
    """
    for r in reservations:
        floats = "TIME_FLOAT" in r.flags
        if "MAINT" in r.flags and not floats and r.ends * SECOND > now.wall:
            whole = "ALL_NODES" in r.flags or (bool(every_node) and every_node <= r.nodes)
            yield _reservation_silence(r, None if whole else r.nodes)


def _reservation_silence(reservation: Reservation, nodes: frozenset[str] | None) -> Silence:
    r = reservation
    name = blake2b(
        f"{r.name}\0{r.starts}".encode("utf-8", "surrogatepass"), digest_size=4
    ).hexdigest()
    return Silence(
        id=MAINTENANCE_PREFIX + name,
        match=Match(),
        starts=r.starts * SECOND,
        ends=r.ends * SECOND,
        who="Slurm",
        how=SLURM_ORIGIN,
        reason=f"maintenance reservation {r.name}",
        nodes=nodes,
    )
