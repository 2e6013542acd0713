"""Gives a message to any program: the command line of a pager, or a site's own script."""

import asyncio
import os
import re
from collections.abc import Sequence
from typing import ClassVar

from sentinel.channels.program import hand_to
from sentinel.channels.record import json_record
from sentinel.channels.settings import check_timeout
from sentinel.core.errors import Invalid
from sentinel.core.model import Notification, Receipt, Status
from sentinel.core.text import visible
from sentinel.core.values import Duration
from sentinel.plugin import Channel
from sentinel.trust import list_program_paths

# These exit codes mean a permanent refusal, as in https://www.qmail.org/man/man8/qmail-command.html
# (named in sysexits.h). All others may be temporary.
_PERMANENT = (64, 65, 70, 76, 77, 78, 100, 112)
_WORDS = ("at", "cluster", "check", "kind", "severity", "status", "reason", "since", "key", "alert")
_OURS = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")


class ExecChannel(Channel, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Runs a command with the alert as JSON on its input and SENTINEL_* in its environment.

    Exit 0: taken. 64, 65, 70, 76, 77, 78, 100, 112: refused for good. Else: tried again.
    """

    groups: ClassVar[bool] = False

    command: list[str]
    timeout: Duration = Duration(30)

    def __post_init__(self) -> None:
        if not self.command or not self.command[0]:
            raise Invalid("name a program and its arguments, e.g. [/usr/local/bin/page]", "command")
        for i, word in enumerate(self.command):
            if "\0" in word:
                raise Invalid("holds a NUL character", "command", i)
        check_timeout(self.timeout)

    def trusted_paths(self) -> list[str]:
        """The program, and programs among its arguments."""
        return list_program_paths(self.command)

    async def send(self, notifications: Sequence[Notification]) -> Receipt:
        """Run the command once per alert. The last line of its output is the receipt."""
        said = ""
        for notification in notifications:
            said = await asyncio.to_thread(self._run_message_command, notification)
        return Receipt(f"{visible(self.command[0])} accepted it{f': {said}' if said else ''}")

    def _run_message_command(self, notification: Notification) -> str:
        message, env = json_record(notification) + b"\n", _message_environment(notification)
        return hand_to(self.command, message, self.timeout, _PERMANENT, env)


def _message_environment(notification: Notification) -> dict[str, str]:
    """The environment for the command: this process's own without systemd's variables, and words
    about the alert.

    Foreign texts (subject, summary, details) are only on standard input. In the environment, a
    script would sooner or later expand them without quotes.
    """
    env = {name: value for name, value in os.environ.items() if name not in _OURS}
    env |= {
        f"SENTINEL_{name.upper()}": _harmless_word(getattr(notification, name)) for name in _WORDS
    }
    return env | {"SENTINEL_DRY_RUN": "1" if notification.dry_run else "0"}


def _harmless_word(value: str | Status) -> str:
    """A word that no shell expands or splits, and that no program reads as an option."""
    text = value.value if isinstance(value, Status) else value
    return re.sub(r"[^A-Za-z0-9._:@/+-]", "_", text[:200]).lstrip("-")
