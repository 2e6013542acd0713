"""Dumps found and read where a job wrote them: hostile, broken, of another user, of before."""

import io
import json
import os
import pickle
import threading
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from sentinel.cli import main
from sentinel.core.errors import CannotTell
from sentinel.stacks.parse.flight_recorder import MOST, read_recording
from sentinel.stacks.recordings import (
    TOGETHER,
    RecordingsOrder,
    environment_prefixes,
    prefixes_beside,
    read_recordings,
)
from tests.lab.fuse import Fuse
from tests.lab.waiting import wait_until
from tests.stacks.parse.recorded import away, waiting
from tests.user_files.places import ALICE, MALLORY, file_of, folder_of, shared_folder

AT = 1_800_000_000
PREFIX = "nccl_trace_rank_"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Rank 2 of four is missing."""
    for rank in range(4):
        put(tmp_path, f"{PREFIX}{rank}", pickle.dumps(away() if rank == 2 else waiting(), 2))
    return tmp_path


def put(folder: Path, name: str, data: bytes, at: float = AT) -> Path:
    path = folder / name
    path.write_bytes(data)
    os.utime(path, (at, at))
    return path


def order(place: Path, **more: object) -> RecordingsOrder:
    return RecordingsOrder(places=(f"{place}/{PREFIX}",), **more)  # type: ignore[arg-type]


class Payload:
    """What a pickle runs when it is read freely."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> object:
        return os.mkdir, (str(self.path),)


def test_a_payload_is_refused_and_named_and_does_not_run(place: Path) -> None:
    put(place, f"{PREFIX}1", pickle.dumps({"pg_config": Payload(place / "made")}, 2))
    found = read_recordings(order(place))
    assert not (place / "made").exists()
    assert list(found.refused.values()) == ["refused: it would run posix.mkdir"]
    assert "rank 2 is not in the all_reduce" in found.standstill_words
    assert f"{place}/{PREFIX}1 not read: refused" in found.standstill_words


HUGE = b"\x80\x02}r\xff\xff\xff\x7f."
"""An empty dict to be remembered under a number of two thousand millions."""


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"\x80",
        b"\x80\x02]q\x00.",
        b"{}",
        HUGE,
        b"[" * 100_000,
        b"{" + b'"a":{' * 100_000,
        b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b".",
        b"\x80\x04\x8c\x02os\x8c\x06system\x93.",
        b"cos\nsystem\n(S'true'\ntR.",
        b"\x80\x02\x82\x01.",
        json.dumps({**waiting(), "pg_config": {"0": {"ranks": "[9]"}}}).encode(),
        json.dumps({**waiting(), "entries": [{"process_group": 3}]}).encode(),
        json.dumps({**waiting(), "pg_status": {"0": {"last_enqueued_collective": "x"}}}).encode(),
    ],
)
def test_what_is_no_dump_is_refused_and_the_others_count(place: Path, data: bytes) -> None:
    put(place, f"{PREFIX}0", data)
    found = read_recordings(order(place))
    assert [*found.refused] == [f"{place}/{PREFIX}0"]
    assert [one.ranks for one in found.joint_standstill.culprits] == [(2,)]


def test_a_persistent_id_and_a_dump_without_end_are_refused() -> None:
    class Pickler(pickle.Pickler):
        def persistent_id(self, one: object) -> str | None:
            return "x" if one == "there" else None

    file = io.BytesIO()
    Pickler(file, 2).dump({"pg_config": "there"})
    for data in (file.getvalue(), bytes(MOST + 1)):
        with pytest.raises(CannotTell):
            read_recording(data, 0)


def test_only_files_of_the_jobs_user_and_of_its_own_time_count(place: Path) -> None:
    assert not read_recordings(order(place, user="nobody")).recordings
    assert len(read_recordings(order(place, user=str(os.getuid()))).recordings) == 4
    assert not read_recordings(order(place, since=AT + 1.0)).standstill_words


