"""Child processes that end with the process that started them, also when it is killed."""

from collections.abc import Sequence


def tied(argv: Sequence[str], sig: str = "KILL") -> list[str]:
    """The command, sent `sig` by the kernel when its parent dies: setpriv(1), prctl(2).

    The parent is the thread that starts it, so start it in one that lasts.
    """
    return ["setpriv", f"--pdeathsig={sig}", *argv]
