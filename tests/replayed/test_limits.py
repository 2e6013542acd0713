"""What stored samples tell of limits is what the check itself said of the same numbers."""

import pytest

from sentinel.checks.filesystems.limits import (
    FileSystemUsage,
    SpaceLimits,
    complete_limits,
    judge_usage,
)
from sentinel.checks.fs.check import FsCheck
from sentinel.checks.memory import MemoryCheck, MemoryLevel, MemoryLimits, judge_memory
from sentinel.core.values import Share, Size


@pytest.mark.parametrize("used", [0, 10, 849, 850, 949, 950, 999, 1000])
@pytest.mark.parametrize("inodes_free", [0, 40, 120, 1000])
def test_space(used: int, inodes_free: int) -> None:
    warn, crit = (
        SpaceLimits(free=Size(10**14), used=Share(85), inodes_used=Share(90)),
        SpaceLimits(),
    )
    usage = FileSystemUsage(
        size=10**15, used=used * 10**12, free=(1000 - used) * 10**12, inodes=1000,
        inodes_free=inodes_free, type="ext4",
    )  # fmt: skip
    assert usage.used_percent is not None
    assert usage.inodes_used_percent is not None
    numbers = {"used_percent": usage.used_percent, "free_bytes": float(usage.free),
               "inodes_used_percent": usage.inodes_used_percent}  # fmt: skip
    check = FsCheck(paths=["/x"], warn=warn, crit=crit)  # type: ignore[list-item]
    assert check.judge_samples(numbers) is judge_usage(usage, *complete_limits(warn, crit))[0]


@pytest.mark.parametrize("used", [0, 89, 90, 96, 97, 100])
@pytest.mark.parametrize("swap_free", [None, 0, 30, 100])
def test_memory(used: int, swap_free: int | None) -> None:
    level = MemoryLevel(
        total=10**12, available=(100 - used) * 10**10, swap=0 if swap_free is None else 100,
        swap_free=swap_free or 0,
    )  # fmt: skip
    numbers = {"used_percent": level.used_percent, "available_bytes": float(level.available)}
    if level.swap_used_percent is not None:
        numbers["swap_used_percent"] = level.swap_used_percent
    check = MemoryCheck(
        crit=MemoryLimits(used=Share(97), available=Size(10**10), swap_used=Share(70))
    )
    assert check.judge_samples(numbers) is judge_memory(level, None, check.warn, check.crit)[0]
