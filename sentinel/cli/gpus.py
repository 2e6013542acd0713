"""`sentinel gpus list|lemons|show|mark|clear|forget|export|import|report|check`: by hand."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sentinel.alerting.silences import parse_moment
from sentinel.cli import gpu_boot, gpu_ledger, gpu_lists, gpu_tables
from sentinel.cli.common import (
    add_action_parser,
    describe_operator,
    expand_node_names,
    load_command_settings,
)
from sentinel.cli.gpu_ledger import find_ledger_entry
from sentinel.cli.gpu_lists import GPU_UUID_PATTERN
from sentinel.cli.state import OpenState
from sentinel.core.clock import SECOND
from sentinel.core.errors import Invalid, SentinelError
from sentinel.core.guidance import quote_command
from sentinel.core.text import visible
from sentinel.wiring import app

if TYPE_CHECKING:
    from sentinel.core.gpu_ledger import GpuLedger

TEMPERATURE_AGE_S = 3600.0
"""Seconds after which a temperature is not shown any more."""

MAX_TEMPERATURES = 2000
"""GPUs whose temperature is read at most, since each is read separately."""

EXIT_LEMON = 1
"""Exit code of `check` if a known lemon is in this machine: a prolog that ends with it drains the
node."""


def register(commands: Any) -> None:
    """Add the parsers."""
    parser = commands.add_parser(
        "gpus", help="every GPU that was seen, and which of them fail often (lemons)"
    )
    verbs = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    shown = add_action_parser(
        verbs, "list", "every GPU: where it is, and what is known of it", call_gpus_list
    )
    shown.add_argument(
        "nodes",
        nargs="*",
        metavar="NODES",
        help="a host list such as node-[0-3],gpu08; default: all nodes",
    )
    add_action_parser(verbs, "lemons", "lemons and suspects, the worst first", call_lemons)
    _add_gpu_argument(
        add_action_parser(
            verbs,
            "show",
            "one GPU: where it was, what happened to it, and how its score is made",
            call_gpus_show,
        )
    )
    _register_marks(verbs)
    _register_lists(verbs)


def _register_marks(verbs: Any) -> None:
    marking = add_action_parser(
        verbs,
        "mark",
        "mark a GPU as lemon or good; your mark counts more than its score",
        call_mark,
    )
    _add_gpu_argument(marking)
    marking.add_argument("mark", choices=("lemon", "good"))
    clearing = add_action_parser(
        verbs,
        "clear",
        "say that a GPU was repaired: what happened before no longer counts",
        call_mark,
    )
    _add_gpu_argument(clearing)
    clearing.set_defaults(mark="")
    forgetting = add_action_parser(
        verbs,
        "forget",
        "remove events that never happened, such as lines that a user put into the kernel's log",
        call_forget,
    )
    _add_gpu_argument(forgetting)
    forgetting.add_argument(
        "events",
        nargs="+",
        metavar="EVENT",
        help="what `sentinel gpus show` calls it, for example 'xid 79'",
    )
    for parser in (marking, clearing, forgetting):
        parser.add_argument(
            "--reason",
            required=True,
            metavar="TEXT",
            help="the reason; it is kept in the audit log",
        )
    forgetting.add_argument(
        "--since", metavar="MOMENT", help="only those from then on, for example 2026-12-24T18:00"
    )


def _register_lists(verbs: Any) -> None:
    out = add_action_parser(
        verbs, "export", "lemons and suspects as a list for other clusters", call_export
    )
    out.add_argument("--key-file", metavar="FILE", help="sign it with this shared key")
    into = add_action_parser(
        verbs, "import", "read such a list and take over its lemons", call_import
    )
    into.add_argument("file", metavar="FILE", help="the list; - reads from stdin")
    into.add_argument(
        "--key-file", metavar="FILE", help="refuse the list unless it is signed with this key"
    )
    bundle = add_action_parser(
        verbs, "report", "everything that an RMA needs, as one .tar.gz", call_report
    )
    _add_gpu_argument(bundle)
    bundle.add_argument(
        "--output",
        metavar="FILE",
        help="the file to write; default: rma-SERIAL.tar.gz in this directory",
    )
    bundle.add_argument("--archive", metavar="DIR", help="the directory that holds outputs of diag")
    bundle.add_argument(
        "--bug-report", action="store_true", help="run nvidia-bug-report.sh, too; it takes minutes"
    )
    look = add_action_parser(
        verbs,
        "check",
        "whether this machine holds a known lemon; for boot scripts and prologs",
        call_gpus_check,
    )
    look.add_argument("--list", metavar="FILE", help="an exported list, where the state is away")
    look.add_argument(
        "--key-file", metavar="FILE", help="refuse the list unless it is signed with this key"
    )


def _add_gpu_argument(parser: Any) -> None:
    parser.add_argument("gpu", metavar="GPU", help="UUID, its beginning, a serial, or node:NAME")


def call_gpus_list(args: argparse.Namespace) -> int:
    """Print GPUs. Returns 0."""
    wanted = expand_node_names(args.nodes) if args.nodes else None
    with gpu_ledger.open_ledger(args) as of:
        entries = [e for e in of.gpus.read_entries() if not e.is_node]
        standings = of.gpus.read_standings(of.now)
    chosen = [e for e in entries if wanted is None or e.node in wanted]
    if not chosen and not args.json:
        there = "there" if entries else "yet; a check of kind gpu looks for them"
        print(f"no GPU was seen {there}")
        return 0
    chosen.sort(key=lambda e: (e.node, e.slot, e.subject))
    gpu_tables.print_gpu_table(
        chosen,
        standings,
        app.get_time_zone(of.settings),
        of.now,
        as_json=args.json,
        temperatures=_read_temperatures(args.config, [e.subject for e in chosen]),
        folds=wanted is None,
    )
    return 0


def _read_temperatures(config: str | None, gpus: Sequence[str]) -> dict[str, float]:
    """Degrees Celsius by GPU, as checks of kind gpu last saw them, within the hour."""
    found: dict[str, float] = {}
    with suppress(SentinelError), OpenState(config, telling=False) as state:
        since = state.now.wall - int(TEMPERATURE_AGE_S * SECOND)
        checks = [run.check for run in state.store.read_runs() if run.kind == "gpu"]
        for gpu in gpus[:MAX_TEMPERATURES]:
            for check in checks:
                if samples := state.store.read_samples(check, gpu, "temperature_c", since):
                    found[gpu] = samples[-1][1]
    return found


def call_lemons(args: argparse.Namespace) -> int:
    """Print lemons and suspects. Returns 0, also if there are none."""
    with gpu_ledger.open_ledger(args) as of:
        bad = {s: st for s, st in of.gpus.read_standings(of.now).items() if st.judged != "good"}
        entries = [e for e in map(of.gpus.read_entry, bad) if e is not None]
    if not entries and not args.json:
        print("no lemons and no suspects")
        return 0
    entries.sort(key=lambda e: (bad[e.subject].judged != "lemon", -bad[e.subject].score, e.subject))
    gpu_tables.print_gpu_table(
        entries, bad, app.get_time_zone(of.settings), of.now, as_json=args.json
    )
    return 0


def call_gpus_show(args: argparse.Namespace) -> int:
    """Print one subject. Returns 0 if the ledger knows it."""
    with gpu_ledger.open_ledger(args) as of:
        shown = gpu_ledger.load_gpu_details(
            of, gpu_ledger.find_ledger_entry(of.gpus, args.gpu), events=10_000
        )
    gpu_tables.print_gpu_details(shown, app.get_time_zone(of.settings), as_json=args.json)
    return 0


def call_mark(args: argparse.Namespace) -> int:
    """Set or clear a mark. Returns 0 if it is written."""
    with gpu_ledger.open_ledger(args, writing=True) as of:
        subject = _resolve_subject(of.gpus, args.gpu, args.mark)
        of.gpus.set_mark(subject, args.mark, visible(args.reason), describe_operator(), of.now)
    said = f"marked {args.mark}" if args.mark else "cleared: what happened before counts no more"
    print(
        json.dumps({"subject": subject, "mark": args.mark}) if args.json else f"{subject}: {said}"
    )
    return 0


def call_forget(args: argparse.Namespace) -> int:
    """Remove events. Returns 0 if they are removed. Raises an error if the ledger has none of
    them."""
    with gpu_ledger.open_ledger(args, writing=True) as of:
        subject = gpu_ledger.find_ledger_entry(of.gpus, args.gpu).subject
        since = _parse_since(args.since, app.get_time_zone(of.settings))
        kinds = frozenset(args.events)
        count = of.gpus.forget_events(
            subject, kinds, since, visible(args.reason), describe_operator(), of.now
        )
        is_gone = of.gpus.read_entry(subject) is None
    if not count:
        raise app.UsageError(
            f"{visible(subject)} has no such events; see:"
            f" {quote_command('sentinel', 'gpus', 'show', subject)}"
        )
    if args.json:
        print(json.dumps({"subject": subject, "forgotten": count, "gone": is_gone}))
    else:
        gone = "; nothing else is known of it, so it is gone" if is_gone else ""
        print(f"{visible(subject)}: {count} {'event' if count == 1 else 'events'} forgotten{gone}")
    return 0


def _parse_since(text: str | None, zone: Any) -> int:
    """The moment in µs UTC; 0 for all time."""
    if not text:
        return 0
    try:
        return int(parse_moment(text, zone, "since").timestamp()) * SECOND
    except Invalid as error:
        raise app.UsageError(str(error)) from error


def call_export(args: argparse.Namespace) -> int:
    """Print the list of lemons. Returns 0."""
    return gpu_lists.export_lemons(args)


def call_import(args: argparse.Namespace) -> int:
    """Mark the lemons of a list. Returns 0."""
    return gpu_lists.import_lemons(args)


def call_report(args: argparse.Namespace) -> int:
    """Write the bundle. Returns 0; what is missing in it is named in it and on stderr."""
    from sentinel.cli import gpu_bundle, gpu_ledger

    with gpu_ledger.open_ledger(args) as of:
        made = gpu_bundle.write_rma_bundle(
            of, gpu_ledger.find_ledger_entry(of.gpus, args.gpu), args
        )
    for line in made.missing:
        print(f"sentinel: {visible(line)}", file=sys.stderr)
    print(json.dumps({"file": made.path, "missing": made.missing}) if args.json else made.path)
    return 0


def call_gpus_check(args: argparse.Namespace) -> int:
    """Look for lemons in this machine. Returns EXIT_LEMON if there is one; 0 if there is none, or
    it is not known: that is printed, and takes no node out of service."""
    if args.list and args.config:
        raise app.UsageError("--list names the list that is looked at; leave out --config")
    said = gpu_boot.find_local_lemons(args.list, args.key_file, lambda: _open_ledger_or_none(args))
    if args.json:
        print(json.dumps({"lemons": list(said.lemons), "known": said.known, "text": said.text}))
    else:
        print(said.text, file=sys.stdout if said.known else sys.stderr)
    return EXIT_LEMON if said.lemons else 0


def _open_ledger_or_none(args: argparse.Namespace) -> GpuLedger | None:
    """The ledger of the state; None if there is no state."""
    settings = load_command_settings(args)
    return app.open_gpu_ledger(settings) if app.has_state(settings) else None


def _resolve_subject(gpus: GpuLedger, word: str, mark: str) -> str:
    """The subject that a word names. A GPU that was never seen here can be marked by its whole
    UUID."""
    return (
        word if mark and GPU_UUID_PATTERN.fullmatch(word) else find_ledger_entry(gpus, word).subject
    )
