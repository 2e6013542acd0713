"""The command line. Each command is a module that is imported only when it is asked for."""

import argparse
import atexit
import errno
import faulthandler
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper
from typing import Any, NoReturn, TextIO

from sentinel import __version__
from sentinel.cli import progress, signals, startup
from sentinel.config.near_misses import did_you_mean, nearest_word
from sentinel.core.errors import SentinelError
from sentinel.core.text import visible, visible_lines

EXIT_UNKNOWN = 3
EXIT_USAGE = 64
EXIT_INTERNAL = 70
"""EX_SOFTWARE of sysexits(3); exit codes 0 to 3 are the answers of checks."""
EXIT_TEMPFAIL = 75
"""EX_TEMPFAIL of sysexits(3): try again later; systemd restarts the unit."""

_DISK_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG)

GLOBAL_OPTIONS = ("-h", "--help", "--version")
"""Options that may come before a command."""

COMMANDS = {
    "init": "init",
    "add": "add",
    "remove": "add",
    "run": "service",
    "tick": "service",
    "deliver": "service",
    "check": "check",
    "submit": "submit",
    "status": "status",
    "top": "top",
    "alerts": "alerts",
    "explain": "alerts",
    "incidents": "incidents",
    "report": "report",
    "nodes": "nodes",
    "stacks": "stacks",
    "diag": "diag",
    "gpus": "gpus",
    "notify": "notify",
    "config": "config",
    "cron": "cron",
    "doctor": "doctor",
    "state": "state_files",
    "plugins": "plugins",
    "completion": "manual",
    "man": "manual",
}


DEFAULT_ACTIONS = {
    "alerts": "list",
    "nodes": "list",
    "gpus": "list",
    "diag": "list",
    "cron": "status",
}
"""The action of a group of commands that is called without one."""

SHORT_FORMS = {
    "ack": ("alerts", "ack"),
    "silence": ("alerts", "silence"),
    "silences": ("alerts", "silences"),
    "unsilence": ("alerts", "unsilence"),
    "breaker": ("nodes", "breaker"),
    "maintenance": ("nodes", "maintenance"),
}
"""Commands that may be called without the name of their group."""


def expand_words(words: Sequence[str]) -> list[str]:
    """The command line, completed with the words that people leave out."""
    found = [*SHORT_FORMS.get(words[0], words[:1]), *words[1:]] if words else []
    if found[:1] == ["submit"]:
        return _separate_foreign_words(found)
    action = DEFAULT_ACTIONS.get(found[0]) if found else None
    rest = found[1:]
    if action and (not rest or rest[0].startswith("-")) and not {"-h", "--help"} & set(rest):
        found.insert(1, action)
    return found


OWN_SUBMIT_OPTIONS = ("--wish", "--config")
"""Options of `sentinel submit` that take a value. All words behind its options are sbatch's."""


def _separate_foreign_words(words: Sequence[str]) -> list[str]:
    """Put `--` before the first word of another program, so that its options stay with it."""
    at = 1
    while at < len(words):
        name, equals, _ = words[at].partition("=")
        if name in OWN_SUBMIT_OPTIONS:
            at += 1 if equals else 2
        elif name in ("--dry-run", "-h", "--help"):
            at += 1
        else:
            break
    return [*words[:at], *(["--"] if at < len(words) else []), *words[at:]]


class _CommandParsers(argparse._SubParsersAction):  # type: ignore[type-arg]
    """Puts the text of each command in the list of commands also at the top of the command's own
    help."""

    def add_parser(self, name: str, **settings: Any) -> Any:
        text = settings.get("help") or ""
        settings.setdefault("description", f"{text[:1].upper()}{text[1:]}." if text else None)
        return super().add_parser(name, **settings)


class CommandParser(argparse.ArgumentParser):
    """argparse, but a wrong call never looks like a check's answer (exit code 2)."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(formatter_class=startup.CommandHelpFormatter, **settings)
        self.register("action", "parsers", _CommandParsers)

    def error(self, message: str) -> NoReturn:
        if "--nagios" in sys.argv:
            print(f"UNKNOWN - usage: {message}")
            raise SystemExit(3)
        self.print_usage(sys.stderr)
        print(f"{self.prog}: {message}\nTry '{self.prog} --help'.", file=sys.stderr)
        raise SystemExit(EXIT_USAGE)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Raise an error that suggests the nearest word instead of listing all choices. argparse
        calls this for commands and for options with choices."""
        if action.choices is not None and value not in action.choices:
            from sentinel.cli.command_tree import suggest_elsewhere

            hint = suggest_elsewhere(self, str(value)) or did_you_mean(str(value), action.choices)
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}{hint}")

    def refuse_arguments(self, rest: Sequence[str]) -> NoReturn:
        """Report words that the command does not take, and suggest the option that was meant."""
        close = nearest_word(rest[0], self._option_string_actions)
        hint = f" (did you mean {close}?)" if rest[0].startswith("--") and close else ""
        self.error(f"unrecognized arguments: {' '.join(rest)}{hint}")


def _find_subparser(parser: CommandParser, words: Sequence[str]) -> CommandParser:
    """The parser of the command that these words name, as far as they do."""
    for word in words:
        below = (a for a in parser._actions if isinstance(a, _CommandParsers))
        parser = next((a.choices[word] for a in below if word in a.choices), parser)
    return parser


def add_config_option(parser: Any) -> None:
    """Add `--config` to a command that reads the configuration."""
    places = "$SENTINEL_CONFIG, ./sentinel.yaml, ~/.config/sentinel/sentinel.yaml"
    text = f"the configuration file; default: the first of {places}, /etc/sentinel/sentinel.yaml"
    parser.add_argument("-c", "--config", metavar="FILE", help=text)


