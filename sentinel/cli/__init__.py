"""The command line. Each command is a module that is imported only when it is asked for."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from sentinel import __version__
from sentinel.core.errors import SentinelError

USAGE = 64
INTERNAL = 70
"""sysexits(3); 0-3 belong to the answers of checks."""

COMMANDS = {
    "run": "service",
    "tick": "service",
    "check": "check",
    "status": "status",
    "alerts": "alerts",
    "explain": "alerts",
    "notify": "notify",
    "config": "config",
    "doctor": "doctor",
    "plugins": "plugins",
}


class Parser(argparse.ArgumentParser):
    """argparse, but a wrong call never looks like a check's answer (exit code 2)."""

    def error(self, message: str) -> NoReturn:
        if "--nagios" in sys.argv:
            print(f"UNKNOWN - usage: {message}")
            raise SystemExit(3)
        self.print_usage(sys.stderr)
        print(f"{self.prog}: {message}\nTry '{self.prog} --help'.", file=sys.stderr)
        raise SystemExit(USAGE)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    parser = _parser(words)
    args, rest = parser.parse_known_args(words)
    if rest and not getattr(args, "takes_options", False):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    args.rest = rest
    if not hasattr(args, "call"):
        parser.print_help()
        return USAGE
    return _guarded(args)


def _parser(words: Sequence[str]) -> Parser:
    parser = Parser(
        prog="sentinel",
        description="Watches Slurm jobs, logs, disks and nodes; tells people; sets right what it may.",
        epilog="Start with: sentinel check fs · sentinel config init · sentinel run",
    )
    parser.add_argument("--version", action="version", version=f"sentinel {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", prog="sentinel")
    wanted = words[0] if words else ""
    modules = [COMMANDS[wanted]] if wanted in COMMANDS else dict.fromkeys(COMMANDS.values())
    for name in modules:
        import_module(f"sentinel.cli.{name}").register(commands)
    return parser


def _guarded(args: argparse.Namespace) -> int:
    try:
        code: int = args.call(args)
        sys.stdout.flush()
    except SentinelError as error:
        print(f"sentinel: {error}", file=sys.stderr)
        return getattr(error, "exit_code", INTERNAL)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + 13
    except KeyboardInterrupt:
        return 128 + 2
    return code
