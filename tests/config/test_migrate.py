"""A file in a former form: what is told, and what `config migrate` makes of it."""

import difflib
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from sentinel.config.loader import load
from sentinel.config.migrate import migrated
from sentinel.config.problems import ConfigError
from sentinel.wiring.app import CHANNELS, CHECKS

FORMER = """\
# head
checks:
  # all of it
  scratch:                     # ours
    kind: fs
    paths: [/scratch]
    measure: gpfs
    quotas: [user, "group:ml"]
    # so much
    reliable: 80%
    warn: {used: 85%}
    crit: {used: 95%, grace: 1d}   # 'late' #

  # below
  archive: {kind: fs, paths: [/a], measure: du, du: {size: 50TB}, warn: {inodes_used: 5%}, every: 6h}
  plain: {kind: fs, paths:   [/]} # as it was
channels: {c: {kind: console}}
"""

TODAY = """\
# head
checks:
  # all of it
  # ours
  # so much
  # 'late' #
  scratch:
    kind: fs
    paths: [/scratch]
    measure: statfs
    reliable: 80%
    warn: {used: 85%}
    crit: {used: 95%}
  scratch-quota:
    kind: quota
    paths: [/scratch]
    tool: gpfs
    quotas: [user, "group:ml"]
    warn: {used: 85%}
    crit: {used: 95%, grace: 1d}

  # below
  archive:
    kind: fs
    paths: [/a]
    measure: statfs
    warn: {inodes_used: 5%}
    every: 6h
  archive-du:
    kind: du
    every: 6h
    paths: [/a]
    size: 50TB
  plain: {kind: fs, paths:   [/]} # as it was
channels: {c: {kind: console}}
"""


def test_what_is_replaced_is_in_todays_form_and_all_else_as_it_was() -> None:
    """Comments stay; a second time nothing changes."""
    assert migrated(FORMER, CHECKS) == (TODAY, [])
    assert migrated(TODAY, CHECKS) == (TODAY, [])


def test_the_new_file_loads_and_asks_the_same(tmp_path: Path) -> None:
    """Two checks in place of one that did two things."""
    path = tmp_path / "s.yaml"
    path.write_text(TODAY)
    found = {c.name: c.plugin for c in load(str(path), CHECKS, CHANNELS, env={}).settings.checks}
    assert list(found) == ["scratch", "scratch-quota", "archive", "archive-du", "plain"]
    assert (found["scratch-quota"].tool, found["scratch-quota"].crit.grace) == ("gpfs", 86400)


