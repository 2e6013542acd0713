"""What a job's user can do with links, pipes and devices to whoever reads its files as root: nothing
that the user may not read comes back, and nothing waits."""

import os
import pwd
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from sentinel.core.errors import CannotTell
from sentinel.user_files.files import UserFiles
from sentinel.user_files.session import shared_reader
from sentinel.user_files.whose import Whose
from tests.user_files.places import (
    ALICE,
    MALLORY,
    file_of,
    folder_of,
    shared_folder,
)

pytestmark = pytest.mark.root

USER = str(MALLORY)
EVERY_WAY = {
    "her job's output": Whose(user=USER, owned=True),
    "a path with symbols": Whose(user=USER),
    "a path written out, with her job": Whose(user=USER, literal=True),
    "a path written out, without a job": Whose(literal=True),
}


class World:
    """Mallory's folder beside alice's private one and root's."""

    def __init__(self, folder: Path) -> None:
        self.mine = folder_of(MALLORY, folder / "mallory")
        self.alices = folder_of(ALICE, folder / "alice", 0o700)
        self.roots = folder_of(0, folder / "root", 0o700)
        self.own = file_of(MALLORY, self.mine / "own.log", "iteration 1\n")
        self.secrets = [
            file_of(ALICE, folder / "alice.log"),
            file_of(0, folder / "root.log"),
            file_of(ALICE, self.alices / "1", mode=0o644),
            file_of(0, self.roots / "1", mode=0o644),
        ]


@pytest.fixture
def world() -> Iterator[World]:
    with shared_folder() as folder, shared_reader():
        yield World(folder)


def everything(path: str, whose: Whose) -> str:
    """All that can be asked about a path, as one text; errors too, for they are shown to people."""
    files = UserFiles(5.0, 60.0, {})
    folder = os.path.dirname(path)
    asked: list[Callable[[], object]] = [
        lambda: files.read_tail(path, 99, whose),
        lambda: files.read_file(path, 0, 99, whose)[1],
        lambda: files.find_newest(path + "*", whose),
        lambda: files.read_tail(files.find_newest(f"{path}*", whose) or path, 99, whose),
        lambda: files.list_entries(path, whose, 10),
        lambda: files.list_entries(folder, whose, 100) and "",
        lambda: files.sum_sizes(path, whose) and "",
    ]
    said = []
    for ask in asked:
        try:
            said.append(str(ask()))
        except CannotTell as error:
            said.append(str(error))
    return "\n".join(said)


def forms(world: World) -> dict[str, Callable[[Path], object]]:
    """What the path may be, each made anew at the place that is given."""
    secret, private = world.secrets[0], world.secrets[2]
    chain = world.mine / "chain"
    chain.symlink_to(secret)
    inside = world.mine / "inside"
    inside.symlink_to(world.alices)
    long = world.mine / "long0"
    long.symlink_to(secret)
    for number in range(1, 45):
        (world.mine / f"long{number}").symlink_to(world.mine / f"long{number - 1}")

    def link(target: object) -> Callable[[Path], object]:
        return lambda at: at.symlink_to(str(target))

    made = {str(t): link(t) for t in world.secrets}
    made |= {f"/proc/{who}/{what}": link(f"/proc/{who}/{what}")
             for who in ("self", "1", str(os.getpid()), "thread-self")
             for what in ("environ", "mem", "fd/0", "fd/3", "maps", "cmdline")}  # fmt: skip
    made |= {
        "relative": link(f"../{secret.name}"),
        "chain": link(chain),
        "41 links": link(world.mine / "long44"),
        "by a folder": link(f"{inside}/1"),
        "by a folder and back": link(f"{inside}/../{secret.name}"),
        "folder": link(world.alices),
        "root's folder": link(world.roots),
        "by cwd": link(f"/proc/self/cwd/../..{secret}"),
        "by cwd of a private folder": link("/proc/self/cwd/1"),
        "by root": link(f"/proc/self/root{secret}"),
        "itself": lambda at: at.symlink_to(at),
        "nowhere": link(world.mine / "nowhere"),
        "empty name": link(f"{secret}/"),
        "zero": link("/dev/zero"),
        "full": link("/dev/full"),
        "tty": link("/dev/tty"),
        "stdin": link("/dev/stdin"),
        "kmsg": link("/dev/kmsg"),
        "shadow": link("/etc/shadow"),
        "fifo": os.mkfifo,
        "socket": _socket,
        "hard link": lambda at: os.link(secret, at),
        "hard link to root's": lambda at: os.link(world.secrets[1], at),
        "private": link(private),
    }
    return made


def _socket(at: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(at))


