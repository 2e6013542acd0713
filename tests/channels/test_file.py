"""The file channel on real files, and on a file system that hangs."""

import asyncio
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from sentinel.channels.file import FileChannel
from sentinel.core.errors import ChannelError, Invalid
from sentinel.core.settings import FilePath, Secret
from sentinel.core.values import Duration
from sentinel.proc import Done, appending
from tests.channels.contract import ChannelContract, Mood, Side, assert_inert, send
from tests.channels.samples import HUGE, notification
from tests.lab.fuse import Fuse
from tests.lab.waiting import wait_until

FIELDS = [
    "at",
    "cluster",
    "check",
    "kind",
    "subject",
    "severity",
    "status",
    "reason",
    "summary",
    "since",
    "key",
]


class TestContract(ChannelContract):
    """Refused for good by a directory, for now by a folder that is not there (yet)."""

    @contextmanager
    def side(self, tmp_path: Path, mood: Mood) -> Iterator[Side]:
        path = tmp_path / {"refuses": "", "later": "missing/alerts"}.get(mood, "alerts.jsonl")
        if mood != "hangs":
            yield Side(book(path), lambda: path.read_bytes().splitlines(keepends=True))
            return
        with Fuse(tmp_path / "mount") as mount:
            mount.hold("open")
            yield Side(book(mount.point / "data", 0.3), list)
            mount.release()

    def inert(self, message: bytes, text: str) -> None:
        """A terminal that shows the line obeys nothing in it."""
        assert_inert(message.decode())
        assert json.loads(message)["check"]

    @pytest.mark.root
    def test_a_hang_ends_at_the_timeout(self, tmp_path: Path) -> None:
        """Marked here alone: a mark put on the contract's function would be every channel's."""
        super().test_a_hang_ends_at_the_timeout(tmp_path)

    def test_secrets_are_nowhere(self) -> None:  # type: ignore[override]
        """There are none."""
        assert Secret not in get_type_hints(FileChannel).values()


