"""File systems, quotas and their tools, as administrators and vendors have shown them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sentinel.checks.filesystems.ext4_errors import RecordedErrors, read_recorded_errors
from sentinel.checks.filesystems.limits import SpaceLimits, judge_usage, parse_usage
from sentinel.checks.filesystems.probe import PathAnswer
from sentinel.checks.filesystems.verdict import (
    PathObservation,
    PathState,
    VerdictSettings,
    path_finding,
)
from sentinel.checks.quota.check import QuotaCheck
from sentinel.checks.quota.judge import quota_finding, targets_finding
from sentinel.checks.quota.tools import command, lustre
from sentinel.core import mounts
from sentinel.core.clock import Instant
from sentinel.core.errors import Invalid
from sentinel.core.model import Status
from sentinel.core.settings import FilePath
from sentinel.core.values import Share, Size
from tests.world.case import Case, each

CRIT, WARN = SpaceLimits(used=Share(95)), SpaceLimits(used=Share(85))
FULL = "Jobs die because nothing can be written, and the check said OK."
FALSE = "Somebody is woken for a disk that is well."
EXT4 = "https://git.kernel.org/torvalds/linux fs/ext4/super.c, _ext4_show_options"


def mountinfo(super_options: str, options: str = "rw,relatime") -> mounts.Mount:
    """The one row of a table."""
    row = f"36 25 8:1 / /scratch {options} - ext4 /dev/sda1 {super_options}"
    [found] = mounts.parse_mount_table(row.encode()).list_mount_points("8:1")
    mount = mounts.parse_mount_table(row.encode()).find_mount(found)
    assert mount is not None
    return mount


@each(
    Case("after-an-error", EXT4, "rw,errors=remount-ro,emergency_ro", "emergency_ro", FULL),
    Case("after-a-forced-shutdown", EXT4, "rw,shutdown", "shutdown", FULL),
    Case("well", EXT4, "rw,errors=remount-ro", "", FALSE),
    Case("read-only-by-a-person", EXT4, "ro", "", FALSE),
)
def test_a_file_system_that_gave_up_writing_is_not_writable(case: Case) -> None:
    mount = mountinfo(case.form)
    assert mount.gave_up_option == case.right
    assert ("superblock" in mount.writable_layers) == (case.name == "well")


STATFS = "stat -f -c '%S %b %f %a %c %d %T' of coreutils 9.1"


@each(
    Case(
        "less-than-nothing-in-mebibytes", STATFS,
        "1048576 1048576 17592186041344 17592186041344 1000000 500000 nfs", Status.CRITICAL, FULL,
    ),
    Case(
        "less-than-nothing-in-blocks", STATFS,
        "4096 268435456 0 4503599626584064 1048576 524288 fuseblk", Status.CRITICAL, FULL,
    ),
    Case(
        "less-than-nothing-in-bytes", STATFS,
        "1 1048576 18446744073709551613 18446744073709551613 0 0 nfs", Status.CRITICAL, FULL,
    ),
    Case("half-full", STATFS, "4096 1000 500 500 100 50 ext4", Status.OK, FALSE),
    Case("empty", STATFS, "4096 1000 1000 1000 0 0 btrfs", Status.OK, FALSE),
)  # fmt: skip
def test_what_is_free_is_judged_in_bytes(case: Case) -> None:
    assert judge_usage(parse_usage(case.form), WARN, CRIT)[0] is case.right


@each(
    Case("in-32-bits", STATFS, "4096 1000000 4294966528 4294966528 9 9 nfs", "free of", FULL),
    Case("available-alone", STATFS, "4096 1000 500 1001 9 9 fuseblk", "free of", FULL),
)
def test_more_free_than_there_is_cannot_be_believed(case: Case) -> None:
    with pytest.raises(ValueError, match=case.right):
        parse_usage(case.form)


def test_more_free_inodes_than_there_are_cost_the_inodes_alone() -> None:
    """Source: the same line of stat(1), of a file server that counts them by its whole pool."""
    usage = parse_usage("4096 1000 500 500 100 5000 nfs")
    assert (usage.used_percent, usage.inodes_used_percent) == (50.0, None)


LFS = "https://github.com/lustre/lustre-release lustre/utils/lfs.c, mntdf()"
LFS_DF = """\
UUID                   1K-blocks        Used   Available Use% Mounted on
gpfs-MDT0000_UUID       40000000    10000000    30000000  25% /work[MDT:0]
gpfs-OST0000_UUID      900000000   100000000   800000000  12% /work[OST:0]
gpfs-OST0001_UUID      900000000   890000000    10000000  99% /work[OST:1]
{row}

