"""The state fails for real and comes back: each alert is told once, and so is each end."""

import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from errno import EIO
from pathlib import Path

import psycopg
import pytest

from sentinel.core.errors import ChannelError, StoreBusy
from sentinel.core.model import Status
from sentinel.engine import housekeeping
from sentinel.store.opening import open_store
from tests.engine.outages import Said, Teller, reference, row, story
from tests.lab import needs
from tests.lab.fuse import Fuse
from tests.lab.postgres import Postgres
from tests.store.disk import Disk


@pytest.fixture
def disk(tmp_path: Path, as_root: None) -> Iterator[Disk]:
    """A file system with room for the state, its log and a journal."""
    point = tmp_path / "disk"
    point.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24M", "tmpfs", str(point)], check=True)
    yield Disk(point)
    subprocess.run(["umount", "--lazy", str(point)], check=True)


@pytest.fixture
def subvolume(tmp_path: Path, as_root: None) -> Iterator[Disk]:
    """A Btrfs subvolume whose quota group may hold 24 MiB; the file system has room."""
    point, image = tmp_path / "btrfs", tmp_path / "image"
    point.mkdir()
    with image.open("wb") as file:
        file.truncate(300 << 20)
    make = needs.require_program("mkfs.btrfs", "btrfs-progs")
    subprocess.run([make, "-q", str(image)], check=True, capture_output=True)
    done = subprocess.run(["mount", "-o", "loop", str(image), str(point)], capture_output=True)
    if done.returncode:
        pytest.skip(f"no Btrfs here: {done.stderr.decode().strip()}")
    try:
        for words in (
            ["subvolume", "create", str(point / "volume")],
            ["quota", "enable", str(point)],
            ["qgroup", "limit", "24M", str(point / "volume")],
        ):
            subprocess.run(["btrfs", *words], check=True, capture_output=True)
        yield Disk(point / "volume")
    finally:
        subprocess.run(["umount", "--lazy", str(point)], check=True)


