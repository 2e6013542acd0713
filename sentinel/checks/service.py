"""The `service` kind: processes and systemd units that must live, here or on other hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct

from sentinel import proc
from sentinel.core import nodeset
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.model import Finding, Report, Status
from sentinel.core.ports import Context
from sentinel.core.text import shortened, visible

if TYPE_CHECKING:
    from sentinel.core.remote import Remote

LONGEST_NAME = 15
"""Letters of a process's name that the kernel keeps (TASK_COMM_LEN, proc_pid_comm(5))."""

PROCESSES = ("ps", "-e", "-o", "state=,comm=")
SHOW = ("systemctl", "show", "--property=Id,LoadState,ActiveState,SubState,Result", "--")
HERE = ""
Said = str | CannotTell


class Service(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Processes (by the name that `ps -o comm` shows) and systemd units that must live.

    On this host, or on the `nodes` of a hostlist (login and management nodes) by `remote:`.
    """

    EVERY: ClassVar[float] = 60
    TIMEOUT: ClassVar[float] = 60

    processes: list[str] = []
    units: list[str] = []
    nodes: str | None = None

    def __post_init__(self) -> None:
        if not (self.processes or self.units):
            raise Invalid("name what must live: processes: [munged] or units: [sssd.service]")
        for number, unit in enumerate(self.units):
            if not unit or unit.startswith("-"):
                raise Invalid(f"{unit!r} is no name of a unit", "units", number)
        if self.nodes is not None:
            try:
                nodeset.expand(self.nodes)
            except Invalid as error:
                raise Invalid(str(error), "nodes") from None

    def run(self, ctx: Context) -> Report:
        """One finding per host and service; a host that does not answer is unknown."""
        hosts = (HERE,) if self.nodes is None else nodeset.expand(self.nodes)
        listed = ask(hosts, PROCESSES, ctx) if self.processes else {}
        shown = ask(hosts, (*SHOW, *self.units), ctx) if self.units else {}
        return Report(
            findings=(
                *(process(h, name, listed[h]) for h in hosts for name in self.processes),
                *(unit(h, name, shown[h], self.units) for h in hosts for name in self.units),
            )
        )


def ask(hosts: Sequence[str], argv: Sequence[str], ctx: Context) -> Mapping[str, Said]:
    """What the command prints on each host, or why that is not known."""
    if hosts == (HERE,):
        return {HERE: _here(argv, ctx.limit / 3)}
    if ctx.remote is None:
        raise CannotTell("there is no way to other hosts here (remote: in the configuration)")
    return _there(hosts, argv, ctx.remote, ctx.limit / 3)


def process(host: str, name: str, said: Said) -> Finding:
    """Alive: there is one of that name that is no zombie; all in state D is not alive enough."""
    if isinstance(said, CannotTell):
        return _finding(host, name, Status.UNKNOWN, str(said))
    states = [line[:1] for line in said.splitlines() if line[1:].strip() == name[:LONGEST_NAME]]
    alive = [state for state in states if state not in "ZX"]
    if not alive:
        return _finding(host, name, Status.CRITICAL, "does not run")
    if set(alive) == {"D"}:
        return _finding(host, name, Status.WARNING, "runs, but hangs in the kernel (state D)")
    count = f" ({len(alive)} processes)" if len(alive) > 1 else ""
    return _finding(host, name, Status.OK, f"runs{count}")


def unit(host: str, name: str, said: Said, units: Sequence[str]) -> Finding:
    """Active is alive; starting and reloading are on their way there (systemctl(1))."""
    if isinstance(said, CannotTell):
        return _finding(host, name, Status.UNKNOWN, str(said))
    blocks = [_properties(block) for block in said.strip().split("\n\n")]
    if len(blocks) != len(units):
        return _finding(host, name, Status.UNKNOWN, "systemctl's answer is not understood")
    told = blocks[units.index(name)]
    active = told.get("ActiveState", "")
    text = f"is {active} ({told.get('SubState', '?')})"
    if told.get("LoadState") == "not-found":
        return _finding(host, name, Status.CRITICAL, "there is no such unit", unit=True)
    if active in ("active", "reloading"):
        return _finding(host, name, Status.OK, text, unit=True)
    result = told.get("Result", "")
    why = f": {result}" if result not in ("", "success") else ""
    starting = Status.WARNING if active == "activating" else Status.CRITICAL
    return _finding(host, name, starting, text + why, unit=True)


def _finding(host: str, name: str, status: Status, text: str, *, unit: bool = False) -> Finding:
    subject = visible(f"{host} {name}".strip())
    look = f"systemctl status {name}" if unit else f"pgrep -a -x {name[:LONGEST_NAME]}"
    return Finding(
        subject=subject,
        status=status,
        summary=visible(text),
        commands=(visible(f"ssh {host} {look}" if host else look),) if status.bad else (),
        labels={"node": visible(host)} if host else {},
    )


def _here(argv: Sequence[str], limit: float) -> Said:
    try:
        done = proc.run(argv, limit=limit)
    except CannotTell as error:
        return error
    return _text(argv, done.code, done.out, done.err)


def _there(
    hosts: Sequence[str], argv: Sequence[str], remote: Remote, limit: float
) -> dict[str, Said]:
    from sentinel.core.remote import Answered

    return {
        host: _text(argv, answer.code, answer.out, answer.err)
        if isinstance(answer, Answered)
        else CannotTell(f"{type(answer).__name__}: {answer.why}")
        for host, answer in remote.run(hosts, argv, limit=limit).items()
    }


def _text(argv: Sequence[str], code: int, out: bytes, err: bytes) -> Said:
    said = err.decode("utf-8", "backslashreplace").strip().partition("\n")[0]
    if code or not out.strip():
        return CannotTell(f"{argv[0]}: {shortened(visible(said), 200) or f'exit code {code}'}")
    return out.decode("utf-8", "backslashreplace")


def _properties(block: str) -> dict[str, str]:
    return dict(line.partition("=")[::2] for line in block.splitlines())
