"""Each key, default and number on the pages is the code's, and each key of the code is on a page."""

import re
from importlib import import_module
from typing import Any

import pytest
from msgspec import Struct

from sentinel.channels import email
from sentinel.checks.du import tree
from sentinel.checks.filesystems import limits as fs_limits
from sentinel.checks.quota import judge as quota
from sentinel.config.settings import Settings
from sentinel.config.shapes import field_default, settings_fields
from sentinel.core.action_limits import CleanLimits
from sentinel.core.settings import CheckCommon
from sentinel.core.values import Duration, Rate, Share, Size
from sentinel.gpu.lemon_score import WEIGHTS
from sentinel.nodes.settings import RemoteSettings
from sentinel.wiring.app import CHANNELS, CHECKS
from tests.docs.facts import FACTS
from tests.docs.pages import DOCS, Number, Row, numbers, rows, section, spelled

ELSEWHERE = {"chain": "cron.md", "cron": "cron-scripts.md"}
"""Kinds that no heading names: `sentinel cron` writes them."""

UNWRITTEN = {("chain", "dir")}
"""Keys that no person writes."""

BEHIND: dict[tuple[str, str], Any] = {
    **{(kind, "warn"): fs_limits.WARN for kind in ("fs", "quota", "du")},
    **{(kind, "crit"): fs_limits.CRIT for kind in ("fs", "quota", "du")},
    ("quota", "crit.grace"): Duration(quota.GRACE),
    ("du", "calls"): tree.GENTLE,
    ("clean", "limits"): [CleanLimits().per_hour, CleanLimits().per_node],
    ("email", "port"): email._PORTS,
    ("", "remote"): RemoteSettings().via,  # the rest stands on its own page
    ("", "guard"): None,
}
"""What takes effect where the field itself is empty by default."""


def worth(value: Any) -> list[Number]:
    """The numbers that a value is written with, but zeros."""
    if isinstance(value, Rate):
        return [("", float(value.times)), ("s", value.window)]
    for kind, unit in ((Duration, "s"), (Size, "B"), (Share, "%")):
        if isinstance(value, kind):
            return [(unit, float(value))] if value else []
    if isinstance(value, int | float):
        return [("", float(value))] if value and value is not True else []
    if isinstance(value, Struct):
        value = [getattr(value, name) for name in value.__struct_fields__]
    values = value.values() if isinstance(value, dict) else value
    if not isinstance(values, list | tuple | type({}.values())):
        return []
    return [number for one in values for number in worth(one)]


def defaults(kind: str, cls: Any) -> dict[str, Any]:
    """The default of each key of a kind, of the parts of a record as `complete.marker`, and of
    what every check takes where the kind itself says it."""
    found: dict[str, Any] = {}
    for name, info in settings_fields(cls).items():
        found[name] = BEHIND.get((kind, name), field_default(info))
        if isinstance(found[name], Struct):
            for part, inner in settings_fields(type(field_default(info) or found[name])).items():
                key = f"{name}.{part}"
                found[key] = BEHIND.get((kind, key), field_default(inner))
    for name in ("every", "timeout"):
        if hasattr(cls, name.upper()):
            found[name] = Duration(getattr(cls, name.upper()))
    return found


def wrong(row: Row, known: dict[str, Any], text: str) -> str:
    """What the row says otherwise than the code; empty where it says the same."""
    parts = {name.partition(".")[2] for name in known}
    if unknown := [key for key in row.keys if key not in known and key not in parts]:
        return f"no such key: {', '.join(unknown)}"
    if row.default is None:
        return ""
    values, told = [known.get(key) for key in row.keys], row.default
    for word in words(values):
        if word not in told:
            return f"the default is {word!r}"
        told = told.replace(word, "")
    if [v for v in values if isinstance(v, bool)] and ("true" in told) != (True in values):
        return f"the default is {values}"
    meant = list(dict.fromkeys(n for value in values for n in worth(value)))
    said = list(dict.fromkeys(numbers(told)))
    if any(isinstance(value, Struct | dict) for value in values):
        said = said or [n for n in numbers(text) if n in meant]  # told further down
        meant, said = sorted(set(meant)), sorted(set(said))
    return "" if meant == said else f"the default is {meant}, the page says {said}"


