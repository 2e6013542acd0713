"""`sentinel gpus list|lemons|show|mark|clear|export|import|report|check`: the ledger by hand."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sentinel import app
from sentinel.cli import USAGE
from sentinel.clock import SystemClock
from sentinel.core.errors import SentinelError
from sentinel.core.settings import Settings
from sentinel.core.text import visible

if TYPE_CHECKING:
    from sentinel.core.gpus import Entry, Gpus

LEMON = 1
"""Exit code of `check` where a known lemon sits: a prolog that ends with it drains the node."""


class BadGpus(SentinelError):
    """The call makes no sense, or the ledger knows no such GPU; nothing was changed."""

    exit_code = USAGE


def register(commands: Any) -> None:
    """Add the parsers."""
    parser = commands.add_parser("gpus", help="every GPU ever seen, and the lemons among them")
    verbs = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    shown = _add(verbs, "list", "every GPU: where it is, what is held of it", call_list)
    shown.add_argument("nodes", nargs="*", metavar="NODES", help="like node-[0-3],gpu08; all")
    _add(verbs, "lemons", "lemons and suspects, the worst first", call_lemons)
    one = _add(verbs, "show", "one GPU: places, events, and how its score comes about", call_show)
    one.add_argument("gpu", metavar="GPU", help="UUID, its beginning, a serial, or node:NAME")
    _add_words(verbs)
    _add_lists(verbs)


def _add_words(verbs: Any) -> None:
    marking = _add(verbs, "mark", "say what a GPU is; counts more than any score", call_mark)
    marking.add_argument("gpu", metavar="GPU", help="UUID, its beginning, a serial, or node:NAME")
    marking.add_argument("mark", choices=("lemon", "good"))
    marking.add_argument("--reason", required=True, metavar="TEXT")
    clearing = _add(verbs, "clear", "it was mended: what happened counts no more", call_mark)
    clearing.add_argument("gpu", metavar="GPU", help="UUID, its beginning, a serial, or node:NAME")
    clearing.add_argument("--reason", required=True, metavar="TEXT")
    clearing.set_defaults(mark="")


def _add_lists(verbs: Any) -> None:
    out = _add(verbs, "export", "lemons and suspects as a list for other clusters", call_export)
    out.add_argument("--key-file", metavar="FILE", help="sign it with this shared key")
    into = _add(verbs, "import", "take over the lemons of such a list", call_import)
    into.add_argument("file", metavar="FILE", help="- for stdin")
    into.add_argument("--key-file", metavar="FILE", help="only if it is signed with this key")
    bundle = _add(verbs, "report", "all that an RMA needs, as one .tar.gz", call_report)
    bundle.add_argument("gpu", metavar="GPU", help="UUID, its beginning, or a serial")
    bundle.add_argument("--output", metavar="FILE", help="default: rma-SERIAL.tar.gz here")
    bundle.add_argument("--archive", metavar="DIR", help="where diag outputs lie")
    bundle.add_argument(
        "--bug-report", action="store_true", help="nvidia-bug-report.sh too: minutes"
    )
    look = _add(verbs, "check", "is a known lemon in this machine? for boot and prolog", call_check)
    look.add_argument("--list", metavar="FILE", help="an exported list, where the state is away")
    look.add_argument("--key-file", metavar="FILE", help="only if it is signed with this key")


def call_list(args: argparse.Namespace) -> int:
    """0."""
    from sentinel.cli import gpu_tables

    settings, clock, gpus = opened(args)
    try:
        entries = [e for e in gpus.entries() if not e.is_node]
        standings = gpus.standings(clock.now())
    finally:
        gpus.close()
    if args.nodes:
        names = _names(args.nodes)
        entries = [e for e in entries if e.node in names]
    entries = sorted(entries, key=lambda e: (e.node, e.slot, e.subject))
    if not entries and not args.json:
        print("no GPU was seen yet; a check of kind gpu looks for them")
        return 0
    gpu_tables.listing(entries, standings, app.zone(settings), clock.now(), as_json=args.json)
    return 0


def call_lemons(args: argparse.Namespace) -> int:
    """0, whether there are any or not."""
    from sentinel.cli import gpu_tables

    settings, clock, gpus = opened(args)
    try:
        standings = gpus.standings(clock.now())
        bad = {s: st for s, st in standings.items() if st.judged != "good"}
        entries = [e for e in map(gpus.entry, bad) if e is not None]
    finally:
        gpus.close()
    order = {"lemon": 0, "suspect": 1}
    entries = sorted(
        entries, key=lambda e: (order[bad[e.subject].judged], -bad[e.subject].score, e.subject)
    )
    if not entries and not args.json:
        print("no lemons and no suspects")
        return 0
    gpu_tables.listing(entries, bad, app.zone(settings), clock.now(), as_json=args.json)
    return 0


def call_show(args: argparse.Namespace) -> int:
    """0 when the ledger knows it."""
    from sentinel.cli import gpu_tables
    from sentinel.core import gpubook

    settings, clock, gpus = opened(args)
    try:
        entry = _find(gpus, args.gpu)
        events = gpus.events(entry.subject, 10_000)
        now = clock.now()
        shown = gpu_tables.Shown(
            entry=entry,
            standing=gpubook.standing(entry, now, gpus.policy),
            stays=tuple(gpus.stays(entry.subject)),
            events=tuple(events),
            terms=tuple(gpubook.terms(entry, events, now.wall, gpus.policy)),
            policy=gpus.policy,
        )
    finally:
        gpus.close()
    gpu_tables.one(shown, app.zone(settings), as_json=args.json)
    return 0


def call_mark(args: argparse.Namespace) -> int:
    """0 when it is written."""
    from sentinel.cli.nodes import me

    _, clock, gpus = opened(args, writing=True)
    try:
        subject = _subject(gpus, args.gpu, args.mark)
        gpus.mark(subject, args.mark, visible(args.reason), me(), clock.now())
    finally:
        gpus.close()
    said = f"marked {args.mark}" if args.mark else "cleared: what happened before counts no more"
    print(
        json.dumps({"subject": subject, "mark": args.mark}) if args.json else f"{subject}: {said}"
    )
    return 0


def call_export(args: argparse.Namespace) -> int:
    """0; the list is on stdout."""
    from sentinel.cli import gpu_lists

    return gpu_lists.export(args)


def call_import(args: argparse.Namespace) -> int:
    """0. Suspects are left to their own score; what somebody here has said stays."""
    from sentinel.cli import gpu_lists

    return gpu_lists.take_over(args)


def call_report(args: argparse.Namespace) -> int:
    """0 when the bundle is written; what could not be had is named in it and on stderr."""
    from sentinel.cli import gpu_bundle

    settings, clock, gpus = opened(args)
    try:
        entry = _find(gpus, args.gpu)
        made = gpu_bundle.make(settings, gpus, entry, clock.now(), args)
    finally:
        gpus.close()
    for line in made.missing:
        print(f"sentinel: {visible(line)}", file=sys.stderr)
    print(json.dumps({"file": made.path, "missing": made.missing}) if args.json else made.path)
    return 0


def call_check(args: argparse.Namespace) -> int:
    """LEMON where one sits here. 0 where none does, and where nobody can tell: that is printed,
    and no node is taken out of service for it."""
    from sentinel.cli import gpu_boot
    from sentinel.cli.gpu_lists import key_in

    said = gpu_boot.look(args.list, key_in(args.key_file), lambda: _ledger(args))
    if args.json:
        print(json.dumps({"lemons": list(said.lemons), "known": said.known, "text": said.text}))
    else:
        print(said.text, file=sys.stdout if said.known else sys.stderr)
    return LEMON if said.lemons else 0


def _ledger(args: argparse.Namespace) -> Gpus | None:
    """The state's, if there is one and it can be opened."""
    settings = settings_of(args)
    return app.open_gpus(settings) if app.has_state(settings) else None


