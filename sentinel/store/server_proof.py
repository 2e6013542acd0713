"""Makes a PostgreSQL server prove itself before it gets a password, by options of libpq.

While a server is down, any user of its host can listen on its port, or put a socket into a directory
where everybody may. https://www.postgresql.org/docs/current/libpq-connect.html
"""

import os
from collections.abc import Mapping
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from sentinel.trust import (
    FIRST_USER_UID,
    find_path_fault,
    get_trusted_gids,
    get_trusted_uids,
    is_service_group,
)

if TYPE_CHECKING:
    from types import ModuleType

OLDEST_LIBPQ = 160_000
"""The first version of libpq that has `require_auth`."""

SERVER_REMEDY = (
    "let the server ask by SCRAM (scram-sha-256 in its pg_hba.conf, and the password set again), or "
    "prove itself by TLS (PGSSLMODE=verify-full) or by the user it runs as (PGREQUIREPEER on a "
    "socket): docs/state.md"
)
_SAFE_METHODS = "!password,!md5"


def require_server_proof(arguments: Mapping[str, Any], pq: "ModuleType") -> dict[str, Any]:
    """The arguments of a connection, with which a server that is not known gets no password, nor
    the MD5 of one, wherever libpq finds it.

    A server without a password in the address may go on without asking for any (peer, cert, trust),
    or by Kerberos. With one in the address it has to ask. What the address or the environment says
    of `require_auth` counts more. A libpq before 16 demands nothing. `pq`: psycopg.pq.
    """
    if pq.version() < OLDEST_LIBPQ or _is_server_known(arguments, pq):
        return dict(arguments)
    proof = _SAFE_METHODS + (",!none" if "password" in arguments else "")
    return {**arguments, "require_auth": proof}


def find_unproven_server(arguments: Mapping[str, Any], pq: "ModuleType") -> str:
    """Why a server that is not known could get a password; empty where it cannot, or where there is
    none."""
    if pq.version() >= OLDEST_LIBPQ or _is_server_known(arguments, pq):
        return ""
    passfile = arguments.get("passfile") or os.environ.get("PGPASSFILE", "~/.pgpass")
    known = {"PGPASSWORD", "password"} & {*os.environ, *arguments}
    if not known and not os.path.exists(os.path.expanduser(passfile)):
        return ""
    return (
        f"libpq {pq.version() // 10_000} gives the password to whoever listens there; install a newer "
        "one (pip install 'slurm-sentinel[postgres]'), or write sslmode=verify-full or requirepeer"
    )


def _is_server_known(arguments: Mapping[str, Any], pq: "ModuleType") -> bool:
    """Whether a person says how each server proves itself, or nobody else can stand in for it: by
    TLS that is verified, or because of where its socket is."""
    usual = {o.keyword.decode(): os.fsdecode(o.val) for o in pq.Conninfo.get_defaults() if o.val}
    said = {**usual, **arguments}
    if said.get("require_auth") or "service" in arguments:  # libpq alone reads that file
        return bool(said.get("require_auth"))
    hosts, addresses = (str(said.get(name, "")).split(",") for name in ("host", "hostaddr"))
    pairs = zip_longest(hosts, addresses, fillvalue="")
    places = (address or host or _find_usual_place(pq) for host, address in pairs)
    return all(_is_place_known(place, said) for place in places)


def _is_place_known(place: str, said: Mapping[str, Any]) -> bool:
    if not place.startswith(("/", "@")):  # "@": a socket without a file, which everybody may make
        return str(said.get("sslmode")).startswith("verify-")
    return bool(said.get("requirepeer")) or (place.startswith("/") and _is_folder_closed(place))


def _is_folder_closed(folder: str) -> bool:
    """Whether only root, this user, whom `trust` names or an account of the system, as a server has
    one, may put a socket there."""
    try:
        seen = os.stat(folder)
        uids = get_trusted_uids() | {uid for uid in (seen.st_uid,) if uid < FIRST_USER_UID}
        gids = get_trusted_gids() | {gid for gid in (seen.st_gid,) if is_service_group(gid)}
        return find_path_fault(folder, uids, gids) is None
    except OSError:
        return False


def _find_usual_place(pq: "ModuleType") -> str:
    """The directory of the socket where no host is named: it is built into libpq. An `sslmode` that
    does not exist ends the connection before it begins."""
    return os.fsdecode(pq.PGconn.connect_start(b"sslmode=none").host)