@pytest.fixture
def ext4(tmp_path: Path, as_root: None) -> Iterator[Disk]:
    """One that an error makes read-only, whatever is open there (ext4(5), errors=remount-ro)."""
    point, image = tmp_path / "ext4", tmp_path / "image"
    point.mkdir()
    with image.open("wb") as file:
        file.truncate(64 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
    done = subprocess.run([*MOUNT, str(image), str(point)], capture_output=True)
    if done.returncode:
        pytest.skip(f"no ext4 here: {done.stderr.decode().strip()}")
    yield Disk(point)
    subprocess.run(["umount", "--lazy", str(point)], check=True)


MOUNT = ["mount", "-o", "loop,errors=remount-ro"]


@contextmanager
def aborted(state: Path) -> Iterator[None]:
    """After an error of the file system. A copy of it is mended: a mount namespace that was made
    meanwhile, as by a node of another worker's lab, still holds the broken one."""
    point, image = state.parent, state.parent.parent / "image"
    device = Path(os.path.realpath(f"/sys/dev/block/{_device(point)}")).name
    Path(f"/sys/fs/ext4/{device}/trigger_fs_error").write_text("test")
    with pytest.raises(OSError, match="Read-only"):
        (point / "more").touch()
    yield
    subprocess.run(["umount", str(point)], check=True)
    mended = shutil.copy(image, image.with_name("mended"))
    done = subprocess.run(["e2fsck", "-y", mended], capture_output=True)
    assert done.returncode in (0, 1), done.stdout  # e2fsck(8): 1: errors corrected
    subprocess.run([*MOUNT, mended, str(point)], check=True)


def _device(point: Path) -> str:
    number = point.stat().st_dev
    return f"{os.major(number)}:{os.minor(number)}"


@contextmanager
def over_quota(state: Path) -> Iterator[None]:
    """The file system has room, and this quota group has none."""
    ballast = state.parent / "ballast"
    with ballast.open("ab", buffering=0) as file:
        for size in (65536, 4096, 1):
            with suppress(OSError):  # EDQUOT
                while True:
                    file.write(b"x" * size)
                    os.fsync(file.fileno())
    with pytest.raises(OSError, match="quota"):
        (state.parent / "more").write_bytes(b"x" * 4096)
    yield
    ballast.unlink()


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


FAULTS = {
    "full": full,
    "quota": over_quota,
    "read-only": read_only,
    "aborted": aborted,
    "broken": broken,
    "hung": hung,
}
DISKS = {"quota": "subvolume", "aborted": "ext4"}
SPANS = [
    pytest.param((16, 4, 12), id="8 passes"),
    pytest.param(
        (120, 10, 110), id="100 passes", marks=[pytest.mark.nightly, pytest.mark.timeout(900)]
    ),
]
"""Passes of the story, and between which of them the state fails."""


def play(kind: str, way: str, state: Path, span: tuple[int, int, int]) -> Teller:
    passes, begin, end = span
    told = story(passes)
    teller = Teller(str(state), patience=3.0 if way == "service" else 20.0)
    lives = [told[:end], told[end:]] if kind == "aborted" else [told]
    with ExitStack() as stack:

        def before(number: int) -> None:
            if number == begin:
                teller.patience = 0.15 if kind == "hung" else 20.0  # each pass waits so long
                stack.enter_context(FAULTS[kind](state))
            if number == end:
                mended()

        def mended() -> None:
            stack.close()
            teller.patience = 20.0
            teller.try_again()

        getattr(teller, way)(lives[0], before)
        for life in lives[1:]:
            mended()
            getattr(teller, way)(life)
    return teller


def judge(what: str, teller: Teller, wanted: list[Said]) -> None:
    """As without the fault, word for word and id for id; and the fault itself is told."""
    print(row(what, teller.said, wanted))
    assert teller.said == wanted
    assert [reason for reason, _ in teller.own] == ["firing", "resolved"], teller.own


@pytest.mark.parametrize("span", SPANS)
@pytest.mark.parametrize("way", ["ticks", "service"])
@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.long
def test_told_once(
    request: pytest.FixtureRequest,
    as_root: None,
    tmp_path: Path,
    kind: str,
    way: str,
    span: tuple[int, int, int],
) -> None:
    """Each alert and each end, while the state fails for real and after."""
    if (kind, way) in (("read-only", "service"), ("aborted", "ticks")):
        pytest.skip("the kernel remounts nothing that is open for writing; an error does")
    disk: Disk = request.getfixturevalue(DISKS.get(kind, "disk"))
    teller = play(kind, way, disk.state, span)
    judge(f"{kind}, {way}", teller, reference(tmp_path / "reference", story(span[0])))


@pytest.mark.parametrize("span", SPANS)
@pytest.mark.parametrize("way", ["ticks", "service"])
def test_a_server_that_is_away(
    postgres: Postgres, postgres_url: str, tmp_path: Path, way: str, span: tuple[int, int, int]
) -> None:
    """Who was alone for a day goes on as alone, and nothing is told twice when it is back."""
    passes, begin, end = span
    told, teller = story(passes), Teller(postgres_url)

    def before(number: int) -> None:
        if number == begin:
            postgres.stop()
        if number == end:
            postgres.start()
            teller.try_again()

    getattr(teller, way)(told, before)
    judge(f"PostgreSQL away, {way}", teller, reference(tmp_path / "reference", told))


@pytest.mark.parametrize("leads", [False, True], ids=["stands by", "leads again"])
def test_what_one_told_alone_another_ends(
    postgres: Postgres,
    postgres_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    leads: bool,
) -> None:
    """A leader tells two troubles from its journal and loses its lease. By then one is over, and
    of the other there is a second episode: each has its end, under its own id."""
    one, other = Teller(postgres_url), Teller(postgres_url)
    fine = dict.fromkeys(one.checks, Status.OK)
    again = {**fine, "never": Status.CRITICAL}
    bad = {**again, "at-once": Status.CRITICAL}
    here, there = tmp_path / "here", tmp_path / "there"
    for host in (here, there):
        host.mkdir()

    def comes_back(number: int) -> None:
        """The first host, while the other leads or before the next pass."""
        if number != 2:
            return
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(here))
        back = open_store(postgres_url, other.clock.now()).store
        with nullcontext() if leads else pytest.raises(StoreBusy):
            back.take_lead("here", other.clock.now())
        back.close()
        assert leads or not list(here.rglob("journal-*"))  # who leads casts a copy of its own
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(there))

    monkeypatch.setenv("XDG_RUNTIME_DIR", str(here))
    one.service([fine, bad, bad], lambda n: postgres.stop() if n == 1 else None)
    postgres.start()
    let_go(postgres_url)
    assert len(list(here.rglob("journal-*"))) >= 1
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(there))
    other.clock.advance(20)
    (other.ticks if leads else other.service)([fine, again, again, fine], comes_back)
    told = [(n.check, n.reason, n.alert) for n in [*one.book.got, *other.book.got]]
    (first,) = (a for c, r, a in told if (c, r) == ("at-once", "firing"))
    began, second = (a for c, r, a in told if (c, r) == ("never", "firing"))
    assert began != second
    assert sorted(t for t in told if t[0] != housekeeping.SELF_CHECK_NAME) == sorted(
        [
            ("at-once", "firing", first),
            ("at-once", "resolved", first),
            ("never", "firing", began),
            ("never", "firing", second),
            ("never", "gone", began),
            ("never", "resolved", second),
        ]
    )


