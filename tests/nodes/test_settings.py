"""The key `remote:`: what is taken, and what is refused at which key."""

from typing import Any

import pytest

from sentinel.core.errors import Invalid
from sentinel.core.values import Duration
from sentinel.nodes.settings import RemoteSettings


def test_the_defaults_of_the_interface() -> None:
    """ssh, 64 at once, half a minute a node."""
    settings = RemoteSettings()
    assert settings.via == "ssh"
    assert (settings.fanout, float(settings.timeout)) == (64, 30.0)


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"fanout": 0}, "fanout"),
        ({"fanout": 1025}, "fanout"),
        ({"timeout": Duration(0)}, "timeout"),
        ({"connect_timeout": Duration(31)}, "connect_timeout"),
        ({"connect_timeout": Duration(0)}, "connect_timeout"),
        ({"ssh_options": "-F 'x"}, "ssh_options"),
        ({"srun_options": '"'}, "srun_options"),
    ],
)
def test_what_cannot_work_is_refused_at_its_key(given: dict[str, Any], key: str) -> None:
    """With the path of the key, for the message that names file and line."""
    with pytest.raises(Invalid) as told:
        RemoteSettings(**given)
    assert told.value.path == (key,)


@pytest.mark.parametrize("fanout", [1, 1024])
def test_the_bounds_themselves_are_taken(fanout: int) -> None:
    """One at a time, and a thousand."""
    assert RemoteSettings(fanout=fanout, connect_timeout=Duration(30)).fanout == fanout
