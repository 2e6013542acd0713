"""Runs Slurm's commands with a limit on their output and time, and with a controlled environment.

Variables for other tools (SQUEUE_FORMAT, SQUEUE_STATES, SLURM_CLUSTERS, …) change what these
commands print or which cluster they ask, so they are removed. Times are requested as epoch seconds,
so locale and time zone do not matter. `complaints` judges the text on stderr beside an answer.
"""

from __future__ import annotations

import os
import shlex
from _thread import allocate_lock
from collections.abc import Mapping, Sequence

from msgspec import Struct

from sentinel import proc
from sentinel.core.errors import CannotAsk, CannotTell
from sentinel.core.guidance import REMOTE_SHELLS
from sentinel.core.lazy_pattern import lazy_pattern
from sentinel.core.text import visible
from sentinel.core.values import duration_text
from sentinel.slurm.complaints import describe_stderr, failure_error, find_left_out, stderr_lines

# LOCAL: if slurm.conf has FederationParameters=fed_display, the commands would list the jobs of the
# other clusters too, and silently leave out those of a cluster whose slurmctld is dead (seen on
# 22.05).
LOCAL_ENVIRONMENT = {f"{name}_LOCAL": "1" for name in ("SQUEUE", "SCONTROL", "SACCT", "SINFO")}
SETTINGS = {"SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0", "LC_ALL": "C", **LOCAL_ENVIRONMENT}
MOST_OUTPUT = 512 * 2**20  # enough for a million jobs

# Variables that tell a command how to reach slurmctld and how to authenticate: slurm.conf(5),
# slurm(1), auth/jwt, auth/slurm.
KEPT_VARIABLES = lazy_pattern(r"SLURM_(CONF|CONF_SERVER|JWT|SACK_\w+)")
_FOREIGN_VARIABLES = lazy_pattern(
    r"(SQUEUE|SINFO|SCONTROL|SACCT|SACCTMGR|SLURM|SBATCH|SRUN|SALLOC|SCANCEL)_"
)

# On another host a variable can be unset only by its full name, so these are all that squeue(1),
# scontrol(1), sinfo(1), sacct(1) and scancel(1) read in 20.11 to 26.05 (getenv() and the tables of
# names in src/squeue/opts.c and so on).
ELSEWHERE = (
    *(
        f"SQUEUE_{name}"
        for name in [
            "ACCOUNT",
            "ALL",
            "ARRAY",
            "ARRAY_UNIQUE",
            "FEDERATION",
            "FORMAT",
            "FORMAT2",
            "LICENSES",
            "LOCAL",
            "NAMES",
            "PARTITION",
            "PRIORITY",
            "QOS",
            "SIB",
            "SIBLING",
            "SORT",
            "STATES",
            "USERS",
        ]
    ),
    *(f"SCONTROL_{name}" for name in ["ALL", "FEDERATION", "FUTURE", "LOCAL", "SIB", "SIBLING"]),
    *(f"SACCT_{name}" for name in ["FEDERATION", "FORMAT", "LOCAL"]),
    *(
        f"SINFO_{name}"
        for name in ["ALL", "FEDERATION", "FORMAT", "FUTURE", "LOCAL", "PARTITION", "SORT"]
    ),
    *(
        f"SCANCEL_{name}"
        for name in [
            "ACCOUNT",
            "BATCH",
            "CRON",
            "CTLD",
            "FULL",
            "HURRY",
            "INTERACTIVE",
            "NAME",
            "PARTITION",
            "QOS",
            "STATE",
            "USER",
            "VERBOSE",
            "WCKEY",
        ]
    ),
    *(f"SLURM_{name}" for name in ["CLUSTERS", "DEBUG_FLAGS", "JSON", "YAML"]),
)

_NOT_THERE = 127

# All users of a host can read the arguments of a process while it runs, and nobody else's
# environment. A format holds the marks of its call. A user who knew them in time could write them
# into a comment, before slurmctld is asked.
FORMAT_VARIABLES = {"-o": "SQUEUE_FORMAT", "-O": "SQUEUE_FORMAT2"}
"""The variable that squeue takes in place of each option (squeue(1), 20.11 to 26.05)."""

