"""A log that was being read when sentinel was killed is unknown by its name, and is not read again at
once; nothing else is left alone for it."""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sentinel.checks import reading_notes, text_child
from sentinel.checks.reading_notes import begin_notes, end_notes, note_reading
from sentinel.checks.text_child import TextReader
from sentinel.core.errors import CannotTell
from tests.user_files.test_identity import in_child

KEEP_S = 900.0

READS = """
import sys, time
from sentinel.checks.text_child import TextReader
with TextReader(in_child=True) as reader:
    print("ready", flush=True)
    reader.ask(sys.argv[1], time.sleep, type(None), 3)
"""


def reads_forever(log: str, runtime: Path) -> "subprocess.Popen[str]":
    """A sentinel that reads this log just now."""
    process = subprocess.Popen(
        [sys.executable, "-c", READS, log],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "XDG_RUNTIME_DIR": str(runtime)},
    )
    assert process.stdout
    with process.stdout as said:
        assert said.readline() == "ready\n"
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and not any(
        path.stat().st_size for path in runtime.rglob("reading-*")
    ):
        time.sleep(0.01)
    return process


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A host where no sentinel has run yet."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    text_child.rest_interrupted_logs.cache_clear()
    yield tmp_path
    end_notes()
    text_child._resting.clear()
    text_child.rest_interrupted_logs.cache_clear()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSEGV])
def test_the_log_that_a_killed_sentinel_read_is_unknown_by_its_name(
    runtime: Path, how: signal.Signals
) -> None:
    process = reads_forever("/logs/evil\n.log", runtime)
    process.send_signal(how)
    process.wait(10)
    with TextReader(in_child=True) as reader:
        with pytest.raises(
            CannotTell, match=r"/logs/evil\\n.log was being read when .* killed.* 1[45]m"
        ):
            reader.refuse_resting_log("/logs/evil\n.log")
        reader.refuse_resting_log("/logs/good")
        assert reader.ask("/logs/good", len, int, "four") == 4


def test_it_is_left_alone_by_each_process_that_begins_meanwhile(runtime: Path) -> None:
    """A tick is a process of its own, and cron begins one each minute."""
    process = reads_forever("/logs/evil", runtime)
    process.kill()
    process.wait(10)
    for _ in range(3):
        text_child._resting.clear()
        text_child.rest_interrupted_logs.cache_clear()
        with TextReader(in_child=True) as reader, pytest.raises(CannotTell, match="was being read"):
            reader.refuse_resting_log("/logs/evil")


def test_what_a_living_sentinel_reads_is_nobodys_fault(runtime: Path) -> None:
    process = reads_forever("/logs/a", runtime)
    try:
        with TextReader(in_child=True) as reader:
            reader.refuse_resting_log("/logs/a")
    finally:
        process.kill()
        process.wait(10)


def test_a_process_that_ends_by_itself_leaves_nothing(runtime: Path) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            READS.replace("time.sleep", "str.upper").replace("3)", "'a')"),
            "/a",
        ],
        env={**os.environ, "XDG_RUNTIME_DIR": str(runtime)},
        capture_output=True,
        timeout=30,
    )
    assert b"ready" in done.stdout
    assert [*runtime.rglob("reading-*")] == []


def test_an_old_note_goes(tmp_path: Path) -> None:
    (tmp_path / "reading-1-a").write_text("/logs/evil")
    os.utime(tmp_path / "reading-1-a", (time.time() - KEEP_S - 1,) * 2)
    (tmp_path / "reading-2-b").write_text("")
    assert begin_notes(str(tmp_path), KEEP_S) == []
    end_notes()
    assert [*tmp_path.iterdir()] == []


def test_logs_that_threads_read_at_a_time_are_all_noted(tmp_path: Path) -> None:
    begin_notes(str(tmp_path), KEEP_S)
    (note,) = tmp_path.iterdir()
    with note_reading("/logs/a"):
        with note_reading("/logs/b"):
            assert note.read_bytes() == b"/logs/a\0/logs/b"
        assert note.read_bytes() == b"/logs/a"
    assert note.read_bytes() == b""
    end_notes()


def test_a_forked_process_leaves_the_note_to_its_parent(tmp_path: Path) -> None:
    """It neither writes over it nor removes it; nor does its lock outlive the parent in it."""
    begin_notes(str(tmp_path), KEEP_S)
    (note,) = tmp_path.iterdir()
    with note_reading("/logs/a"):

        def read_and_end() -> int:
            with note_reading("/logs/of the child"):
                pass
            end_notes()
            return sum(
                os.readlink(f"/proc/self/fd/{fd}") == str(note) for fd in _open_descriptors()
            )

        assert in_child(os.geteuid(), read_and_end) == 0
        assert note.read_bytes() == b"/logs/a"
    end_notes()
    assert [*tmp_path.iterdir()] == []


def _open_descriptors() -> list[str]:
    return [fd for fd in os.listdir("/proc/self/fd") if os.path.islink(f"/proc/self/fd/{fd}")]


def test_children_that_hold_what_users_wrote_leave_no_core() -> None:
    """What logs, checkpoints and recordings say would lie in the folder where sentinel runs."""
    text_child.close_idle_children()
    before = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (before[1], before[1]))
    try:
        with TextReader(in_child=True) as reader:
            limits = reader.ask("/logs/a", _read_core_limits, str, "")
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, before)
    assert limits.split()[4:6] == ["0", "0"]


def _read_core_limits(_: str) -> str:
    with open("/proc/self/limits", encoding="ascii") as file:
        return next(line for line in file if line.startswith("Max core file size"))


def test_a_note_is_no_link_and_no_pipe(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("/etc/x")
    (tmp_path / "reading-3-c").symlink_to(secret)
    os.mkfifo(tmp_path / "reading-4-d")
    assert begin_notes(str(tmp_path), KEEP_S) == []
    end_notes()
    assert secret.read_text() == "/etc/x"


def test_a_note_costs_less_than_the_reading_of_a_short_text(tmp_path: Path) -> None:
    """Two writes of memory; a question to the child takes some 100 µs."""
    begin_notes(str(tmp_path), KEEP_S)
    began = time.thread_time()
    for _ in range(1000):
        with note_reading("/logs/a"):
            pass
    end_notes()
    assert time.thread_time() - began < 0.5
    assert reading_notes._being_read == []
