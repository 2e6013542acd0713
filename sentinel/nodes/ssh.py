"""ssh(1): the command line, which allows nothing but the command, and the meaning of ssh's
complaints."""

import os
import re
from collections.abc import Callable, Mapping, Sequence

from sentinel.core.node_answers import (
    Garbage,
    HostKeyChanged,
    HostKeyUnknown,
    NotAsked,
    Refused,
    TimedOut,
    Unreachable,
    Unreached,
)
from sentinel.core.text import shortened, visible
from sentinel.nodes import frame
from sentinel.nodes.settings import RemoteSettings, words

FAILED = 255
"""The exit code of ssh(1) when it failed itself."""

# ssh_config(5). ssh must not ask questions. It gives the node no agent, tunnel or terminal. It
# checks host keys. It starts no master process, which would outlive the call and hold its pipes.
OPTIONS = (
    "BatchMode=yes",
    "StrictHostKeyChecking=yes",
    "ForwardAgent=no",
    "ForwardX11=no",
    "ClearAllForwardings=yes",
    "PermitLocalCommand=no",
    "RequestTTY=no",
    "ControlMaster=no",
    "ControlPersist=no",
    "LogLevel=INFO",
)

# Error texts of OpenSSH 7.4 to 10. The first match decides. They are from sshconnect.c, kex.c,
# packet.c, clientloop.c, and the last refusals from pam_slurm_adopt and nologin(8).
_CAUSES: tuple[tuple[str, Callable[[str], Unreached]], ...] = (
    (r"[Hh]ost key for .* has changed", HostKeyChanged),
    (r"REMOTE HOST IDENTIFICATION HAS CHANGED", HostKeyChanged),
    (r"Host key verification failed|No .{0,100} host key is known", HostKeyUnknown),
    (r"timed out during banner exchange|banner exchange: .*timed out", TimedOut),
    (r"banner line contains invalid|banner exchange: .*invalid format", Garbage),
    (r"(?i)bad (remote )?(protocol|packet)|protocol (mismatch|major)|padding error", Garbage),
    (r"(?i)protocol error|corrupted MAC|ssh_dispatch_run_fatal|incorrect signature", Garbage),
    (r"message authentication code incorrect|invalid (format|packet)", Garbage),
    (r"Unable to negotiate|no matching (host key|key exchange|cipher|MAC)", Refused),
    (r"pam_slurm_adopt|Access denied|Permission denied", Refused),
    (r"Too many authentication failures|authentication methods available", Refused),
    (r"account is currently not available|not allowed|logins are not", Refused),
    (r"kex_exchange_identification|ssh_exchange_identification", Refused),
    (r"Connection (closed|reset) by .* port|Received disconnect|Disconnected from", Refused),
    (r"Bad configuration option|Can't open user config|Bad (owner|stuff)|line \d+: ", NotAsked),
    (r"percent_expand|keyword .* extra arg|unknown option|usage: ssh", NotAsked),
)
_COMPILED = tuple((re.compile(pattern), answer) for pattern, answer in _CAUSES)


class Ssh:
    """A way to nodes by ssh, which knows only their names."""

    name = "ssh"

    def __init__(self, settings: RemoteSettings, environ: Mapping[str, str] | None = None) -> None:
        given = [os.path.expanduser(w) for w in words(settings.ssh_options, "ssh_options")]
        own = [*OPTIONS, f"ConnectTimeout={max(1, round(settings.connect_timeout))}"]
        self._options = ["-T", *given, *(f"-o{option}" for option in own)]
        self.env = {**(os.environ if environ is None else environ), "LC_ALL": "C"}

    def barred(self, node: str) -> str:
        """Always empty: every node may be tried."""
        return ""

    def command(self, node: str, argv: Sequence[str]) -> list[str]:
        """The ssh command for this node; `--` keeps the name from being read as an option."""
        return ["ssh", *self._options, "--", node, frame.line(argv)]

    def failure(self, said: str, code: int) -> Unreached | None:
        """The meaning of ssh's complaint; None if ssh did not fail itself."""
        if code < 0:
            return NotAsked(f"ssh was ended by signal {-code}")
        for pattern, answer in _COMPILED:
            if match := pattern.search(said):
                return answer(_line_of(said, match.start()))
        if code != FAILED:
            return None
        return Unreachable(_last(said) or "ssh failed without a word")


def _line_of(said: str, at: int) -> str:
    start = said.rfind("\n", 0, at) + 1
    return _shown(said[start:].partition("\n")[0].strip(" @\r"))


def _last(said: str) -> str:
    lines = [line for line in said.splitlines() if line.strip()]
    return _shown(lines[-1]) if lines else ""


def _shown(text: str) -> str:
    return shortened(visible(text.strip()), 300)