_WORDS_OF_SQUEUE = ("squeue: ", "slurm_load_")
"""How squeue's own errors begin; a wrapper that fails by itself speaks otherwise."""

_NO_INPUT = 95
_TAKE_FORMAT = f'IFS= read -r format || exit {_NO_INPUT}; export "$1=$format"; shift; exec "$@"'


class AskTimedOut(CannotTell):
    """The command did not end within its limit, and was ended."""


class RequestCount(Struct):
    """Counts of one command: how often it ran, how often it failed, and the seconds of all its
    runs."""

    requests: int = 0  # How often it was run.
    failures: int = 0  # How often it failed.
    seconds: float = 0.0  # Seconds of all runs.


class SlurmClient:
    """Runs Slurm's commands, and counts them by command in `counts`. `remarks` has the lines that
    each command last wrote on stderr beside a valid answer.

    `prefix` runs the commands elsewhere, e.g. [ssh, login1]. `limit` is the time for a command in
    seconds. `conf` is the slurm.conf on the host where they run. Empty: the usual one.
    """

    def __init__(
        self,
        *,
        limit: float = 20.0,
        prefix: Sequence[str] = (),
        conf: str = "",
        environ: Mapping[str, str] | None = None,
        max_output: int = MOST_OUTPUT,
    ) -> None:
        self.limit = limit
        self._max_output = max_output
        self.counts: dict[str, RequestCount] = {}
        self.remarks: dict[str, list[str]] = {}
        self._prefix = self.prefix = tuple(prefix)
        self._conf, self._environ = conf, environ
        self._passes_input = True  # whether the prefix gives the input to the command
        self._reads_variable = True  # whether squeue takes its format from the environment
        self._lock = allocate_lock()
        self._hanging = proc.HangingChildren()

    def ask_slurm(self, *argv: str) -> bytes:
        """The output of the command. Raises CannotTell unless the command succeeded."""
        return self.believe_output(argv[0], self.run_command(*argv))

    def believe_output(self, name: str, done: proc.Done) -> bytes:
        """The output of a command that has ended. Raises CannotTell if its exit code is not 0, or
        stderr says that a part of the answer is missing."""
        partial = find_left_out(done.err)
        if done.code or partial:
            self._count_request(name, failures=1)
            raise failure_error(name, partial or describe_stderr(done.err), done.code)
        return done.out

    def run_command(self, *argv: str, limit: float = float("inf")) -> proc.Done:
        """Run a command whose failures have a meaning, so any exit code is returned.

        Raises AskTimedOut if it had to be ended at its limit, CannotAsk if it could not be started,
        and CannotTell if its outcome is not known for another reason."""
        name, limit = argv[0], min(limit, self.limit)
        try:
            with self._hanging.start_alone("Slurm"):
                done = self._start_command(argv, limit)
        except proc.StillHanging as error:
            raise CannotAsk(
                f"{name}: not asked, an earlier question {error} "
                "(a file system that Slurm's commands need hangs)"
            ) from None
        except CannotTell as error:
            late = isinstance(error, proc.TimedOut)
            self._count_request(name, requests=1, failures=1, seconds=limit if late else 0.0)
            raise self._slurm_error(name, error, limit) from None
        self._count_request(name, requests=1, seconds=done.seconds)
        if done.code == 0 and not find_left_out(done.err):
            self.remarks[name] = stderr_lines(done.err)
        return done

    def _start_command(self, argv: Sequence[str], limit: float) -> proc.Done:
        """Run the command. A wrapper of squeue that loses its environment (sudo, a cache) gets the
        format as an argument, from the first question that it answers in another form."""
        secret, value, rest = hide_format(argv) if self._reads_variable else ("", "", argv)
        done = self._start_with_format(argv, limit, secret, value, rest)
        # A prefix that fails (ssh) has its own words too, and is no wrapper of squeue.
        if secret and not (done.code and self._prefix) and lost_format(done, value):
            by_argument = self._start_with_format(argv, limit, "", "", argv)
            if by_argument.code == 0 and not lost_format(by_argument, value):
                self._reads_variable = False
                return by_argument
        return done

    def _start_with_format(
        self, argv: Sequence[str], limit: float, secret: str, value: str, rest: Sequence[str]
    ) -> proc.Done:
        asked, stdin = argv, b""
        env = neutral_environment(
            os.environ if self._environ is None else self._environ, self._conf
        )
        if secret and not self._prefix:
            asked, env[secret] = rest, value
        elif secret and self._passes_input:
            asked = ("/bin/sh", "-c", _TAKE_FORMAT, "sentinel", secret, *rest)
            stdin = value.encode() + b"\n"
        words = build_argv(asked, self._prefix, self._conf)
        done = proc.run(words, limit=limit, env=env, stdin=stdin, max_output=self._max_output)
        if done.code == _NO_INPUT and stdin:
            self._passes_input = False
            return self._start_with_format(argv, limit, "", "", argv)
        if done.code == _NOT_THERE and self._prefix:
            raise proc.CommandNotFound(describe_stderr(done.err))
        return done

    def _slurm_error(self, name: str, error: CannotTell, limit: float) -> CannotTell:
        """Convert an error of the process to one in words about Slurm."""
        if isinstance(error, proc.TimedOut):
            hint = "slurmctld, munge or the network hangs"
            return AskTimedOut(
                f"{name}: no answer within {duration_text(limit)}, it was ended ({hint})"
            )
        if not isinstance(error, proc.CommandNotFound):
            return type(error)(f"{name}: {error}")
        if self._prefix:
            through = visible(" ".join(self._prefix))
            return CannotAsk(f"{name} cannot be run through {through}: {error}")
        return CannotAsk(
            f"Slurm's client commands are not installed or not in PATH (cannot start {name})"
        )

    def _count_request(
        self, name: str, requests: int = 0, failures: int = 0, seconds: float = 0.0
    ) -> None:
        with self._lock:
            count = self.counts.setdefault(name, RequestCount())
            count.requests += requests
            count.failures += failures
            count.seconds += seconds