filesystem_summary:   1800000000   990000000   810000000  55% /work
"""


@each(
    Case("an-error", LFS, "gpfs-OST0002_UUID       : Input/output error", "Input/output error", FULL),
    Case("deactivated", LFS, "OST0002             : inactive device", "inactive device", FULL),
    Case("not-there", LFS, "gpfs-OST0002_UUID : Resource temporarily unavailable",
         "Resource temporarily unavailable", FULL),
    Case("a-form-nobody-knows", LFS, "gpfs-OST0002_UUID  n/a n/a n/a", "its row is not understood: n/a n/a n/a", FULL),
)  # fmt: skip
def test_one_target_in_trouble_hides_no_other(case: Case) -> None:
    text = LFS_DF.format(row=case.form)
    assert lustre.is_whole_report(text)
    found = targets_finding("/work", lustre.read_lfs_df(text, text), WARN, CRIT)
    assert found.status is Status.CRITICAL
    assert "OST0001" in found.summary
    assert (
        f"1 in trouble: {case.form.split()[0].removesuffix('_UUID')} ({case.right})"
        in found.summary
    )


def test_a_report_of_targets_that_was_cut_is_not_whole() -> None:
    """Source: lfs killed by its time limit behind a target that hangs."""
    assert not lustre.is_whole_report(LFS_DF.partition("{row}")[0])


STAR = "quota(1): a star behind what is over its limit"
TABLE = re.compile(r"(?P<name>/\w+)\s+(?P<used>[\d.]+[GT])\s+(?P<limit>[\d.]+[GT])")


@each(
    Case("a-star", STAR, "/home 100.2G* 100G\n/work 1T 5T", ["/home"], FULL),
    Case("another-unit", STAR, "/home 1.1P 100G\n/work 1T 5T", ["/home"], FULL),
    Case("it-is-gone", STAR, "/work 1T 5T", [], FALSE),
    Case("part-of-another-name", STAR, "/work 1T 5T\n/home2 1 2", [], FALSE),
    Case("all-is-well", STAR, "/home 90G 100G\n/work 1T 5T", [], FALSE),
)
def test_a_row_that_no_longer_fits_is_not_over(case: Case) -> None:
    found = command.from_text(case.form, TABLE)
    asked = ["/home", "/work"]
    unread = [row.name for row in found if row.unread and row.name in asked]
    assert command.missing_rows(case.form, asked, found) + unread == case.right


SHARE = re.compile(r"(?P<name>\w+) (?P<percent>[\d.]+)%")
BOTH = re.compile(r"(?P<name>\w+) (?:(?P<percent>\d+)%|(?P<used>\w+) of (?P<limit>\w+))")
SHARES = "idrquota and others that print a percentage alone"


@each(
    Case("well", SHARES, ("scratch 40%", WARN, CRIT), (Status.OK, "40% used"), FALSE),
    Case("nearly-full", SHARES, ("scratch 90%", WARN, CRIT),
         (Status.WARNING, "90% used (warning from 85%)"), FULL),
    Case("over", SHARES, ("scratch 112.5%", WARN, CRIT),
         (Status.CRITICAL, "112.5% used (critical from 95%)"), FULL),
)  # fmt: skip
def test_a_share_is_judged_as_a_share_and_no_bytes_are_made_up(case: Case) -> None:
    text, warn, crit = case.form
    [quota] = command.from_text(text, SHARE)
    found = quota_finding("/p", quota, warn, crit, 0.0)
    assert (found.status, found.summary) == case.right
    assert found.values["free_bytes"] is found.values["size_bytes"] is None
    assert found.values["used_bytes"] is None


def test_a_limit_in_bytes_cannot_be_judged_by_a_share() -> None:
    """Source: a tool that tells bytes for some and a percentage for others."""
    warn = SpaceLimits(used=Share(85), free=Size(10**12))
    [quota] = command.from_text("scratch 40%", BOTH)
    found = quota_finding("/p", quota, warn, CRIT, 0.0)
    assert (found.status, "tells no bytes" in found.summary) == (Status.UNKNOWN, True)
    [quota] = command.from_text("scratch 40%", BOTH)
    assert quota_finding("/p", quota, WARN, CRIT, 0.0).status is Status.OK


def test_the_configuration_refuses_a_limit_in_bytes_for_a_tool_of_shares() -> None:
    """Before anything runs, with the key."""
    told = {"paths": [FilePath("/p")], "command": ["x"], "pattern": SHARE}
    for wrong in ({"warn": SpaceLimits(free=Size(1))}, {"headroom": "2 checkpoints of 1TB"}):
        with pytest.raises(Invalid, match="a percentage and no bytes"):
            QuotaCheck(**told, **wrong)
    QuotaCheck(**told, warn=WARN)


def ext4(options: str, count: int, last: int, before: int | None) -> tuple[Status, str]:
    """What is said of a half-full ext4, booted at 0 s and looked at 1000 s later; `before`: the errors that
    were recorded when this mount was first seen, None where it is seen the first time."""
    sight = PathObservation(
        path="/scratch",
        answer=PathAnswer(usage=parse_usage("4096 1000 500 500 100 50 ext4"), real="/scratch"),
        mount=mountinfo(options),
        errors=RecordedErrors(count, last),
        at=Instant(wall=5_000_000_000, boot="b", mono=1_000_000_000),
    )
    seen = PathState(
        writable=("mount", "superblock"), errors=None if before is None else (36, before)
    )
    rules = VerdictSettings(warn=WARN, crit=CRIT, mounted=None, read_only=Status.CRITICAL)
    found = path_finding(sight, seen, rules)
    return found.status, found.summary


SILENT = "Linux 6.12 to 6.14: commit d3476f3dad4a of fs/ext4/super.c, before emergency_ro is shown"


@each(
    Case("an-error-under-our-eyes", SILENT, ("rw,errors=remount-ro", 1, 4900, 0), "critical", FULL),
    Case("an-error-before-we-looked", SILENT, ("rw,errors=remount-ro", 1, 4900, None), "warning", FULL),
    Case("an-error-that-goes-on", "ext4(5), errors=continue", ("rw", 3, 4900, 0), "warning", FULL),
    Case("an-error-of-last-month", SILENT, ("rw,errors=remount-ro", 1, 300, None), "ok", FALSE),
    Case("no-error", SILENT, ("rw,errors=remount-ro", 0, 0, 0), "ok", FALSE),
)  # fmt: skip
def test_ext4_records_errors_that_the_mount_table_does_not_tell(case: Case) -> None:
    options, count, last, before = case.form
    assert ext4(options, count, last, before)[0].value == case.right


def test_the_errors_of_this_machine_s_own_ext4_are_read(tmp_path: Path) -> None:
    """By major and minor number, as sysfs(5) has it; a file system that has none says nothing."""
    (tmp_path / "dev/block").mkdir(parents=True)
    (tmp_path / "fs/ext4/dm-3").mkdir(parents=True)
    (tmp_path / "dev/block/253:3").symlink_to("../../devices/virtual/block/dm-3")
    (tmp_path / "fs/ext4/dm-3/errors_count").write_text("2\n")
    (tmp_path / "fs/ext4/dm-3/last_error_time").write_text("1750000000\n")
    assert read_recorded_errors("253:3", str(tmp_path)) == RecordedErrors(2, 1_750_000_000)
    assert read_recorded_errors("253:4", str(tmp_path)) is None
