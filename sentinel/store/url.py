"""The address of a PostgreSQL state, as written in `state:`.

It is read and rendered as SQLAlchemy 2 does: the name of a journal is a digest of the rendered
address, and a sentinel that was upgraded during an outage must find its journal again."""

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, unquote

from msgspec import Struct
from msgspec.structs import replace

_URL_PATTERN = re.compile(
    r"""
    (?P<scheme>[\w+]+)://
    (?:(?P<user>[^:/]*)(?::(?P<password>[^@]*))?@)?
    (?:(?:\[(?P<address>[^/?]+)\]|(?P<host>[^/:?]+))?(?::(?P<port>[^/?]*))?)?
    (?:/(?P<database>[^?]*))?
    (?:\?(?P<query>.*))?
    """,
    re.VERBOSE,
)
_HOST_AND_PORT_PATTERN = re.compile(r"([a-zA-Z0-9\-.]*):(\d*)$")


class DatabaseUrl(Struct, frozen=True, kw_only=True):
    """The parts of the address. An absent part is None; an empty one stays empty."""

    scheme: str  # The word before `://`.
    user: str | None = None  # User of the database.
    password: str | None = None  # Password of that user.
    host: str | None = None  # Host of the server.
    port: int | None = None  # Port of the server.
    database: str | None = None  # Name of the database.
    query: Mapping[str, tuple[str, ...]] = {}  # Parameters behind the `?`.

    @classmethod
    def parse_url(cls, text: str) -> "DatabaseUrl":
        """Parse the address. Raises ValueError if the text is not one."""
        found = _URL_PATTERN.match(text)
        if found is None:
            raise ValueError("is no URL")
        query: dict[str, tuple[str, ...]] = {}
        for name, value in parse_qsl(found["query"] or ""):
            query[name] = (*query.get(name, ()), value)
        return cls(
            scheme=found["scheme"],
            user=_unquote_part(found["user"]),
            password=_unquote_part(found["password"]),
            host=found["host"] or found["address"],
            port=None if found["port"] is None else int(found["port"]),
            database=_unquote_part(found["database"]),
            query=query,
        )

    def render_url(self) -> str:
        """The address as text for messages, with `***` in place of the password."""
        text = f"{self.scheme}://"
        if self.user is not None:
            text += quote(self.user, safe=" +")
            text += "@" if self.password is None else ":***@"
        if self.host is not None:
            text += f"[{self.host}]" if ":" in self.host else self.host
        if self.port is not None:
            text += f":{self.port}"
        if self.database is not None:
            text += "/" + quote(self.database, safe=" +/")
        pairs = [(name, value) for name in sorted(self.query) for value in self.query[name]]
        if pairs:
            text += "?" + "&".join(f"{quote_plus(n)}={quote_plus(v)}" for n, v in pairs)
        return text

    def render_place(self) -> str:
        """The database without scheme and parameters, as text for messages."""
        return replace(self, scheme="postgresql", query={}).render_url()

    def get_connection_arguments(self) -> dict[str, Any]:
        """The parameters of libpq. Several hosts are written `?host=a,b&port=1,2` or
        `?host=a:1&host=b:2`. Raises ValueError if hosts and ports do not match."""
        given = {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "password": self.password,
            "dbname": self.database,
        }
        arguments: dict[str, Any] = {name: value for name, value in given.items() if value}
        arguments.update((name, values[-1]) for name, values in self.query.items())
        return arguments | self._get_host_arguments()

    def _get_host_arguments(self) -> dict[str, str]:
        hosts, ports = self.query.get("host", ()), self.query.get("port", ())
        if len(hosts) > 1:
            if ports:
                raise ValueError("write either host=a,b&port=1,2 or host=a:1&host=b:2")
            pairs = [host.rpartition(":") if ":" in host else (host, "", "") for host in hosts]
            return _join_hosts((host for host, _, _ in pairs), (port for _, _, port in pairs))
        if hosts and not ports and (one := _HOST_AND_PORT_PATTERN.match(hosts[0])):
            return _join_hosts([one[1]], [one[2]])
        if ports:
            numbers = ports[0].split(",") if len(ports) == 1 else list(ports)
            names = hosts[0].split(",") if hosts else []
            if len(numbers) > 1 and len(numbers) != len(names):
                raise ValueError("there are not as many hosts as ports")
            return {"port": _join_hosts((), numbers)["port"]}
        return {}


def _join_hosts(hosts: Iterable[str], ports: Iterable[str]) -> dict[str, str]:
    """Hosts and ports in libpq's form for several. Raises ValueError for a port that is not a
    number."""
    numbers = ",".join(str(int(port)) if port else "" for port in ports)
    names = ",".join(hosts)
    return ({"host": names} if names else {}) | ({"port": numbers} if numbers else {})


def _unquote_part(text: str | None) -> str | None:
    return None if text is None else unquote(text)
