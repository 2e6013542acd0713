"""`sentinel add` and `sentinel remove`: adds one thing to the configuration, or removes one."""

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from sentinel.checks.users import EVERYBODY
from sentinel.cli.init import EXIT_CANNOT_CREATE, get_default_user
from sentinel.config.edit import (
    insert_entry,
    insert_item,
    remove_entry,
    remove_item,
    replace_file,
)
from sentinel.config.loader import load_config
from sentinel.config.near_misses import did_you_mean
from sentinel.config.problems import ConfigError
from sentinel.config.starter import STARTER_COMMENTS, StarterTraining, free_name, training_checks
from sentinel.core.errors import Invalid, SentinelError
from sentinel.core.guidance import quote_command
from sentinel.core.text import visible
from sentinel.init import channel_setup, setup
from sentinel.init.survey import survey_host
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.job import find_job, is_job_id, job_rows
from sentinel.wiring import app
from sentinel.wiring.app import UsageError

ADDED_ENDS = ("log", "checkpoints")
"""Ends of the names of the checks that `add job` makes beside the one of kind job."""

Entry = tuple[str, str]
"""A section of the file and a name in it."""


RELOAD_HINT = """\
The next pass reads the file anew. A service does with `systemctl reload sentinel`, and a
`sentinel run` of your own with `kill -HUP` and its process id, which `sentinel status` tells."""


def register(commands: Any) -> None:
    """Add the parsers."""
    add = commands.add_parser(
        "add", help="add a job, a disk, a mail address or a webhook to the configuration"
    )
    things = add.add_subparsers(title="what", metavar="WHAT", required=True)
    for name, what, text, function in (
        ("job", "NAME", "watch a job, its log and its checkpoints: a name, an id, or 'swe*'", add_job),
        ("disk", "PATH", "watch the file system that holds this path", add_disk),
        ("mail", "ADDR", "send alerts to this address too", add_mail),
        ("webhook", "URL", "send alerts to this address of a chat or a service too", add_webhook),
    ):  # fmt: skip
        thing = things.add_parser(name, help=text)
        thing.add_argument("what", metavar=what)
        _add_file_option(thing)
        if name == "mail":
            thing.add_argument(
                "--smtp",
                default="",
                metavar="HOST[:PORT]",
                help="your mail server, where the file names none yet",
            )
        thing.set_defaults(call=function)
    remove = commands.add_parser("remove", help="take out of the configuration what `add` put in")
    remove.add_argument(
        "what", metavar="NAME", help="a check, a channel, a job, a path, a mail address or a URL"
    )
    _add_file_option(remove)
    remove.set_defaults(call=call_remove)


def _add_file_option(parser: Any) -> None:
    parser.add_argument(
        "-c",
        "--config",
        metavar="FILE",
        help="the configuration file to change; default: the one that all commands use",
    )


def add_job(args: argparse.Namespace) -> int:
    """Add the checks of a training, from what can be seen of it now."""
    if not args.what or args.what != visible(args.what):
        raise UsageError("a job's name must not be empty or hold control characters")
    path, settings, text = _read_config_file(args)
    name, user = _find_meant_job(args.what)
    pattern = _make_name_pattern(name)
    if there := [c.name for c in settings.checks if _is_watched_for(c, pattern or name, user)]:
        return _say_already_watched(name, there[0])
    taken = [c.name for c in settings.checks]
    if pattern:
        training = StarterTraining(name=name, user=user, match=pattern)
        _say_what_matches(pattern, user)
    else:
        found = survey_host(user, job=name)
        for line in found.trouble:
            print(f"sentinel add: {visible(line)}", file=sys.stderr)
        training = found.here.trainings[0]
    return _add_config_entries(path, text, "checks", training_checks(training, taken))


def _find_meant_job(what: str) -> tuple[str, str]:
    """The name of the job and its user. Raises UsageError for an id that Slurm does not know.

    Root watches other people's jobs, so for root the user is that of the running job."""
    if is_job_id(what):
        rows = job_rows(_make_client(), what)
        if not rows:
            raise UsageError(
                f"Slurm knows no job {what} (see: squeue --me); a job that is not there yet is "
                "added by its name"
            )
        print(f"job {what} is {visible(rows[0].name)} of {visible(rows[0].user)}")
        return rows[0].name, rows[0].user
    if not os.geteuid() and app.has_slurm() and not _make_name_pattern(what):
        try:
            return what, find_job(_make_client(), what).user
        except SentinelError:
            return what, get_default_user()
    return what, get_default_user()


def _make_client() -> SlurmClient:
    return SlurmClient(limit=setup.SLURM_TIMEOUT_S)


