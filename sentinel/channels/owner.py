"""The user whose job an alert is about: their mail address, and whether they want mail."""

import os
import re
from collections.abc import Sequence
from email.headerregistry import Address

from msgspec import Struct

from sentinel import proc
from sentinel.alerting.owners import RECIPIENT
from sentinel.channels.message import address
from sentinel.core.errors import CannotTell, ChannelError, Invalid
from sentinel.core.text import shortened, visible

OPT_OUT = ".config/sentinel/no-mail"
"""The file in a user's home that says: no mail."""

LIMIT = 5.0  # seconds for each question: a lookup, the list of users, a home
MOST_STUCK = 4  # children that hang on homes; then no further one is sent there

# useradd(8) of shadow-utils allows these; what else a directory has, only a lookup can translate.
_LOCAL = re.compile(r"[A-Za-z_][A-Za-z0-9._-]{0,63}")

_hanging = proc.Hanging(most=MOST_STUCK)


class Owner(Struct, frozen=True):
    """Who gets the mail; `none`: why they get none after all; `note`: what could not be seen."""

    address: Address | None
    none: str = ""
    note: str = ""


class Owners(Struct, frozen=True):
    """How addresses are found: `lookup` is a program that is given the user's name and prints the
    address; where it prints nothing, and without one, it is `user@domain`."""

    domain: str = ""
    lookup: tuple[str, ...] = ()
    limit: float = LIMIT

    def find(self, user: str) -> Owner:
        """Blocks for seconds at most. Raises ChannelError where there is no address: permanent,
        unless the lookup itself failed."""
        if not user:
            raise _none("the alert names no user: it is about no job")
        if user.isdigit():
            raise _none(f"Slurm knows uid {user}, but no name for it")
        found = self._address(user)
        out, note = opted_out(user, self.limit)
        if out:
            return Owner(None, f"{visible(user)} wants none: {visible(out)} is there")
        return Owner(found, note=note)

    def _address(self, user: str) -> Address:
        text = self._looked_up(user) if self.lookup else ""
        if not text and self.domain and _LOCAL.fullmatch(user):
            text = f"{user}@{self.domain}"
        if not text:
            how = "the lookup prints none" if self.lookup else "it is no name that a mail can go to"
            raise _none(f"user {visible(user)} has no mail address: {how}")
        try:
            return address(text)
        except Invalid as error:
            raise _none(f"user {visible(user)}: {error}") from None

    def _looked_up(self, user: str) -> str:
        if user.startswith("-") or not user.isprintable():
            return ""
        try:
            done = proc.run([*self.lookup, user], limit=self.limit, max_output=2**16)
        except CannotTell as error:
            raise _failed(user, str(error)) from None
        if done.code:
            said = visible(os.fsdecode(done.err).strip())
            raise _failed(user, f"exit code {done.code}: {shortened(said, 200)}")
        lines = done.out.decode("utf-8", "backslashreplace").strip().splitlines()
        return lines[0].strip() if lines else ""


def opted_out(user: str, limit: float = LIMIT) -> tuple[str, str]:
    """The file by which the user says so, or "", and what kept it from being seen, or "".

    Only a file of that user counts: whoever else may write there decides nothing. Where it cannot
    be seen (a home that hangs, or that sentinel may not enter) the mail is sent: a death that
    nobody hears of costs more than a mail too many.
    """
    try:
        home = _home(user, limit)
        return (_own(f"{home}/{OPT_OUT}", user, limit), "") if home else ("", "")
    except CannotTell as error:
        return "", f"whether {visible(user)} wants none could not be seen: {error}"


def _home(user: str, limit: float) -> str:
    done = _ask(["getent", "passwd", "--", user], "getent passwd", limit)
    fields = os.fsdecode(done.out).partition("\n")[0].split(":")
    return fields[5] if len(fields) > 6 and fields[5].startswith("/") else ""


def _own(path: str, user: str, limit: float) -> str:
    done = _ask(["stat", "-c", "%U", "--", path], path, limit)
    error = os.fsdecode(done.err)
    if done.code and "No such file" not in error and "Not a directory" not in error:
        raise CannotTell(shortened(visible(error.strip()), 200))
    return path if os.fsdecode(done.out).strip() == user else ""


def _ask(argv: Sequence[str], what: str, limit: float) -> proc.Done:
    env = {**os.environ, "LC_ALL": "C"}
    try:
        with _hanging.alone(what):
            return proc.run(argv, limit=limit, env=env, max_output=2**16)
    except proc.Hangs as error:
        raise CannotTell(f"{visible(what)} {error}") from None
    except proc.TimedOut as error:
        raise CannotTell(f"{visible(what)} does not answer: {error}") from None


def _none(text: str) -> ChannelError:
    return ChannelError(text, permanent=True, reason=RECIPIENT)


def _failed(user: str, why: str) -> ChannelError:
    text = f"the address of user {visible(user)} could not be looked up: {why}"
    return ChannelError(text, reason=RECIPIENT)