def add_json_option(parser: Any) -> None:
    """Add `--json` to a command whose answer programs read."""
    text = "print one JSON document and nothing else"
    parser.add_argument("--json", action="store_true", help=text)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns its exit code, whatever happens."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    words = expand_words(words)
    _open_standard_streams()
    try:
        _require_working_directory()
        with signals.raise_on_signals():
            try:
                progress.start_progress(words)
                return _run_command(words)
            finally:
                progress.stop_progress()
                sys.stdout.flush()
    except SentinelError as error:
        _print_error(str(error))
        code: int = getattr(error, "exit_code", EXIT_INTERNAL)
        unseen = isinstance(error, NoWorkingDirectory) or code == EXIT_TEMPFAIL
        return EXIT_UNKNOWN if unseen and words[:1] == ["check"] else code
    except BrokenPipeError:
        _discard_output()
        return 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except Exception as error:
        _discard_output()
        ended = signals.find_signal_end(error)
        if ended is not None:
            return ended
        text, code = _describe_internal_error(error)
        _print_error(text)
        return EXIT_UNKNOWN if words[:1] == ["check"] else code


def run_process() -> NoReturn:
    """The program `sentinel`: run one command, then end the process with its exit code.

    A thread that was left behind in a system call or in SQLite can return while the interpreter
    frees what the thread uses. The process then dies by SIGSEGV although its work had ended well:
    seen once at the end of a service. So nothing is freed while another thread is alive."""
    if sys.stderr is not None:
        faulthandler.enable()  # prints a traceback if native code crashes
    code = main()
    threading = sys.modules.get("threading")  # most commands use no threads
    if threading is None or threading.active_count() == 1:
        sys.exit(code)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


class NoWorkingDirectory(SentinelError):
    """The working directory is gone, so relative paths have no meaning."""

    exit_code = 66
    """EX_NOINPUT of sysexits(3)."""


def _require_working_directory() -> None:
    """Raise NoWorkingDirectory if the directory in which the command was typed is gone."""
    try:
        os.getcwd()
    except OSError as error:
        raise NoWorkingDirectory(
            f"the working directory is gone ({error.strerror}); go to another one: cd"
        ) from None


def _run_command(words: Sequence[str]) -> int:
    parser = _build_parser(words)
    if words and words[0].startswith("-") and words[0] not in GLOBAL_OPTIONS:
        parser.error(f"{words[0]}: options go after the command: sentinel COMMAND {words[0]} …")
    args, rest = parser.parse_known_args(words)
    if rest and not getattr(args, "takes_options", False):
        _find_subparser(parser, words).refuse_arguments(rest)
    args.rest = rest
    if not hasattr(args, "call"):
        parser.print_help()
        return EXIT_USAGE
    code: int = args.call(args)
    return code


def _build_parser(words: Sequence[str]) -> CommandParser:
    startup.prepare_startup()
    parser = CommandParser(
        prog="sentinel",
        description="Watches Slurm jobs, logs, disks and nodes, and tells people.",
        epilog="Start with: sentinel init. More about a command: sentinel help COMMAND.",
    )
    parser.add_argument("--version", action="version", version=f"sentinel {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", prog="sentinel")
    wanted = words[0] if words else ""
    needed = COMMANDS.values() if wanted != "--version" else ()
    modules = [COMMANDS[wanted]] if wanted in COMMANDS else dict.fromkeys(needed)
    for name in modules:
        import_module(f"sentinel.cli.{name}").register(commands)
    return parser


def _open_standard_streams() -> None:
    """Open the standard streams that are closed: else the next file would get the number of a
    closed one, and output would be written to it. Characters that the terminal lacks are printed as
    `?`, as ls(1) does."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(fd)
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115 - as long as the process
    sys.stdout = sys.stdout or _open_null_stream()
    sys.stderr = sys.stderr or _open_null_stream()
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _open_null_stream() -> TextIO:
    """A stream in place of one that was closed at the start; nobody reads it."""
    stream = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    stream.stands_in = True  # type: ignore[attr-defined]
    return stream


def _discard_output() -> None:
    """Send the output to /dev/null, so that the interpreter does not try again to write it when it
    ends."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_error(text: str) -> None:
    with suppress(OSError):
        print(f"sentinel: {visible_lines(text)}", file=sys.stderr)


def _describe_internal_error(error: Exception) -> tuple[str, int]:
    """The error in one line, with the place in the code unless the output could not be written; and
    the exit code."""
    if isinstance(error, OSError) and error.filename is None and error.errno in _DISK_ERRNOS:
        return f"the output cannot be written: {error.strerror}", EXIT_INTERNAL
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace else "?"
    said = f"{place}: {type(error).__name__}: {visible(str(error))}"
    if replaced := _describe_replacement():
        return f"{replaced}; {said}", EXIT_TEMPFAIL
    if isinstance(error, (ImportError, SyntaxError)):
        return f"the installation is not whole: install it again; {said}", EXIT_INTERNAL
    return f"internal error at {said}", EXIT_INTERNAL


def _describe_replacement() -> str:
    """That the installation is being replaced, in words; empty if it is not. Half an installation
    may lack the module that knows."""
    try:
        from sentinel.proc import installation

        why = installation.find_replacement()
        return installation.describe_replacement(why) if why else ""
    except (ImportError, SyntaxError) as error:
        return (
            f"the installation is being replaced or not whole: {error}; "
            "try again in a minute, and install it again if that does not help"
        )