def words(values: list[Any]) -> list[str]:
    """The texts among the defaults."""
    flat = [one for value in values for one in (value if isinstance(value, list) else [value])]
    return [one for one in flat if isinstance(one, str) and one and not isinstance(one, Rate)]


def about(kind: str) -> str:
    """The part of the pages that is about a kind of check."""
    page = ELSEWHERE.get(kind)
    if page:
        return re.sub(r"^\| .*", "", (DOCS / page).read_text(), flags=re.M)  # of other keys
    text = section(kind, CHECKS.kind_names())
    assert text, f"no heading of docs/*.md names `{kind}`"
    return text


def compare(text: str, known: dict[str, Any], unwritten: set[str]) -> list[str]:
    """Where these pages and the code do not say the same."""
    table = rows(text)
    told = [f"{', '.join(row.keys)}: {why}" for row in table if (why := wrong(row, known, text))]
    spoken = set(re.findall(r"\b\w+\b", " ".join(re.findall(r"`[^`]+`|```.*?```", text, re.S))))
    keys = {name for name in known if "." not in name}
    return told + [f"{key}: stands nowhere" for key in keys - spoken - unwritten]


@pytest.mark.parametrize("kind", CHECKS.kind_names())
def test_a_page_of_a_check_says_what_its_class_says(kind: str) -> None:
    """Keys and defaults, `every` and `timeout` where they are told."""
    unwritten = {"every", "timeout"} | {key for of, key in UNWRITTEN if of == kind}
    assert compare(about(kind), defaults(kind, CHECKS.load_kind(kind)), unwritten) == []


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")
@pytest.mark.parametrize("kind", CHANNELS.kind_names())
def test_a_page_of_a_channel_says_what_its_class_says(kind: str) -> None:
    """Keys and defaults; every key has a row."""
    text = (DOCS / "channels" / f"{kind}.md").read_text()
    known = defaults(kind, CHANNELS.load_kind(kind))
    assert compare(text, known, set()) == []
    assert {key for row in rows(text) for key in row.keys} == set(
        settings_fields(CHANNELS.load_kind(kind))
    )


@pytest.mark.parametrize(
    ("page", "heading", "cls"),
    [
        ("remote.md", "# Reaching nodes", RemoteSettings),
        ("configuration.md", "### Keys that every check takes", CheckCommon),
        ("configuration.md", "## Sections", Settings),
    ],
)
def test_a_table_of_a_section_says_what_its_class_says(page: str, heading: str, cls: Any) -> None:
    """What is no kind's."""
    text = (DOCS / page).read_text().partition(f"{heading}\n")[2].partition("\n#")[0]
    assert compare(text, defaults("", cls), {"path"}) == []


def of(reference: str | float) -> Any:
    """What a reference of FACTS stands for."""
    if not isinstance(reference, str):
        return reference
    module, _, name = reference.partition(":")
    return eval(name, vars(import_module(module)))


@pytest.mark.parametrize(("page", "words", "references"), FACTS, ids=[f[1] for f in FACTS])
def test_a_number_in_a_sentence_is_the_codes(
    page: str, words: str, references: tuple[str | float, ...]
) -> None:
    """The sentence stands there, with the numbers that hold."""
    assert words in " ".join((DOCS / page).read_text().split())
    assert [n for _, n in numbers(spelled(words))] == [
        n for r in references for _, n in worth(of(r))
    ]


def test_the_table_of_weights_is_the_codes() -> None:
    """What each event counts against a GPU."""
    told: dict[str, float] = {}
    for events, weight in re.findall(
        r"^\| (.*) \| ([0-9.]+) \|$", (DOCS / "gpus.md").read_text(), re.M
    ):
        names = re.findall(r"`([^`]+)`", events)
        for actions in re.findall(r"recovery action ([A-Z].*?)(?:,|$)", events):
            names += [f"recovery {action}" for action in actions.split(" or ")]
        for first, last in re.findall(r"\b([0-9]{2,3})(?:\u2013([0-9]{3}))?", events):
            names += [f"xid {n}" for n in range(int(first), int(last or first) + 1)]
        told |= dict.fromkeys(names, float(weight))
    assert {name: weight for name, weight in told.items() if weight} == dict(WEIGHTS)
