"""What to do about nodes that are out of service, or that have to be taken out of it."""

from __future__ import annotations

from sentinel.core.cluster import Node
from sentinel.core.guidance import Guidance, LookingCommand, look, quote_command
from sentinel.core.text import shortened, visible
from sentinel.slurm.drain_reasons import KILL
from sentinel.slurm.node_states import page_word

_RESUME = "return the node to service: `scontrol update nodename={0} state=resume`."
_UNKILLED_STEP = (
    "Slurm could not end a job's processes. `ps` below shows the processes of users on {0}, `squeue` the"
    " jobs that still run there. As root, end there what is left of a job that is over (`kill -9 PID`);"
    " if it stays (state D), reboot the node. When none is left, " + _RESUME
)
_DOWN_STEP = (
    "As root, see whether the node answers (`ping {0}`, its console) and slurmd runs there (`ssh {0}"
    " systemctl status slurmd`). When both do, " + _RESUME
)
_OUT_STEP = (
    "`scontrol show node` below shows its state and reason, and who set them. Mend the cause, or ask"
    " them; then, as root, " + _RESUME
)
"""What to do where Slurm could not end a job's processes, where a node is DOWN, and else."""


def list_node_commands(node: Node) -> tuple[LookingCommand, ...]:
    """What shows why a node is out of service, and what is left there where Slurm could not end it: not
    the accounts of daemons, such as munge's, and nobody. Nobody is to end those."""
    users = look("ps -eo uid,pid,user,stat,etime,comm | awk '$1 >= 1000 && $1 != 65534'")
    left = (users.on_node(node.name), look("squeue -w {} | cat -v", node.name))
    return (
        look("scontrol show node {}", node.name),
        *(left if node.reason.startswith(KILL) else ()),
        look("sentinel nodes list --history {}", node.name),
    )


def guide_count(subject: str, fit: int, count: int) -> Guidance:
    some = f"Jobs that need more than {fit} of its nodes do not start until some come back."
    return Guidance(
        impact=some if fit else "No job starts on any of its nodes until one comes back.",
        todo="`sinfo -R` below shows which nodes are out, and why. Repair the cause that most of them"
        " share first; `sentinel nodes undrain NODE --dry-run` says whether one may go back.",
        ask=f"bring nodes back to service: {fit} of {count} can work ({subject})",
    )


def guide_node(node: Node, text: str) -> Guidance:
    """What ran on a node when Slurm set it DOWN is gone; a drained one lets it end."""
    name = visible(node.name)
    down = node.state == "DOWN"
    lost = "Its jobs were ended (requeued where they allow it). " if down else ""
    step = _UNKILLED_STEP if node.reason.startswith(KILL) else _DOWN_STEP if down else _OUT_STEP
    return Guidance(
        impact=f"{lost}No job starts on this node until it is back in service; other nodes go on.",
        todo=step.format(quote_command(node.name)),
        ask=f"look at {name}: {shortened(text, 200)}",
        headline=page_word(node.state, node.flags).upper(),
    )
