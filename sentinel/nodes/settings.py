"""The key `remote:` of the configuration."""

import shlex
from typing import Literal

from msgspec import Struct

from sentinel.core.errors import Invalid
from sentinel.core.values import Duration

MOST_FANOUT = 1024


class RemoteSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How commands reach nodes. `timeout` is what one node has, connecting included.

    `py_spy`: where the nodes have it, if not in PATH or beside the training's Python.
    `ssh_options` and `srun_options` are words as on a command line; those of ssh come before
    sentinel's own, and ssh takes the first value it is given (ssh_config(5)).
    """

    via: Literal["ssh", "srun", "local"] = "ssh"
    fanout: int = 64
    timeout: Duration = Duration(30)
    connect_timeout: Duration = Duration(10)
    ssh_options: str = ""
    srun_options: str = ""
    py_spy: str = ""

    def __post_init__(self) -> None:
        if not 1 <= self.fanout <= MOST_FANOUT:
            raise Invalid(f"fanout must be between 1 and {MOST_FANOUT}", "fanout")
        if self.timeout < 1:
            raise Invalid("timeout must be at least 1s", "timeout")
        if not 1 <= self.connect_timeout <= self.timeout:
            raise Invalid("connect_timeout must be between 1s and timeout", "connect_timeout")
        if self.py_spy and not self.py_spy.startswith("/"):
            raise Invalid("must be an absolute path, the same on every node", "py_spy")
        for key in ("ssh_options", "srun_options"):
            words(getattr(self, key), key)


def words(text: str, key: str) -> list[str]:
    """The words of a command line. Raises Invalid for a quote that is not closed."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise Invalid(f"cannot be split into words: {error}", key) from None
