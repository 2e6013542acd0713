"""Other ways to start passes on time: scrontab, crontab, and timers of the user's systemd."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Sequence
from contextlib import suppress
from shutil import which

import psutil

from sentinel import proc
from sentinel.chain.folder import ChainFolder
from sentinel.chain.model import Chain
from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.long_lines import decode_lines
from sentinel.core.text import shortened, visible
from sentinel.proc.whole_files import replace_whole_file

TABLE_LIMIT_S = 30.0
# What cron's and BusyBox' crontab say of a user who has none.
_NO_TABLE = re.compile(rb"no crontab for|can't open '[^']*': No such file")
_BEGIN_MARK = "# BEGIN {name}: written by `sentinel cron install`"
_END_MARK = "# END {name}"


class ModeUnavailable(SentinelError):
    """The host or site does not offer this mode."""

    exit_code = 69
    """EX_UNAVAILABLE of sysexits(3)."""


def cron_runs() -> bool:
    """Whether a cron daemon runs on this host, as far as this user can see its processes."""
    return any(p.info["name"] in ("cron", "crond") for p in psutil.process_iter(["name"]))


class CronTable:
    """A table of entries. `TOOL -l` prints it, and `TOOL -` replaces it."""

    def __init__(self, tool: str, chain: Chain, place: ChainFolder) -> None:
        self._tool, self._chain, self._place = tool, chain, place

    def block_text(self) -> str:
        """The block of lines for the table."""
        options = [f"#SCRON {word}" for word in _scron_words(self._chain)]
        line = f"{crontab_schedule(self._chain.every)} {pass_line(self._chain, self._place)}"
        if self._tool == "scrontab":
            line += f" >{shlex.quote(self._place.strand_output(self._chain.strand_names[0]))} 2>&1"
        lines = [*(options if self._tool == "scrontab" else []), _escape_crontab(line, self._tool)]
        return (
            "\n".join([self._format_mark(_BEGIN_MARK), *lines, self._format_mark(_END_MARK)]) + "\n"
        )

    def install_entry(self) -> None:
        """Put the block into the table and remove an older block. Raises ModeUnavailable."""
        kept = self._without_block(self.read_table())
        # without this, the block's first line would join the last line
        if kept and not kept.endswith("\n"):
            kept += "\n"
        self._write_table(kept + self.block_text())

    def remove_entry(self) -> None:
        """Remove the block and keep all other lines.

        If nothing else is left, the table is removed (crontab(1), scrontab(1): -r).
        """
        before = self.read_table()
        after = self._without_block(before)
        if after.strip():
            if after != before:
                self._write_table(after)
        elif before.strip():
            self._require_success(proc.run([self._tool, "-r"], limit=TABLE_LIMIT_S), "-r")

    def read_table(self) -> str:
        """The content of the table. Empty if the user has none."""
        try:
            done = proc.run([self._tool, "-l"], limit=TABLE_LIMIT_S)
        except proc.CommandNotFound:
            raise ModeUnavailable(
                f"there is no {self._tool} on this host; take another --mode"
            ) from None
        if done.code and _NO_TABLE.search(done.err + done.out):
            return ""
        if done.code:
            raise ModeUnavailable(f"{self._tool} -l: {_refusal_text(done)}")
        return done.out.decode("utf-8", "surrogateescape")

    def entry_state(self) -> str:
        """The state of the entry: `yes`, `no` or `disabled`.

        scancel disables an entry of scrontab by a comment mark (scrontab(1)). Raises
        ModeUnavailable if one of the block's two marks is missing.
        """
        text = self.read_table()
        self._without_block(text)
        return find_entry_state(text, self._format_mark(_BEGIN_MARK), self._format_mark(_END_MARK))

    def _without_block(self, text: str) -> str:
        """The table without the block. Raises ModeUnavailable if the end of the block cannot be
        found."""
        try:
            return remove_blocks(text, self._format_mark(_BEGIN_MARK), self._format_mark(_END_MARK))
        except ValueError as error:
            raise ModeUnavailable(
                f"your {self._tool} is left as it is: {error}; put the marks back by "
                f"`{self._tool} -e`, or take out what is left of the block, and try again"
            ) from None

    def _write_table(self, text: str) -> None:
        data = text.encode("utf-8", "surrogateescape")
        self._require_success(proc.run([self._tool, "-"], limit=TABLE_LIMIT_S, stdin=data), "-")

    def _require_success(self, done: proc.Done, option: str) -> None:
        if done.code:
            raise ModeUnavailable(f"{self._tool} {option}: {_refusal_text(done)}")

    def _format_mark(self, form: str) -> str:
        return form.format(name=self._chain.name)


class SystemdTimer:
    """A timer of the user's own systemd (systemd.timer(5)).

    It runs on after logout only if lingering is on (`loginctl enable-linger`).
    """

    def __init__(self, chain: Chain, place: ChainFolder, folder: str) -> None:
        self._chain, self._place, self._folder = chain, place, folder

    def block_text(self) -> str:
        """The text of both units, each with its path."""
        return "\n".join(f"# {path}\n{text}" for path, text in self._unit_files().items())

    def install_entry(self) -> None:
        """Write the units and start the timer. Raises ModeUnavailable, and then removes what it
        wrote."""
        fresh = [path for path in self._unit_files() if not os.path.exists(path)]
        try:
            os.makedirs(self._folder, exist_ok=True)
            for path, text in self._unit_files().items():
                replace_whole_file(path, text.encode(), 0o644)
        except OSError as error:
            _unlink_all(fresh)
            raise ModeUnavailable(
                f"{visible(self._folder)} cannot be written: {error.strerror}; take another --mode"
            ) from error
        try:
            self._call_systemctl("daemon-reload")
            self._call_systemctl("enable", "--now", f"{self._chain.name}.timer")
        except ModeUnavailable:
            _unlink_all(fresh)
            raise

    def remove_entry(self) -> None:
        """Stop the timer and remove the units."""
        if os.path.exists(os.path.join(self._folder, f"{self._chain.name}.timer")):
            self._call_systemctl("disable", "--now", f"{self._chain.name}.timer")
        _unlink_all(self._unit_files())

    def entry_state(self) -> str:
        """`yes` if the timer is waiting, otherwise `no`."""
        done = self._run_systemctl("is-active", f"{self._chain.name}.timer")
        return "yes" if done.out.strip() == b"active" else "no"

    def _unit_files(self) -> dict[str, str]:
        base = os.path.join(self._folder, self._chain.name)
        every = self._chain.every
        return {
            f"{base}.service": (
                "[Unit]\nDescription=one pass of sentinel\n\n[Service]\nType=oneshot\n"
                f"ExecStart={_escape_systemd(pass_line(self._chain, self._place))}\n"
            ),
            f"{base}.timer": (
                f"[Unit]\nDescription=sentinel every {every} s\n\n[Timer]\n"
                f"OnCalendar={systemd_calendar(every)}\nPersistent=true\nAccuracySec=1s\n\n"
                "[Install]\nWantedBy=timers.target\n"
            ),
        }

    def _call_systemctl(self, *words: str) -> None:
        done = self._run_systemctl(*words)
        if done.code:
            raise ModeUnavailable(
                f"systemctl --user {words[0]}: {_refusal_text(done)} "
                "(a systemd of your own is there after a login by ssh, not by su); "
                "or take another --mode"
            )

    def _run_systemctl(self, *words: str) -> proc.Done:
        try:
            return proc.run(["systemctl", "--user", *words], limit=TABLE_LIMIT_S)
        except CannotTell as error:
            raise ModeUnavailable(f"systemctl --user: {error}; take another --mode") from error


def pass_line(chain: Chain, place: ChainFolder) -> str:
    """The shell command for one pass."""
    return shlex.join(
        [*_slurm_environment(), *chain.command, "cron", "link", "--dir", place.folder]
    )


def _slurm_environment() -> list[str]:
    """The environment variables that find Slurm. cron(8) and the user's systemd pass on neither
    PATH nor SLURM_CONF."""
    slurm = os.path.dirname(which("squeue") or "")
    found = [f"SLURM_CONF={os.environ['SLURM_CONF']}"] if os.environ.get("SLURM_CONF") else []
    if slurm and slurm not in ("/usr/bin", "/bin"):
        found.append(f"PATH={slurm}:/usr/local/bin:/usr/bin:/bin")
    return ["/usr/bin/env", *found] if found else []


def _refusal_text(done: proc.Done) -> str:
    """Why a tool refused, in one line. scrontab writes its errors to standard output."""
    text = decode_lines(done.err.strip() or done.out.strip())
    return shortened(visible(text), 500) or f"exit code {done.code}"


def _unlink_all(paths: Iterable[str]) -> None:
    for path in paths:
        with suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(path)


def crontab_schedule(every: int) -> str:
    """The crontab fields for an interval. Raises ModeUnavailable if crontab(5) cannot express it."""
    minutes, rest = divmod(every, 60)
    if not rest and 0 < minutes < 60 and 60 % minutes == 0:
        return f"*/{minutes} * * * *" if minutes > 1 else "* * * * *"
    hours, rest = divmod(minutes, 60) if not rest else (0, 1)
    if not rest and hours and 24 % hours == 0:
        return f"0 {'0' if hours == 24 else f'*/{hours}' if hours > 1 else '*'} * * *"
    raise ModeUnavailable(
        "crontabs know only parts of an hour or a day: --every 5m, 10m, 15m, 1h, 6h"
    )


def systemd_calendar(every: int) -> str:
    """The same interval as OnCalendar of systemd.time(7)."""
    minute, hour, *_ = (
        "00" if w == "0" else w.replace("*/", "00/") for w in crontab_schedule(every).split()
    )
    return f"*-*-* {hour}:{minute}:00"


def remove_blocks(text: str, begin: str, end: str) -> str:
    """The table without the blocks between the marks, whatever their lines are now.

    Raises ValueError if one mark stands without the other, because the lines there may belong to
    somebody else.
    """
    kept, inside = [], False
    for line in text.split("\n"):
        mark = line.strip()
        if mark == begin and inside:
            raise ValueError(f"the line {end!r} is missing between two that begin a block")
        if mark == end and not inside:
            raise ValueError(f"the line {end!r} stands there without {begin!r} before it")
        if not inside and mark != begin:
            kept.append(line)
        inside = (inside or mark == begin) and mark != end
    if inside:
        raise ValueError(f"the line {end!r} is missing")
    return "\n".join(kept)


def find_entry_state(text: str, begin: str, end: str) -> str:
    """`yes`, `no` or `disabled`, according to the lines between the marks."""
    _head, found, rest = text.partition(begin)
    block = rest.partition(end)[0].splitlines() if found else []
    if any(line.startswith("#DISABLED") for line in block):
        return "disabled"
    return "yes" if any(line and not line.startswith("#") for line in block) else "no"


def _scron_words(chain: Chain) -> Sequence[str]:
    """Words for a #SCRON line. It knows no quotes (get_argument() in src/scrontab/parse.c), so a
    path with a space cannot be written."""
    return [
        f"--job-name={chain.strand_names[0]}",
        f"--time={max(1, chain.time_limit // 60)}",
        "--ntasks=1",
        "--output=/dev/null",
        *chain.options,
    ]


def _escape_systemd(line: str) -> str:
    """Escape text for a systemd unit (systemd.service(5), COMMAND LINES): `%` starts a specifier,
    `$` a variable."""
    return line.replace("%", "%%").replace("$", "$$")


def _escape_crontab(line: str, tool: str) -> str:
    """Escape text for a crontab (crontab(5)): an unescaped `%` ends the command."""
    return line.replace("%", "\\%") if tool == "crontab" else line