def hide_format(argv: Sequence[str]) -> tuple[str, str, Sequence[str]]:
    """The variable for squeue's format, the format, and the command without it. All commands but
    squeue come back as they are, with two empty texts."""
    at = next((place for place, word in enumerate(argv) if word in FORMAT_VARIABLES), 0)
    if argv[0] != "squeue" or not at:
        return "", "", argv
    return FORMAT_VARIABLES[argv[at]], argv[at + 1], (*argv[:at], *argv[at + 2 :])


def lost_format(done: proc.Done, value: str) -> bool:
    """Whether the command never saw its format: the answer has not the mark at its end, or the command
    failed in words that are not squeue's."""
    if done.code:
        return not any(line.startswith(_WORDS_OF_SQUEUE) for line in stderr_lines(done.err))
    mark = value[value.rfind("%") + 2 :] if "%" in value else value[value.rfind(":") + 1 :]
    return bool(done.out.strip()) and not mark.isdecimal() and mark.encode() not in done.out


def neutral_environment(environ: Mapping[str, str], conf: str = "") -> dict[str, str]:
    """The environment without Slurm's switches and with sentinel's own. With `conf`, no variable is
    kept that says how to reach another cluster."""
    kept = {
        k: v
        for k, v in environ.items()
        if KEPT_VARIABLES.fullmatch(k) or not _FOREIGN_VARIABLES.match(k)
    }
    if conf:
        kept = {k: v for k, v in kept.items() if not _FOREIGN_VARIABLES.match(k)} | {
            "SLURM_CONF": conf
        }
    return kept | SETTINGS


def build_argv(argv: Sequence[str], prefix: Sequence[str], conf: str = "") -> list[str]:
    """The command as it is started. With a prefix, env(1) sets the environment on the other host.

    ssh joins its arguments and gives them to a shell on the other host, so they are quoted for it.
    """
    if not prefix:
        return list(argv)
    unset = [word for name in ELSEWHERE for word in ("-u", name)]
    settings = {**SETTINGS, **({"SLURM_CONF": conf} if conf else {})}
    there = ["/usr/bin/env", *unset, *(f"{k}={v}" for k, v in settings.items()), *argv]
    if any(os.path.basename(word) in REMOTE_SHELLS for word in prefix):
        there = [shlex.quote(word) for word in there]
    return [*prefix, *there]