def test_no_form_of_a_link_shows_what_its_maker_may_not_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forty forms and more, four ways to name them; sentinel itself stands in root's private folder."""
    monkeypatch.setenv("SENTINEL_TEST_TOKEN", "s3cret in the environment")
    monkeypatch.chdir(world.roots)
    made = forms(world)
    assert len(made) >= 40
    began = time.monotonic()
    path = world.mine / "out.log"
    for what, make in made.items():
        path.unlink(missing_ok=True)
        make(path)
        os.chown(path, MALLORY, MALLORY, follow_symlinks=False) if path.is_symlink() else None
        for way, whose in EVERY_WAY.items():
            said = everything(str(path), whose)
            assert "s3cret" not in said, (what, way)
            assert "root:" not in said, (what, way)
    assert time.monotonic() - began < len(made) * 4


@contextmanager
def flipping(link: Path, targets: list[Path]) -> Iterator[list[int]]:
    """The link leads to each in turn, as fast as this process can; the list counts."""
    over, count, fresh = threading.Event(), [0], link.with_name(".fresh")

    def flip() -> None:
        while not over.is_set():
            for target in targets:
                fresh.symlink_to(target)
                fresh.replace(link)
                count[0] += 1

    thread = threading.Thread(target=flip, daemon=True)
    thread.start()
    try:
        yield count
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("way", EVERY_WAY)
def test_a_thousand_flips_of_a_link_show_nothing(world: World, way: str) -> None:
    """Between any look and any opening the link leads elsewhere: 1,000 times and more."""
    link, pipe = world.mine / "out.log", world.mine / "pipe"
    os.mkfifo(pipe)
    link.symlink_to(world.own)
    seen, looks, read = set[str](), 0, False
    began = time.monotonic()
    with flipping(link, [world.own, *world.secrets, pipe]) as count:
        while (count[0] < 1_000 or looks < 60 or not read) and time.monotonic() - began < 60:
            said = everything(str(link), EVERY_WAY[way])
            read, looks = read or "iteration 1" in said, looks + 1
            seen.add(said)
    assert count[0] >= 1_000
    assert looks >= 60
    assert not any("s3cret" in said for said in seen)
    assert read  # else nothing shows that these looks read anything


def test_a_folder_that_becomes_a_link_is_not_listed(world: World) -> None:
    """The flight recorder's place, or that of checkpoints: names are content too."""
    (world.alices / "private-name").touch()
    folder, away = world.mine / "dumps", world.mine / "away"
    folder_of(MALLORY, away)
    folder.symlink_to(away)
    with flipping(folder, [away, world.alices, world.roots]) as count:
        files, whose = UserFiles(5.0, 60.0, {}), Whose(user=USER)
        for _ in range(60):
            with suppress(CannotTell):
                assert files.list_entries(str(folder), whose, 10) == {}
            with suppress(CannotTell):
                assert files.find_newest(f"{folder}/*", whose) == ""
            with suppress(CannotTell):
                assert files.sum_sizes(str(folder), whose)[0] == 0
    assert count[0] > 100


@pytest.mark.parametrize("change", ["truncated", "replaced", "sparse"])
def test_a_file_that_changes_while_it_is_read_costs_no_more(world: World, change: str) -> None:
    """At most what was asked for comes back, and another file is named as such."""
    files, whose = UserFiles(5.0, 60.0, {}), Whose(user=USER, owned=True)
    found = files.file_status(str(world.own), whose)
    assert found
    if change == "replaced":
        file_of(MALLORY, world.mine / "new", "other\n").replace(world.own)
        with pytest.raises(CannotTell, match="another file took its place"):
            files.read_file(str(world.own), 0, 99, whose, found.inode)
        return
    os.truncate(world.own, 0 if change == "truncated" else 2**40)
    _, data = files.read_file(str(world.own), 0, 2**20, whose, found.inode)
    _, end = files.read_file(str(world.own), -1, 2**20, whose, found.inode)
    assert len(data) == len(end) == (0 if change == "truncated" else 2**20)


def test_groups_of_the_user_count(world: World) -> None:
    """A log that only a supplementary group of the user may read, as many clusters share them."""
    users = (row for row in pwd.getpwall() if row.pw_uid)
    member, group = next(
        ((row, gid) for row in users for gid in os.getgrouplist(row.pw_name, row.pw_gid)
         if gid not in (row.pw_gid, 0)), (None, 0))  # fmt: skip
    if member is None:
        pytest.skip("no user of this machine has a supplementary group")
    log = file_of(0, world.mine.parent / "group.log", "of the group\n", 0o640)
    os.chown(log, 0, group)
    files = UserFiles(5.0, 60.0, {})
    assert files.read_tail(str(log), 99, Whose(user=member.pw_name)) == "of the group\n"
    with pytest.raises(CannotTell, match=f"as {USER}: Permission denied"):
        files.read_tail(str(log), 99, Whose(user=USER))