def _make_name_pattern(name: str) -> str:
    """The regular expression of a name with the shell's `*` and `?`; empty for any other name."""
    if not set("*?") & set(name):
        return ""
    wild = {"*": ".*", "?": "."}
    return "".join(wild.get(c) or re.sub(r"([\\.^$+{}\[\]()|])", r"\\\1", c) for c in name)


def _get_watched_job(check: Any) -> str:
    """The name or the pattern of the jobs that this check is about; empty for any other check."""
    plugin, kind = check.plugin, check.common.kind
    if kind not in ("job", "log", "checkpoint"):
        return ""
    match = getattr(plugin, "match", None)
    return (plugin.name if kind == "job" else plugin.job) or (match.pattern if match else "")


def _is_watched_for(check: Any, wanted: str, user: str) -> bool:
    """Whether it is a check of kind job that watches that job of that user by its name."""
    if check.common.kind != "job" or not (job := _get_watched_job(check)):
        return False
    users = check.plugin.users
    mine = not users or user in users or EVERYBODY in users
    return mine and (job == wanted or check.plugin.is_watched_name(wanted))


def _say_what_matches(pattern: str, user: str) -> None:
    """Print which jobs the pattern matches, so that a pattern that matches too many, or none, is
    noticed at once."""
    try:
        found = survey_host(user).here
    except SentinelError:
        return
    names = [*(t.name for t in found.trainings), *found.jobs]
    mine = [visible(name) for name in names if re.fullmatch(pattern, name)]
    print(
        f"sentinel add: {visible(pattern)} matches now: {', '.join(mine) or 'no job'}",
        file=sys.stderr,
    )


def add_disk(args: argparse.Namespace) -> int:
    """Add a check of the file system on which the path is."""
    disk = os.path.abspath(os.path.expanduser(args.what))
    if not os.path.isdir(disk):
        raise UsageError(f"{visible(disk)} is no directory on this host")
    path, settings, text = _read_config_file(args)
    taken = [c.name for c in settings.checks]
    watched = ((c.name, c.plugin) for c in settings.checks if c.common.kind == "fs")
    if there := [name for name, plugin in watched if disk in plugin.paths]:
        return _say_already_watched(disk, there[0])
    limits = {
        "warn": {"used": "85%", "inodes_used": "85%"},
        "crit": {"used": "95%", "inodes_used": "95%"},
    }
    name = free_name(disk.strip("/").replace("/", "-") or "root", taken)
    return _add_config_entries(
        path, text, "checks", {name: {"kind": "fs", "paths": [disk], **limits}}
    )


def _say_already_watched(what: str, check: str) -> int:
    print(
        f"{visible(what)} is watched by the check {visible(check)} already; the file is as it was"
    )
    return 0


def add_mail(args: argparse.Namespace) -> int:
    """Add an address to the mail channel, or add the first mail channel, and send a test
    message."""
    path, settings, text = _read_config_file(args)
    mails = [c for c in settings.channels if c.kind == "email" and not c.plugin.personal]
    if there := [c.name for c in mails if args.what in c.plugin.to]:
        return _say_already_told(args.what, there[0])
    if not mails:
        return _add_channel(
            path, settings, text, lambda: channel_setup.make_mail_channel(args.what, args.smtp)
        )
    mail = mails[0]
    after = insert_item(text, ("channels", mail.name, "to"), args.what)
    _write_config(path, after, [f"added channels.{mail.name}.to: {args.what}"])
    print(f"try it with: {quote_command('sentinel', 'notify', 'test', mail.name)}")
    return 0


def add_webhook(args: argparse.Namespace) -> int:
    """Add a channel of the kind that fits the address, and send a test message."""
    path, settings, text = _read_config_file(args)
    if there := [c.name for c in settings.channels if _get_channel_url(c) == args.what]:
        return _say_already_told("this address", there[0])
    return _add_channel(path, settings, text, lambda: channel_setup.make_webhook_channel(args.what))


def _get_channel_url(channel: Any) -> str:
    url = getattr(channel.plugin, "url", "")
    return str(url.reveal() if hasattr(url, "reveal") else url)


def _add_channel(
    path: str, settings: Any, text: str, make: Callable[[], channel_setup.ChannelDraft]
) -> int:
    """Add a channel to the file only if it has taken the test message."""
    try:
        told = make()
    except Invalid as error:
        raise UsageError(str(error)) from error
    print(f"test message: {channel_setup.send_test_message(told)}")
    name = free_name(told.name, [c.name for c in settings.channels])
    return _add_config_entries(path, text, "channels", {name: dict(told.block)})


def _say_already_told(whom: str, channel: str) -> int:
    print(f"{visible(whom)} is in the channel {visible(channel)} already; the file is as it was")
    return 0


