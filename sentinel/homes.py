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


def describe_setup_place() -> str:
    """Where and as whom people run the commands of sentinel. A chain moves from node to node; whoever
    set it up did so where jobs are submitted."""
    try:
        user = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        user = f"uid {os.geteuid()}"
    if os.environ.get("SLURM_JOB_ID"):
        return f"on a login node, as {user}"
    return f"on {os.uname().nodename.partition('.')[0]}, as {user}"
