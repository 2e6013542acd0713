"""`sentinel submit`: sbatch with a wish in the job's comment, and what will be watched of the job."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import stat
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sentinel.checks.users import GETENT_LIMIT_S, is_meant_job, own_user_name, watched_users
from sentinel.config.places import ENVIRONMENT, SERVICE
from sentinel.core.cluster import WISH_MARK
from sentinel.core.errors import CannotTell, Invalid, SentinelError
from sentinel.core.text import visible
from sentinel.core.values import duration_text
from sentinel.core.wishes import (
    MAX_SCRIPT_BYTES,
    SCRIPT_MARK,
    Wish,
    find_script_words,
    is_wish,
    parse_wish,
    parse_words,
    refuse_pattern,
)
from sentinel.proc.handover import replace_process
from sentinel.slurm.sbatch_words import SbatchCall, read_sbatch_call, read_script_options
from sentinel.wiring import app
from sentinel.wiring.app import UsageError

if TYPE_CHECKING:
    from sentinel.core.settings import CheckConfig

KINDS = ("job", "log", "checkpoint")
"""Kinds whose messages a wish can change."""

_TO_OWNER = re.compile(r"^[^#\n]*\bto:\s*[\"']?owner\b", re.MULTILINE)


def register(commands: Any) -> None:
    """Add the parser."""
    parser = commands.add_parser(
        "submit",
        help="submit a batch job, and say what you want to hear of it",
        description="Runs sbatch with these words, and writes your wish into the job's comment. The "
        f"wish is that of --wish, or the {SCRIPT_MARK} line of the script. Prints what will be "
        "watched. Options of sentinel come before those of sbatch.",
        epilog="""Example: sentinel submit --wish 'stale=15m progress="step (\\d+)"' -N 4 train.sh""",
    )
    parser.add_argument(
        "--wish", metavar="WORDS", help="off, stale=DURATION, progress=PATTERN; docs/wishes.md"
    )
    parser.add_argument(
        "--config",
        metavar="FILE",
        help=f"the configuration of the sentinel that watches; default: ${ENVIRONMENT}, {SERVICE}",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print the command instead of running it"
    )
    parser.add_argument(
        "words",
        nargs=argparse.REMAINDER,
        metavar="SCRIPT",
        help="sbatch's options, then the script",
    )
    parser.set_defaults(call=call_submit)


def call_submit(args: argparse.Namespace) -> int:
    """Say what will be watched, and become sbatch. Nothing is submitted if a word of the wish is
    refused."""
    words = args.words[1:] if args.words[:1] == ["--"] else args.words
    if not words:
        raise UsageError(
            "name the script: sentinel submit [--wish WORDS] [sbatch's options] SCRIPT"
        )
    typed = read_sbatch_call(words)
    script, unread = _read_script(typed.script)
    written = read_script_options(script)
    asked = _find_asked_words(args.wish, script)
    wish = _require_wish(asked)
    taken = typed.comment or written.comment
    if taken:
        wish = _require_wish(_wish_in_comment(taken))
        if asked is not None:
            _print_line(_describe_taken(taken, in_script=args.wish is None))
    if unread:
        _print_line(f"NOT watched: cannot read {unread}")
    for line in _describe_watch(wish, args.config, _find_job_name(typed, written)):
        _print_line(line)
    comment = [] if taken or asked is None else [f"--comment={WISH_MARK} {asked}"]
    argv = ["sbatch", *comment, *words]
    if not args.dry_run:
        replace_process(argv)
    print(shlex.join(argv))
    return 0


def _find_asked_words(wish: str | None, script: bytes) -> str | None:
    """The words of the wish: those of the command line, or of the script. Raises UsageError."""
    try:
        written = find_script_words(script)
    except Invalid as error:
        raise UsageError(f"the script {error}") from None
    if wish is None:
        return written
    return wish.strip().removeprefix(WISH_MARK).strip()


def _wish_in_comment(comment: str | None) -> str | None:
    """The words of a wish that stands in sbatch's own option."""
    return comment.lstrip()[len(WISH_MARK) :] if comment and is_wish(comment) else None


def _require_wish(words: str | None) -> Wish:
    """The wish, all of whose words can be followed. Raises UsageError."""
    if words is None:
        return Wish()
    if not (WISH_MARK + words).isprintable():
        raise UsageError("the wish: it holds a line break or another control character")
    wish = parse_words(words)
    why = [*wish.refused, refuse_pattern(wish.progress) if wish.progress else ""]
    if text := "; ".join(filter(None, why)):
        raise UsageError(f"nothing was submitted. The wish: {text} (docs/wishes.md)")
    return wish


