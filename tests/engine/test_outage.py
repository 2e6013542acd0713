"""The state fails for real and comes back: each alert is told once, and so is each end."""

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from errno import EIO
from pathlib import Path

import pytest

from tests.engine.outages import Teller, reference, story
from tests.lab.fuse import Fuse
from tests.store.disk import Disk


@pytest.fixture
def disk(tmp_path: Path, as_root: None) -> Iterator[Disk]:
    """A file system with room for the state, its log and a journal."""
    point = tmp_path / "disk"
    point.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24M", "tmpfs", str(point)], check=True)
    yield Disk(point)
    subprocess.run(["umount", "--lazy", str(point)], check=True)


@contextmanager
def full(state: Path) -> Iterator[None]:
    """Not a byte is left on the file system."""
    disk = Disk(state.parent)
    disk.fill()
    yield
    disk.free()


@contextmanager
def read_only(state: Path) -> Iterator[None]:
    """Remounted under way. A service has files open for writing there: then the kernel does not."""
    point = str(state.parent)
    subprocess.run(["mount", "-o", "remount,ro", point], check=True)
    yield
    subprocess.run(["mount", "-o", "remount,rw", point], check=True)


@contextmanager
def broken(state: Path) -> Iterator[None]:
    """Every call answers EIO, as of a disk that died."""
    with Fuse(state) as fuse:
        fuse.fail(EIO, "lookup", "getattr", "open", "statfs", "opendir")
        yield


@contextmanager
def hung(state: Path) -> Iterator[None]:
    """No call is answered."""
    with Fuse(state) as fuse:
        fuse.hold("lookup", "getattr", "open", "statfs", "opendir")
        yield
        fuse.release()


FAULTS = {"full": full, "read-only": read_only, "broken": broken, "hung": hung}


def play(kind: str, way: str, state: Path, passes: int, begin: int, end: int) -> Teller:
    told = story(passes)
    teller = Teller(str(state), patience=0.3 if kind == "hung" else 20.0)
    with ExitStack() as stack:

        def before(number: int) -> None:
            if number == begin:
                stack.enter_context(FAULTS[kind](state))
            if number == end:
                stack.close()
                for store in teller.stores:  # do not wait for the next attempt
                    store._pair._next_try = 0.0

        getattr(teller, way)(told, before)
    return teller


@pytest.mark.parametrize("way", ["ticks", "service"])
@pytest.mark.parametrize("kind", FAULTS)
def test_told_once(disk: Disk, tmp_path: Path, kind: str, way: str) -> None:
    """As without the fault, word for word and id for id; and the fault itself is told."""
    if (kind, way) == ("read-only", "service"):
        pytest.skip("the kernel refuses to remount what is open for writing")
    teller = play(kind, way, disk.state, 16, 4, 12)
    assert teller.said == reference(tmp_path / "reference", story(16))
    assert [reason for reason, _ in teller.own] == ["firing", "resolved"], teller.own


@pytest.mark.long
@pytest.mark.parametrize("way", ["ticks", "service"])
@pytest.mark.parametrize("kind", FAULTS)
def test_told_once_in_a_hundred_passes(disk: Disk, tmp_path: Path, kind: str, way: str) -> None:
    """The same for a hundred passes without a state."""
    if (kind, way) == ("read-only", "service"):
        pytest.skip("the kernel refuses to remount what is open for writing")
    teller = play(kind, way, disk.state, 120, 10, 110)
    assert teller.said == reference(tmp_path / "reference", story(120))
    assert [reason for reason, _ in teller.own] == ["firing", "resolved"], teller.own
