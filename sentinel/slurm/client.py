"""Slurm's commands: argv in, text out, bounded, in an environment without surprises.

Other tools' switches (SQUEUE_FORMAT, SQUEUE_STATES, SLURM_CLUSTERS, …) change what these
commands print or whom they ask; times are epoch seconds, so that neither a locale nor a time
zone matters. What stands on stderr beside an answer is judged in `complaints`.
"""

from __future__ import annotations

import os
import re
import shlex
from _thread import allocate_lock
from collections.abc import Mapping, Sequence

from msgspec import Struct

from sentinel import proc
from sentinel.core.errors import CannotAsk, CannotTell
from sentinel.core.text import visible
from sentinel.core.values import duration_text
from sentinel.slurm.complaints import describe_stderr, failure_error, find_left_out, stderr_lines

# LOCAL: where slurm.conf has FederationParameters=fed_display they would list the other clusters' jobs
# too, and leave out, without a word, those of a cluster whose slurmctld is dead (seen on 22.05).
LOCAL_ENVIRONMENT = {f"{name}_LOCAL": "1" for name in ("SQUEUE", "SCONTROL", "SACCT", "SINFO")}
SETTINGS = {"SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0", "LC_ALL": "C", **LOCAL_ENVIRONMENT}
MOST_OUTPUT = 512 * 2**20  # a million jobs

# How to reach slurmctld and to prove who asks: slurm.conf(5), slurm(1), auth/jwt, auth/slurm.
KEPT_VARIABLES = re.compile(r"SLURM_(CONF|CONF_SERVER|JWT|SACK_\w+)")
_FOREIGN_VARIABLES = re.compile(
    r"(SQUEUE|SINFO|SCONTROL|SACCT|SACCTMGR|SLURM|SBATCH|SRUN|SALLOC|SCANCEL)_"
)

# On another host only names can be unset: what squeue(1), scontrol(1), sinfo(1), sacct(1) and
# scancel(1) read, 20.11 to 26.05 (getenv() and the tables of names in src/squeue/opts.c and so on).
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

_REMOTE_SHELLS = frozenset({"ssh", "rsh"})
_NOT_THERE = 127


class AskTimedOut(CannotTell):
    """The command had to be ended at its limit."""


class RequestCount(Struct):
    """How often a command was run, how often in vain, and the seconds all that took."""

    requests: int = 0
    failures: int = 0
    seconds: float = 0.0


class SlurmClient:
    """Asks Slurm and keeps count, by command, in `counts`; `remarks` has the lines that each last
    wrote on stderr beside an answer that is believed.

    `prefix` runs the commands elsewhere, e.g. [ssh, login1]. `limit`: seconds a command has. `conf`:
    the slurm.conf by which they go, on the host where they run; empty: the usual one.
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
        self._lock = allocate_lock()
        self._hanging = proc.HangingChildren()

    def ask_slurm(self, *argv: str) -> bytes:
        """What the command prints; CannotTell unless it succeeded."""
        return self.believe_output(argv[0], self.run_command(*argv))

    def believe_output(self, name: str, done: proc.Done) -> bytes:
        """What a command printed that ended with 0 and left nothing out, else CannotTell."""
        partial = find_left_out(done.err)
        if done.code or partial:
            self._count_request(name, failures=1)
            raise failure_error(name, partial or describe_stderr(done.err), done.code)
        return done.out

    def run_command(self, *argv: str, limit: float = float("inf")) -> proc.Done:
        """As `ask_slurm`, for commands whose failures have a meaning; CannotTell if it never ended.

        NoAnswer when it had to be ended, CannotAsk when it could not be started.
        """
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
        done = proc.run(
            build_argv(argv, self._prefix, self._conf),
            limit=limit,
            env=neutral_environment(
                os.environ if self._environ is None else self._environ, self._conf
            ),
            max_output=self._max_output,
        )
        if done.code == _NOT_THERE and self._prefix:
            raise proc.CommandNotFound(describe_stderr(done.err))
        return done

    def _slurm_error(self, name: str, error: CannotTell, limit: float) -> CannotTell:
        """The error in words about Slurm."""
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
        return CannotAsk(f"Slurm's client commands are not installed or not in PATH ({error})")

    def _count_request(
        self, name: str, requests: int = 0, failures: int = 0, seconds: float = 0.0
    ) -> None:
        with self._lock:
            count = self.counts.setdefault(name, RequestCount())
            count.requests += requests
            count.failures += failures
            count.seconds += seconds


def neutral_environment(environ: Mapping[str, str], conf: str = "") -> dict[str, str]:
    """The environment with Slurm's switches taken out and sentinel's own put in. With a `conf` of its
    own nothing is left that says how to reach another cluster."""
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
    """The command as it is started: through the prefix, env(1) sets the environment there.

    ssh joins its arguments and gives them to a shell on the other side: quoted for it.
    """
    if not prefix:
        return list(argv)
    unset = [word for name in ELSEWHERE for word in ("-u", name)]
    settings = {**SETTINGS, **({"SLURM_CONF": conf} if conf else {})}
    there = ["/usr/bin/env", *unset, *(f"{k}={v}" for k, v in settings.items()), *argv]
    if any(os.path.basename(word) in _REMOTE_SHELLS for word in prefix):
        there = [shlex.quote(word) for word in there]
    return [*prefix, *there]
