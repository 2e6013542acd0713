"""Who runs a command is the uid's, whatever the environment says."""

import os
import pwd

import pytest

from sentinel.homes import get_invoking_user, get_user_name

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user, as root")


def ask_as(uid: int) -> str:
    """What a child of this uid answers."""
    answers, ends = os.pipe()
    if (child := os.fork()) == 0:
        os.setresuid(uid, uid, uid)
        os.write(ends, get_invoking_user().encode())
        os._exit(0)
    os.close(ends)
    with open(answers, "rb") as file:
        told = file.read().decode()
    os.waitpid(child, 0)
    return told


def test_the_name_comes_from_the_uid(monkeypatch: pytest.MonkeyPatch) -> None:
    """`su` without `-` leaves LOGNAME when somebody becomes root (su(1), util-linux)."""
    monkeypatch.delenv("SUDO_USER", raising=False)
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(variable, "mallory")
    assert get_invoking_user() == pwd.getpwuid(os.getuid()).pw_name


@needs_root
def test_the_user_before_sudo_counts_for_root_only(monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = pwd.getpwnam("nobody")
    monkeypatch.setenv("SUDO_USER", "alice")
    assert ask_as(0) == "alice"
    assert ask_as(nobody.pw_uid) == "nobody"


def test_a_uid_without_a_name() -> None:
    """As in a container that has no entry for it."""
    assert get_user_name(3_999_999_999) == "uid 3999999999"
    assert get_user_name(0) == "root"
