"""Tells systemd the state of the service (sd_notify(3)). Without systemd it does nothing."""

import os
import socket
from collections.abc import Mapping


def notify_systemd(message: str, env: Mapping[str, str] = os.environ) -> bool:
    """Send a message such as `READY=1` or `STATUS=…`. Returns whether somebody receives it. It
    never raises and never blocks."""
    address = env.get("NOTIFY_SOCKET", "")
    if not address:
        return False
    path = "\0" + address[1:] if address.startswith("@") else address
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sock:
            sock.sendto(message.encode("utf-8", "replace"), path)
    except OSError:
        return False
    return True


def get_watchdog_interval(env: Mapping[str, str] = os.environ) -> float | None:
    """Seconds between two keep-alives, half of what systemd allows. None if systemd does not expect
    any."""
    usec, pid = env.get("WATCHDOG_USEC", ""), env.get("WATCHDOG_PID", "")
    if not usec.isdigit() or (pid and pid != str(os.getpid())):
        return None
    return int(usec) / 2_000_000
