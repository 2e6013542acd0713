"""What all kinds of channels have in common in the file."""

from pathlib import Path

import pytest

from sentinel.channels import KINDS
from sentinel.channels.settings import LONGEST_SEND
from sentinel.config.loader import load_config
from sentinel.config.problems import ConfigError
from sentinel.engine.delivery import MAX_SEND_S
from sentinel.wiring.app import CHANNELS, CHECKS
from tests.channels.test_secrets import example, with_key

pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")


@pytest.mark.parametrize("timeout", ["0s", "91s"])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_timeout_is_one_that_can_be_kept(kind: str, timeout: str, tmp_path: Path) -> None:
    """In no time nothing is sent. A send that delivery gives up first is begun again while it
    goes on: a pager's program would run twice at once, and page each time."""
    file = tmp_path / "sentinel.yaml"
    file.write_text(with_key(example(kind), kind, f"timeout: {timeout}"))
    with pytest.raises(ConfigError) as caught:
        load_config(str(file), CHECKS, CHANNELS, env={})
    assert [p.path.rpartition(".")[2] for p in caught.value.problems] == ["timeout"]


def test_the_longest_send_is_the_one_that_delivery_waits_for() -> None:
    """The kinds know nothing of the engine, so it is written twice."""
    assert LONGEST_SEND == MAX_SEND_S
