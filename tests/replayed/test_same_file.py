"""The file that was in use, played again, tells what was really told; another one tells its own."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from sentinel.cli.config_since import make_side
from sentinel.core.clock import SECOND
from sentinel.core.model import Finding, Status
from sentinel.replay.comparison import ComparedRule, Comparison, compare_configurations
from sentinel.store.kept_history import open_kept_history
from sentinel.wiring import app
from tests.replayed.weeks import FILE, PASS_S, bad, fill, live_through, write_file

WEEK = 7 * 86_400 // PASS_S


def eventful(number: int) -> Mapping[str, Sequence[Finding]]:
    """A disk that is full for two days, one that warns; a node that is down for an hour and one for
    a day with its morning; a training that hangs twice with an hour between, and once more."""
    disks, nodes, trainings = list[Finding](), list[Finding](), list[Finding]()
    disks.append(fill("/scratch", 97 if 10 <= number < 58 else 50))
    if 75 <= number < 80:
        disks.append(bad("/home", Status.WARNING))
    if number == 25:
        nodes.append(bad("node-1"))
    if 40 <= number < 70:
        nodes.append(bad("node-2"))
    if 100 <= number < 105 or 106 <= number < 110 or 150 <= number < 155:
        trainings.append(bad("llm"))
    return {"disks": disks, "nodes": nodes, "trainings": trainings}


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """The folder with the state of that week, and its end (µs UTC)."""
    folder = tmp_path_factory.mktemp("week")
    (folder / "state").mkdir()
    return folder, live_through(app.load_settings_from(str(write_file(folder))), eventful, WEEK)


def compare(
    week: tuple[Path, int], change: tuple[str, str] = ("", ""), days: int = 8
) -> Comparison:
    folder, end = week
    assert change[0] in FILE
    present = app.load_settings_from(str(folder / "sentinel.yaml"))
    text = FILE.replace(*change) if change[0] else FILE
    wanted = app.load_settings_from(str(write_file(folder, text, "wanted.yaml")))
    with open_kept_history(app.get_state_location(present)) as reader:
        history = reader.read_history("sentinel/cluster")
        sides = make_side(present, "lab"), make_side(wanted, "lab")
        return compare_configurations(reader, history, *sides, end - days * 86_400 * SECOND, end)


def rule(done: Comparison, name: str) -> ComparedRule:
    return next(r for r in done.rules if r.rule == name)


def counts(done: Comparison) -> dict[str, tuple[int, int, int]]:
    return {r.channel: (r.sent, r.present, r.wanted) for r in done.recipients}


def test_the_same_file_tells_what_was_sent(week: tuple[Path, int]) -> None:
    done = compare(week)
    print(done)
    found = counts(done)
    assert found["oncall"][0] >= 10
    assert all(sent == present == wanted for sent, present, wanted in found.values()), found
    assert done.is_whole
    assert all(r.present == r.wanted for r in done.rules)


@pytest.mark.parametrize("days", [1, 3, 5])
def test_it_begins_within_alerts_that_fire(week: tuple[Path, int], days: int) -> None:
    found = counts(compare(week, days=days))
    assert all(sent == present == wanted for sent, present, wanted in found.values()), found


def test_a_rarer_repeat_is_fewer_messages(week: tuple[Path, int]) -> None:
    done = compare(week, ("repeat: 12h", "repeat: 1w"))
    sent, present, wanted = counts(done)["oncall"]
    assert sent == present > wanted
    assert (rule(done, "routes[0]").wanted or 0) < (rule(done, "routes[0]").present or 0)


def test_a_longer_for_leaves_out_what_was_short(week: tuple[Path, int]) -> None:
    done = compare(week, ("every: 1h, for: 2h", "every: 1h, for: 2d"))
    assert rule(done, "checks.nodes").wanted == 0 < (rule(done, "checks.nodes").present or 0)
    assert rule(done, "checks.disks").wanted == rule(done, "checks.disks").present
    assert done.is_whole


def test_a_shorter_for_is_at_least_so_many(week: tuple[Path, int]) -> None:
    done = compare(week, ("every: 1h, for: 2h", "every: 1h, for: 10m"))
    nodes = rule(done, "checks.nodes")
    assert nodes.at_least
    assert nodes.wanted == nodes.present
    assert not done.is_whole


def test_limits_are_judged_by_the_numbers_that_are_kept(week: tuple[Path, int]) -> None:
    higher = compare(week, ("kind: fs,", "kind: fs, crit: {used: 98%}, warn: {used: 98%},"))
    disks = rule(higher, "checks.disks")
    assert not disks.reasons
    # what is left is the alert that had another reason, which only the route of the book takes
    assert 0 < (disks.wanted or 0) < (disks.present or 0)
    lower = compare(week, ("kind: fs,", "kind: fs, crit: {used: 45%}, warn: {used: 40%},"))
    assert (rule(lower, "checks.disks").wanted or 0) > (disks.present or 0)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("kind: log, job: llm", "kind: log, job: llm, stale_after: 1h"), "stale_after"),
        (("kind: fs,", "kind: fs, mounted: true,"), "mounted"),
        (("kind: fs,", "kind: fs, warn: {used: 50%, full_in: 1d},"), "warn"),
        (("every: 1h, keep", "every: 2h, keep"), "every"),
        (("trainings:", "others: {kind: log, job: b}\n  trainings:"), "the check is new"),
    ],
)
def test_other_rules_cannot_be_known(
    week: tuple[Path, int], change: tuple[str, str], reason: str
) -> None:
    done = compare(week, change)
    unknown = [r for r in done.rules if r.wanted is None]
    assert [r.reasons for r in unknown] == [(reason,)]
    assert not done.is_whole


def test_a_section_that_decides_what_is_seen_cannot_be_known(week: tuple[Path, int]) -> None:
    done = compare(week, ("channels:", "remote: {via: srun}\nchannels:"))
    assert rule(done, "remote").wanted is None
    assert rule(done, "checks.disks").wanted == rule(done, "checks.disks").present
    assert not done.is_whole


def test_a_silence_in_the_file_counts_what_it_holds_back(week: tuple[Path, int]) -> None:
    silence = "silences:\n  - {from: 2020-01-01T00:00, until: 2040-01-01T00:00}"
    done = compare(week, ("silences:", silence))
    assert counts(done)["oncall"][2] == 0
    assert (rule(done, "silences[0]").wanted or 0) >= 4


def test_a_renamed_check_keeps_its_past(week: tuple[Path, int]) -> None:
    done = compare(week, ("trainings:", "models:"))
    models = rule(done, "checks.models")
    assert models.wanted == models.present
    assert models.reasons == ("it was called trainings",)


def test_a_check_that_is_gone_tells_nothing(week: tuple[Path, int]) -> None:
    line = "  trainings: {kind: log, job: llm, every: 1h, keep_firing_for: 2h}\n"
    gone = rule(compare(week, (line, "")), "checks.trainings")
    assert (gone.wanted, gone.reasons) == (0, ("the file has no such check",))


def test_more_days_than_are_kept_begin_where_it_begins(week: tuple[Path, int]) -> None:
    assert compare(week, days=300).since == compare(week, days=80).since > 0
