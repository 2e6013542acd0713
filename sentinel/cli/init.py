"""`sentinel init` and `sentinel add`: from nothing to the first mail, and one thing more."""

import argparse
import os
import sys
from collections.abc import Iterable
from typing import Any

from sentinel.cli import progress
from sentinel.cli.common import get_invoking_user as caller
from sentinel.core.errors import Invalid, SentinelError
from sentinel.core.text import visible
from sentinel.wiring import app
from sentinel.wiring.app import UsageError

EXIT_DECLINED = 1
EXIT_CANNOT_CREATE = 73
"""EX_CANTCREAT of sysexits(3)."""

CALLER_CHOICES = ("service", "systemd", "crontab", "scrontab", "chain", "none")


def register(commands: Any) -> None:
    """Add the parsers."""
    _register_init(commands)
    _register_add(commands)


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


def _register_add(commands: Any) -> None:
    add = commands.add_parser(
        "add", help="add a job, a disk or a mail address to the configuration"
    )
    things = add.add_subparsers(title="what", metavar="WHAT", required=True)
    for name, what, text, function in (
        ("job", "NAME", "watch the job of this name, its log and its checkpoints", add_job),
        ("disk", "PATH", "watch the file system that holds this path", add_disk),
        ("mail", "ADDR", "send alerts to this address too", add_mail),
    ):
        thing = things.add_parser(name, help=text)
        thing.add_argument("what", metavar=what)
        thing.add_argument(
            "-c",
            "--config",
            metavar="FILE",
            help="the configuration file to change; default: the one that all commands use",
        )
        if name == "mail":
            thing.add_argument(
                "--smtp",
                default="",
                metavar="HOST[:PORT]",
                help="your mail server, where the file names none yet",
            )
        thing.set_defaults(call=function)


def call_init(args: argparse.Namespace) -> int:
    """0 when all is set up; 1 when it was not wanted; 73 where a file is in the way."""
    from sentinel.init import setup

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
    mail, webhook = _ask_address(args)
    plan = setup.plan_setup(
        setup.InitOptions(
            file=file, user=args.user or _get_default_user(), job=args.job, mail=mail, webhook=webhook,
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


def _undo_init(args: argparse.Namespace) -> int:
    """Ask once, then take away what init made."""
    from sentinel.init import setup

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
    """Asked for where nobody said and somebody is there to answer."""
    if args.mail or args.webhook or args.yes or args.dry_run or not sys.stdin.isatty():
        return args.mail, args.webhook
    with progress.pause_progress():
        said = input(
            "Where shall alerts go (a mail address or a webhook; empty: this terminal only)? "
        ).strip()
    return ("", said) if "://" in said else (said, "")


def _ask_confirmation() -> bool:
    if not sys.stdin.isatty():
        raise UsageError("not a terminal: read the list above, then run again with --yes")
    with progress.pause_progress():
        return input("\nDo all of this? [y/N] ").strip().lower() in ("y", "yes")


def add_job(args: argparse.Namespace) -> int:
    """The checks of a training, from what is seen of it now."""
    from sentinel.config.starter import training_checks
    from sentinel.init.survey import survey_host

    if not args.what or args.what != visible(args.what):
        raise UsageError("a job's name is not empty and holds no control characters")
    path, settings, text = _read_config_file(args)
    found = survey_host(_get_default_user(), job=args.what)
    for line in found.trouble:
        print(f"sentinel add: {visible(line)}", file=sys.stderr)
    blocks = training_checks(found.here.trainings[0], [c.name for c in settings.checks])
    return _add_config_entries(path, text, "checks", blocks)


def add_disk(args: argparse.Namespace) -> int:
    """A check of the file system that the path is on."""
    from sentinel.config.starter import free_name

    disk = os.path.abspath(os.path.expanduser(args.what))
    if not os.path.isdir(disk):
        raise UsageError(f"{visible(disk)} is no directory on this host")
    path, settings, text = _read_config_file(args)
    taken = [c.name for c in settings.checks]
    limits = {
        "warn": {"used": "85%", "inodes_used": "85%"},
        "crit": {"used": "95%", "inodes_used": "95%"},
    }
    name = free_name(disk.strip("/").replace("/", "-") or "root", taken)
    return _add_config_entries(
        path, text, "checks", {name: {"kind": "fs", "paths": [disk], **limits}}
    )


def add_mail(args: argparse.Namespace) -> int:
    """One address more in the mail channel that is there, or the first mail channel; tried at once."""
    from sentinel.config.edit import insert_item
    from sentinel.config.starter import free_name
    from sentinel.init import channel_setup

    path, settings, text = _read_config_file(args)
    mails = [c for c in settings.channels if c.kind == "email" and not c.plugin.personal]
    if not mails:
        try:
            told = channel_setup.make_mail_channel(args.what, args.smtp)
        except Invalid as error:
            raise UsageError(str(error)) from error
        print(f"test message: {channel_setup.send_test_message(told)}")
        name = free_name("mail", [c.name for c in settings.channels])
        return _add_config_entries(path, text, "channels", {name: dict(told.block)})
    mail = mails[0]
    if args.what in mail.plugin.to:
        raise UsageError(f"{visible(args.what)} is in `to` of the channel {mail.name} already")
    after = insert_item(text, ("channels", mail.name, "to"), args.what)
    _write_config(path, after, [f"channels.{mail.name}.to: {visible(args.what)}"])
    print(f"try it with: sentinel notify test {visible(mail.name)}")
    return 0


def _read_config_file(args: argparse.Namespace) -> tuple[str, Any, str]:
    """The file, what it means today, and its text, byte by byte; raises ConfigError or ConfigMissing."""
    settings = app.load_settings(args.config)
    with open(settings.path, encoding="utf-8", newline="") as file:
        return settings.path, settings, file.read()


def _add_config_entries(
    path: str, text: str, section: str, blocks: dict[str, dict[str, Any]]
) -> int:
    from sentinel.config.edit import insert_entry

    for name, block in blocks.items():
        text = insert_entry(text, section, name, block)
    _write_config(
        path, text, [f"{section}.{name}: kind {block['kind']}" for name, block in blocks.items()]
    )
    return 0


def _write_config(path: str, text: str, added: Iterable[str]) -> None:
    """Only what loads takes the file's place."""
    from sentinel.config.edit import replace_file
    from sentinel.config.loader import load_config
    from sentinel.init import setup

    def validate_config(beside: str) -> None:
        load_config(beside, app.CHECKS, app.CHANNELS, actions=app.ACTIONS)

    try:
        with open(path, encoding="utf-8", newline="") as file:
            before = file.read()
        replace_file(path, text, validate_config)
        setup.record_own_edit(path, before, text)
    except OSError as error:
        raise _CannotWrite(f"{visible(path)} cannot be written: {error.strerror}") from error
    for line in added:
        print(f"{visible(path)}: added {visible(line)}")
    print("The next pass reads the file anew; a service does with: systemctl reload sentinel")


class _CannotWrite(SentinelError):
    exit_code = EXIT_CANNOT_CREATE


def _print_lines(lines: Iterable[str]) -> int:
    for line in lines:
        print(line, flush=True)
    return 0


def _print_progress(text: str) -> None:
    """What takes seconds says what it does; on stderr, for people only."""
    if sys.stderr.isatty():
        print(f"… {visible(text)}", file=sys.stderr, flush=True)


def _get_default_user() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return caller()
