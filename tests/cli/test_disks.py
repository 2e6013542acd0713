"""`sentinel check fs` on a terminal, with a week behind it: the table and the picture."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sentinel.clock import SystemClock
from sentinel.core.clock import shift_instant
from sentinel.core.model import Batch, CheckRun, Sample, Status
from sentinel.store.opening import open_store
from tests.service.screen import Screen

MIB, HOUR, HOURS = 2**20, 3600, 7 * 24
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


@pytest.fixture
def scratch(tmp_path: Path, as_root: None) -> Iterator[Path]:
    """64 MiB, half used, with a name of 40 letters."""
    point = tmp_path / ("scratch-" + "x" * 32)
    point.mkdir()
    options = ["-o", "size=64m,nr_inodes=1000"]
    subprocess.run(["mount", "-t", "tmpfs", *options, "tmpfs", str(point)], check=True)
    (point / "data").write_bytes(b"x" * 32 * MIB)
    yield point
    subprocess.run(["umount", "--lazy", str(point)], check=True)


@pytest.fixture
def config(tmp_path: Path, scratch: Path) -> Path:
    """A state that has seen it rise by 1/7 MiB an hour for a week: full in nine days."""
    config = tmp_path / "sentinel.yaml"
    config.write_text(
        f"cluster: lab\nstate: {tmp_path}/state\n"
        f"checks:\n  disks: {{kind: fs, paths: ['{scratch}']}}\n"
        f"channels:\n  book: {{kind: file, path: {tmp_path}/book.jsonl}}\n"
    )
    now = SystemClock().now()
    store = open_store(str(tmp_path / "state"), now).store
    store.take_lead("test", now)
    run = CheckRun(check="disks", kind="fs", at=now, status=Status.OK, summary="fine", duration=0.1)
    store.commit(Batch(at=now, runs=(run,)))
    for back in range(HOURS, 0, -6):
        free = 32 * MIB + back * MIB / 7
        used = 100 * (1 - free / (64 * MIB))
        told = {"free_bytes": free, "used_percent": used}
        samples = tuple(Sample(str(scratch), name, value) for name, value in told.items())
        store.commit(Batch(at=shift_instant(now, -HOUR * back), samples={"disks": samples}))
    store.close()
    return config


def glass(config: Path, *words: object, columns: int = 80) -> list[str]:
    """The lines that `sentinel check WORDS...` leaves on a terminal."""
    home = {**os.environ, "HOME": str(config.parent), "LANG": "C.UTF-8"}
    with Screen(["check", *words, "-c", config], home, str(config.parent), columns) as screen:
        assert screen.wait() == 0, screen.text
    lines = ESCAPES.sub("", screen.text).rstrip("\n").split("\n")
    return [line for line in lines if not line.startswith("… ")]  # said from two seconds on


@pytest.mark.parametrize("columns", [80, 120])
def test_a_table_with_bars_the_week_and_the_time_that_is_left(
    config: Path, scratch: Path, columns: int
) -> None:
    """It fits the terminal; a long name is folded, never cut."""
    lines = glass(config, "disks", columns=columns)
    assert max(len(line) for line in lines) <= columns, lines
    for title in ("file system", "space", "free", "inodes", "last week", "full in", "status"):
        assert title in lines[0]
    text = "\n".join(lines)
    half = (8 if columns == 80 else 12) // 2
    assert "█" * half + "░" * half in text
    assert " 50%" in text
    assert "33.6 MB" in text
    assert re.search(r"\b9d\b|\b9d \d+h|\b8d 2\dh", text), text
    assert re.search("▂+▃+▄+", text), text
    assert str(scratch) in "".join(line.split(" ")[0] for line in lines[1:])


def test_without_a_state_it_shows_the_present(scratch: Path, tmp_path: Path) -> None:
    """No past is made up: neither sparkline nor time."""
    home = {**os.environ, "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    words = ["check", "fs", "--path", scratch]
    with Screen(words, home, str(tmp_path)) as screen:
        assert screen.wait() == 0, screen.text
    text = ESCAPES.sub("", screen.text)
    assert "50%" in text
    assert "last week" not in text
    assert not list(tmp_path.rglob("sentinel.db"))


def test_a_picture_of_history_and_forecast(config: Path, scratch: Path) -> None:
    """Well-formed XML that names the file system and says when it is full."""
    picture = config.parent / "disk.svg"
    glass(config, "disks", "--plot", picture)
    root = ElementTree.fromstring(picture.read_text())
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    text = " ".join(root.itertext())
    assert scratch.name in text
    assert re.search(r"full \d\d \w{3} \d\d:\d\d", text)


def test_one_measurement_is_no_picture(scratch: Path, tmp_path: Path) -> None:
    """It says what is missing, and writes no file."""
    home = {**os.environ, "HOME": str(tmp_path)}
    words = ["check", "fs", "--path", scratch, "--plot", tmp_path / "disk.svg"]
    with Screen(words, home, str(tmp_path)) as screen:
        assert screen.wait() != 0
    assert "each file system was measured only once" in screen.text
    assert not (tmp_path / "disk.svg").exists()


def test_a_picture_that_cannot_be_written_is_a_bad_call(config: Path) -> None:
    """In one line, with the reason."""
    home = {**os.environ, "HOME": str(config.parent)}
    words = ["check", "disks", "-c", config, "--plot", "/proc/no/such.svg"]
    with Screen(words, home, str(config.parent)) as screen:
        assert screen.wait() != 0
    assert "--plot /proc/no/such.svg: No such file or directory" in screen.text
    assert "Traceback" not in screen.text
