"""Reads what slurmctld logs about nodes at its usual level (SlurmctldDebug=info). Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from sentinel.core.cluster import ControllerLogEntry
from sentinel.core.errors import Invalid
from sentinel.core.hostlist import expand_printed
from sentinel.core.lazy_pattern import lazy_pattern
from sentinel.core.text import visible

UNTOLD = "drained by slurmctld, which does not log why"
EPILOG = "Epilog error"
"""The reason for a failed epilog. If the node is drained already, only the log has it:
drain_nodes() does not replace a reason."""

_TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}"
"""A time as slurmctld usually writes it (LogTimeFormat=iso8601_ms)."""

_STAMP = lazy_pattern(rf"^\[(?:({_TIME})|[0-9]{{4}}-)[^]\n]*\] ", re.MULTILINE)

# These lines are the same from 20.11 to 26.05. They are from update_node() and drain_nodes() in
# src/slurmctld/node_mgr.c; job_mgr.c for an epilog; job_scheduler.c, proc_req.c and sched/backfill
# for a job that gets nodes; proc_req.c for a reboot; DebugFlags=AuditRPCs in proc_req.c,
# controller.c since 24.11.
EVENT = lazy_pattern(
    rf"^\[{_TIME}[^]\n]*\] (?:"
    r"update_node: node (?P<given>\S+) reason set to: (?P<reason>.*)"
    r"|update_node: node (?P<updated>\S+) state set to (?P<state>\S+)$"
    r"|drain_nodes: node (?P<drained>\S+) state set to DRAIN$"
    r"|error: \w+: JobId=\S+ epilog error on (?P<failed>\S+), draining the node$"
    r"|reboot request queued for nodes (?P<rebooted>\S+)$"
    r"|(?:\w+: +|\[[^]\s]*\] )*msg_type=REQUEST_UPDATE_NODE uid=(?P<uid>\d+) client=.*"
    r"|sched: (?:Allocate|_slurm_rpc_allocate_resources) JobId=\S+ NodeList=(?P<allocated>\S+) .*"
    r"|sched/backfill: _start_job: Started JobId=\S+ in \S+ on (?P<started>\S+)$)",
    re.MULTILINE,
)
_BACK = lazy_pattern(r"(IDLE|MIXED|ALLOCATED|COMPLETING|PLANNED|RESERVED|MAINT)[^A-Z]?$")


def explain_disorder(log: str) -> str:
    """Why the log proves nothing; empty if it does.

    Users' texts (comments of jobs, names of partitions, folders) stand in it with their line ends, so each
    may hold lines like slurmctld's own (seen on 22.05). But slurmctld's times never go back, as it stamps
    one line after the other: whoever forges one has to guess the millisecond at which it logs the
    text, and a wrong guess shows."""
    last = ""
    for stamp in _STAMP.finditer(log):
        at = stamp[1]
        if at is None:
            return "its times have no milliseconds, so a text of a user could look like one of its lines"
        if at < last:
            return f"its times go back, from {last} to {at}: a user's text may stand in it"
        last = at
    return ""


def node_entries(log: str, node: str) -> Iterator[ControllerLogEntry]:
    """The log entries about this node, the oldest first."""
    asked: list[int] = []
    for event in EVENT.finditer(log):
        if event["uid"]:
            asked.append(int(event["uid"]))
        elif event["given"] == node:
            yield ControllerLogEntry("reason", event["reason"].strip(), frozenset(asked))
        elif node in (event["drained"], event["failed"]):
            yield ControllerLogEntry("drained", EPILOG if event["failed"] else UNTOLD)
        elif event["updated"] == node and _BACK.match(event["state"]):
            yield ControllerLogEntry("back", event["state"])
        elif event["rebooted"] and node in expand_nodes(event["rebooted"]):
            yield ControllerLogEntry("rebooted", "")


def erased_reasons(
    log: str, node: str, own: Callable[[ControllerLogEntry], bool]
) -> tuple[ControllerLogEntry, ...] | None:
    """The reasons that a change by sentinel replaced although nobody had seen them, the oldest
    first.

    `log` begins at the last look. `own`: whether an entry is the change by sentinel. None if the
    log does not hold that change: then nothing is known."""
    found: tuple[ControllerLogEntry, ...] | None = None
    since: list[ControllerLogEntry] = []
    for entry in node_entries(log, node):
        if own(entry):
            found, since = tuple(since), []
        elif entry.kind in ("reason", "drained"):
            since.append(entry)
    return found


def expand_nodes(hostlist: str) -> frozenset[str]:
    """The names in a host list. Empty if the text is no host list."""
    try:
        return frozenset(expand_printed(hostlist))
    except Invalid:
        return frozenset()


def entry_author(entry: ControllerLogEntry) -> str:
    """Who gave a reason, if the audit of RPCs leaves no doubt, else empty; `slurmctld` for its
    own."""
    if entry.kind == "drained":
        return "slurmctld"
    if len(entry.uids) != 1:
        return ""
    [uid] = entry.uids
    return visible("root" if uid == 0 else f"uid {uid}")
