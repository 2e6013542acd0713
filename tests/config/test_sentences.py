"""Every field says what it is for, and help and schema have it from one place."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import Struct

from sentinel.checks import KINDS
from sentinel.config.json_schema import build_schema, type_schema
from sentinel.config.sentences import field_sentences
from sentinel.config.shapes import (
    ListShape,
    RecordShape,
    TableShape,
    possible_shapes,
    settings_fields,
)
from sentinel.core.settings import CheckCommon
from sentinel.core.values import Duration
from sentinel.wiring.app import CHANNELS, CHECKS
from sentinel.wiring.one_shot import describe_options


def tables(hint: Any) -> Iterator[Any]:
    """The settings classes that stand there, at any depth."""
    for found in possible_shapes(hint):
        if isinstance(found, ListShape):
            yield from tables(found.item)
        elif isinstance(found, TableShape):
            yield from tables(found.value)
        elif isinstance(found, RecordShape):
            yield found.cls
            for info in settings_fields(found.cls).values():
                yield from tables(info.type)


CLASSES = sorted(
    {cls for kind in KINDS for cls in tables(CHECKS.load_kind(kind))} | {CheckCommon},
    key=lambda cls: f"{cls.__module__}.{cls.__qualname__}",
)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: f"{c.__module__}.{c.__qualname__}")
def test_every_field_has_a_sentence(cls: Any) -> None:
    """Of every built-in kind, and of every table below it."""
    told = field_sentences(cls)
    assert set(told) == set(settings_fields(cls))
    for key, text in told.items():
        assert re.fullmatch(r"[A-Z`0-9].{10,}\.", text), f"{key}: {text}"


class Base(Struct):
    """Some words: not a field.

    first: Said by the base.
    second: Said by the base, and
        in two lines.
    note: No field of this name.
        So this is none of it.
    """

    first: int = 1
    second: Duration = Duration(60)
    third: str = ""


class Derived(Base):
    """first: Said anew."""


def test_sentences_are_lines_of_the_docstring() -> None:
    """Those of the bases too; the class's own win."""
    base = {"first": "Said by the base.", "second": "Said by the base, and in two lines."}
    assert field_sentences(Base) == base
    assert field_sentences(Derived) == {**base, "first": "Said anew."}


def test_the_schema_describes_keys_by_their_sentences() -> None:
    """And what has to be written there."""
    found = type_schema(Derived)["properties"]
    assert found["first"]["description"] == "Said anew."
    assert found["second"]["description"] == (
        "Said by the base, and in two lines. (a duration like 15m)"
    )
    assert "description" not in found["third"]
    keys = build_schema(CHECKS, CHANNELS)["$defs"]["check.memory"]["properties"]
    assert "how far back the trend looks" in keys["window"]["description"].lower()
    assert keys["every"]["description"].startswith(field_sentences(CheckCommon)["every"])


@pytest.mark.parametrize("kind", KINDS)
def test_help_has_the_sentences(kind: str) -> None:
    """Not only the types; and who is asked."""
    told = " ".join(" ".join(describe_options(kind)).split())
    for text in field_sentences(CHECKS.load_kind(kind)).values():
        assert text in told
    assert CHECKS.load_kind(kind).SOURCES
    for source in CHECKS.load_kind(kind).SOURCES:
        assert source.endswith(".")
        assert source in told


def test_keys_below_an_option_are_told_once() -> None:
    """`--warn` and `--crit` take the same."""
    told = "\n".join(describe_options("memory"))
    assert told.count("Bad when so much of memory is used.") == 1