def call_remove(args: argparse.Namespace) -> int:
    """Remove something from the file. Returns 0 if it is removed."""
    path, settings, text = _read_config_file(args)
    entries = _find_entries(args.what, settings)
    items = [] if entries else _find_items(args.what, settings)
    if not entries and not items:
        names = {c.name for c in (*settings.checks, *settings.channels)}
        names |= {*map(_get_watched_job, settings.checks)} - {""}
        hint = did_you_mean(args.what, names, "it has")
        raise UsageError(f"nothing in {visible(path)} is called {visible(args.what)!r}{hint}")
    said = []
    for section, name in entries:
        text = remove_entry(text, section, name, STARTER_COMMENTS)
        said.append(f"removed {section}.{name}")
    for place, item in items:
        text = remove_item(text, place, item)
        said.append(f"removed {item} from {'.'.join(place)}")
    _write_config(path, text, said)
    if not {c.name for c in settings.channels} - {n for s, n in entries if s == "channels"}:
        print("sentinel remove: no channel is left: nobody is told", file=sys.stderr)
    return 0


def _find_entries(what: str, settings: Any) -> list[Entry]:
    """Entries that are removed as a whole. A name counts before a job, a job before a path or an
    address. Raises UsageError for a name that both a check and a channel have."""
    checks = [c for c in settings.checks if c.name == what]
    channels = [c for c in settings.channels if c.name == what]
    if checks and channels:
        raise UsageError(f"a check and a channel are called {visible(what)}: edit the file by hand")
    if not checks and not channels:
        wanted = _make_name_pattern(what) or what
        checks = [c for c in settings.checks if _get_watched_job(c) == wanted]
    elif checks and checks[0].common.kind == "job":
        names, job = {what, *(f"{what}-{end}" for end in ADDED_ENDS)}, _get_watched_job(checks[0])
        checks = [c for c in settings.checks if c.name in names and _get_watched_job(c) == job]
    if not checks and not channels:
        disk = os.path.abspath(os.path.expanduser(what))
        checks = [c for c in settings.checks if _get_paths(c) == [disk]]
        channels = [c for c in settings.channels if what in _get_only_addresses(c)]
    return [*(("checks", c.name) for c in checks), *(("channels", c.name) for c in channels)]


def _find_items(what: str, settings: Any) -> list[tuple[tuple[str, str, str], str]]:
    """Paths or addresses that are removed from a list of several, with the place of the list."""
    disk = os.path.abspath(os.path.expanduser(what))
    paths = [("checks", c.name, "paths") for c in settings.checks if disk in _get_paths(c)]
    mails = [("channels", c.name, "to") for c in settings.channels if what in _get_receivers(c)]
    return [*((place, disk) for place in paths), *((place, what) for place in mails)]


def _get_paths(check: Any) -> list[str]:
    return list(check.plugin.paths) if check.common.kind == "fs" else []


def _get_receivers(channel: Any) -> list[str]:
    return list(channel.plugin.to) if channel.kind == "email" else []


def _get_only_addresses(channel: Any) -> list[str]:
    """The address without which the channel could notify nobody; empty if there are several."""
    to, url = _get_receivers(channel), _get_channel_url(channel)
    return [url] if url else to if len(to) == 1 else []


def _read_config_file(args: argparse.Namespace) -> tuple[str, Any, str]:
    """The path of the file, its settings, and its text, byte by byte. Raises ConfigError or
    ConfigMissing."""
    settings = app.load_settings(args.config)
    with open(settings.path, encoding="utf-8", newline="") as file:
        return settings.path, settings, file.read()


def _add_config_entries(
    path: str, text: str, section: str, blocks: dict[str, dict[str, Any]]
) -> int:
    for name, block in blocks.items():
        text = insert_entry(text, section, name, block)
    _write_config(
        path,
        text,
        [f"added {section}.{name}: kind {block['kind']}" for name, block in blocks.items()],
    )
    return 0


def _write_config(path: str, text: str, done: Iterable[str]) -> None:
    """Replace the file only if the new text is valid. Raises ConfigError with the lines of the new
    text."""

    def validate_config(beside: str) -> None:
        try:
            load_config(beside, app.CHECKS, app.CHANNELS, actions=app.ACTIONS)
        except ConfigError as error:
            problems = [replace(p, file=f"{path} (as it would be)") for p in error.problems]
            raise ConfigError(problems) from None

    try:
        with open(path, encoding="utf-8", newline="") as file:
            before = file.read()
        replace_file(path, text, validate_config)
        setup.record_own_edit(path, before, text)
    except OSError as error:
        raise CannotWrite(f"{visible(path)} cannot be written: {error.strerror}") from error
    for line in done:
        print(f"{visible(path)}: {visible(line)}")
    print(RELOAD_HINT)


class CannotWrite(SentinelError):
    """The file could not be written, and is unchanged."""

    exit_code = EXIT_CANNOT_CREATE
