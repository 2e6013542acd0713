"""The schema for editors says what the loader says."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from sentinel.config.display import show_settings
from sentinel.config.json_schema import build_schema
from sentinel.config.problems import ConfigError
from sentinel.wiring.app import CHANNELS as ALL_CHANNELS
from sentinel.wiring.app import CHECKS as ALL_CHECKS

from .conftest import Loader
from .kinds import CHANNELS, CHECKS
from .test_display import EVERY_DEFAULT
from .test_loader import FULL, in_check, in_watch

SCHEMA = build_schema(CHECKS, CHANNELS)
EXAMPLES = sorted(Path(__file__).parents[2].joinpath("config").glob("*.yaml"))


def faults(text: str) -> list[Any]:
    """What a validator of the draft finds."""
    validator = Draft202012Validator(SCHEMA, format_checker=Draft202012Validator.FORMAT_CHECKER)
    return list(validator.iter_errors(yaml.safe_load(text)))


def test_the_schema_is_a_schema() -> None:
    """Of the draft it names, for the test's kinds and for all that are installed."""
    Draft202012Validator.check_schema(SCHEMA)
    Draft202012Validator.check_schema(build_schema(ALL_CHECKS, ALL_CHANNELS))


@pytest.mark.parametrize("text", ["", "checks:\nchannels:\nroutes:\n", EVERY_DEFAULT, FULL])
def test_a_file_that_loads_fits_the_schema(loaded: Loader, text: str) -> None:
    """As written, and as `config show` prints it."""
    env = {"WORK": "/work/me", "HOME": "/home/me"}
    assert faults(text) == []
    assert faults(show_settings(loaded(text, env).settings)) == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.name)
def test_the_examples_fit_the_schema_of_all_kinds(example: Path) -> None:
    """Editors show no fault in what we hand out."""
    validator = Draft202012Validator(build_schema(ALL_CHECKS, ALL_CHANNELS))
    assert [e.message for e in validator.iter_errors(yaml.safe_load(example.read_text()))] == []


@pytest.mark.parametrize(
    "text",
    [
        "chekcs: {}",
        "cluster: 12",
        "checks: {a: {}}",
        "checks: {a: {kind: dsk}}",
        "checks: {a: {kind: mail, to: [a]}}",
        "channels: {a: {kind: mail}}",
        "channels: {a: {kind: mail, to: [a], every: 5m}}",
        "routes: [{}]",
        "routes: [{to: [a], continue: maybe}]",
        in_check("    evry: 5m"),
        in_check("    every: 90"),
        in_check("    every: '90'"),
        in_check("    severity: red"),
        in_watch("    users: bob alice"),
        in_watch("    users: ''"),
        in_check("    paths: 5"),
        in_check("    hidden: 'yes'"),
        in_check("    warn: {used: 85}"),
        in_check("    warn: {free: 40}"),
        in_watch("    stale_after: autp"),
        in_watch("    progress: '('"),
        in_watch("    lines: 0"),
        in_watch("    lines: 1001"),
        in_watch("    pair: []"),
        in_watch("    users: [{evn: X}]"),
        in_watch("    pair: x"),
        in_watch("    users: [{env: X, file: y}]"),
    ],
)
def test_what_the_loader_refuses_the_schema_refuses(loaded: Loader, text: str) -> None:
    """Each of these is an error in both; the loader's has the better words."""
    assert faults(text)
    with pytest.raises(ConfigError):
        loaded(text)


@pytest.mark.parametrize(
    "text",
    [
        in_watch("    users: [{env: X}, {file: x}, {credential: x}]"),
        in_watch("    stale_after: auto"),
        in_watch("    stale_after: 1h 30m"),
        in_watch("    match: [a, b]"),
        in_watch("    users: bob"),
        in_check("    paths: /my scratch"),
        in_watch("    lines: 1000"),
        "x-mine: {anything: [1]}",
    ],
)
def test_references_alternatives_and_private_keys_fit(text: str) -> None:
    """What is allowed beside the plain values."""
    assert faults(text) == []


def test_each_kind_has_its_own_keys_with_words_and_defaults() -> None:
    """What an editor shows while one types."""
    disk = SCHEMA["$defs"]["check.disk"]
    assert disk["description"] == "How full disks are."
    assert disk["properties"]["hidden"] == {"type": "boolean", "default": False}
    assert disk["properties"]["warn"]["default"] == {"used": "85%"}
    assert "for" in disk["properties"]
    assert SCHEMA["$defs"]["channel.mail"]["required"] == ["kind", "to"]


def test_a_kind_that_does_not_load_is_known_by_name(tmp_path: Path) -> None:
    """A broken third-party package does not take the schema of all others along."""
    from sentinel.config.registry import KindRegistry, UnknownKind

    class Broken(KindRegistry):
        def load_kind(self, name: str) -> Any:
            raise UnknownKind("broken")

    found = build_schema(Broken({"odd": "json:y"}, "sentinel.test.none"), CHANNELS)
    assert found["$defs"]["check.odd"] == {"type": "object"}
