"""Settings of a kind from the command line, through the same converter as the file."""

import os
import re
from collections.abc import Container, Mapping, Sequence
from functools import partial
from typing import Any

from sentinel.config.convert import SettingsConverter
from sentinel.config.near_misses import nearest_word
from sentinel.config.nodes import ConfigNode, ListNode, TableEntry, TableNode, loose_scalar
from sentinel.config.problems import BadOptions, Path, ProblemCollector
from sentinel.config.sentences import field_sentences
from sentinel.config.shapes import (
    LeafShape,
    RecordShape,
    TableShape,
    field_default,
    is_list,
    is_required,
    list_item_type,
    list_keys,
    possible_shapes,
    settings_fields,
)
from sentinel.config.sources import ConfigSources
from sentinel.config.wording import describe_expected
from sentinel.core.errors import Invalid

PLAIN_WORD = ""
"""In place of an option's name: a word that was typed without one. It is a path."""


def settings_from_options(kind_class: Any, options: Mapping[str, Sequence[str]]) -> Any:
    """The settings object that the options describe, each with all its texts in order.

    `--warn used=85%` fills a mapping, repeated options fill a list, and a flag without a
    value is the text '' or true. PLAIN_WORD is `path` or `paths`. Raises BadOptions that names the
    option as it was typed.
    """
    typed: dict[str, str] = {}
    collector = ProblemCollector(show=partial(_option_text, typed), error=BadOptions)
    converter = SettingsConverter(collector, ConfigSources(os.environ))
    entries: dict[str, TableEntry] = {}
    for option, texts in options.items():
        word = option.lstrip("-")
        typed.setdefault(word, word)
        try:
            key = _key(kind_class, option)
            typed.setdefault(key, word or "path")
            before = entries[key].value if key in entries else None
            entries[key] = TableEntry(key, 0, _node(kind_class, key, texts, before))
        except Invalid as error:
            what = "" if option else f"unexpected argument {texts[0]!r}: "
            collector.add_error(0, (word,), f"{what}{error}")
    collector.raise_if_errors()
    settings = converter.convert_record(TableNode(entries), kind_class, ())
    collector.raise_if_errors()
    return settings


def as_typed(kind_class: Any, text: str) -> str:
    """The text with options in place of settings: --path where a kind says `path`."""
    options = _typed_names(kind_class)
    return re.sub(
        r"(?:\ba )?`(\w+)`", lambda m: f"--{options[m[1]]}" if m[1] in options else m[0], text
    )


def required_options(kind_class: Any) -> str:
    """What a call cannot do without, as `--root ROOT --match MATCH`; empty if it needs nothing."""
    fields, options = settings_fields(kind_class), _typed_names(kind_class)
    needed = [option for key, option in options.items() if is_required(fields[key])]
    return " ".join(f"--{option} {option.upper().replace('-', '_')}" for option in needed)


def kind_options(kind_class: Any) -> list[tuple[str, str, bool]]:
    """Each setting as `stale-after`, one line of help, and whether it may be repeated."""
    return [
        (
            options[key],
            _help(info, said.get(key, "")),
            repeats or nested,
        )
        for said, options in [(field_sentences(kind_class), _typed_names(kind_class))]
        for key, info in settings_fields(kind_class).items()
        for repeats, nested in [(is_list(info.type), _is_table(info.type))]
    ]


def help_lines(kind_class: Any, width: int) -> list[str]:
    """What `--help` prints: each option with what it is for, and once the keys below it with theirs."""
    lines: list[str] = []
    before: dict[str, str] = {}
    for option, text, repeats in kind_options(kind_class):
        lines += _row(f"  --{option:<18} ", f"{text}{' (repeatable)' if repeats else ''}", width)
        below = _below_of(kind_class, _key(kind_class, option))
        for key, told in below.items() if below != before else ():
            lines += _row(f"{'':24}{key:<14} ", told, width)
        before = below
    return lines


def _typed_names(kind_class: Any) -> dict[str, str]:
    """Each setting's option, without the dashes before it."""
    fields = settings_fields(kind_class).items()
    return {k: _dashed(_singular(k) if is_list(info.type) else k) for k, info in fields}


