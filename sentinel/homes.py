"""Where a user's own files are (XDG Base Directory Specification 0.8), and where that user runs
sentinel."""

import os
import pwd

from sentinel.core.errors import SentinelError


class NoHome(SentinelError):
    """It is not known where this user's own files belong."""

    exit_code = 78
    """EX_CONFIG of sysexits(3)."""


def find_user_folder(variable: str, usual: str) -> str:
    """The folder that the variable names, else the usual one below the home (`~/.config`).

    Raises NoHome where $HOME is not set and the user has no entry in passwd, as in a container: a
    folder named `~` in whatever working directory would be another one at each call.
    """
    folder = os.environ.get(variable) or os.path.expanduser(usual)
    if not os.path.isabs(folder):
        raise NoHome(
            f"no home directory is known for uid {os.geteuid()}: set HOME, {variable}, or `state:` "
            "in the configuration"
        )
    return folder


def get_user_name(uid: int) -> str:
    """What the uid is called, for people."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def get_invoking_user() -> str:
    """The user who runs the command; with root's sudo, the user before it. No other variable of the
    environment is asked: `su` leaves LOGNAME as it was, and whoever likes can set it."""
    before = os.environ.get("SUDO_USER") if os.geteuid() == 0 else ""
    return before or get_user_name(os.getuid())


def describe_setup_place() -> str:
    """Where and as whom people run the commands of sentinel. A chain moves from node to node; whoever
    set it up did so where jobs are submitted."""
    user = get_user_name(os.geteuid())
    if os.environ.get("SLURM_JOB_ID"):
        return f"on a login node, as {user}"
    return f"on {os.uname().nodename.partition('.')[0]}, as {user}"
