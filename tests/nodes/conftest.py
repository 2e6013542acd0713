"""A real sshd for tests that need no cluster."""

import os
import pwd
from collections.abc import Iterator

import pytest

from tests.lab import needs
from tests.nodes.sshd import Sshd


@pytest.fixture(scope="session")
def one_sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """One for all tests of this worker; most want `sshd`."""
    need_sshd()
    with Sshd(tmp_path_factory.mktemp("sshd") / "server") as server:
        yield server


@pytest.fixture
def sshd(one_sshd: Sshd) -> Iterator[Sshd]:
    """The server with its host key vouched for."""
    key = (one_sshd.folder / "host.pub").read_text()
    one_sshd.vouch(key)
    yield one_sshd
    one_sshd.vouch(key)


def need_sshd() -> None:
    """Skip with the reason, or fail with it under SENTINEL_LAB=required."""
    if not (needs.find("sshd") and needs.find("ssh")):
        needs.skip("needs ssh and sshd (Debian's openssh-client and openssh-server)")
    if (shell := pwd.getpwuid(os.geteuid()).pw_shell).endswith(("/nologin", "/false")):
        needs.skip(f"needs an account that may log in; the shell of this one is {shell}")