def _option_text(typed: Mapping[str, str], path: Path) -> str:
    """`--warn used` for the setting `warn.used`, and for any item of `paths` the option by which it
    was typed, else `--path`."""
    steps = [str(step) for step in path if isinstance(step, str) and step]
    if not steps:
        return ""
    option = typed.get(steps[0]) or _dashed(_singular(steps[0]))
    return f"--{option} {'.'.join(steps[1:])}".strip()


def _key(kind_class: Any, option: str) -> str:
    word = option.lstrip("-").replace("-", "_")
    names = {_singular(key): key for key in list_keys(kind_class)}
    names |= {key: key for key in settings_fields(kind_class)}
    word = word or "path"
    if word not in names:
        close = nearest_word(word, names)
        known = ", ".join(f"--{option}" for option, _, _ in kind_options(kind_class))
        if option == PLAIN_WORD:
            raise Invalid(f"a value needs its option; known: {known or 'none'}")
        hint = f" (did you mean --{_dashed(close)}?)" if close else f"; known: {known or 'none'}"
        raise Invalid(f"there is no such option{hint}")
    return names[word]


def _node(kind_class: Any, key: str, texts: Sequence[str], before: ConfigNode | None) -> ConfigNode:
    hint = settings_fields(kind_class)[key].type
    if is_list(hint):
        items = before.items if isinstance(before, ListNode) else ()
        return ListNode((*items, *(loose_scalar(text) for text in texts)))
    if _is_table(hint) and all("=" in text for text in texts):
        return _table(texts, _keys(hint))
    if len(texts) != 1 or before is not None:
        raise Invalid(f"given more than once; expected {describe_expected(hint)}")
    if _is_table(hint) and not _is_leaf(hint):
        raise Invalid(f"expected KEY=VALUE, got '{texts[0]}'")
    return loose_scalar(texts[0])


def _table(texts: Sequence[str], known: Container[str]) -> TableNode:
    """`used=85%` and, one level down, `checkpoint.allow=15m`."""
    root = TableNode({})
    for text in texts:
        path, _, value = text.partition("=")
        path = path.strip().replace("-", "_") if path.replace("-", "_") in known else path.strip()
        *above, last = path.split(".")
        table = root
        for step in above:
            table = _below(table, step)
        if last in table.entries:
            raise Invalid(f"{path} is given more than once")
        table.entries[last] = TableEntry(last, 0, loose_scalar(value))
    return root


def _below(table: TableNode, step: str) -> TableNode:
    entry = table.entries.setdefault(step, TableEntry(step, 0, TableNode({})))
    if not isinstance(entry.value, TableNode):
        raise Invalid(f"{step} is given both as a value and with keys below it")
    return entry.value


def _row(begin: str, text: str, width: int) -> list[str]:
    from textwrap import wrap  # only help needs it

    return wrap(
        text, width, initial_indent=begin, subsequent_indent=" " * len(begin),
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _below_of(kind_class: Any, key: str) -> dict[str, str]:
    """The sentences of the keys of a table."""
    shapes = possible_shapes(settings_fields(kind_class)[key].type)
    return {
        k: s
        for f in shapes
        if isinstance(f, RecordShape)
        for k, s in field_sentences(f.cls).items()
    }


def _help(info: Any, sentence: str) -> str:
    """The help of an option: its purpose, the expected value, and its default."""
    form = _form(info)
    return f"{sentence} ({form})" if sentence else form


def _form(info: Any) -> str:
    keys = ", ".join(sorted(_keys(info.type)))
    table = f"KEY=VALUE{keys and f' with {keys}'}"
    what = table if _is_table(info.type) else describe_expected(list_item_type(info.type))
    if is_required(info):
        return f"{what}; required"
    value = field_default(info)
    plain = isinstance(value, str | int | float) and not isinstance(value, bool) and value != ""
    return f"{what}; default {value}" if plain else what


def _keys(hint: Any) -> set[str]:
    return {
        k
        for f in possible_shapes(hint)
        if isinstance(f, RecordShape)
        for k in settings_fields(f.cls)
    }


def _is_table(hint: Any) -> bool:
    return any(isinstance(found, RecordShape | TableShape) for found in possible_shapes(hint))


def _is_leaf(hint: Any) -> bool:
    return any(isinstance(f, LeafShape) and f.type is not type(None) for f in possible_shapes(hint))


def _singular(word: str) -> str:
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    if word.endswith(("ches", "shes", "sses", "xes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _dashed(word: str) -> str:
    return word.replace("_", "-")
