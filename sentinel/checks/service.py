"""The `service` kind: processes and systemd units that must live, here or on other hosts."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from sentinel import proc
from sentinel.checks.service_impacts import describe_service_impact
from sentinel.core import hostlist
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.guidance import Guidance, look, quote_command
from sentinel.core.long_lines import decode_lines
from sentinel.core.model import Finding, Report, Status, covered
from sentinel.core.node_answers import Answered
from sentinel.core.ports import Context
from sentinel.core.text import shortened, visible
from sentinel.plugin import Check
from sentinel.slurm.words import find_uid

if TYPE_CHECKING:
    from sentinel.core.node_answers import Remote

MAX_NAME_CHARS = 15
"""How many characters of a process's name the kernel keeps (TASK_COMM_LEN, proc_pid_comm(5))."""

PROCESSES = ("ps", "-e", "-o", "pid=,uid=,state=,comm=")
SHOW = ("systemctl", "show", "--property=Id,LoadState,ActiveState,SubState,Result", "--")
ALIVE = ("active", "reloading", "refreshing")
DEAD = ("inactive", "failed", "deactivating", "maintenance")
ALIVE_STATES = "RSIKPW"
"""Letters of ps(1): running, sleeping, idle, and from older kernels wakekill, parked, waking."""
FIRST_USER_UID = 1000
SYSTEM_UIDS = range(61_184, 65_535)
"""Uids from 1000 on are those of ordinary users (login.defs(5), UID_MIN), except for these:
systemd's for services (DynamicUser=), Debian's own (SlurmUser is 64030 there), and nobody."""

RETRY_AFTER_S = 2.0
"""Seconds after which a host is asked again if all processes of a name wait in the kernel. Every
process does that for a moment now and then."""

HERE = ""
Said = str | CannotTell


