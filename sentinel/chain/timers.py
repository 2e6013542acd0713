"""The other ways to be called on time: scrontab, crontab, and timers of the user's systemd."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence
from contextlib import suppress
from shutil import which

from sentinel import proc
from sentinel.chain.folder import Place, replace
from sentinel.chain.model import Chain
from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.text import shortened, visible

LIMIT = 30.0
_BEGIN = "# BEGIN {name}: written by `sentinel cron install`"
_END = "# END {name}"


class NotHere(SentinelError):
    """The host or site does not offer this mode."""

    exit_code = 69
    """EX_UNAVAILABLE of sysexits(3)."""


def cron_runs() -> bool:
    """Whether a daemon that reads crontabs runs on this host, as far as its processes can be seen."""
    import psutil

    return any(p.info["name"] in ("cron", "crond") for p in psutil.process_iter(["name"]))


class Table:
    """A table of entries that is read by `TOOL -l` and replaced by `TOOL -`."""

    def __init__(self, tool: str, chain: Chain, place: Place) -> None:
        self._tool, self._chain, self._place = tool, chain, place

    def text(self) -> str:
        """The block that is put into the table."""
        options = [f"#SCRON {word}" for word in _scron(self._chain)]
        line = f"{schedule(self._chain.every)} {call(self._chain, self._place)}"
        if self._tool == "scrontab":
            line += f" >{shlex.quote(self._place.output(self._chain.names[0]))} 2>&1"
        lines = [*(options if self._tool == "scrontab" else []), _escaped(line, self._tool)]
        return "\n".join([self._mark(_BEGIN), *lines, self._mark(_END)]) + "\n"

    def install(self) -> None:
        """Put the block into the table in place of an older one; raises NotHere."""
        kept = self._without_block(self.read())
        if kept and not kept.endswith("\n"):  # else the first line of the block ends the last one
            kept += "\n"
        self._write(kept + self.text())

    def remove(self) -> None:
        """Take the block away; all else in the table stays as it is. A table without anything
        else goes as a whole (crontab(1), scrontab(1): -r)."""
        before = self.read()
        after = self._without_block(before)
        if after.strip():
            if after != before:
                self._write(after)
        elif before.strip():
            self._done(proc.run([self._tool, "-r"], limit=LIMIT), "-r")

    def read(self) -> str:
        """The table as it is; empty where the user has none."""
        try:
            done = proc.run([self._tool, "-l"], limit=LIMIT)
        except proc.NotFound:
            raise NotHere(f"there is no {self._tool} on this host; take another --mode") from None
        if done.code and b"no crontab for" in done.err + done.out:
            return ""
        if done.code:
            raise NotHere(f"{self._tool} -l: {_said(done)}")
        return done.out.decode("utf-8", "surrogateescape")

    def present(self) -> str:
        """`yes`, `no`, or `disabled`: scancel comments an entry of scrontab out (scrontab(1)). Raises
        NotHere where a mark of the block is lost."""
        text = self.read()
        self._without_block(text)
        return state_of_entry(text, self._mark(_BEGIN), self._mark(_END))

    def _without_block(self, text: str) -> str:
        """The table less the block; raises NotHere where nobody can say where the block ends."""
        try:
            return without(text, self._mark(_BEGIN), self._mark(_END))
        except ValueError as error:
            raise NotHere(
                f"your {self._tool} is left as it is: {error}; put the marks back by "
                f"`{self._tool} -e`, or take out what is left of the block, and try again"
            ) from None

    def _write(self, text: str) -> None:
        data = text.encode("utf-8", "surrogateescape")
        self._done(proc.run([self._tool, "-"], limit=LIMIT, stdin=data), "-")

    def _done(self, done: proc.Done, option: str) -> None:
        if done.code:
            raise NotHere(f"{self._tool} {option}: {_said(done)}")

    def _mark(self, form: str) -> str:
        return form.format(name=self._chain.name)


class Timer:
    """A timer of the user's own systemd: systemd.timer(5). It lives on after logout only where
    lingering is on (`loginctl enable-linger`)."""

    def __init__(self, chain: Chain, place: Place, folder: str) -> None:
        self._chain, self._place, self._folder = chain, place, folder

    def text(self) -> str:
        """Both units, each under its path."""
        return "\n".join(f"# {path}\n{text}" for path, text in self._units().items())

    def install(self) -> None:
        """Write the units and start the timer; raises NotHere, with nothing left behind."""
        fresh = [path for path in self._units() if not os.path.exists(path)]
        try:
            os.makedirs(self._folder, exist_ok=True)
            for path, text in self._units().items():
                replace(path, text.encode(), 0o644)
        except OSError as error:
            _unlink(fresh)
            raise NotHere(
                f"{visible(self._folder)} cannot be written: {error.strerror}; take another --mode"
            ) from error
        try:
            self._do("daemon-reload")
            self._do("enable", "--now", f"{self._chain.name}.timer")
        except NotHere:
            _unlink(fresh)
            raise

    def remove(self) -> None:
        """Stop the timer and take the units away."""
        if os.path.exists(os.path.join(self._folder, f"{self._chain.name}.timer")):
            self._do("disable", "--now", f"{self._chain.name}.timer")
        _unlink(self._units())

    def present(self) -> str:
        """`yes`, or `no` where the timer is not waiting."""
        done = self._run("is-active", f"{self._chain.name}.timer")
        return "yes" if done.out.strip() == b"active" else "no"

    def _units(self) -> dict[str, str]:
        base = os.path.join(self._folder, self._chain.name)
        every = self._chain.every
        return {
            f"{base}.service": (
                "[Unit]\nDescription=one pass of sentinel\n\n[Service]\nType=oneshot\n"
                f"ExecStart={_literal(call(self._chain, self._place))}\n"
            ),
            f"{base}.timer": (
                f"[Unit]\nDescription=sentinel every {every} s\n\n[Timer]\n"
                f"OnCalendar={calendar(every)}\nPersistent=true\nAccuracySec=1s\n\n"
                "[Install]\nWantedBy=timers.target\n"
            ),
        }

    def _do(self, *words: str) -> None:
        done = self._run(*words)
        if done.code:
            raise NotHere(
                f"systemctl --user {words[0]}: {_said(done)} "
                "(a systemd of your own is there after a login by ssh, not by su); "
                "or take another --mode"
            )

    def _run(self, *words: str) -> proc.Done:
        try:
            return proc.run(["systemctl", "--user", *words], limit=LIMIT)
        except CannotTell as error:
            raise NotHere(f"systemctl --user: {error}; take another --mode") from error


def call(chain: Chain, place: Place) -> str:
    """One pass, as a line for a shell."""
    return shlex.join([*_surroundings(), *chain.command, "cron", "link", "--dir", place.folder])


def _surroundings() -> list[str]:
    """How to find Slurm: cron(8) and the user's systemd hand on neither PATH nor SLURM_CONF."""
    slurm = os.path.dirname(which("squeue") or "")
    found = [f"SLURM_CONF={os.environ['SLURM_CONF']}"] if os.environ.get("SLURM_CONF") else []
    if slurm and slurm not in ("/usr/bin", "/bin"):
        found.append(f"PATH={slurm}:/usr/local/bin:/usr/bin:/bin")
    return ["/usr/bin/env", *found] if found else []


