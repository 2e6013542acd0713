"""`sentinel notify preview` as people call it: a real process, a real file."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Called = subprocess.CompletedProcess[str]
Call = Callable[..., Called]

FILE = """
checks: {disks: {kind: fs}}
channels:
  mail:
    kind: email
    to: [a@example.org]
    from: s@example.org
    host: localhost
    security: none
    templates: {subject: "<{{ check }}>", html: "<h1>{{ summary }}</h1>"}
  chat: {kind: slack, url: {env: URL}}
  page: {kind: pagerduty, routing_key: {env: KEY}}
  book: {kind: file, path: alerts.jsonl}
  terminal: {kind: console}
"""


@pytest.fixture
def call(tmp_path: Path) -> Call:
    """Run `sentinel notify preview …` beside the file."""
    (tmp_path / "sentinel.yaml").write_text(FILE)
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "KEY": "hunter2"}

    def do(*words: str) -> Called:
        return subprocess.run(
            [sys.executable, "-m", "sentinel", "notify", "preview", "-c", "sentinel.yaml", *words],
            cwd=tmp_path,
            env={**env, "URL": "https://hooks.example.org/hunter2"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return do


def test_every_channel_shows_every_sample(call: Call, tmp_path: Path) -> None:
    """Nothing is sent, nothing is written, no secret is shown."""
    done = call()
    assert (done.returncode, done.stderr) == (0, "")
    for channel in ("mail", "chat", "page", "book", "terminal"):
        for sample in ("firing", "resolved", "grouped"):
            assert f"== {channel}: {sample} =" in done.stdout
    assert "hunter2" not in done.stdout
    assert not (tmp_path / "alerts.jsonl").exists()


SHOWN = [
    ("mail", "subject: <training>"),
    ("chat", "subject: 🔴 CRITICAL h100-prod training tr11-176B"),
    ("page", '"event_action": "trigger"'),
    ("book", '"subject":"tr11-176B"'),
    ("terminal", "CRITICAL training tr11-176B (h100-prod)"),
]


@pytest.mark.parametrize(("channel", "words"), SHOWN)
def test_one_channel_and_one_sample(call: Call, channel: str, words: str) -> None:
    """In the words of its templates, or in its own."""
    done = call(channel, "--sample", "firing")
    assert words in done.stdout
    assert "resolved" not in done.stdout.lower().replace("resolve ", "")


def test_html_goes_into_a_file(call: Call, tmp_path: Path) -> None:
    """To be looked at with a browser."""
    done = call("mail", "--html", "out.html")
    assert (done.returncode, done.stdout) == (0, "wrote out.html\n")
    assert (tmp_path / "out.html").read_text().startswith("<h1>job 4242 FAILED with")


def test_html_of_a_channel_without_any(call: Call) -> None:
    """One line, exit 1."""
    done = call("chat", "--html", "out.html")
    assert (done.returncode, done.stderr) == (1, "sentinel: no HTML in the messages of chat\n")


def test_a_file_that_cannot_be_written(call: Call) -> None:
    """One line, exit 1."""
    done = call("mail", "--html", "no/such/out.html")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "sentinel: no/such/out.html: No such file or directory\n"


def test_an_unknown_channel_is_a_usage_error(call: Call) -> None:
    """It names those there are."""
    done = call("maill")
    assert done.returncode == 64
    assert "no channel maill; channels: mail, chat, page, book, terminal" in done.stderr