def test_dumps_of_an_earlier_attempt_do_not_count(place: Path) -> None:
    """torchrun starts again within one job: rank 3 of the first attempt says nothing of this one."""
    put(place, f"{PREFIX}3", pickle.dumps(away(), 2), AT - TOGETHER - 1)
    found = read_recordings(order(place))
    assert (found.older, found.joint_standstill.silent) == (1, (3,))


def test_a_fifo_and_a_link_to_nowhere_hold_nobody_up(place: Path) -> None:
    pipe = place / f"{PREFIX}4"
    os.mkfifo(pipe)
    os.utime(pipe, (AT, AT))
    opened = threading.Event()

    def write() -> None:
        os.close(os.open(pipe, os.O_WRONLY))
        opened.set()

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    (place / f"{PREFIX}5").symlink_to(place / "nowhere")
    found = read_recordings(order(place))
    assert sorted(found.refused.values()) == [
        "No such file or directory",
        "it is a fifo, not a regular file",
    ]
    assert [one.ranks for one in found.joint_standstill.culprits] == [(2,)]
    assert not opened.is_set()  # not even opened: of a device that may do something
    os.close(os.open(pipe, os.O_RDONLY))
    writer.join()


def test_where_a_job_writes_them() -> None:
    env = {"TORCH_FR_DUMP_TEMP_FILE": "/s/a_", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": "b_", "RANK": "1"}
    assert environment_prefixes([env, {}, env]) == ("/s/a_",)
    assert f"/logs/{PREFIX}" in prefixes_beside("/logs/slurm-7.out")
    assert prefixes_beside("slurm-7.out") == ()


def test_the_command_reads_a_folder_of_dumps(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """0 with a culprit, 1 without one."""
    assert main(["stacks", "--dumps", str(place)]) == 0
    assert capsys.readouterr().out.startswith("rank 2 is not in the all_reduce (train.py:88)")
    assert main(["stacks", "--json", "--dumps", f"{place}/{PREFIX}"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["culprits"][0]["ranks"], told["culprits"][0]["why"]) == ([2], "absent")
    assert main(["stacks", "--dumps", str(place / "no_")]) == 1
    assert main(["stacks"]) == 64


@pytest.mark.root
def test_a_job_s_places_are_listed_and_read_as_its_user() -> None:
    """TORCH_FR_DUMP_TEMP_FILE may name a private folder of somebody else, or lead there by a link."""
    with shared_folder() as base:
        private = folder_of(ALICE, base / "private", 0o700)
        file_of(ALICE, private / "4711", "x", 0o644)
        mine = folder_of(MALLORY, base / "mine")
        file_of(MALLORY, mine / f"{PREFIX}0").write_bytes(pickle.dumps(waiting(), 2))
        (mine / f"{PREFIX}1").symlink_to(private / "4711")
        os.lchown(mine / f"{PREFIX}1", MALLORY, MALLORY)
        os.link(file_of(ALICE, base / "alice"), mine / f"{PREFIX}3")
        places = (f"{private}/", f"{mine}/{PREFIX}")
        found = read_recordings(RecordingsOrder(places=places, user=str(MALLORY)))
    assert [one.rank for one in found.recordings] == [0]
    assert found.refused == {f"{mine}/{PREFIX}1": "Permission denied"}


def test_the_child_that_becomes_a_user_has_no_environment_of_root_s(
    monkeypatch: pytest.MonkeyPatch, fuse: Fuse
) -> None:
    """Its owner could read it in /proc/PID/environ, or by a flaw of what reads dumps."""
    monkeypatch.setenv("PGPASSWORD", "s3cret")
    fuse.hold("opendir")
    order = RecordingsOrder(places=(f"{fuse.point}/{PREFIX}",), limit=60.0)

    def read() -> None:
        with suppress(CannotTell):
            read_recordings(order)

    reading = threading.Thread(target=read)
    reading.start()
    wait_until(lambda: fuse.withheld() > 0, "the child, at the folder of the dumps")
    children = psutil.Process().children(recursive=True)
    seen = [c.environ() for c in children if "recordings_child" in " ".join(c.cmdline())]
    fuse.release()
    reading.join(60)
    assert seen
    assert all("PGPASSWORD" not in one for one in seen)