def test_many_messages_are_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A first look at a thousand drained nodes began a thousand of them, 15 ms each."""
    started = list[object]()
    run = appending.run

    def count(argv: object, **how: Any) -> Done:
        started.append(argv)
        return run(argv, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(appending, "run", count)
    path = tmp_path / "alerts.jsonl"
    many = [notification(key=f"01J9-{n}") for n in range(FileChannel.messages_at_once)]
    asyncio.run(book(path).send(many))
    assert [json.loads(line)["key"] for line in path.read_text().splitlines()] == [
        n.key for n in many
    ]
    assert len(started) == 1


def book(path: Path, timeout: float = 20) -> FileChannel:
    return FileChannel(path=FilePath(path), timeout=Duration(timeout))


def test_a_line_has_the_documented_fields_first(tmp_path: Path) -> None:
    """In their order; what comes after may grow."""
    path = tmp_path / "alerts.jsonl"
    send(book(path), notification())
    line = json.loads(path.read_text())
    assert list(line)[: len(FIELDS)] == FIELDS
    assert {n: line[n] for n in FIELDS} == {
        "at": "2026-09-30T03:37:05+02:00",
        "cluster": "h100-prod",
        "check": "training",
        "kind": "job",
        "subject": "tr11-176B",
        "severity": "critical",
        "status": "critical",
        "reason": "firing",
        "summary": "not running: job 4242 FAILED (exit 1)",
        "since": "2026-09-30T03:12:05+02:00",
        "key": "01J9-1",
    }


def test_it_is_created_for_owner_and_group(tmp_path: Path) -> None:
    """0640, whatever a generous umask allows; an existing file keeps its mode."""
    path, old = tmp_path / "new", tmp_path / "old"
    old.touch(mode=0o600)
    former = os.umask(0)
    try:
        send(book(path), notification())
        send(book(old), notification())
    finally:
        os.umask(former)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert stat.S_IMODE(old.stat().st_mode) == 0o600


def test_it_is_opened_anew_each_time(tmp_path: Path) -> None:
    """After logrotate has moved the file, the next line goes to a new one."""
    path = tmp_path / "alerts.jsonl"
    send(book(path), notification(key="k1"))
    path.rename(tmp_path / "alerts.jsonl.1")
    send(book(path), notification(key="k2"))
    assert [json.loads(p.read_text())["key"] for p in sorted(tmp_path.iterdir())] == ["k2", "k1"]


def test_a_torn_line_spoils_no_other(tmp_path: Path) -> None:
    """What a full disk cut off stays alone on its line."""
    path = tmp_path / "alerts.jsonl"
    path.write_text('{"at": "2026')
    send(book(path), notification(key="k1"))
    send(book(path), notification(key="k2"))
    torn, *lines = path.read_text().splitlines()
    assert torn == '{"at": "2026'
    assert [json.loads(line)["key"] for line in lines] == ["k1", "k2"]


def test_lines_written_at_once_do_not_mix(tmp_path: Path) -> None:
    """Several writers, long lines: every line is whole."""
    path = tmp_path / "alerts.jsonl"

    async def all_at_once() -> None:
        many = (notification(key=f"k{i}", details="x" * HUGE) for i in range(12))
        await asyncio.gather(*(book(path).send([n]) for n in many))

    asyncio.run(all_at_once())
    keys = {json.loads(line)["key"] for line in path.read_text().splitlines()}
    assert keys == {f"k{i}" for i in range(12)}


@pytest.mark.parametrize(
    ("kind", "permanent", "words"),
    [
        ("directory", True, "directory"),
        ("fifo", True, "not a regular file"),
        ("device", True, "not a regular file"),
        ("folder missing", False, "No such file"),
        ("file as folder", False, "Not a directory"),
    ],
)
def test_what_is_no_file_is_an_error(
    tmp_path: Path, kind: str, permanent: bool, words: str
) -> None:
    """With the path and the reason; permanent where this setting can never work."""
    path = tmp_path / "alerts"
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        path = Path("/dev/null")
    else:
        (tmp_path / "file").touch()
        path = tmp_path / ("missing" if kind == "folder missing" else "file") / "alerts"
    with pytest.raises(ChannelError, match=words) as caught:
        send(book(path), notification())
    assert caught.value.permanent is permanent
    assert str(path) in str(caught.value)


def test_a_name_in_no_encoding_works(tmp_path: Path) -> None:
    """File names are bytes."""
    path = tmp_path / os.fsdecode(b"b\xff\xfe.jsonl")
    assert "\\udcff" in send(book(path), notification()).text
    assert path.exists()


def test_a_hanging_mount_gets_one_process(fuse: Fuse) -> None:
    """The second send is refused while the first one's process cannot be killed; then it goes on."""
    fuse.hold("open")
    channel = book(fuse.point / "data", 0.3)
    for _ in range(3):
        with pytest.raises(ChannelError) as caught:
            send(channel, notification())
        assert caught.value.reason == "timeout"
    assert "still waits" in str(caught.value)
    assert fuse.withheld() == 1
    fuse.release()
    wait_until(lambda: not hangs(channel), "the mount answers")


def hangs(channel: FileChannel) -> bool:
    """Whether a send is still given up as a timeout (the mount itself takes no writes)."""
    with pytest.raises(ChannelError) as caught:
        send(channel, notification())
    return caught.value.reason == "timeout"


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"path": FilePath("")}, "path"),
        ({"path": FilePath("a\0b")}, "path"),
        ({"path": FilePath("/x"), "timeout": Duration(0)}, "timeout"),
    ],
)
def test_wrong_settings_are_refused(fields: dict[str, FilePath | Duration], key: str) -> None:
    """Each names its key."""
    with pytest.raises(Invalid) as caught:
        FileChannel(**fields)  # type: ignore[arg-type]
    assert caught.value.path == (key,)
