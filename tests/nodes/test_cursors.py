"""The kernel's log from where each node was read to."""

import socket

import pytest

from sentinel.nodes.connect import connect
from sentinel.nodes.probe import Cursor, KernelLog, NodeProbe, ProbeRequest
from sentinel.nodes.settings import RemoteSettings

HERE = socket.gethostname()


def log(wants: ProbeRequest) -> KernelLog:
    probe = connect(RemoteSettings(via="local")).probe([HERE], wants, limit=30)[HERE]
    assert isinstance(probe, NodeProbe)
    if not isinstance(probe.kernel, KernelLog):
        pytest.skip(f"this user may not read the kernel's log: {probe.kernel}")
    return probe.kernel


def test_each_node_has_a_cursor_of_its_own() -> None:
    """Only its lines after that come; another node's cursor says nothing of it."""
    first = log(ProbeRequest(parts=("kernel",)))
    again = log(ProbeRequest(parts=("kernel",), cursors={HERE: first.cursor}))
    assert len(again.lines) < max(1, len(first.lines))
    elsewhere = Cursor(boot=first.cursor.boot, source=first.cursor.source, position=2**62)
    other = log(ProbeRequest(parts=("kernel",), cursors={"elsewhere": elsewhere}))
    assert len(other.lines) >= len(first.lines)


def test_what_is_wanted_of_one_node() -> None:
    """Its cursor where there is one, else that of all."""
    mine, all_ = (Cursor(boot="b", source="kmsg", position=n) for n in (7, 3))
    wants = ProbeRequest(parts=("kernel",), since=all_, cursors={"n1": mine})
    assert (wants.restrict_to_node("n1").since, wants.restrict_to_node("n2").since) == (mine, all_)
    assert wants.restrict_to_node("n1").cursors == {}
