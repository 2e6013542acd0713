"""The `service` kind: processes and systemd units that must live, here or on other hosts."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from sentinel import proc
from sentinel.core import hostlist
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.model import Finding, Report, Status, covered
from sentinel.core.ports import Context
from sentinel.core.text import shortened, visible
from sentinel.plugin import Check

if TYPE_CHECKING:
    from sentinel.core.node_answers import Remote

MAX_NAME_CHARS = 15
"""Letters of a process's name that the kernel keeps (TASK_COMM_LEN, proc_pid_comm(5))."""

PROCESSES = ("ps", "-e", "-o", "pid=,state=,comm=")
SHOW = ("systemctl", "show", "--property=Id,LoadState,ActiveState,SubState,Result", "--")
ALIVE = ("active", "reloading", "refreshing")
DEAD = ("inactive", "failed", "deactivating", "maintenance")
ALIVE_STATES = "RSIKPW"
"""Letters of ps(1): running, sleeping, idle, and from older kernels wakekill, parked, waking."""
RETRY_AFTER_S = 2.0
"""Seconds after which a host is asked again where all of a name wait in the kernel: every process
does now and then for a moment."""

HERE = ""
Said = str | CannotTell


class ServiceCheck(Check, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Processes and systemd units that must live.

    processes: Names as `ps -o comm` shows them; the kernel keeps fifteen letters.
    units: Systemd units, one by one: no patterns.
    nodes: A host list (login and management nodes), reached by `remote:`; unset, this host.
    """

    EVERY: ClassVar[float] = 60
    TIMEOUT: ClassVar[float] = 60
    SOURCES = ("/proc for processes and `systemctl show` for units, here or on each of `nodes`.",)
    RUNBOOK = "docs/service-checks.md"

    processes: list[str] = []
    units: list[str] = []
    nodes: str | None = None

    def __post_init__(self) -> None:
        if not (self.processes or self.units):
            raise Invalid("name what must live: processes: [munged] or units: [sssd.service]")
        for number, unit in enumerate(self.units):
            if not unit or unit.startswith("-") or set(unit) & set("*?["):
                raise Invalid(f"{unit!r} is no name of one unit", "units", number)
            if unit in self.processes or unit in self.units[:number]:
                raise Invalid(f"{unit!r} is named twice; a unit is {unit}.service", "units", number)
        if self.nodes is not None:
            try:
                hostlist.expand_hostlist(self.nodes)
            except Invalid as error:
                raise Invalid(str(error), "nodes") from None

    @property
    def looks_into_nodes(self) -> bool:
        """With `nodes`."""
        return bool(self.nodes)

    def run(self, ctx: Context) -> Report:
        """One finding per host and service; a host that does not answer is unknown."""
        hosts = (HERE,) if self.nodes is None else hostlist.expand_hostlist(self.nodes)
        listed = self._list_processes(hosts, ctx) if self.processes else {}
        shown = ask_hosts(hosts, (*SHOW, *self.units), ctx) if self.units else {}
        found = (
            *(judge_process(h, name, listed[h]) for h in hosts for name in self.processes),
            *(judge_unit(h, name, shown[h], self.units) for h in hosts for name in self.units),
        )
        seen = (f.subject for f in found if f.status is not Status.UNKNOWN)
        return Report(
            findings=found, coverage=covered("services", (f.subject for f in found), seen)
        )

    def _list_processes(self, hosts: tuple[str, ...], ctx: Context) -> Mapping[str, Said]:
        listed = ask_hosts(hosts, PROCESSES, ctx)
        waiting = tuple(h for h in hosts if any(_all_in_wait(listed[h], n) for n in self.processes))
        if not waiting:
            return listed
        time.sleep(RETRY_AFTER_S)
        return {**listed, **ask_hosts(waiting, PROCESSES, ctx)}


def ask_hosts(hosts: Sequence[str], argv: Sequence[str], ctx: Context) -> Mapping[str, Said]:
    """What the command prints on each host, or why that is not known."""
    if hosts == (HERE,):
        return {HERE: _ask_here(argv, ctx.limit / 3)}
    if ctx.remote is None:
        raise CannotTell("there is no way to other hosts here (remote: in the configuration)")
    return _ask_there(hosts, argv, ctx.remote, ctx.limit / 3)


def judge_process(host: str, name: str, said: Said) -> Finding:
    """Alive: one of that name is no zombie; all in state D, or stopped, are not alive enough."""
    if isinstance(said, CannotTell):
        return _service_finding(host, name, Status.UNKNOWN, str(said))
    rows = [line.split(None, 2) for line in said.splitlines()]
    if not any(row[0] == "1" for row in rows if row):
        hidden = "the processes of others cannot be seen here (hidepid, proc(5))"
        return _service_finding(host, name, Status.UNKNOWN, hidden)
    states = [s for s in _process_states(rows, name) if s not in "ZX"]
    if not states:
        return _service_finding(host, name, Status.CRITICAL, "does not run")
    if not set(states) & set(ALIVE_STATES + "DTt"):
        return _service_finding(
            host, name, Status.UNKNOWN, f"is in state {states[0]}, not known here"
        )
    if set(states) <= set("DTt"):
        why = "hangs in the kernel (state D)" if "D" in states else "is stopped (state T)"
        return _service_finding(host, name, Status.WARNING, f"runs, but {why}")
    count = f" ({len(states)} processes)" if len(states) > 1 else ""
    return _service_finding(host, name, Status.OK, f"runs{count}")


def _process_states(rows: Sequence[Sequence[str]], name: str) -> list[str]:
    """The first letters of the states of all processes of that name."""
    return [row[1][:1] for row in rows if len(row) == 3 and row[2].strip() == name[:MAX_NAME_CHARS]]


def _all_in_wait(said: Said, name: str) -> bool:
    """Whether all of that name wait in the kernel just now."""
    if isinstance(said, CannotTell):
        return False
    return set(_process_states([line.split(None, 2) for line in said.splitlines()], name)) == {"D"}


def judge_unit(host: str, name: str, said: Said, units: Sequence[str]) -> Finding:
    """Active is alive; starting and reloading are on their way there (systemctl(1))."""
    if isinstance(said, CannotTell):
        return _service_finding(host, name, Status.UNKNOWN, str(said))
    blocks = [_unit_properties(block) for block in said.strip().split("\n\n")]
    if len(blocks) != len(units):
        return _service_finding(host, name, Status.UNKNOWN, "systemctl's answer is not understood")
    told = blocks[units.index(name)]
    active = told.get("ActiveState", "")
    text = f"is {active} ({told.get('SubState', '?')})"
    if told.get("LoadState") == "not-found":
        return _service_finding(host, name, Status.CRITICAL, "there is no such unit", unit=True)
    result = told.get("Result", "")
    why = f": {result}" if active not in ALIVE and result not in ("", "success") else ""
    return _service_finding(host, name, _unit_status(active), text + why, unit=True)


def _unit_status(active: str) -> Status:
    """A state that systemd may yet invent is no news, neither good nor bad."""
    if active in ALIVE:
        return Status.OK
    if active == "activating":
        return Status.WARNING
    return Status.CRITICAL if active in DEAD else Status.UNKNOWN


def _service_finding(
    host: str, name: str, status: Status, text: str, *, unit: bool = False
) -> Finding:
    subject = visible(f"{host} {name}".strip())
    from shlex import quote

    what = quote(name if unit else name[:MAX_NAME_CHARS])
    look = f"systemctl status {what}" if unit else f"pgrep -a -x {what}"
    return Finding(
        subject=subject,
        status=status,
        summary=visible(text),
        commands=(visible(f"ssh {host} {look}" if host else look),) if status.bad else (),
        labels={"node": visible(host)} if host else {},
    )


def _ask_here(argv: Sequence[str], limit: float) -> Said:
    try:
        done = proc.run(argv, limit=limit)
    except CannotTell as error:
        return error
    return _answer_text(argv, done.code, done.out, done.err)


def _ask_there(
    hosts: Sequence[str], argv: Sequence[str], remote: Remote, limit: float
) -> dict[str, Said]:
    from sentinel.core.node_answers import Answered

    return {
        host: _answer_text(argv, answer.code, answer.out, answer.err)
        if isinstance(answer, Answered)
        else CannotTell(f"{type(answer).__name__}: {answer.why}")
        for host, answer in remote.run(hosts, argv, limit=limit).items()
    }


def _answer_text(argv: Sequence[str], code: int, out: bytes, err: bytes) -> Said:
    said = err.decode("utf-8", "backslashreplace").strip().partition("\n")[0]
    if code or not out.strip():
        return CannotTell(f"{argv[0]}: {shortened(visible(said), 200) or f'exit code {code}'}")
    return out.decode("utf-8", "backslashreplace")


def _unit_properties(block: str) -> dict[str, str]:
    return dict(line.partition("=")[::2] for line in block.splitlines())
