"""Says where and as whom a recommended command is run, so that nobody runs it in the wrong place or
without the rights that it needs."""

from collections.abc import Iterable, Iterator, Sequence

from sentinel.core.guidance import OWNER_TEST, REMOTE_SHELLS
from sentinel.core.text import visible

SETUP_PLACE = "where sentinel was set up, as the user who set it up"
"""For the commands of sentinel that read its state, where a message does not know the host and the
user."""

_ASK_WATCHER, _ASK_ADMINISTRATOR = "ask whoever runs sentinel: ", "ask an administrator: "

PlacedCommands = tuple[str, tuple[str, ...]]
"""Where and as whom (empty if that is not known), and the commands that are run so."""

_AS_SELF, _AS_ROOT = "as yourself", "as root"
_AS_READER = "as root, or as yourself where you may read it"
_AS_SUDOER = "as root, or as yourself with sudo there"
_AS_FILE_OWNER = "as the owner of the file"
_ROOT_WORDS = frozenset({"dmesg", "journalctl", "mount", "sudo", "umount"})
_SLURM_WORDS = frozenset({"munge", "sacct", "scontrol", "sdiag", "sinfo", "squeue"})
_READING_WORDS = frozenset(
    {
        "df",
        "ethtool",
        "findmnt",
        "nvidia-smi",
        "ps",
        "sensors",
        "stat",
        "systemctl",
        "timedatectl",
    }
)
_FILE_WORDS = frozenset({"du", "grep", "head", "less", "ls", "tail"})
"""What they read may be closed to all but its owner and root."""
_CHANGES_OF_JOBS = frozenset({"hold", "release", "requeue", "requeuehold", "resume", "update"})


def group_by_place(
    commands: Iterable[str], host: str = "", user: str = "", setup: str = SETUP_PLACE
) -> tuple[PlacedCommands, ...]:
    """The commands by where and as whom they are run, in the order of the first of each place; those
    of sentinel are last, as further ones of it follow.

    `host` is where the trouble was seen, `user` the owner of the job, `setup` where and as whom the
    commands of sentinel are run. What one command of a place needs root for, all of that place are
    run as root: they stay in their order. If the owner alone reads it, such commands stand apart, and
    whom to ask.
    """
    owner_reads = _is_read_by(visible(user), setup)
    groups: dict[tuple[str, str, bool], tuple[list[str], list[str]]] = {}
    own: list[str] = []
    for command in commands:
        words = _drop_environment(command.split())
        if words[:1] == ["sentinel"] and not (host and words[1:2] == ["check"]):
            own.append(command)
            continue
        place, node, role = _find_place(words, visible(host), visible(user), setup)
        asks = owner_reads and role == _AS_ROOT
        roles, lines = groups.setdefault((place, node, asks), ([], []))
        if owner_reads:
            role = role.replace(", or as root", "").replace("as root, or ", "")
        roles.append(role)
        lines.append(command)
    placed = [
        (f"{_ASK_ADMINISTRATOR * asks}{_join_place(place, _strongest_role(roles))}", tuple(lines))
        for (place, _, asks), (roles, lines) in groups.items()
    ]
    return (*placed, *([(setup, tuple(own))] if own else []))


def tell_owner_place(setup: str, user: str) -> str:
    """`setup` for a message that goes to the owner of the job alone, who may be nobody there."""
    is_theirs = _is_read_by(visible(user), setup)
    return setup if is_theirs else f"{_ASK_WATCHER}{setup or SETUP_PLACE}"


def _is_read_by(user: str, setup: str) -> bool:
    """Whether the ordinary user has set sentinel up, or a message goes to nobody else."""
    theirs = setup.startswith(_ASK_WATCHER) or setup.endswith(f", as {user}")
    return user not in ("", "root") and theirs


def comment_places(groups: Iterable[PlacedCommands], mark: str = "") -> Iterator[str]:
    """The commands as lines, each after `mark`; a shell's comment before them says where and as whom."""
    for place, commands in groups:
        if place:
            yield f"# {place}"
        yield from (f"{mark}{command}" for command in commands)


def _strongest_role(roles: Sequence[str]) -> str:
    """Root may do all of it, an owner more than others. What the owner alone may do, nobody else is
    offered."""
    weak = (_AS_SELF, _AS_READER)
    return max(
        roles,
        key=lambda role: (
            role == _AS_ROOT,
            role not in weak,
            ", or " not in role,
            role == _AS_READER,
        ),
    )


def _join_place(place: str, role: str) -> str:
    """A role that names two users is set off from the place."""
    return f"{place}{'; ' if ', or ' in role else ', '}{role}" if place else ""


def _drop_environment(words: Sequence[str]) -> Sequence[str]:
    """The words of a command without `env SLURM_CONF=…` before it."""
    while words and (words[0] == "env" or "=" in words[0]):
        words = words[1:]
    return words


def _find_place(words: Sequence[str], host: str, user: str, setup: str) -> tuple[str, str, str]:
    """Where, on which node by ssh, and as whom. All are empty for the command of a plugin, of which
    nothing is known."""
    first = words[0] if words else ""
    if first.rpartition("/")[2] in REMOTE_SHELLS:
        node, *there = [word.strip("'") for word in words[1:] if word != "-t"] or [""]
        if there and node[:1] != "-":  # behind an option only ssh knows which word is the host
            return "on a login node", node, _find_ssh_role(there, node)
    if first == "sentinel":
        user_known = setup.partition(", ")[2] if setup != SETUP_PLACE else ""
        return f"on {host}", "", user_known or "as the user who runs sentinel"
    role = _find_role(words, user)
    return (f"on {host or 'a login node'}", "", role) if role else ("", "", "")


def _find_ssh_role(words: Sequence[str], node: str) -> str:
    """A user may log in to a node while a job of theirs runs there, at most sites."""
    if words[0] == "[":
        return _find_role(words, "")
    if words[0] in _SLURM_WORDS:
        return _AS_SELF
    if words[0] == "sudo":
        return _AS_SUDOER
    if words[0] in _ROOT_WORDS | {"systemctl"}:
        return _AS_ROOT
    return f"as root, or as yourself while a job of yours runs on {visible(node)}"


def _find_role(words: Sequence[str], user: str) -> str:
    first = words[0] if words else ""
    if first in _ROOT_WORDS:
        return _AS_ROOT
    if first == "chmod":
        return _AS_FILE_OWNER
    if words and " ".join(words).startswith(OWNER_TEST):
        return f"as {visible(words[4].strip(chr(39)))}" if words[5:6] == ["]"] else _AS_SELF
    if "sbatch" in words:
        return f"as {user}" if user else _AS_SELF
    if first == "scontrol" and words[1:2] and words[1] in _CHANGES_OF_JOBS:
        if any(word.lower().startswith("nodename=") for word in words):
            return _AS_ROOT
        return f"as {user or 'the owner of the job'} or an administrator"
    if first in _FILE_WORDS and "/proc/mounts" not in words:
        return f"as {user}, or as root" if user else _AS_READER
    return _AS_SELF if first in _SLURM_WORDS | _READING_WORDS | _FILE_WORDS else ""
