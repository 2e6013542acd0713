"""Doctor on channels: each has its line, whatever one of them does."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from sentinel.core.errors import ChannelError
from sentinel.core.model import Status
from sentinel.core.settings import ChannelConfig
from sentinel.doctor import DoctorItem
from sentinel.doctor import channels as doctor
from sentinel.plugin import Channel
from tests.kinds import PlainChannel


class Reached(PlainChannel):
    """A channel that does so when it is tried."""

    def __init__(self, attempt: Callable[[], Awaitable[str]]) -> None:
        self.reach = attempt


async def _answers() -> str:
    return "smtp.example.org answers\x1b"


async def _refuses() -> str:
    raise ChannelError("login refused")


async def _breaks() -> str:
    raise ZeroDivisionError("a plugin's")


async def _waits() -> str:
    await asyncio.Event().wait()
    return ""


def looked(*plugins: Any) -> list[DoctorItem]:
    configs = [ChannelConfig(name=f"c{n}", kind="x", plugin=p) for n, p in enumerate(plugins)]

    async def collect() -> list[DoctorItem]:
        return [item async for item in doctor.check_channels(configs)]

    return asyncio.run(collect())


def test_one_channel_costs_no_other_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """What refuses, breaks or waits for ever is critical, in words, with what to run next."""
    monkeypatch.setattr(doctor, "CHANNEL_TIMEOUT_S", 0.05)
    tried = [Reached(a) for a in (_refuses, _breaks, _waits, _answers)]
    *wrong, right = looked(*tried)
    assert [i.status for i in wrong] == [Status.CRITICAL] * 3
    assert "login refused" in wrong[0].text
    assert "internal error: ZeroDivisionError" in wrong[1].text
    assert "no answer" in wrong[2].text
    assert all(i.remedy == f"then: sentinel notify test c{n}" for n, i in enumerate(wrong))
    assert (right.status, right.text) == (Status.OK, "smtp.example.org answers\\x1b")


def test_what_was_not_tried_is_not_ok() -> None:
    """It says how to try it: that sends a message."""
    [item] = looked(Channel())
    assert item.status is Status.UNKNOWN
    assert item.remedy == "sentinel notify test c0"
