"""What `config show` prints is the configuration: it loads and means the same."""

import re

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sentinel.config.display import show_settings
from sentinel.config.problems import ProblemCollector
from sentinel.config.reader import read_yaml
from sentinel.config.settings import Settings
from sentinel.config.yamltext import yaml_text
from sentinel.core.settings import FilePath

from .conftest import Loader
from .test_loader import FULL
from .test_reader import data

EVERY_DEFAULT = """\
checks:
  a: {kind: disk}
  b: {kind: watch, path: /x}
channels:
  m: {kind: mail, to: [a@b]}
  s: {kind: screen}
routes: [{to: [m, s]}]
"""


@pytest.mark.parametrize("text", ["", EVERY_DEFAULT, FULL])
def test_what_is_shown_loads_as_the_same_configuration(loaded: Loader, text: str) -> None:
    """Every default included, to the byte and the millisecond."""
    env = {"WORK": "/work/me", "HOME": "/home/me"}
    first = loaded(text, env).settings
    shown = show_settings(first)
    second = loaded(shown, {}).settings
    assert show_settings(second) == shown
    assert second.channels == first.channels
    assert second.routes == first.routes
    assert [c.plugin for c in second.checks] == [c.plugin for c in first.checks]


def test_the_times_of_a_kind_are_shown_where_none_are_given(loaded: Loader) -> None:
    """`show` tells what is in effect, not what was written."""
    shown = yaml.safe_load(show_settings(loaded(EVERY_DEFAULT + "cluster: x").settings))
    assert shown["cluster"] == "x"
    assert shown["slurm"] == {"timeout": "20s", "maintenance": False}
    assert shown["checks"]["a"] == {
        "kind": "disk",
        "warn": {"used": "85%"},
        "crit": {"used": "95%", "free": "10TB"},
        "hidden": False,
        "every": "1m",
        "keep_firing_for": "0s",
        "timeout": "10s",
        "severity": "critical",
        "blind_after": 3,
    }


def test_a_cron_line_is_shown_in_place_of_an_interval(loaded: Loader) -> None:
    """Both together would be refused when read again."""
    shown = yaml.safe_load(
        show_settings(loaded("checks: {a: {kind: disk, cron: '0 3 * * *'}}").settings)
    )
    assert shown["checks"]["a"]["cron"] == "0 3 * * *"
    assert "every" not in shown["checks"]["a"]


@pytest.mark.parametrize("path", ["/a$b/$$c", "~x", "~", "$HOME"])
def test_a_path_that_looks_like_a_variable_stays_itself(loaded: Loader, path: str) -> None:
    """What was expanded once is written so that it expands to itself."""
    shown = show_settings(Settings(state=path))
    assert loaded(shown).settings.state.removeprefix("./") == path
    assert FilePath(path) == path


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.text(max_size=9), VALUES, max_size=5))
def test_any_data_is_written_so_that_it_reads_back(values: dict[str, object]) -> None:
    """By this reader, with its YAML 1.2 scalars."""
    collector = ProblemCollector("f")
    node = read_yaml(yaml_text(values).encode(), collector)
    collector.raise_if_errors()
    assert data(node) == values


@pytest.mark.parametrize(
    "word", ["yes", "NO", "on", "1e3", "0o17", "12:30", "~", "", "5", "=", "<<"]
)
def test_a_text_that_older_readers_take_for_something_else_is_quoted(word: str) -> None:
    """PyYAML's own YAML 1.1 loader reads the same text."""
    assert yaml.safe_load(yaml_text({"a": word})) == {"a": word}


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_texts_read_the_same_in_yaml_1_1(text: str) -> None:
    """Editors and other tools use either version."""
    assert yaml.safe_load(yaml_text({"a": text})) == {"a": text}


@given(st.floats(allow_nan=False))
def test_numbers_read_the_same_in_yaml_1_1(number: float) -> None:
    """1e+16 without a dot would be text there."""
    assert yaml.safe_load(yaml_text({"a": number})) == {"a": number}


def test_long_lists_and_nested_mappings_take_lines_of_their_own() -> None:
    """So that people can read it."""
    shown = yaml_text({"a": {"b": {"c": 1}}, "d": ["x" * 45, "y" * 45], "e": [1, 2]})
    assert shown == f"a:\n  b: {{c: 1}}\nd:\n  - {'x' * 45}\n  - {'y' * 45}\ne: [1, 2]\n"
    assert not re.search(r"\s$", shown.rstrip("\n"))