def _said(done: proc.Done) -> str:
    """Why a tool refused, in one line; scrontab complains on its standard output."""
    text = (done.err.strip() or done.out.strip()).decode("utf-8", "backslashreplace")
    return shortened(visible(text), 500) or f"exit code {done.code}"


def _unlink(paths: Iterable[str]) -> None:
    for path in paths:
        with suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(path)


def schedule(every: int) -> str:
    """The crontab line of an interval; raises NotHere for one that crontab(5) cannot say."""
    minutes, rest = divmod(every, 60)
    if not rest and 0 < minutes < 60 and 60 % minutes == 0:
        return f"*/{minutes} * * * *" if minutes > 1 else "* * * * *"
    hours, rest = divmod(minutes, 60) if not rest else (0, 1)
    if not rest and hours and 24 % hours == 0:
        return f"0 {'0' if hours == 24 else f'*/{hours}' if hours > 1 else '*'} * * *"
    raise NotHere("crontabs know only parts of an hour or a day: --every 5m, 10m, 15m, 1h, 6h")


def calendar(every: int) -> str:
    """The same as OnCalendar of systemd.time(7)."""
    minute, hour, *_ = (
        "00" if w == "0" else w.replace("*/", "00/") for w in schedule(every).split()
    )
    return f"*-*-* {hour}:{minute}:00"


def without(text: str, begin: str, end: str) -> str:
    """The table less the blocks between the marks, whatever became of their lines. Raises ValueError
    where a mark stands without the other: what lies there may be somebody else's."""
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


def state_of_entry(text: str, begin: str, end: str) -> str:
    """`yes`, `no` or `disabled`, by the lines between the marks."""
    _head, found, rest = text.partition(begin)
    block = rest.partition(end)[0].splitlines() if found else []
    if any(line.startswith("#DISABLED") for line in block):
        return "disabled"
    return "yes" if any(line and not line.startswith("#") for line in block) else "no"


def _scron(chain: Chain) -> Sequence[str]:
    """Words of #SCRON, which knows no quotes (get_argument() in src/scrontab/parse.c): no path."""
    return [
        f"--job-name={chain.names[0]}",
        f"--time={max(1, chain.time_limit // 60)}",
        "--ntasks=1",
        "--output=/dev/null",
        *chain.options,
    ]


def _literal(line: str) -> str:
    """systemd.service(5), COMMAND LINES: `%` begins a specifier, `$` a variable."""
    return line.replace("%", "%%").replace("$", "$$")


def _escaped(line: str, tool: str) -> str:
    """crontab(5): an unescaped `%` ends the command."""
    return line.replace("%", "\\%") if tool == "crontab" else line
