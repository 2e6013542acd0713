"""The command line. Each command is a module that is imported only when it is asked for."""

import argparse
import errno
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
from sentinel.core.errors import SentinelError
from sentinel.core.text import visible, visible_lines

EXIT_UNKNOWN = 3
EXIT_USAGE = 64
EXIT_INTERNAL = 70
"""sysexits(3); 0-3 belong to the answers of checks."""

_DISK_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG)

GLOBAL_OPTIONS = ("-h", "--help", "--version")
"""What may stand before a command."""

COMMANDS = {
    "init": "init",
    "add": "init",
    "run": "service",
    "tick": "service",
    "deliver": "service",
    "check": "check",
    "status": "status",
    "top": "top",
    "alerts": "alerts",
    "explain": "alerts",
    "incidents": "incidents",
    "nodes": "nodes",
    "stacks": "stacks",
    "diag": "diag",
    "gpus": "gpus",
    "notify": "notify",
    "config": "config",
    "cron": "cron",
    "doctor": "doctor",
    "plugins": "plugins",
    "completion": "manual",
    "man": "manual",
}


class _CommandParsers(argparse._SubParsersAction):  # type: ignore[type-arg]
    """Each command says at the top of its own help what the list of commands says of it."""

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
        """With the nearest word in place of all there are. argparse calls it for commands and for
        options with choices."""
        if action.choices is not None and value not in action.choices:
            from sentinel.cli.command_tree import suggest_elsewhere
            from sentinel.config.problems import did_you_mean

            hint = suggest_elsewhere(self, str(value)) or did_you_mean(str(value), action.choices)
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}{hint}")

    def refuse_arguments(self, rest: Sequence[str]) -> NoReturn:
        """Words that it does not take, with the option that was meant."""
        from sentinel.config.problems import nearest_word

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
    """`--config`, of a command that goes by the file that applies."""
    places = "$SENTINEL_CONFIG, ./sentinel.yaml, ~/.config/sentinel/sentinel.yaml"
    text = f"the configuration file; default: the first of {places}, /etc/sentinel/sentinel.yaml"
    parser.add_argument("-c", "--config", metavar="FILE", help=text)


def add_json_option(parser: Any) -> None:
    """`--json`, of a command whose answer programs read."""
    text = "print one JSON document and nothing else"
    parser.add_argument("--json", action="store_true", help=text)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code, whatever becomes of it."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
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
        if isinstance(error, NoWorkingDirectory) and words[:1] == ["check"]:
            return EXIT_UNKNOWN
        return getattr(error, "exit_code", EXIT_INTERNAL)
    except BrokenPipeError:
        _discard_output()
        return 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except Exception as error:
        _discard_output()
        _print_error(_describe_internal_error(error))
        return EXIT_UNKNOWN if words[:1] == ["check"] else EXIT_INTERNAL


class NoWorkingDirectory(SentinelError):
    """Relative paths mean nothing here."""

    exit_code = 66
    """EX_NOINPUT of sysexits(3)."""


def _require_working_directory() -> None:
    """Raises NoWorkingDirectory where the one in which the command was typed is gone."""
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
    parser = CommandParser(
        prog="sentinel",
        description="Watches Slurm jobs, logs, disks and nodes, and tells people.",
        epilog="Start with: sentinel init. More about a command: sentinel help COMMAND.",
    )
    parser.add_argument("--version", action="version", version=f"sentinel {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", prog="sentinel")
    wanted = words[0] if words else ""
    startup.prepare_startup()
    needed = COMMANDS.values() if wanted != "--version" else ()
    modules = [COMMANDS[wanted]] if wanted in COMMANDS else dict.fromkeys(needed)
    for name in modules:
        import_module(f"sentinel.cli.{name}").register(commands)
    return parser


def _open_standard_streams() -> None:
    """A closed one would lend its number to the next file: what is printed then lands in it. What
    the terminal's character set lacks becomes `?`, as ls(1) has it, and is no error."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(fd)
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115 - as long as the process
    sys.stdout = sys.stdout or _open_null_stream()
    sys.stderr = sys.stderr or _open_null_stream()
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _open_null_stream() -> TextIO:
    """What stands in for a stream that was closed at the start: nobody reads it."""
    stream = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    stream.stands_in = True  # type: ignore[attr-defined]
    return stream


def _discard_output() -> None:
    """What could not be written is not tried again when the interpreter ends."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_error(text: str) -> None:
    with suppress(OSError):
        print(f"sentinel: {visible_lines(text)}", file=sys.stderr)


def _describe_internal_error(error: Exception) -> str:
    """One line; with the place in the code, unless it is the output that fails."""
    if isinstance(error, OSError) and error.filename is None and error.errno in _DISK_ERRNOS:
        return f"the output cannot be written: {error.strerror}"
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace else "?"
    return f"internal error at {place}: {type(error).__name__}: {visible(str(error))}"