def _describe_taken(comment: str, *, in_script: bool) -> str:
    """Why the wish is not written into the comment."""
    if parse_wish(comment):
        return f"the wish of --comment counts; that of --wish or {SCRIPT_MARK} is not written"
    other = f"the comment of this job belongs to another tool ({visible(comment[:60])})"
    if in_script:
        return (
            f"not watched yet as you wish: {other}; the {SCRIPT_MARK} line counts once sentinel has"
            " read the script, which it does where it runs as a Slurm operator or as you"
        )
    return (
        f"NOT watched as you wish: {other}; write your wish into a {SCRIPT_MARK} line of the script"
    )


def _read_script(path: str | None) -> tuple[bytes, str]:
    """The script's beginning, and why it cannot be read. Both are empty if sbatch reads it elsewhere.
    That it is missing is for sbatch to report. A pipe is left to sbatch, which could not read it again."""
    if path is None:
        return b"", ""
    try:
        if stat.S_ISFIFO(os.stat(path).st_mode):
            return b"", f"{visible(path)}: it is a pipe, which is read once"
        with open(path, "rb") as file:
            return file.read(MAX_SCRIPT_BYTES), ""
    except FileNotFoundError:
        return b"", ""
    except OSError as error:
        return b"", f"{visible(path)}: {error.strerror}"


def _find_job_name(typed: SbatchCall, written: SbatchCall) -> str:
    """The name of the job, as sbatch gives it."""
    given = (typed.job_name, os.environ.get("SBATCH_JOB_NAME"), written.job_name)
    usual = "wrap" if typed.wrap is not None else os.path.basename(typed.script or "sbatch")
    return next((name for name in given if name), usual)


def _describe_watch(wish: Wish, config: str | None, name: str) -> Iterator[str]:
    """What will be watched of the job, in lines."""
    asked = _describe_wish(wish)
    if asked:
        yield f"your wish: {asked}"
    try:
        path, checks, tells_owners = _load_service(config)
        watching = [(c, _describe_size(c)) for c in checks if _is_watched(c, name)]
    except (SentinelError, OSError) as error:
        yield f"NOT watched, as far as can be seen: {_describe_error(error)}"
        return
    shown = visible(name)
    if not watching:
        yield f"NOT watched: no check of {path} looks at jobs named {shown} of yours"
        return
    checks_text = ", ".join(f"{c.name} ({c.common.kind}{size})" for c, size in watching)
    yield f"watched: job {shown} by {visible(checks_text)}"
    if wish.is_own_watch and not any(c.common.kind == "log" for c, _ in watching):
        yield "NOT watched as you wish: stale= and progress= need a check of kind log"
    if not tells_owners:
        yield f"NOT told to you: no channel in {path} has `to: owner`"


def _describe_wish(wish: Wish) -> str:
    parts = [
        "no messages to you" if wish.off else "",
        f"you are told when nothing advances for {duration_text(wish.stale)}" if wish.stale else "",
        f"the number of {visible(wish.progress)} has to advance" if wish.progress else "",
    ]
    return "; ".join(filter(None, parts))


def _load_service(config: str | None) -> tuple[str, Sequence[CheckConfig], bool]:
    """The file of the sentinel that watches, its checks of jobs, and whether it tells users of their
    own jobs. Channels are not loaded: their secrets are not for users. Raises OSError and
    SentinelError."""
    path = config or os.environ.get(ENVIRONMENT) or SERVICE
    with open(path, encoding="utf-8", errors="replace") as file:
        tells = bool(_TO_OWNER.search(file.read()))
    settings = app.load_settings_from(path, sending=False)
    return visible(path), [c for c in settings.checks if c.common.kind in KINDS], tells


def _is_watched(check: CheckConfig, name: str) -> bool:
    """Whether the check looks at a job of this name of the user who submits it. Raises
    CannotTell."""
    plugin, kind = check.plugin, check.common.kind  # kinds have these settings under two names
    exact = plugin.name if kind == "job" else plugin.job
    match = plugin.job_match if kind == "checkpoint" else plugin.match
    sized = plugin.min_gpus or plugin.min_nodes
    if not (exact or match or sized) or not is_meant_job(exact or "", match, name):
        return False
    users = plugin.whose if kind == "job" else plugin.watched_users
    if not users:
        return False  # only jobs of the user who runs the service
    whose = watched_users(users, GETENT_LIMIT_S)
    return whose is None or own_user_name() in whose


def _describe_size(check: CheckConfig) -> str:
    """Sizes below which the check does not look at a job."""
    least = [(check.plugin.min_gpus, "GPUs"), (check.plugin.min_nodes, "nodes")]
    sizes = [f"{count} {noun} or more" for count, noun in least if count]
    return f", if it has {' and '.join(sizes)}" if sizes else ""


def _describe_error(error: SentinelError | OSError) -> str:
    if isinstance(error, OSError):
        return f"cannot read {visible(str(error.filename))}: {error.strerror}"
    if isinstance(error, CannotTell):
        return f"cannot tell whose jobs are watched: {error}"
    return f"cannot read the configuration: {visible(str(error).splitlines()[0])}"


def _print_line(text: str) -> None:
    print(f"sentinel: {text}", file=sys.stderr)
