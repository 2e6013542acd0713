"""sd_notify(3) against a real datagram socket."""

import os
import socket
from pathlib import Path

import pytest

from sentinel.engine.sdnotify import get_watchdog_interval, notify_systemd


@pytest.mark.parametrize("abstract", [False, True])
def test_a_message_reaches_the_socket(tmp_path: Path, abstract: bool) -> None:
    """Path and abstract addresses, as systemd and containers use them."""
    address = f"@sentinel-test-{os.getpid()}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind("\0" + address[1:] if abstract else address)
        manager.settimeout(5)
        assert notify_systemd("READY=1\nSTATUS=watching", {"NOTIFY_SOCKET": address})
        assert manager.recv(1000) == b"READY=1\nSTATUS=watching"


def test_no_manager_or_a_dead_one_is_no_error(tmp_path: Path) -> None:
    """A service by hand, or one whose manager went away."""
    assert notify_systemd("READY=1", {}) is False
    assert notify_systemd("READY=1", {"NOTIFY_SOCKET": str(tmp_path / "nobody")}) is False


def test_a_full_socket_does_not_block(tmp_path: Path) -> None:
    """Nothing waits for ever, not even for systemd."""
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        assert not all(
            notify_systemd("STATUS=x", {"NOTIFY_SOCKET": address}) for _ in range(10_000)
        )


@pytest.mark.parametrize(
    ("env", "seconds"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "120000000"}, 60.0),
        ({"WATCHDOG_USEC": "120000000", "WATCHDOG_PID": str(os.getpid())}, 60.0),
        ({"WATCHDOG_USEC": "120000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
    ],
)
def test_the_watchdog_is_fed_at_half_its_time(env: dict[str, str], seconds: float | None) -> None:
    """sd_watchdog_enabled(3): half the time; only when it is meant for this process."""
    assert get_watchdog_interval(env) == seconds
