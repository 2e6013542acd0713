"""The text of the lab's slurm.conf, gres.conf and cgroup.conf: slurm.conf(5).

Where a value differs from Slurm's default, a fault shows sooner; MessageTimeout stays at its
default of 10 s, so that clients of a hung controller behave as on a real cluster.
"""

import subprocess
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from tests.lab import needs
from tests.lab.network import CONTROLLER, FIRST_NODE, Network

GPUS = 8
DEFAULTS = {
    "AccountingStorageType": "accounting_storage/none",
    "AuthType": "auth/munge",
    "GresTypes": "gpu",
    "JobAcctGatherType": "jobacct_gather/none",
    "KillWait": "3",
    "MailProg": "/bin/true",
    "MpiDefault": "none",
    "ProctrackType": "proctrack/linuxproc",
    "RebootProgram": "/bin/true",
    "ReturnToService": "2",
    "SchedulerParameters": "bf_interval=1,sched_interval=1,batch_sched_delay=0",
    "SelectType": "select/cons_tres",
    "SelectTypeParameters": "CR_Core",
    "SlurmUser": "root",
    "SlurmdParameters": "config_overrides",
    "SlurmdTimeout": "20",
    "SwitchType": "switch/none",
    "TaskPlugin": "task/none",
    "UnkillableStepTimeout": "8",
}


def slurm_conf(folder: Path, net: Network, index: int, settings: Mapping[str, object]) -> str:
    """slurm.conf of lab `index` without its nodes; `settings` win over DEFAULTS."""
    own = {
        "ClusterName": f"lab{index}",
        "SlurmctldHost": f"controller({net.address(CONTROLLER)})",
        "SlurmctldPort": 17000 + 2 * index,
        "SlurmdPort": 17001 + 2 * index,
        "AuthInfo": f"socket={folder}/munge/socket",
        "StateSaveLocation": folder / "state",
        "SlurmdSpoolDir": folder / "spool/%n",
        "SlurmctldPidFile": folder / "slurmctld.pid",
        "SlurmdPidFile": folder / "spool/%n/slurmd.pid",
        "SlurmctldLogFile": folder / "log/slurmctld",
        "SlurmdLogFile": folder / "log/%n",
    }
    lines = [f"{key}={value}" for key, value in {**DEFAULTS, **own, **settings}.items()]
    return "\n".join(lines) + "\n"


def gres_conf(folder: Path, nodes: int) -> str:
    """Eight device files per node stand for its GPUs."""
    devices = f"[0-{GPUS - 1}]"
    lines = (
        f"NodeName=node-{number} Name=gpu File={folder}/gpu/node-{number}-{devices}"
        for number in range(nodes)
    )
    return "\n".join(lines) + "\n"


@lru_cache(maxsize=1)
def cgroup_conf() -> str:
    """Without its line slurmd stops: a network namespace hides /sys/fs/cgroup. 20.11 does not know it."""
    argv = [needs.find("slurmctld") or "slurmctld", "-V"]
    told = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=30)
    return "" if told.stdout.split()[1] < "21.08" else "CgroupPlugin=cgroup/v1\n"


def partition_line(nodes: str) -> str:
    """One partition over the nodes, given in Slurm's hostlist form."""
    return f"PartitionName=main Nodes={nodes} Default=YES MaxTime=INFINITE"


def node_line(net: Network, number: int) -> str:
    """A node of four cores and eight GPUs."""
    address = net.address(FIRST_NODE + number)
    return (
        f"NodeName=node-{number} NodeAddr={address} CPUs=4 RealMemory=1000 Gres=gpu:{GPUS} "
        "State=UNKNOWN"
    )
