"""What happens if nobody acts on a trouble of the host, and the first step."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sentinel.core.guidance import (
    Guidance,
    LookingCommand,
    avoid_node,
    drain_node,
    list_drain_commands,
    look,
)
from sentinel.core.model import Status
from sentinel.core.text import shortened, visible

_DRAIN = drain_node()
_COUNTS = look("grep -s . /sys/devices/system/edac/mc/mc*/*_count")
_LOG = look("dmesg -T | tail -n 100 | cat -v")

_REMEDIES: Mapping[str, tuple[str, str, LookingCommand]] = {
    "memory": (
        "Jobs on the node may end, or compute wrongly without a word.",
        f"{_DRAIN} Then have the module replaced; the BMC's log names its slot.",
        _COUNTS,
    ),
    "processor": (
        "The node may stop at any time, with the jobs on it.",
        f"{_DRAIN} Then read the machine checks (`ras-mc-ctl --errors`, the BMC's log).",
        _LOG,
    ),
    "clock": (
        "Stamps of logs and checkpoints mislead, and credentials of munge and Kerberos fail when clocks"
        " differ by minutes: then no job starts there.",
        "Administrators: `timedatectl` below shows whether a time service runs there: if not, start it"
        " (`systemctl start chronyd`, or what the site uses). If it runs, see whether its sources answer."
        " While no job runs there, `chronyc makestep` sets the clock right at once.",
        look("date; chronyc -n tracking; chronyc -n sources; timedatectl"),
    ),
    "gpus": (
        "The next job on the node finds less memory on these GPUs, and may fail for lack of it.",
        "Administrators: `fuser` below shows which processes hold the devices. End those of jobs"
        " (nvidia-persistenced and nv-hostengine may stay). If there are none, drain the node, and reset"
        " the GPU or reboot.",
        look("sudo fuser -v /dev/nvidia*; nvidia-smi --query-gpu=uuid,memory.used --format=csv"),
    ),
    "nv-hostengine": (
        "It is the daemon of DCGM: diagnostics and exporters that ask it get no answer or hang.",
        "Administrators: restart it when no diagnostic runs (`systemctl restart nvidia-dcgm`).",
        look("systemctl status nvidia-dcgm | cat -v"),
    ),
    "dcgm-log": (
        "It fills the disk of the node (`df` below shows what is left); then Slurm's daemon and jobs there"
        " fail.",
        "Administrators: see what the log repeats (`tail` below). If room is short, empty it at once"
        " (`truncate -s 0 FILE`, with the file named above). Then let logrotate rotate it, and update DCGM or"
        " let it log less (`__DCGM_DBG_LVL=NONE` in its environment).",
        look("df -h /var/log; tail -n 20 /var/log/nv-hostengine.log | cat -v"),
    ),
    "tasks": (
        "Most such processes cannot be killed. Then their job cannot end, and Slurm drains the node for it.",
        "Administrators: look at what they wait for: a file system or a driver that does not answer. If"
        " it does not come back, `kill -9 PID` ends those that wait in a function with `killable` in its name."
        " For the others drain and reboot the node.",
        look("ps -eLo pid,lwp,state,wchan:32,user,args | grep ' D ' | cat -v"),
    ),
    "raid": (
        "If one more drive fails, the data of the array may be lost.",
        "Administrators: replace the drive that failed, and watch the array until it is rebuilt.",
        look("cat /proc/mdstat"),
    ),
    "drive": (
        "What is on this drive may be lost; jobs that use it get errors or hang.",
        f"{_DRAIN} Then save what is needed from the drive and replace it.",
        look("dmesg -T | grep -i nvme | tail -n 50 | cat -v"),
    ),
    "other": (
        "Nobody can tell from this whether the node goes on.",
        f"{_DRAIN} Then look at the kernel's log and the BMC's.",
        _LOG,
    ),
}
_NO_DRAIN = ("raid", "tasks", "clock", "nv-hostengine", "dcgm-log")


def find_remedy_key(part: str) -> str:
    """The row of the table for a part of the host."""
    if part in _REMEDIES:
        return part
    if re.match(r"md[0-9]", part):
        return "raid"
    return "drive" if re.match(r"(?:nvme|sd|vd)", part) else "other"


def guide_host(node: str, part: str, text: str, status: Status) -> Guidance:
    """Guidance for a part of the host."""
    impact, todo, _ = _REMEDIES[find_remedy_key(part)]
    users = f"{avoid_node(node, hangs=False)} " if status is Status.CRITICAL else ""
    ask = visible(f"look at {part} of {node}: {shortened(text, 200)}")
    return Guidance(impact=impact, todo=f"{users}{todo}", ask=ask)


def suggest_host_commands(
    node: str, part: str, text: str, status: Status
) -> tuple[LookingCommand, ...]:
    """What shows the part as it is now, and the preview of a drain where one helps."""
    key = find_remedy_key(part)
    return (
        _REMEDIES[key][2].on_node(node),
        *list_drain_commands(node, f"{part}: {text}", is_bad=status.bad and key not in _NO_DRAIN),
    )
