"""Finds the mail address of the user whose job an alert is about, and whether that user wants mail."""

import os
import re
from collections.abc import Sequence
from email.headerregistry import Address

from msgspec import Struct

from sentinel import proc
from sentinel.alerting.owners import RECIPIENT_REASON
from sentinel.channels.message import parse_address
from sentinel.core.errors import CannotTell, ChannelError, Invalid
from sentinel.core.long_lines import decode_lines
from sentinel.core.text import shortened, visible

OPT_OUT = ".config/sentinel/no-mail"
"""A user who wants no mail creates this file in the home directory."""


PROGRAM_LIMIT_S = 5.0  # seconds for each question: a lookup, the list of users, or a home


MAX_STUCK = 4  # this many children hang on homes at most; after that no further one is started


# useradd(8) of shadow-utils allows these names. For other names in a directory service, a lookup is
# needed.
_LOCAL = re.compile(r"[A-Za-z_][A-Za-z0-9._-]{0,63}")


_hanging = proc.HangingChildren(most=MAX_STUCK)


class MailOwner(Struct, frozen=True):
    """The recipient of a mail. `none` says why there is none. `note` says what could not be
    checked."""

    address: Address | None  # The user's address.
    none: str = ""
    note: str = ""


class OwnerDirectory(Struct, frozen=True):
    """Finds mail addresses of users.

    The program `lookup` gets the user's name and prints the address. If it prints nothing, or
    without a program, the address is `user@domain`.
    """

    domain: str = ""  # Domain of users' addresses.
    lookup: tuple[str, ...] = ()
    limit: float = PROGRAM_LIMIT_S  # Seconds that the program may take.

    def find_owner(self, user: str) -> MailOwner:
        """Find the address of a user. Blocks for a few seconds at most.

        Raises ChannelError if there is no address. It is permanent, unless the lookup itself
        failed.
        """
        if not user:
            raise _no_address_error("the alert names no user: it is about no job")
        if user.isdigit():
            raise _no_address_error(f"Slurm knows uid {user}, but no name for it")
        found = self._owner_address(user)
        out, note = find_opt_out(user, self.limit)
        if out:
            return MailOwner(None, f"{visible(user)} wants none: {visible(out)} is there")
        return MailOwner(found, note=note)

    def _owner_address(self, user: str) -> Address:
        text = self._lookup_output(user) if self.lookup else ""
        if not text and self.domain and _LOCAL.fullmatch(user):
            text = f"{user}@{self.domain}"
        if not text:
            how = "the lookup prints none" if self.lookup else "no mail can be sent to that name"
            raise _no_address_error(f"user {visible(user)} has no mail address: {how}")
        try:
            return parse_address(text)
        except Invalid as error:
            raise _no_address_error(f"user {visible(user)}: {error}") from None

    def _lookup_output(self, user: str) -> str:
        if user.startswith("-") or not user.isprintable():
            return ""
        try:
            done = proc.run(
                [*self.lookup, user], limit=self.limit, env=os.environ, max_output=2**16
            )
        except CannotTell as error:
            raise _lookup_failed_error(user, str(error)) from None
        if done.code:
            said = visible(decode_lines(done.err).strip())
            raise _lookup_failed_error(user, f"exit code {done.code}: {shortened(said, 200)}")
        lines = decode_lines(done.out).strip().splitlines()
        return lines[0].strip() if lines else ""


def find_opt_out(user: str, limit: float = PROGRAM_LIMIT_S) -> tuple[str, str]:
    """The file by which the user refuses mail, or "", and the reason why it could not be checked,
    or "".

    The file counts only if it belongs to that user, because others may be able to write there. If
    it cannot be checked (the home hangs, or sentinel may not enter it), the mail is sent. A mail
    too many is better than a dead job that nobody hears of.
    """
    try:
        home = _home_folder(user, limit)
        return (_own_file(f"{home}/{OPT_OUT}", user, limit), "") if home else ("", "")
    except CannotTell as error:
        return "", f"whether {visible(user)} wants none could not be seen: {error}"


def _home_folder(user: str, limit: float) -> str:
    done = _ask_tool(["getent", "passwd", "--", user], "getent passwd", limit)
    fields = decode_lines(done.out, "surrogateescape").partition("\n")[0].split(":")
    return fields[5] if len(fields) > 6 and fields[5].startswith("/") else ""


def _own_file(path: str, user: str, limit: float) -> str:
    done = _ask_tool(["stat", "-c", "%U", "--", path], path, limit)
    error = decode_lines(done.err)
    if done.code and "No such file" not in error and "Not a directory" not in error:
        raise CannotTell(shortened(visible(error.strip()), 200))
    return path if decode_lines(done.out, "surrogateescape").strip() == user else ""


def _ask_tool(argv: Sequence[str], what: str, limit: float) -> proc.Done:
    try:
        with _hanging.start_alone(what):
            return proc.run(argv, limit=limit, max_output=2**16)
    except proc.StillHanging as error:
        raise CannotTell(f"{visible(what)} {error}") from None
    except proc.TimedOut as error:
        raise CannotTell(f"{visible(what)} does not answer: {error}") from None


def _no_address_error(text: str) -> ChannelError:
    return ChannelError(text, permanent=True, reason=RECIPIENT_REASON)


def _lookup_failed_error(user: str, why: str) -> ChannelError:
    text = f"the address of user {visible(user)} could not be looked up: {why}"
    return ChannelError(text, reason=RECIPIENT_REASON)
