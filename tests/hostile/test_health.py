"""What is measured of `/healthz` is the service's time."""

import socket
import time

from tests.hostile.health import ask_health
from tests.store.false_server import listening


def answer_after(seconds: float, client: socket.socket) -> None:
    client.recv(1000)
    time.sleep(seconds)  # a service that is late
    client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")


def test_a_service_that_is_late_is_seen() -> None:
    with listening(lambda client: answer_after(0.3, client)) as port:
        answer = ask_health(port)
    assert answer.status == 200
    assert answer.took >= 0.25


def test_nobody_there_is_no_answer() -> None:
    with listening(lambda client: None) as port:
        assert ask_health(port).status == 0
