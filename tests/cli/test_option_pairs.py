"""No option is accepted and ignored: a slice of `python -m tests.cli.option_pairs`, and all of it."""

from collections.abc import Iterator

import pytest

from tests.cli.option_pairs import (
    Command,
    World,
    find_commands,
    find_never_accepted,
    is_ignored,
    judge_pairs,
)

QUICK = ("incidents", "gpus check", "alerts unsilence", "status", "top", "nodes breaker")
COMMANDS = list(find_commands())


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    return World(tmp_path_factory.mktemp("pairs"))


def find_ignored(world: World, command: Command) -> list[str]:
    return [f"{v.second} beside {v.first}" for v in judge_pairs(world, command) if is_ignored(v)]


def test_every_command_is_found() -> None:
    assert {c.words[0] for c in COMMANDS} >= {"init", "tick", "incidents", "nodes", "cron"}
    assert len(COMMANDS) > 45


@pytest.mark.parametrize(
    "command",
    [c for c in COMMANDS if c.name in QUICK],
    ids=lambda command: command.name,
)
@pytest.mark.long
def test_no_option_is_ignored_by_some_commands(world: World, command: Command) -> None:
    assert find_ignored(world, command) == []


@pytest.mark.long
@pytest.mark.parametrize("name", ["diag show", "gpus mark", "gpus forget", "submit"])
def test_each_option_is_accepted_beside_some_other(world: World, name: str) -> None:
    """Where what stands behind a command is refused, all of its pairs are, and none was tried."""
    (command,) = (c for c in COMMANDS if c.name == name)
    pairs = list(judge_pairs(world, command))
    assert [v for v in pairs if is_ignored(v)] == []
    assert find_never_accepted(pairs) == set()


@pytest.mark.nightly
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_no_option_is_ignored(world: World, command: Command) -> None:
    assert find_ignored(world, command) == []


def test_an_option_that_is_not_looked_at_is_found(world: World) -> None:
    """`gpus export` prints JSON with `--json` and without: that is why it is in the table."""
    (command,) = (c for c in COMMANDS if c.name == "gpus export")
    assert {v.second for v in judge_pairs(world, command) if v.word == "IGNORED"} == {"--json"}
