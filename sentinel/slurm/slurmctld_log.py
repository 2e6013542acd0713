"""What slurmctld's log says of nodes at its usual level (SlurmctldDebug=info). Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Literal

from msgspec import Struct

from sentinel.core.errors import Invalid
from sentinel.core.hostlist import printed
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


class Entry(Struct, frozen=True):
    """One line about a node. `text`: the reason, or the word for the state.

    reason: given by update_node(), to be drained or not; drained: by slurmctld itself; back: in
    service again by an update; rebooted: a reboot was asked for. `uids`: who had asked for
    updates until then and was not yet heard of, where RPCs are audited.
    """

    kind: Literal["reason", "drained", "back", "rebooted"]
    text: str
    uids: frozenset[int] = frozenset()


def entries(log: str, node: str) -> Iterator[Entry]:
    """What is logged of this node, oldest first."""
    asked: list[int] = []
    for event in EVENT.finditer(log):
        if event["uid"]:
            asked.append(int(event["uid"]))
        elif event["given"] == node:
            yield Entry("reason", event["reason"].strip(), frozenset(asked))
        elif node in (event["drained"], event["failed"]):
            yield Entry("drained", EPILOG if event["failed"] else UNTOLD)
        elif event["updated"] == node and _BACK.match(event["state"]):
            yield Entry("back", event["state"])
        elif event["rebooted"] and node in expanded(event["rebooted"]):
            yield Entry("rebooted", "")


def erased(log: str, node: str, own: Callable[[Entry], bool]) -> tuple[Entry, ...] | None:
    """The reasons that a change of ours replaced although nobody saw them, oldest first.

    `log` begins where the last look was. `own`: whether an entry is that of our change; None where
    it does not stand there: then nothing is known.
    """
    found: tuple[Entry, ...] | None = None
    since: list[Entry] = []
    for entry in entries(log, node):
        if own(entry):
            found, since = tuple(since), []
        elif entry.kind in ("reason", "drained"):
            since.append(entry)
    return found


def expanded(hostlist: str) -> frozenset[str]:
    """The names, or none where the text is no list of nodes."""
    try:
        return frozenset(printed(hostlist))
    except Invalid:
        return frozenset()


def author(entry: Entry) -> str:
    """Who gave a reason, where the audit of RPCs leaves no doubt; slurmctld itself by its name."""
    if entry.kind == "drained":
        return "slurmctld"
    if len(entry.uids) != 1:
        return ""
    [uid] = entry.uids
    return visible("root" if uid == 0 else f"uid {uid}")
