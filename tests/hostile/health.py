"""Asks for `/healthz` beside all attacks, and measures what the service takes, not what the asker does."""

from __future__ import annotations

import socket
import struct
import threading
import time
from typing import NamedTuple

from tests.hostile.stage import Outcome, Stage

USUAL_HEALTHZ_S, MAX_HEALTHZ_S = 1.0, 5.0
"""In which `/healthz` answers 99 times of 100, and always. The attackers, and the tests that run beside, use
the same processors: a single answer can wait for these."""

REQUEST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


class Answer(NamedTuple):
    """What came. `status` 0: nothing. `took`: seconds from the request to the answer."""

    status: int
    took: float


def ask_health(port: int) -> Answer:
    """One question. The kernel notes when data was sent and when it came (tcpi_last_data_sent and
    tcpi_last_data_recv of linux/tcp.h, milliseconds ago), so that it does not count how long this thread
    waited for a processor. Where the service accepts nobody, a segment is sent again (tcpi_total_retrans),
    and all the time counts."""
    began = time.monotonic()
    try:
        with socket.create_connection(("127.0.0.1", port), 20.0) as line:
            line.sendall(REQUEST)
            head = line.recv(4096)
            told = line.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
    except OSError:
        return Answer(0, time.monotonic() - began)
    numbers = struct.unpack("8x24I", told)
    sent, came, again = numbers[9], numbers[11], numbers[23]
    took = time.monotonic() - began if again else (sent - came) / 1000
    return Answer(200 if head.startswith(b"HTTP/1.1 200 ") else 0, took)


class HealthWatch:
    """Asks for `/healthz` twice a second. It has the address of the attackers: connections of one client in
    their hundreds may end one of it before it has asked, so it asks again until the time is over, as a
    probe does."""

    def __init__(self, stage: Stage) -> None:
        self._stage, self._over = stage, threading.Event()
        self.asked, self.slow, self.paused = 0, 0, False
        self.late: list[str] = []
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._over.wait(0.5):
            said = self._ask()
            if not self.paused:
                self.asked += 1
                self.late += [said] if said else []

    def _ask(self) -> str:
        """What was wrong; empty where an answer came in time."""
        lost, tries, answer = 0.0, 0, Answer(0, 0.0)
        while answer.status == 0 and lost < MAX_HEALTHZ_S:
            answer = ask_health(self._stage.port)
            tries += 1
            lost += 0.0 if answer.status else answer.took + 0.02
            self._over.wait(0.0 if answer.status else 0.02)
        took = lost + (answer.took if answer.status else 0.0)
        in_time = answer.status == 200 and took <= MAX_HEALTHZ_S
        self.slow += in_time and took > USUAL_HEALTHZ_S and not self.paused
        return "" if in_time else f"{answer.status} after {tries} tries in {took:.1f} s"

    def end(self) -> Outcome:
        self._over.set()
        self._thread.join()
        harm = [f"{len(self.late)} of them wrong: {self.late[:5]}"] if self.late else []
        if self.slow > self.asked / 100:
            harm.append(f"{self.slow} took more than {USUAL_HEALTHZ_S:.0f} s")
        return Outcome(self.asked, harm)
