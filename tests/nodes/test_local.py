"""This host as the only node."""

import socket

from sentinel.core.node_answers import Answered, NotAsked
from sentinel.nodes.connect import connect
from sentinel.nodes.probe import ALL_PARTS_REQUEST, NodeProbe
from sentinel.nodes.settings import RemoteSettings

HERE = socket.gethostname()


def test_this_host_is_asked_without_any_network() -> None:
    """By its name, its short name, or as localhost."""
    remote = connect(RemoteSettings(via="local"))
    names = list({HERE, HERE.partition(".")[0], "localhost"})
    told = remote.run(names, ["sh", "-c", "printf x; exit 4"], limit=60)
    assert told == {name: Answered(code=4, out=b"x") for name in names}


def test_no_other_host_is_asked() -> None:
    """A node elsewhere is not this one, however healthy this one is."""
    told = connect(RemoteSettings(via="local")).probe(["elsewhere"], ALL_PARTS_REQUEST, limit=60)
    assert isinstance(told["elsewhere"], NotAsked)
    assert HERE in told["elsewhere"].why


def test_a_probe_of_this_host() -> None:
    """Processes, memory, mounts: whatever this user may see."""
    probe = connect(RemoteSettings(via="local")).probe([HERE], ALL_PARTS_REQUEST, limit=30)[HERE]
    assert isinstance(probe, NodeProbe)
    assert not set(probe.unread_parts) & {"identity", "processes", "mounts", "memory"}
