"""Rules of the `clean` kind: what it asks for, and when it asks for nothing."""

import re
from pathlib import Path
from typing import Any

import pytest

from sentinel.checks.clean.check import MAX_ENTRIES_TOLD, CleanCheck
from sentinel.clean.child import program_argv, run_removal
from sentinel.core.action_limits import CleanLimits
from sentinel.core.clock import Instant, shift_instant
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.model import Report, Status
from sentinel.core.patterns import compile_pattern
from sentinel.core.settings import FilePath
from sentinel.core.values import Duration
from sentinel.testing import context
from tests.lab.fuse import Fuse

NOW = Instant(wall=1_800_000_000_000_000, boot="a", mono=10**12)
HOUR = 3600.0


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Five logs."""
    root = tmp_path / "logs"
    root.mkdir()
    for number in range(1, 6):
        (root / f"run{number}.log").write_text("x" * 100)
    return root


def check(at: Path | str, **more: Any) -> CleanCheck:
    settings: dict[str, Any] = {
        "match": re.compile(r"run(\d+)\.log"),
        "older_than": Duration(0.001),
    }
    return CleanCheck(**{"root": FilePath(at), "remove": True, **settings, **more})


def looked(check: CleanCheck, now: Instant, before: Report | None = None) -> Report:
    memory = dict(before.memory or {}) if before else {}
    return check.run(context(now=now, limit=30.0, memory=memory))


def test_old_ones_are_asked_for_by_name(root: Path) -> None:
    """The oldest first; the two newest are not among them."""
    (asked,) = looked(check(root), NOW).requests
    assert asked.params["names"] == '["run1.log", "run2.log", "run3.log"]'


def test_a_pattern_without_an_end_is_given_up_and_named(root: Path) -> None:
    """By the program, with the meaning that `re` gives it; the message has file and line."""
    (root / ("a" * 60 + "c")).touch()
    pattern = compile_pattern("(a|aa)+b", where="sentinel.yaml:7")
    with pytest.raises(CannotTell, match=r"'\(a\|aa\)\+b' \(sentinel.yaml:7\) found no end"):
        looked(check(root, match=pattern), NOW)
    done = run_removal(
        program_argv(
            "remove", str(root), check(root, match=pattern).retention_rules().rules_text(), ["x"]
        )
    )
    assert isinstance(done, str)
    assert "found no end" in done


def test_a_clock_that_was_set_forward_makes_nothing_old(root: Path) -> None:
    """Until so much time has really passed; setting it right ends the doubt at once."""
    old = check(root, older_than=Duration(HOUR))
    calm = looked(check(root), NOW)
    ahead = Instant(wall=NOW.wall + 10**15, boot="a", mono=NOW.mono + 60_000_000)
    leapt = looked(check(root), ahead, calm)
    assert (leapt.requests, leapt.status) == ((), Status.WARNING)
    assert "clock was set forward" in leapt.findings[0].summary
    still = looked(old, shift_instant(ahead, HOUR - 60), leapt)
    assert (still.requests, still.status) == ((), Status.WARNING)
    over = looked(check(root), shift_instant(ahead, HOUR), leapt)
    assert (len(over.requests), over.status) == (1, Status.OK)
    right = Instant(wall=NOW.wall + 120_000_000, boot="a", mono=NOW.mono + 120_000_000)
    assert looked(check(root), right, leapt).status is Status.OK


def test_a_reboot_is_no_leap(root: Path) -> None:
    """Over one the wall clock is all there is."""
    later = Instant(wall=NOW.wall + 10**15, boot="b", mono=5)
    assert looked(check(root), later, looked(check(root), NOW)).requests


def test_limits_that_are_not_named_are_those_of_cleaning(root: Path) -> None:
    """And not those of nodes."""
    (limits,) = check(root, limits=CleanLimits(per_hour=3)).grants().values()
    assert limits is not None
    assert (limits.per_hour, float(limits.cooldown), limits.per_node) == (3, 0.0, "500 in 7d")


def test_a_request_names_no_more_than_the_log_keeps(root: Path) -> None:
    """The rest goes with the next one."""
    for number in range(100, 500):
        (root / f"run{number}.log").write_text("x")
    (asked,) = looked(check(root), NOW).requests
    assert asked.params["names"].count("log") == MAX_ENTRIES_TOLD
    assert asked.evidence["may go"] == "403"
    long = check(root, match=re.compile(r".{200}"))
    for number in range(100):
        (root / f"{number:0200}").write_text("x")
    (asked,) = looked(long, NOW).requests
    assert len(asked.params["names"]) < 4000


def test_a_root_that_is_not_there_is_told_once(root: Path) -> None:
    """By its name, and in the C library's words."""
    with pytest.raises(CannotTell) as failed:
        looked(check(root / "none"), NOW)
    assert str(failed.value) == f"{root}/none: No such file or directory"


def test_a_root_that_hangs_is_asked_once(fuse: Fuse) -> None:
    """The child in it is remembered, and no other sent while it is there."""
    fuse.hold("opendir", "getattr")
    report = check(fuse.point).run(context(now=NOW, limit=5.0))
    assert report.status is Status.UNKNOWN
    assert report.findings[0].summary == f"{fuse.point}: not all of it was looked at within 4s"
    with pytest.raises(CannotTell, match="still waits for it"):
        looked(check(fuse.point), NOW, report)
    assert fuse.withheld() == 1
    fuse.release()


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"root": FilePath("relative")}, "root"),
        ({"root": FilePath("/scratch")}, "root"),
        ({"root": FilePath("/scratch/../etc")}, "root"),
        ({"older_than": Duration(0)}, "older_than"),
        ({"keep_every": 10, "match": re.compile("run.*")}, "keep_every"),
        ({"complete": "a/b"}, "complete"),
    ],
)
def test_settings_that_make_no_sense(root: Path, settings: dict[str, Any], key: str) -> None:
    """Named by their key."""
    with pytest.raises(Invalid) as refused:
        check(root, **settings)
    assert refused.value.path == (key,)
