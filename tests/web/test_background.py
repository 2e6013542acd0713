"""Readings that may hang, beside the loop."""

import asyncio
import subprocess
import sys
import threading

import pytest

from sentinel.web.background import BackgroundReader

HANGS = """
import asyncio, threading
from sentinel.web.background import BackgroundReader
async def main(): print(await BackgroundReader(0.1).read_in_time(threading.Event().wait))
asyncio.run(main())
"""


def test_one_that_hangs_is_not_waited_for_and_not_joined_by_others() -> None:
    """A dead disk holds one thread and nobody who looks; when it comes back all is as before."""
    comes_back = threading.Event()

    async def story() -> list[object]:
        aside = BackgroundReader(limit=0.05)
        first = await aside.read_in_time(comes_back.wait)
        before = threading.active_count()
        second = [await aside.read_in_time(comes_back.wait) for _ in range(3)]
        assert threading.active_count() == before
        comes_back.set()
        while (third := await aside.read_in_time(lambda: "read")) is None:
            await asyncio.sleep(0.01)
        return [first, *second, third]

    assert asyncio.run(story()) == [None, None, None, None, "read"]


def test_its_error_is_the_readers() -> None:
    """And the next one reads."""

    async def story() -> None:
        aside = BackgroundReader()
        with pytest.raises(OSError, match="stale"):
            await aside.read_in_time(lambda: open("/nowhere/stale"))  # noqa: SIM115
        assert await aside.read_in_time(lambda: 1) == 1

    asyncio.run(story())


def test_a_process_ends_though_one_still_hangs() -> None:
    """asyncio's own threads would be waited for."""
    done = subprocess.run(
        [sys.executable, "-c", HANGS], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "None\n", "")