def test_an_end_that_one_could_not_tell_another_tells(
    postgres: Postgres, postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leader tells a trouble from its journal, sees its end and loses its lease before it can
    say so."""
    one, other = Teller(postgres_url), Teller(postgres_url)
    fine = dict.fromkeys(one.checks, Status.OK)
    bad = {**fine, "never": Status.CRITICAL}
    here, there = tmp_path / "here", tmp_path / "there"
    for host in (here, there):
        host.mkdir()

    def cut_off(number: int) -> None:
        if number == 1:
            postgres.stop()
        one.book.error = ChannelError("relay is down") if number == 2 else None

    def comes_back(number: int) -> None:
        if number == 2:
            monkeypatch.setenv("XDG_RUNTIME_DIR", str(here))
            back = open_store(postgres_url, other.clock.now()).store
            with pytest.raises(StoreBusy):
                back.take_lead("here", other.clock.now())
            back.close()
            monkeypatch.setenv("XDG_RUNTIME_DIR", str(there))

    monkeypatch.setenv("XDG_RUNTIME_DIR", str(here))
    one.service([fine, bad, fine], cut_off)
    (began,) = (n for n in one.book.got if n.check == "never")
    postgres.start()
    let_go(postgres_url)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(there))
    other.clock.advance(20)
    other.service([fine] * 4, comes_back)
    (ended,) = (n for n in other.book.got if n.check == "never")
    assert [began.reason, ended.reason] == ["firing", "resolved"]
    assert began.alert == ended.alert


@pytest.mark.parametrize("hosts", [1, 4])
def test_hosts_without_a_shared_place(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hosts: int
) -> None:
    """Of a chain whose state is read-only: one host tells once; several repeat it once an hour at
    most, under one id, and so its end. The first to find it tells it at once."""
    teller = Teller(str(disk.state))
    teller.spacing = 600
    fine = dict.fromkeys(teller.checks, Status.OK)
    bad = {**fine, "never": Status.CRITICAL}
    heard: list[tuple[str, int]] = []
    with ExitStack() as stack:

        def before(number: int) -> None:
            got = [n for n in teller.book.got if n.check == "never"]
            heard.extend((n.reason, number - 1) for n in got[len(heard) :])
            host = tmp_path / f"host-{number % hosts}"
            host.mkdir(exist_ok=True)
            monkeypatch.setenv("XDG_RUNTIME_DIR", str(host))
            if number == 1:
                stack.enter_context(read_only(disk.state))

        teller.ticks([fine, *[bad] * 19, *[fine] * 13], before)
    assert len({n.alert for n in teller.book.got if n.check == "never"}) == 1
    told, ends = ([at for why, at in heard if why == reason] for reason in ("firing", "resolved"))
    assert (told, ends) == (([1], [20]) if hosts == 1 else ([1, 6, 12], [24, 30]))


def let_go(url: str) -> None:
    """As when the time of its lease is over."""
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE leader SET expires = 0")


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(2, 30))]
)
def test_kills(disk: Disk, tmp_path: Path, seed: int) -> None:
    """Each pass is killed somewhere and made once more. What was told may be repeated, under the
    same id; no alert and no end is lost."""
    chance = random.Random(seed)
    told, teller = story(16, seed), Teller(str(disk.state))
    kind = chance.choice(["full", "read-only", "broken"])
    with ExitStack() as stack:

        def before(number: int) -> None:
            if number == 4:
                stack.enter_context(FAULTS[kind](disk.state))
            if number == 12:
                stack.close()

        after = [chance.uniform(0.005, 0.12) for _ in told]
        teller.killed(told, after, before, tmp_path / "book")
    wanted = reference(tmp_path / "reference", told)
    assert sorted(set(teller.said)) == wanted