@pytest.mark.parametrize(
    ("check", "key", "blocks"),
    [
        (
            {"measure": "quota"},
            "measure",
            {"a": {"measure": "statfs"}, "a-quota": {"kind": "quota"}},
        ),
        (
            {"measure": "command", "command": ["x"], "pattern": "(?P<percent>.*)"},
            "measure",
            {
                "a": {"measure": "statfs"},
                "a-quota": {"kind": "quota", "command": ["x"], "pattern": "(?P<percent>.*)"},
            },
        ),
        ({"pattern": "(?P<percent>.*)"}, "pattern", {"a": {}}),
        ({"du": {"size": "1MB"}}, "du", {"a": {}}),
        ({"measure": "statfs", "quotas": ["user"]}, "quotas", {"a": {"measure": "statfs"}}),
        ({"nodes": "n1", "crit": {"grace": "1d"}}, "crit.grace", {"a": {"nodes": "n1"}}),
        (
            {"crit": {"grace": "1d", "used": "9%"}, "headroom": "8 checkpoints", "lag": "5m"},
            "crit.grace",
            {
                "a": {
                    "crit": {"used": "9%"}, "headroom": "8 checkpoints", "lag": "5m",
                    "measure": "statfs",
                },
                "a-quota": {
                    "kind": "quota", "crit": {"grace": "1d", "used": "9%"},
                    "headroom": "8 checkpoints", "lag": "5m",
                },
            },
        ),
    ],
)  # fmt: skip
def test_the_error_for_the_former_form_prints_what_replaces_it(
    tmp_path: Path, check: dict[str, object], key: str, blocks: dict[str, dict[str, object]]
) -> None:
    """What changed nothing is left out; what is printed loads as it stands."""
    path = tmp_path / "s.yaml"
    whole = {"checks": {"a": {"kind": "fs", "for": "5m", "paths": ["/x"], **check}}}
    path.write_text(yaml.safe_dump(whole, sort_keys=False))
    with pytest.raises(ConfigError) as told:
        load(str(path), CHECKS, CHANNELS, env={})
    (problem,) = told.value.problems
    assert problem.path == f"checks.a.{key}"
    assert key.rpartition(".")[2] in path.read_text().splitlines()[problem.line - 1]
    printed = problem.message.partition(" write ")[2].partition(" (`sentinel config")[0]
    common = {"kind": "fs", "for": "5m", "paths": ["/x"]}
    assert yaml.safe_load(f"{{{printed}}}") == {n: {**common, **b} for n, b in blocks.items()}
    path.write_text(f"checks: {{{printed}}}")
    assert load(str(path), CHECKS, CHANNELS, env={}).settings.checks


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "checks: {a: {kind: fs, paths: [/x], measure: du}, b: {kind: fs}}\n",
            "checks: {a: {kind: fs, paths: [/x], measure: statfs}, a-du: {kind: du, paths: [/x]}, "
            "b: {kind: fs}}\n",
        ),
        ("checks: {}\n", "checks: {}\n"),
        ("", ""),
        ("checks: {a: {kind: nowhere, measure: du}}", "checks: {a: {kind: nowhere, measure: du}}"),
    ],
)
def test_other_forms_of_a_file(text: str, expected: str) -> None:
    """In one line; empty; of kinds that are not known."""
    assert migrated(text, CHECKS) == (expected, [])


def test_what_shares_parts_with_others_is_left_to_a_person() -> None:
    """To write an alias out is not ours to decide."""
    text = (
        "x-all: &all {kind: fs, paths: [/x], measure: du}\n"
        "checks:\n  a:\n    <<: *all\n    every: 6h\n"
        "  b: {kind: fs, paths: [/x], measure: du}\n"
    )
    after, by_hand = migrated(text, CHECKS)
    changed = [
        line for line in difflib.ndiff(text.splitlines(), after.splitlines()) if line[0] == "-"
    ]
    assert changed == ["-   b: {kind: fs, paths: [/x], measure: du}"]
    assert [block.partition(":")[0] for block in by_hand] == ["a"]


def test_the_command_shows_a_diff_and_writes_when_told(tmp_path: Path) -> None:
    """The mode of the file stays; 2 where a person has to."""
    path = tmp_path / "s.yaml"
    path.write_text(FORMER)
    path.chmod(0o640)

    def call(*words: str) -> "subprocess.CompletedProcess[str]":
        argv = [sys.executable, "-m", "sentinel", "config", "migrate", *words, str(path)]
        return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)

    shown = call()
    assert (shown.returncode, path.read_text()) == (0, FORMER)
    assert "-    measure: gpfs\n" in shown.stdout
    assert "+    tool: gpfs\n" in shown.stdout
    assert call("--write").returncode == 0
    assert (path.read_text(), path.stat().st_mode & 0o777) == (TODAY, 0o640)
    assert [p.name for p in tmp_path.iterdir()] == ["s.yaml"]
    assert call().stdout == f"{path}: nothing to change\n"
    path.write_text(
        "x: &a {kind: fs, measure: du, paths: [/x]}\nchecks: {a: *a}\n".replace("x:", "x-x:")
    )
    by_hand = call("--write")
    assert (by_hand.returncode, "by hand: a: {kind: fs" in by_hand.stderr) == (2, True)


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        (["--du", "size=1MB"], "du"),
        (["--measure", "quota"], "quota"),
        (["--quota", "user"], "quota"),
    ],
)
def test_an_option_that_moved_says_where_to(options: list[str], kind: str) -> None:
    """It is never accepted and ignored."""
    argv = [sys.executable, "-m", "sentinel", "check", "fs", "--path", "/usr", *options]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 64
    assert f"`sentinel check {kind} --help`" in done.stderr
