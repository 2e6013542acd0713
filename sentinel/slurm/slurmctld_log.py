"""What slurmctld's log says of nodes at its usual level (SlurmctldDebug=info). Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from sentinel.core.cluster import ControllerLogEntry
from sentinel.core.errors import Invalid
from sentinel.core.hostlist import expand_printed
from sentinel.core.text import visible

UNTOLD = "drained by slurmctld, which does not log why"
EPILOG = "Epilog error"
"""Of a node that is drained already it is in the log alone: drain_nodes() gives no second reason."""

# The same from 20.11 to 26.05: update_node() and drain_nodes() in src/slurmctld/node_mgr.c;
# job_mgr.c for an epilog; job_scheduler.c, proc_req.c and sched/backfill for a job that is given
# nodes; proc_req.c for a reboot; DebugFlags=AuditRPCs in proc_req.c, controller.c since 24.11.
EVENT = re.compile(
    r"^\[[^]\n]*\] (?:"
    r"update_node: node (?P<given>\S+) reason set to: (?P<reason>.*)"
    r"|update_node: node (?P<updated>\S+) state set to (?P<state>\S+)$"
    r"|drain_nodes: node (?P<drained>\S+) state set to DRAIN$"
    r"|error: \w+: JobId=\S+ epilog error on (?P<failed>\S+), draining the node$"
    r"|reboot request queued for nodes (?P<rebooted>\S+)$"
    r"|.*\bmsg_type=REQUEST_UPDATE_NODE uid=(?P<uid>\d+) client=.*"
    r"|sched: (?:Allocate|_slurm_rpc_allocate_resources) JobId=\S+ NodeList=(?P<allocated>\S+) .*"
    r"|sched/backfill: _start_job: Started JobId=\S+ in \S+ on (?P<started>\S+)$)",
    re.MULTILINE,
)
_BACK = re.compile(r"(IDLE|MIXED|ALLOCATED|COMPLETING|PLANNED|RESERVED|MAINT)[^A-Z]?$")


def node_entries(log: str, node: str) -> Iterator[ControllerLogEntry]:
    """What is logged of this node, oldest first."""
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
    """The reasons that a change of ours replaced although nobody saw them, oldest first.

    `log` begins where the last look was. `own`: whether an entry is that of our change; None where
    it does not stand there: then nothing is known.
    """
    found: tuple[ControllerLogEntry, ...] | None = None
    since: list[ControllerLogEntry] = []
    for entry in node_entries(log, node):
        if own(entry):
            found, since = tuple(since), []
        elif entry.kind in ("reason", "drained"):
            since.append(entry)
    return found


def expand_nodes(hostlist: str) -> frozenset[str]:
    """The names, or none where the text is no list of nodes."""
    try:
        return frozenset(expand_printed(hostlist))
    except Invalid:
        return frozenset()


def entry_author(entry: ControllerLogEntry) -> str:
    """Who gave a reason, where the audit of RPCs leaves no doubt; slurmctld itself by its name."""
    if entry.kind == "drained":
        return "slurmctld"
    if len(entry.uids) != 1:
        return ""
    [uid] = entry.uids
    return visible("root" if uid == 0 else f"uid {uid}")
