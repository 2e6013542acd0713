"""The view of `top` and what its keys do. Pure: from a view, a key and the facts to the next
view."""

from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from rich.console import Group, RenderableType
from rich.text import Text

from sentinel.cli import panels
from sentinel.cli.run_strips import render_run_strips
from sentinel.status import folding
from sentinel.status.folding import AlertFold
from sentinel.status.types import AlertFact, Facts

TAB_NAMES = ("alerts", "checks", "jobs", "files", "nodes", "gpus", "actions")
SORT_KEYS: Mapping[str, Callable[[AlertFact], Any] | None] = {
    "severity": None,
    "newest": lambda a: -a.since,
    "oldest": lambda a: a.since,
    "check": lambda a: (a.check, a.subject),
}
"""How alerts are sorted. None: in the order of the facts, the worst first."""

MAX_RUN_ROWS = 5
"""Trainings whose last day and week are shown above the jobs."""

KEY_HELP = "1-7 tab  j/k move  enter open  a ack  s sort  f fold  / find  space hold  q quit"


class TopView(Struct, frozen=True, kw_only=True):
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


def select_alert_folds(view: TopView, f: Facts) -> list[AlertFold]:
    """The alerts that match the filter, in the chosen order; those of one incident, and alike ones,
    as one row."""
    word = view.filter.lower()
    fitting = [a for a in f.alerts if word in f"{a.check} {a.subject} {a.summary}".lower()]
    by = SORT_KEYS[view.order]
    rows = sorted(fitting, key=by) if by is not None else fitting
    return folding.fold_singly(rows) if view.each else folding.fold_alerts(rows)


def apply_key(view: TopView, key: str, f: Facts) -> TopView:
    """The view after this key."""
    view = replace(view, said="", ack=())
    if view.asking:
        return _apply_typed_key(view, key)
    if key in ("q", "ctrl-c"):
        return replace(view, done=True) if not view.open or key != "q" else replace(view, open="")
    if key in ("esc", "left"):
        return replace(view, open="", filter=view.filter if view.open else "")
    if len(key) == 1 and key in "1234567":
        return replace(view, tab=int(key) - 1, open="", chosen=0)
    if key in ("tab", "right"):
        return replace(view, tab=(view.tab + 1) % len(TAB_NAMES), open="", chosen=0)
    return _apply_alert_key(view, key, f)


def _apply_alert_key(view: TopView, key: str, f: Facts) -> TopView:
    rows = select_alert_folds(view, f)
    steps = {"j": 1, "down": 1, "k": -1, "up": -1, "pagedown": 10, "pageup": -10}
    if key in steps:
        last = len(rows) - 1 if view.tab == 0 else 10_000
        return replace(view, chosen=max(0, min(last, view.chosen + steps[key])))
    if key == "s":
        names = list(SORT_KEYS)
        following = names[(names.index(view.order) + 1) % len(names)]
        return replace(view, order=following, said=f"sorted by {following}")
    if key == "f" and not view.open:
        return replace(view, each=not view.each, chosen=0)
    if key == "/":
        return replace(view, asking="filter", typed=view.filter)
    if key == " ":
        return replace(view, held=not view.held)
    chosen = _get_chosen_alerts(view, rows)
    if key == "enter" and chosen:
        return replace(view, open=chosen[0].id)
    if key == "a" and chosen:
        return _ask_for_ack(view, chosen)
    return view


def _ask_for_ack(view: TopView, chosen: Sequence[AlertFact]) -> TopView:
    firing = tuple(a.id for a in chosen if a.state == "firing")
    if not firing:
        return replace(view, said="it does not fire yet: there is nothing to acknowledge")
    return replace(view, asking="ack", asked=firing)


def _apply_typed_key(view: TopView, key: str) -> TopView:
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


def _get_chosen_alerts(view: TopView, rows: Sequence[AlertFold]) -> Sequence[AlertFact]:
    """The alert that is shown alone, or all alerts of the marked row."""
    if view.open:
        return [a for fold in rows for a in fold.rows if a.id == view.open]
    return rows[view.chosen].rows if view.tab == 0 and view.chosen < len(rows) else ()


def render_head(view: TopView, f: Facts, zone: tzinfo) -> list[Text]:
    """The lines at the top: what is wrong, who runs the checks, and the tabs."""
    tabs = Text()
    for number, name in enumerate(TAB_NAMES):
        style = "reverse" if number == view.tab else "dim"
        tabs.append(f"{number + 1} {name}", style=style).append("  ")
    return [panels.render_headline(f), panels.render_watcher(f, zone), tabs]


def render_foot(view: TopView) -> Text:
    """The line at the bottom: a question, an answer, or the keys."""
    if view.asking == "filter":
        return Text(f"filter: {view.typed}_   (enter, esc)")
    if view.asking == "ack":
        more = f" and {len(view.asked) - 1} more of its row" if len(view.asked) > 1 else ""
        return Text(f"acknowledge {view.asked[0]}{more}: no repeats until the end? y/n")
    held = "held  " if view.held else ""
    kept = f"filter: {view.filter}  " if view.filter else ""
    return Text(f"{held}{kept}{view.said or KEY_HELP}", style="dim")


def render_body(view: TopView, f: Facts, zone: tzinfo, height: int) -> RenderableType:
    """The part between top and bottom."""
    if view.open:
        found = next((a for a in f.alerts if a.id == view.open), None)
        return panels.render_one_alert(found, f, zone) if found else Text("this alert is over")
    if TAB_NAMES[view.tab] == "alerts":
        rows = select_alert_folds(view, f)
        first = max(0, min(view.chosen - height // 2, len(rows) - height))
        return panels.render_alerts(rows[first : first + height], f.at, view.chosen - first)
    return _render_other_tab(TAB_NAMES[view.tab], view.chosen, f, zone)


def _render_other_tab(tab: str, first: int, f: Facts, zone: tzinfo) -> RenderableType:
    pages: dict[str, Callable[[], RenderableType]] = {
        "checks": lambda: panels.render_checks(f.checks[_clamp_index(first, f.checks) :], f, zone),
        "jobs": lambda: Group(
            *render_run_strips(f.runs[:MAX_RUN_ROWS], f.at),
            panels.render_jobs(f.trainings[_clamp_index(first, f.trainings) :], f),
        ),
        "files": lambda: panels.render_disks(f.disks[_clamp_index(first, f.disks) :], f.at),
        "nodes": lambda: panels.render_nodes(f, f.nodes[_clamp_index(first, f.nodes) :]),
        "gpus": lambda: panels.render_gpus(f) if f.gpus else Text(f.no_gpu_text, style="dim"),
        "actions": lambda: Group(panels.render_actions(f, zone, 50), *panels.render_unsent(f)),
    }
    return pages[tab]()


def _clamp_index(first: int, rows: Sequence[object]) -> int:
    return max(0, min(first, len(rows) - 1))
