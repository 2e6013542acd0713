"""What `top` shows and what its keys do. Pure: a key and the facts in, another view out."""

from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from rich.console import Group, RenderableType
from rich.text import Text

from sentinel.cli import panels
from sentinel.status import folding
from sentinel.status.folding import Fold
from sentinel.status.types import AlertFact, Facts

TABS = ("alerts", "checks", "jobs", "files", "nodes", "gpus", "actions")
ORDERS: Mapping[str, Callable[[AlertFact], Any] | None] = {
    "severity": None,
    "newest": lambda a: -a.since,
    "oldest": lambda a: a.since,
    "check": lambda a: (a.check, a.subject),
}
"""None: the order of facts, the worst first."""

HELP = "1-7 tab  j/k move  enter open  a ack  s sort  f fold  / find  space hold  q quit"


class View(Struct, frozen=True, kw_only=True):
    """Where the person is. `asking`: what a line below asks for (filter, ack); `typed` so far.

    `open`: the id of the alert that is shown alone. `each`: no alerts are folded into one row.
    `asked`: whom the question is about; `ack`: those to be acknowledged now.
    """

    tab: int = 0
    chosen: int = 0
    order: str = "severity"
    filter: str = ""
    asking: str = ""
    typed: str = ""
    open: str = ""
    each: bool = False
    asked: tuple[str, ...] = ()
    ack: tuple[str, ...] = ()
    held: bool = False
    done: bool = False
    said: str = ""


def alerts(view: View, f: Facts) -> list[Fold]:
    """Those that fit the filter, in the order that was chosen; those of one incident, and alike ones,
    as one row."""
    word = view.filter.lower()
    fitting = [a for a in f.alerts if word in f"{a.check} {a.subject} {a.summary}".lower()]
    by = ORDERS[view.order]
    rows = sorted(fitting, key=by) if by is not None else fitting
    return folding.single(rows) if view.each else folding.folded(rows)


def press(view: View, key: str, f: Facts) -> View:
    """The view after this key."""
    view = replace(view, said="", ack=())
    if view.asking:
        return _typed(view, key)
    if key in ("q", "ctrl-c"):
        return replace(view, done=True) if not view.open or key != "q" else replace(view, open="")
    if key in ("esc", "left"):
        return replace(view, open="", filter=view.filter if view.open else "")
    if len(key) == 1 and key in "1234567":
        return replace(view, tab=int(key) - 1, open="", chosen=0)
    if key in ("tab", "right"):
        return replace(view, tab=(view.tab + 1) % len(TABS), open="", chosen=0)
    return _among_alerts(view, key, f)


def _among_alerts(view: View, key: str, f: Facts) -> View:
    rows = alerts(view, f)
    steps = {"j": 1, "down": 1, "k": -1, "up": -1, "pagedown": 10, "pageup": -10}
    if key in steps:
        last = len(rows) - 1 if view.tab == 0 else 10_000
        return replace(view, chosen=max(0, min(last, view.chosen + steps[key])))
    if key == "s":
        names = list(ORDERS)
        following = names[(names.index(view.order) + 1) % len(names)]
        return replace(view, order=following, said=f"sorted by {following}")
    if key == "f" and not view.open:
        return replace(view, each=not view.each, chosen=0)
    if key == "/":
        return replace(view, asking="filter", typed=view.filter)
    if key == " ":
        return replace(view, held=not view.held)
    chosen = _chosen(view, rows)
    if key == "enter" and chosen:
        return replace(view, open=chosen[0].id)
    if key == "a" and chosen:
        return _ask_for_ack(view, chosen)
    return view


def _ask_for_ack(view: View, chosen: Sequence[AlertFact]) -> View:
    firing = tuple(a.id for a in chosen if a.state == "firing")
    if not firing:
        return replace(view, said="it does not fire yet: there is nothing to acknowledge")
    return replace(view, asking="ack", asked=firing)


def _typed(view: View, key: str) -> View:
    if view.asking == "ack":
        ack = view.asked if key.lower() == "y" else ()
        return replace(view, asking="", asked=(), ack=ack)
    if key == "enter":
        return replace(view, asking="", filter=view.typed, typed="", chosen=0, tab=0)
    if key in ("esc", "ctrl-c"):
        return replace(view, asking="", typed="")
    if key == "backspace":
        return replace(view, typed=view.typed[:-1])
    return replace(view, typed=view.typed + key) if len(key) == 1 else view


def _chosen(view: View, rows: Sequence[Fold]) -> Sequence[AlertFact]:
    """What is open, or all that the marked row stands for."""
    if view.open:
        return [a for fold in rows for a in fold.rows if a.id == view.open]
    return rows[view.chosen].rows if view.tab == 0 and view.chosen < len(rows) else ()


def head(view: View, f: Facts, zone: tzinfo) -> list[Text]:
    """The lines above: what is wrong, who watches, where one is."""
    tabs = Text()
    for number, name in enumerate(TABS):
        style = "reverse" if number == view.tab else "dim"
        tabs.append(f"{number + 1} {name}", style=style).append("  ")
    return [panels.headline(f), panels.watch(f, zone), tabs]


def foot(view: View) -> Text:
    """The line below: a question, an answer, or the keys."""
    if view.asking == "filter":
        return Text(f"filter: {view.typed}_   (enter, esc)")
    if view.asking == "ack":
        more = f" and {len(view.asked) - 1} more of its row" if len(view.asked) > 1 else ""
        return Text(f"acknowledge {view.asked[0]}{more}: no repeats until the end? y/n")
    held = "held  " if view.held else ""
    kept = f"filter: {view.filter}  " if view.filter else ""
    return Text(f"{held}{kept}{view.said or HELP}", style="dim")


def body(view: View, f: Facts, zone: tzinfo, height: int) -> RenderableType:
    """What stands between."""
    if view.open:
        found = next((a for a in f.alerts if a.id == view.open), None)
        return panels.one_alert(found, f, zone) if found else Text("this alert is over")
    if TABS[view.tab] == "alerts":
        rows = alerts(view, f)
        first = max(0, min(view.chosen - height // 2, len(rows) - height))
        return panels.alerts(rows[first : first + height], f.at, view.chosen - first)
    return _other(TABS[view.tab], view.chosen, f, zone)


def _other(tab: str, first: int, f: Facts, zone: tzinfo) -> RenderableType:
    pages: dict[str, Callable[[], RenderableType]] = {
        "checks": lambda: panels.checks(f.checks[_from(first, f.checks) :], f, zone),
        "jobs": lambda: panels.jobs(f.jobs[_from(first, f.jobs) :], f),
        "files": lambda: panels.disks(f.disks[_from(first, f.disks) :], f.at),
        "nodes": lambda: panels.nodes(f, f.nodes[_from(first, f.nodes) :]),
        "gpus": lambda: (
            panels.gpus(f) if f.gpus else Text("no GPU is under suspicion", style="dim")
        ),
        "actions": lambda: Group(panels.actions(f, zone, 50), *panels.unsent(f)),
    }
    return pages[tab]()


def _from(first: int, rows: Sequence[object]) -> int:
    return max(0, min(first, len(rows) - 1))
