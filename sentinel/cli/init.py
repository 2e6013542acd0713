"""`sentinel init`: sets everything up, to the first mail."""

import argparse
import os
import pwd
import sys
from collections.abc import Iterable
from typing import Any

from sentinel.cli import progress
from sentinel.core.errors import Invalid
from sentinel.core.text import visible
from sentinel.init import channel_setup, setup
from sentinel.user_files.identity import user_name
from sentinel.wiring.app import UsageError

EXIT_DECLINED = 1
EXIT_CANNOT_CREATE = 73
"""EX_CANTCREAT of sysexits(3)."""

CALLER_CHOICES = ("service", "systemd", "crontab", "scrontab", "chain", "none")


def register(commands: Any) -> None:
    """Add the parsers."""
    _register_init(commands)


def _register_init(commands: Any) -> None:
    init = commands.add_parser(
        "init",
        help="set everything up: shows what it will do, asks once, does it",
        description="Looks at your jobs, finds a way to tell you and something that calls sentinel "
        "on time. It shows what it will write, install, submit and send, asks once, does it, and "
        "ends with a proof of what is watched. It never switches on anything that changes your "
        "cluster.",
    )
    option = init.add_argument
    option(
        "--job",
        default="",
        metavar="NAME",
        help="watch this job only; default: your largest that run",
    )
    tell = init.add_mutually_exclusive_group()
    tell.add_argument("--mail", default="", metavar="ADDR", help="send alerts to this address")
    tell.add_argument(
        "--webhook",
        default="",
        metavar="URL",
        help="send alerts to this address of Slack, Discord, Teams, ntfy, or a service of yours",
    )
    option(
        "--smtp",
        default="",
        metavar="HOST[:PORT]",
        help="your mail server; default: the one of this host, or its mail program",
    )
    option(
        "--by",
        default="",
        choices=CALLER_CHOICES,
        help="what calls sentinel; default: the quickest that works here",
    )
    option("--user", default="", metavar="NAME", help="whose jobs are watched; default: yours")
    option(
        "-c",
        "--config",
        default="",
        metavar="FILE",
        help="write this file; default: ~/.config/sentinel/sentinel.yaml, as root /etc/sentinel/sentinel.yaml",
    )
    option("--yes", action="store_true", help="do what the list says without asking")
    option("--dry-run", action="store_true", help="show the list and the file; do nothing")
    option("--undo", action="store_true", help="take away what init made, but the record of alerts")
    option("--purge", action="store_true", help="with --undo: remove the record of alerts too")
    init.set_defaults(call=call_init)


def call_init(args: argparse.Namespace) -> int:
    """Set everything up. Returns 0 if it is done, 1 if the person did not want it, 73 if a file is
    in the way."""
    if args.undo:
        return _undo_init(args)
    if args.purge:
        raise UsageError("--purge goes with --undo")
    file = setup.choose_config_path(args.config)
    if os.path.lexists(file):
        print(
            f"sentinel init: {visible(file)} is there already and is left as it is. Add to it with "
            "`sentinel add`, see what it watches with `sentinel config check --proof`, or take an "
            "earlier init away with `sentinel init --undo`.",
            file=sys.stderr,
        )
        return EXIT_CANNOT_CREATE
    _require_user(args.user)
    mail, webhook = _ask_address(args)
    plan = setup.plan_setup(
        setup.InitOptions(
            file=file, user=args.user or get_default_user(), job=args.job, mail=mail, webhook=webhook,
            smtp=args.smtp, by=args.by,
        ),
        _print_progress,
    )  # fmt: skip
    print("\n".join(plan.render_plan_lines()))
    if args.dry_run:
        print(f"\n{visible(file)} would hold:\n")
        print(plan.text, end="")
        return 0
    if not (args.yes or _ask_confirmation()):
        print("Nothing was done.")
        return EXIT_DECLINED
    return _print_lines(setup.carry_out_plan(plan, _print_progress))


def _require_user(name: str) -> None:
    """Raise UsageError for a name that this host does not know: no job of that user would be
    found."""
    try:
        pwd.getpwnam(name or "root")
    except (KeyError, ValueError):
        raise UsageError(f"--user: there is no user {visible(name)!r} on this host") from None


def _undo_init(args: argparse.Namespace) -> int:
    """Ask once, then remove what init made."""
    for name in ("job", "mail", "webhook", "smtp", "by", "user"):
        if getattr(args, name):
            raise UsageError(
                f"--{name} has no use with --undo, which takes away all that init made"
            )
    plan = setup.plan_undo(os.path.abspath(args.config) if args.config else "", purge=args.purge)
    print("\n".join(plan.render_undo_lines()))
    if args.dry_run:
        return 0
    if not (args.yes or _ask_confirmation()):
        print("Nothing was done.")
        return EXIT_DECLINED
    return _print_lines(setup.undo_setup(plan))


def _ask_address(args: argparse.Namespace) -> tuple[str, str]:
    """The mail address or webhook; the person is asked if none is given and there is a terminal."""
    if args.mail or args.webhook or args.yes or args.dry_run or not sys.stdin.isatty():
        return args.mail, args.webhook
    while True:
        with progress.pause_progress():
            said = input(
                "Where shall alerts go (a mail address or a webhook; empty: this terminal only)? "
            ).strip()
        mail, webhook = ("", said) if "://" in said else (said, "")
        try:
            channel_setup.check_address(mail, webhook)
        except Invalid as error:
            print(f"sentinel init: {visible(str(error))}", file=sys.stderr)
            continue
        return mail, webhook


def _ask_confirmation() -> bool:
    if not sys.stdin.isatty():
        raise UsageError("not a terminal: read the list above, then run again with --yes")
    with progress.pause_progress():
        return input("\nDo all of this? [y/N] ").strip().lower() in ("y", "yes")


def _print_lines(lines: Iterable[str]) -> int:
    for line in lines:
        print(line, flush=True)
    return 0


def _print_progress(text: str) -> None:
    """Print on a terminal what takes seconds."""
    if sys.stderr.isatty():
        print(f"… {visible(text)}", file=sys.stderr, flush=True)


def get_default_user() -> str:
    """The user whose jobs are watched if none is named."""
    return user_name(os.geteuid())
