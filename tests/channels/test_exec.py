"""The exec channel with real programs."""

import json
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import get_type_hints

import pytest

from sentinel.channels.exec import ExecChannel
from sentinel.core.errors import ChannelError, Invalid
from sentinel.core.settings import Secret
from sentinel.core.values import Duration
from tests.channels.contract import ChannelContract, Mood, Side, assert_inert, send
from tests.channels.samples import HOSTILE, hostile, notification
from tests.lab.waiting import HANG_LIMIT_S

WORDS = (
    "at",
    "cluster",
    "check",
    "kind",
    "severity",
    "status",
    "reason",
    "since",
    "key",
    "alert",
    "dry_run",
)


class TestContract(ChannelContract):
    """A shell script that keeps its input, or refuses it by its exit code."""

    @contextmanager
    def side(self, tmp_path: Path, mood: Mood) -> Iterator[Side]:
        book = tmp_path / "book"
        body = {
            "takes": f"cat >> {book}; echo taken",
            "refuses": "echo no such pager >&2; exit 65",
            "later": "echo busy; exit 75",
            "hangs": "sleep 60",
        }[mood]
        channel = script(tmp_path, body, timeout=0.3 if mood == "hangs" else 20)
        yield Side(channel, lambda: book.read_bytes().splitlines(keepends=True))

    def inert(self, message: bytes, text: str) -> None:
        """One JSON object on one line."""
        assert_inert(message.decode())
        assert json.loads(message)["check"]

    def test_secrets_are_nowhere(self) -> None:  # type: ignore[override]
        """There are none."""
        assert Secret not in get_type_hints(ExecChannel).values()


def script(folder: Path, body: str, timeout: float = 20) -> ExecChannel:
    path = folder / "page"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return ExecChannel(command=[str(path)], timeout=Duration(timeout))


CODES = [
    (1, False),
    (2, False),
    (63, False),
    (64, True),
    (65, True),
    (66, False),
    (69, False),
    (70, True),
    (71, False),
    (75, False),
    (76, True),
    (77, True),
    (78, True),
    (79, False),
    (99, False),
    (100, True),
    (101, False),
    (111, False),
    (112, True),
    (255, False),
]


@pytest.mark.parametrize(("code", "permanent"), CODES)
def test_what_an_exit_code_means(tmp_path: Path, code: int, permanent: bool) -> None:
    """As qmail-command(8): a few words for never, everything else is an accident."""
    error = failure(script(tmp_path, f"exit {code}"))
    assert error.permanent is permanent
    assert f"exit code {code}" in str(error)


def test_a_killed_command_is_tried_again(tmp_path: Path) -> None:
    """The error names the signal."""
    error = failure(script(tmp_path, "kill -9 $$"))
    assert not error.permanent
    assert "signal 9" in str(error)


@pytest.mark.parametrize(("mode", "words"), [(0o644, "executed"), (None, "No such file")])
def test_a_command_that_cannot_start_is_tried_again(
    tmp_path: Path, mode: int | None, words: str
) -> None:
    """Someone may mend it; the error says what is wrong."""
    path = tmp_path / "page"
    if mode is not None:
        path.write_text("#!/bin/sh\n")
        path.chmod(mode)
        assert not path.stat().st_mode & stat.S_IXUSR
    error = failure(ExecChannel(command=[str(path)]))
    assert not error.permanent
    assert words in str(error)


def test_a_command_that_reads_nothing_is_fine(tmp_path: Path) -> None:
    """Its exit code decides, not a broken pipe."""
    send(script(tmp_path, "exec 0<&-; exit 0"), notification(details="x" * 10**6))


def test_a_flood_of_output_ends_the_command(tmp_path: Path) -> None:
    """Memory is bounded; the error says what happened."""
    error = failure(script(tmp_path, "yes"))
    assert "printed more than" in str(error)


def test_a_hanging_command_is_ended_with_its_children(tmp_path: Path) -> None:
    """The whole process group."""
    book = tmp_path / "pid"
    channel = script(tmp_path, f"sleep 61 & echo $! > {book}; wait", timeout=HANG_LIMIT_S)
    assert failure(channel).reason == "timeout"
    child = int(book.read_text())
    deadline = time.monotonic() + 5
    while running(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not running(child)


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def test_the_environment_says_what_it_is_about(tmp_path: Path) -> None:
    """Words for a simple script, and the service's own environment."""
    env = environment(tmp_path, notification(dry_run=True))
    assert env["PATH"] == os.environ["PATH"]
    assert {n: env[f"SENTINEL_{n.upper()}"] for n in WORDS} == {
        "at": "2026-09-30T03:37:05+02:00",
        "cluster": "h100-prod",
        "check": "training",
        "kind": "job",
        "severity": "critical",
        "status": "critical",
        "reason": "firing",
        "since": "2026-09-30T03:12:05+02:00",
        "key": "01J9-1",
        "alert": "01J9",
        "dry_run": "1",
    }


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_the_environment_holds_only_safe_words(tmp_path: Path, text: str) -> None:
    """An unquoted expansion in a shell script stays one word and starts nothing."""
    env = environment(tmp_path, hostile(f"-{text}"))
    values = [env[f"SENTINEL_{name.upper()}"] for name in WORDS]
    assert not [v for v in values if not re.fullmatch(r"([\w.:@/+][\w.:@/+-]*)?", v, re.ASCII)]


def test_systemds_socket_is_not_handed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that writes READY=1 there speaks for the service."""
    monkeypatch.setenv("NOTIFY_SOCKET", "/run/notify")
    assert "NOTIFY_SOCKET" not in environment(tmp_path, notification())


def environment(folder: Path, about: object) -> dict[str, str]:
    """What a command finds in its environment."""
    book = folder / "env"
    send(script(folder, f"env -0 > {book}"), about)  # type: ignore[arg-type]
    pairs = (p.partition("=") for p in book.read_text().split("\0") if p)
    return {name: value for name, _, value in pairs}


def failure(channel: ExecChannel) -> ChannelError:
    with pytest.raises(ChannelError) as caught:
        send(channel, notification())
    return caught.value


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"command": []}, ("command",)),
        ({"command": [""]}, ("command",)),
        ({"command": ["a", "b\0"]}, ("command", 1)),
        ({"command": ["a"], "timeout": Duration(0)}, ("timeout",)),
    ],
)
def test_wrong_settings_are_refused(fields: dict[str, object], path: tuple[object, ...]) -> None:
    """Each names its key."""
    with pytest.raises(Invalid) as caught:
        ExecChannel(**fields)  # type: ignore[arg-type]
    assert caught.value.path == path