class ServiceCheck(Check, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Processes and systemd units that must live.

    processes: Names as `ps -o comm` shows them; the kernel keeps fifteen letters.
    units: Systemd units, one by one: no patterns.
    users: Whose processes count besides root's, the system's users' and, on this host, sentinel's own:
        anybody can give a process any name.
    nodes: A host list (login and management nodes), reached by `remote:`; unset, this host.
    """

    EVERY: ClassVar[float] = 60
    TELLS_HOST: ClassVar[bool] = True
    TIMEOUT: ClassVar[float] = 60
    SOURCES = ("/proc for processes and `systemctl show` for units, here or on each of `nodes`.",)
    RUNBOOK = "docs/service-checks.md"

    processes: list[str] = []
    units: list[str] = []
    users: list[str] = []
    nodes: str | None = None

    def __post_init__(self) -> None:
        if not (self.processes or self.units):
            raise Invalid(
                "name what must live: `processes` like munged, or `units` like sssd.service"
            )
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
        """Whether other nodes are checked (`nodes`)."""
        return bool(self.nodes)

    def run(self, ctx: Context) -> Report:
        """One finding per host and service. A host that does not answer is unknown."""
        hosts = (HERE,) if self.nodes is None else hostlist.expand_hostlist(self.nodes)
        listed = self._list_processes(hosts, ctx) if self.processes else {}
        trusted = self._find_service_uids() if self.processes else frozenset[int]()
        shown = ask_hosts(hosts, (*SHOW, *self.units), ctx) if self.units else {}
        found = (
            *(judge_process(h, name, listed[h], trusted) for h in hosts for name in self.processes),
            *(judge_unit(h, name, shown[h], self.units) for h in hosts for name in self.units),
        )
        seen = (f.subject for f in found if f.status is not Status.UNKNOWN)
        return Report(
            findings=found, coverage=covered("services", (f.subject for f in found), seen)
        )

    def unused(self) -> Iterator[tuple[str, str]]:
        """Settings that change nothing as it is configured, and why."""
        if not self.processes:
            yield "users", "it says whose `processes` count; a unit is systemd's"

    def _find_service_uids(self) -> frozenset[int]:
        """The uids of `users`, and the uid of this process if this host is checked. Raises
        CannotTell."""
        found = {name: find_uid(name) for name in self.users}
        if missing := [name for name, uid in found.items() if uid is None]:
            raise CannotTell(f"users: this host knows no user {visible(missing[0])!r}")
        own = {os.geteuid()} if self.nodes is None else set[int]()
        return frozenset(own.union(uid for uid in found.values() if uid is not None))

    def _list_processes(self, hosts: tuple[str, ...], ctx: Context) -> Mapping[str, Said]:
        listed = ask_hosts(hosts, PROCESSES, ctx)
        waiting = tuple(h for h in hosts if any(_all_in_wait(listed[h], n) for n in self.processes))
        if not waiting:
            return listed
        time.sleep(RETRY_AFTER_S)
        return {**listed, **ask_hosts(waiting, PROCESSES, ctx)}


def ask_hosts(hosts: Sequence[str], argv: Sequence[str], ctx: Context) -> Mapping[str, Said]:
    """The output of the command on each host, or the reason why it is not known. Raises CannotTell
    if there is no way to other hosts."""
    if hosts == (HERE,):
        return {HERE: _ask_here(argv, ctx.limit / 3)}
    if ctx.remote is None:
        raise CannotTell("there is no way to other hosts here (remote: in the configuration)")
    return _ask_there(hosts, argv, ctx.remote, ctx.limit / 3)


def judge_process(
    host: str, name: str, said: Said, trusted: Collection[int] = frozenset()
) -> Finding:
    """The finding about a process. It is alive if one process of that name is no zombie. It is not
    well if all of them are in state D or stopped. A process of an ordinary user does not count,
    unless its uid is `trusted`."""
    if isinstance(said, CannotTell):
        return _service_finding(host, name, Status.UNKNOWN, str(said))
    rows = _process_rows(said)
    if not any(row[0] == "1" for row in rows if row):
        hidden = "the processes of others cannot be seen here (hidepid, proc(5))"
        return _service_finding(host, name, Status.UNKNOWN, hidden)
    alike = [(uid, s) for uid, s in _find_processes(rows, name) if s not in "ZX"]
    states = [s for uid, s in alike if _is_of_service(uid, trusted)]
    if alike and not states:
        return _service_finding(host, name, Status.UNKNOWN, _describe_lookalikes(alike))
    if not states:
        return _service_finding(
            host, name, Status.CRITICAL, "is not running: no process has this name"
        )
    if not set(states) & set(ALIVE_STATES + "DTt"):
        return _service_finding(
            host, name, Status.UNKNOWN, f"is in state {states[0]}, which sentinel does not know"
        )
    if set(states) <= set("DTt"):
        why = "hangs in the kernel (state D)" if "D" in states else "is stopped (state T)"
        return _service_finding(host, name, Status.WARNING, f"runs, but {why}")
    count = f" ({len(states)} processes)" if len(states) > 1 else ""
    return _service_finding(host, name, Status.OK, f"runs{count}")


def _process_rows(said: str) -> list[list[str]]:
    """The rows of the list. Only LF ends a row, because the name of a process may contain
    characters at which str.splitlines also splits."""
    return [line.split(None, 3) for line in said.split("\n")]


def _find_processes(rows: Sequence[Sequence[str]], name: str) -> list[tuple[str, str]]:
    """The uid of each process of that name, and the first letter of its state."""
    short = name[:MAX_NAME_CHARS]
    return [(row[1], row[2][:1]) for row in rows if len(row) == 4 and row[3].strip() == short]


def _is_of_service(uid: str, trusted: Collection[int]) -> bool:
    number = int(uid) if uid.isdigit() else FIRST_USER_UID
    return number < FIRST_USER_UID or number in SYSTEM_UIDS or number in trusted


def _describe_lookalikes(alike: Sequence[tuple[str, str]]) -> str:
    uid = alike[0][0]
    more = f" and {len(alike) - 1} more" if len(alike) > 1 else ""
    return (
        f"only an ordinary user's process has this name (uid {uid}{more}), and anybody can give it; "
        "if the service runs as that user, name the user in `users`"
    )


def _all_in_wait(said: Said, name: str) -> bool:
    """Whether all of that name wait in the kernel just now."""
    if isinstance(said, CannotTell):
        return False
    return {state for _, state in _find_processes(_process_rows(said), name)} == {"D"}


def judge_unit(host: str, name: str, said: Said, units: Sequence[str]) -> Finding:
    """The finding about a unit. Active is well. A unit that starts or reloads is about to be
    (systemctl(1))."""
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
    """The status for the state of a unit. A state that is not known here is neither good nor
    bad."""
    if active in ALIVE:
        return Status.OK
    if active == "activating":
        return Status.WARNING
    return Status.CRITICAL if active in DEAD else Status.UNKNOWN


def _service_finding(
    host: str, name: str, status: Status, text: str, *, unit: bool = False
) -> Finding:
    subject = visible(f"{host} {name}".strip())
    looks = [look("systemctl status {}", name)]
    if not unit and status is Status.CRITICAL:
        # the unit may have another name than the process
        looks.append(look("journalctl -n 50 _COMM={}", name[:MAX_NAME_CHARS]))
    elif not unit:
        looks = [look("ps -o pid,stat,wchan:32,comm -C {}", name[:MAX_NAME_CHARS])]
    return Finding(
        subject=subject,
        status=status,
        summary=visible(text),
        commands=tuple(one.on_node(host) for one in looks) if status.bad else (),
        labels={"node": visible(host)} if host else {},
        guidance=_guide_service(host, name, status, text) if status.bad else Guidance(),
    )


def _guide_service(host: str, name: str, status: Status, text: str) -> Guidance:
    where = f" on {visible(host)}" if host else ""
    told = f"the service {visible(name)}{where} {visible(text)}"
    told = f"there is no unit {visible(name)}{where}" if text.startswith("there") else told
    if status is Status.UNKNOWN:
        return Guidance(
            todo="See on the host itself whether it runs, by the command below.",
            ask=f"see to this: {told}",
        )
    return Guidance(
        impact=describe_service_impact(visible(name), where or " on this host"),
        todo=_service_step(where or " on this host", name, text),
        ask=f"see to this: {told}",
    )


def _service_step(where: str, name: str, text: str) -> str:
    if text.startswith("there"):
        return "Compare the name in the check with `systemctl list-unit-files`."
    if text.startswith("runs"):
        return "`ps` below shows what it waits for; restart it if that does not end."
    start = quote_command("systemctl", "start", name)
    if text.startswith("is not running"):  # the unit may have another name than the process
        return (
            "`systemctl status` and `journalctl` below show why it ended. Mend that, then start it as"
            f" root{where}: `{start}`, if its unit has this name."
        )
    return (
        f"`systemctl status` below shows why. Mend that, then start it as root{where}: `{start}`."
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
    return {
        host: _answer_text(argv, answer.code, answer.out, answer.err)
        if isinstance(answer, Answered)
        else CannotTell(f"{type(answer).__name__}: {answer.why}")
        for host, answer in remote.run(hosts, argv, limit=limit).items()
    }


def _answer_text(argv: Sequence[str], code: int, out: bytes, err: bytes) -> Said:
    said = decode_lines(err).strip().partition("\n")[0]
    if code or not out.strip():
        return CannotTell(f"{argv[0]}: {shortened(visible(said), 200) or f'exit code {code}'}")
    return decode_lines(out)


def _unit_properties(block: str) -> dict[str, str]:
    return dict(line.partition("=")[::2] for line in block.splitlines())