def opened(
    args: argparse.Namespace, *, writing: bool = False
) -> tuple[Settings, SystemClock, Gpus]:
    """Reading makes no state where there is none."""
    settings = settings_of(args)
    if writing or app.has_state(settings):
        return settings, SystemClock(), app.open_gpus(settings)
    from sentinel.store.gpu_memory import MemoryGpus

    return settings, SystemClock(), MemoryGpus(policy=settings.lemons)


def settings_of(args: argparse.Namespace) -> Settings:
    """The configuration that applies, or the built-in one."""
    return app.find_settings(args.config) or app.embedded()


def _find(gpus: Gpus, word: str) -> Entry:
    """By its whole name, else by the beginning of one, or a serial, that is only one."""
    if exact := gpus.entry(word):
        return exact
    fitting = [e for e in gpus.entries() if e.subject.startswith(word) or e.serial == word]
    if len(fitting) != 1:
        several = f"{len(fitting)} GPUs begin with" if fitting else "the ledger knows no GPU"
        raise BadGpus(visible(f"{several} {word!r}; see: sentinel gpus list"))
    return fitting[0]


def _subject(gpus: Gpus, word: str, mark: str) -> str:
    """A GPU that nobody has seen here yet may be marked by its whole UUID."""
    from re import fullmatch

    if mark and fullmatch(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", word):
        return word
    return _find(gpus, word).subject


def _names(words: Sequence[str]) -> tuple[str, ...]:
    from sentinel.core import nodeset
    from sentinel.core.errors import Invalid

    try:
        return nodeset.expand(",".join(words))
    except Invalid as error:
        raise BadGpus(str(error)) from error


def _add(verbs: Any, name: str, text: str, function: Any) -> Any:
    parser = verbs.add_parser(name, help=text)
    parser.add_argument("-c", "--config", metavar="FILE")
    parser.add_argument("--json", action="store_true", help="one JSON document and nothing else")
    parser.set_defaults(call=function)
    return parser
