"""Rules of the fast du: the very numbers of GNU du, on trees made to be counted wrong."""

import errno
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from sentinel.proc import remember_process, still_stuck
from tests.lab.fuse import Fuse
from tests.lab.waiting import wait_until

START = "import sys; sys.path.insert(0, sys.argv.pop(1)); from sentinel.checks.du.walk.program import main; main()"
REPOSITORY = str(Path(__file__).parents[3])
FLAT = 100_000
ORDER = {"within": 10, "threads": 1, "processes": 1, "calls": 0, "top": 1}


def walked(path: Path, *prefix: str, **more: Any) -> dict[str, Any]:
    """What the program says, in its own process."""
    order = {"path": str(path), "within": 60, "threads": 16, "processes": 2, "calls": 0, "top": 10}
    argv = [sys.executable, "-I", "-S", "-c", START, REPOSITORY, json.dumps({**order, **more})]
    done = subprocess.run([*prefix, *argv], capture_output=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def gnu(path: Path, *options: str) -> dict[str, int]:
    """Every directory and its number."""
    argv = ["du", "-x", "-0", *options, "--", str(path)]
    done = subprocess.run(argv, capture_output=True, check=False, env={**os.environ, "LC_ALL": "C"})
    rows = done.stdout.decode("utf-8", "backslashreplace").split("\0")
    return {row.partition("\t")[2]: int(row.partition("\t")[0]) for row in rows if row}


def sizes(path: Path) -> int:
    """Bytes of regular files and links, each inode once: by find(1), which has no part in either."""
    argv = ["find", str(path), "-xdev", "(", "-type", "f", "-o", "-type", "l", ")"]
    done = subprocess.run([*argv, "-printf", "%i %s\n"], capture_output=True, check=False)
    return sum({row.split()[0]: int(row.split()[1]) for row in done.stdout.splitlines()}.values())


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory, as_root: None) -> Path:
    """Hard links, sparse files, names in no encoding, links, a hundred thousand files in one."""
    root = tmp_path_factory.mktemp("tree")
    for number in range(60):
        folder = root / f"d{number % 7}" / f"e{number}"
        folder.mkdir(parents=True)
        (folder / "data").write_bytes(b"x" * 1000 * number)
        os.link(folder / "data", folder / "same")
    with open(root / "sparse", "wb") as file:
        file.truncate(1 << 40)
        file.write(b"x" * 8192)
    os.mkdir(os.fsencode(root) + b"/n\xe4me \n\x1b")
    (root / os.fsdecode(b"n\xe4me \n\x1b") / os.fsdecode(b"\xff\xfe")).write_bytes(b"y" * 5000)
    (root / "out").symlink_to("/usr")
    (root / "d0" / "loop").symlink_to(root)
    os.mkfifo(root / "pipe")
    os.chown(root / "d1" / "e1" / "data", 4242, 4242)
    flat = root / "flat"
    flat.mkdir()
    at = os.open(flat, os.O_RDONLY)
    for number in range(FLAT):
        os.close(os.open(f"f{number}", os.O_CREAT | os.O_WRONLY, dir_fd=at))
    os.close(at)
    return root


@pytest.mark.long
@pytest.mark.parametrize("processes", [1, 2, 4])
def test_every_directory_is_what_gnu_du_says(tree: Path, processes: int) -> None:
    """Bytes on disk and entries of each subtree, whoever walked it."""
    told = walked(tree, processes=processes, all=True)
    assert {p: r["allocated"] for p, r in told["dirs"].items()} == gnu(tree, "-B1")
    assert {p: r["entries"] for p, r in told["dirs"].items()} == gnu(tree, "--inodes")
    assert told["apparent"] == sizes(tree)
    assert (told["complete"], told["unread"]) == (True, 0)
    owners = {uid: row["entries"] for uid, row in told["owners"].items()}
    assert owners["4242"] == 1
    assert sum(owners.values()) == told["entries"]


def test_threads_count_the_same(tree: Path) -> None:
    """As where a file system is slow: every call waits there for others to be made."""
    told = walked(tree, all=True, slow=True)
    assert {p: r["allocated"] for p, r in told["dirs"].items()} == gnu(tree, "-B1")
    assert {p: r["entries"] for p, r in told["dirs"].items()} == gnu(tree, "--inodes")
    assert told["apparent"] == sizes(tree)


def test_a_file_of_many_names_counts_once_in_the_first_directory(tmp_path: Path) -> None:
    """By name, in whatever order they are met: two looks give the same numbers."""
    for folder in ("a", "b", "c"):
        (tmp_path / folder).mkdir()
    (tmp_path / "c" / "x").write_bytes(b"x" * 100_000)
    os.link(tmp_path / "c" / "x", tmp_path / "b" / "x")
    os.link(tmp_path / "c" / "x", tmp_path / "a" / "x")
    told = walked(tmp_path, all=True)["dirs"]
    assert [told[str(tmp_path / f)]["entries"] for f in "abc"] == [2, 1, 1]
    assert told[str(tmp_path)]["entries"] == 5


def test_the_largest_are_those_that_say_something(tmp_path: Path) -> None:
    """Not the four directories above the one that holds it all."""
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    (deep / "big").write_bytes(b"x" * 5_000_000)
    (tmp_path / "z").mkdir()
    (tmp_path / "z" / "small").write_bytes(b"x" * 500_000)
    told = walked(tmp_path, top=2)
    assert list(told["dirs"]) == [str(deep), str(tmp_path / "z")]


@pytest.mark.root
def test_it_stays_on_one_file_system(tmp_path: Path) -> None:
    """A mount below is neither counted nor entered."""
    inside = tmp_path / "mounted"
    inside.mkdir()
    with tmpfs(inside):
        (inside / "ballast").write_bytes(b"x" * 100_000)
        told = walked(tmp_path, all=True)
    assert list(told["dirs"]) == [str(tmp_path)]
    assert told["entries"] == 1


@pytest.mark.root
@pytest.mark.parametrize("more", [{"processes": 1}, {"slow": True}])
def test_a_mount_below_that_hangs_holds_nothing_up(tmp_path: Path, more: dict[str, Any]) -> None:
    """It is another file system: it is not even looked at, whatever its name."""
    (tmp_path / "x").write_bytes(b"x" * 5000)
    with Fuse(tmp_path / "a name\\ n\u00e4me") as fuse:
        fuse.hold("getattr", "lookup", "opendir")
        told = walked(tmp_path, within=10, **more)
        fuse.release()
    assert (told["complete"], told["unread"], told["apparent"]) == (True, 0, 5000)


def test_what_vanishes_meanwhile_weighs_nothing(tmp_path: Path) -> None:
    """It is not something that could not be read."""
    for number in range(3):
        (tmp_path / f"d{number}").mkdir()
        (tmp_path / f"d{number}" / "x").write_bytes(b"x" * 1000)
    program = (
        "import os, shutil, sys\n"
        "moves = [1]\n"
        "def hook(name, args):\n"
        "    if name == 'open' and str(args[0]).endswith(\"d1'\") and moves:\n"
        "        moves.pop(), shutil.rmtree(args[0])\n"
        "from sentinel.checks.du.walk.program import main; sys.addaudithook(hook); main()"
    )
    order = json.dumps({**ORDER, "path": str(tmp_path)})
    done = subprocess.run(
        [sys.executable, "-c", program, order], capture_output=True, check=True, timeout=60
    )
    told = json.loads(done.stdout)
    assert (told["unread"], told["complete"], told["apparent"]) == (0, True, 2000)


def test_a_walk_that_is_ended_is_no_hang(tmp_path: Path) -> None:
    """Want of memory, for one: nothing is left behind, and nothing is known."""
    program = (
        "import os, sys\n"
        "def hook(name, args):\n"
        "    if name == 'os.scandir': os.kill(os.getpid(), 9)\n"
        "from sentinel.checks.du.walk.program import main; sys.addaudithook(hook); main()"
    )
    order = json.dumps({**ORDER, "path": str(tmp_path)})
    done = subprocess.run(
        [sys.executable, "-c", program, order], capture_output=True, check=False, text=True
    )
    assert (done.returncode, done.stderr) == (1, "it ended without an answer\n")


@pytest.mark.root
def test_what_may_not_be_read_is_told(tmp_path: Path) -> None:
    """And the rest is counted."""
    for folder in (tmp_path, *tmp_path.parents[:-2]):
        folder.chmod(0o755)
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "x").write_bytes(b"x" * 5000)
    (tmp_path / "shut").mkdir(mode=0o700)
    told = walked(tmp_path, "setpriv", "--reuid=65534", "--clear-groups", "--regid=65534")
    assert told["unread"] == 1
    assert told["errors"] == {str(tmp_path / "shut"): "Permission denied"}
    assert told["apparent"] == 5000


def test_a_path_longer_than_the_kernel_takes(tmp_path: Path) -> None:
    """It is walked step by step."""
    at = os.open(tmp_path, os.O_RDONLY)
    for _ in range(30):
        os.mkdir("n" * 200, dir_fd=at)
        below = os.open("n" * 200, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(os.open("end", os.O_CREAT | os.O_WRONLY, dir_fd=at))
    os.close(at)
    told = walked(tmp_path)
    assert (told["entries"], told["unread"]) == (32, 0)
    subprocess.run(["rm", "-rf", str(tmp_path / ("n" * 200))], check=True)


def test_a_folder_that_is_too_deep_costs_the_rest_nothing(tmp_path: Path) -> None:
    """Anybody makes 8,000 levels in a second. Their sums took more than a minute, and there was no
    answer for the whole tree; 300 levels are counted."""
    (tmp_path / "alice").mkdir()
    (tmp_path / "alice" / "x").write_bytes(b"x" * 5000)
    for name, levels in (("usual", 300), ("deep", 1000)):
        (tmp_path / name).mkdir()
        at = os.open(tmp_path / name, os.O_RDONLY)
        for _ in range(levels):
            os.mkdir("d", dir_fd=at)
            below = os.open("d", os.O_RDONLY, dir_fd=at)
            os.close(at)
            at = below
        os.close(at)
    told = walked(tmp_path, within=20)
    subprocess.run(["rm", "-rf", str(tmp_path / "deep")], check=True)
    assert (told["apparent"], told["complete"], told["unread"], told["deep"]) == (5000, True, 0, 1)
    assert told["entries"] == 5 + 300 + 399
    ((path, why),) = told["errors"].items()
    assert (path.startswith(f"{tmp_path}/deep/d/d/"), why) == (True, "it is too deep")


def test_a_partial_answer_says_so(tree: Path) -> None:
    """Half of it in the time there was is at least that much."""
    told = walked(tree, within=0.3, calls=20_000, processes=1)
    assert not told["complete"]
    assert 0 < told["entries"] < FLAT


def test_calls_a_second_are_capped(tmp_path: Path) -> None:
    """However many threads there are: at a thousand a second a second is not enough for these."""
    for number in range(3000):
        (tmp_path / str(number)).touch()
    told = walked(tmp_path, calls=1000, within=1.0, processes=1)
    assert told["entries"] <= 1000 * 1.0 + 2 * 512 + 10
    many = walked(tmp_path, calls=1000, within=1.0, slow=True, threads=64)
    assert many["entries"] <= 1000 * 1.0 + 64 + 10


def test_a_directory_that_hangs_leaves_the_rest(fuse: Fuse) -> None:
    """What is known is told as partial, and the process that is left behind is named."""
    fuse.hold("lookup")
    told = walked(fuse.point, within=0.5, slow=True)
    assert not told["complete"]
    assert told["entries"] == 1
    behind = remember_process(told["stuck"])
    assert still_stuck(behind)
    fuse.release()
    wait_until(lambda: not still_stuck(behind), lambda: "it did not go when it could")


def test_a_root_that_hangs_is_no_answer(fuse: Fuse) -> None:
    """The program ends in time all the same."""
    fuse.hold("getattr", "opendir")
    order = json.dumps(ORDER | {"path": str(fuse.point), "within": 0.3})
    argv = [sys.executable, "-I", "-S", "-c", START, REPOSITORY, order]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=10)
    assert done.returncode == 3
    assert still_stuck(remember_process(int(done.stdout)))
    fuse.release()


def test_a_folder_swapped_for_a_link_is_not_followed(tmp_path: Path) -> None:
    """What is opened has to be what was listed: a walker that is told another identity refuses."""
    from sentinel.checks.du.walk.sums import CallPace, WalkOrder
    from sentinel.checks.du.walk.walk import TreeWalker

    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("/etc")
    order = WalkOrder(json.dumps(ORDER | {"path": str(tmp_path)}))
    walker = TreeWalker(
        order, tmp_path.stat().st_dev, CallPace(0, order.deadline), lambda unit: None, {}
    )
    found = (tmp_path / "real").stat()
    link, real = os.fsencode(tmp_path / "link"), os.fsencode(tmp_path / "real")
    assert walker.list_names((link, found.st_dev, found.st_ino)) == []
    assert walker.list_names((real, found.st_dev, found.st_ino + 1)) == []
    assert list(walker.sums.errors) == [link, real]
    assert walker.sums.errors[real] == "was replaced while it was walked"


def test_a_listing_without_end_takes_no_memory(fuse: Fuse) -> None:
    """A user's own file system can list names as fast as they are read."""
    fuse.list_without_end()
    told = walked(fuse.point, "prlimit", "--as=120000000", within=5, threads=1, processes=1)
    assert (told["complete"], told["entries"]) == (False, 1)
    assert told["calls"] > 1000


def test_of_a_listing_without_end_names_are_kept_up_to_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sentinel.checks.du.walk import walk
    from sentinel.checks.du.walk.sums import CallPace, WalkOrder

    monkeypatch.setattr(walk, "MAX_NAMES", 1000)
    for within, least, left in ((60, 1000, 1), (-1, 1, 1)):
        order = WalkOrder(json.dumps(ORDER | {"path": str(tmp_path), "within": within}))
        walker = walk.TreeWalker(order, 0, CallPace(0, order.deadline), lambda unit: None, {})
        assert least <= len(walker.take_names(map(str, itertools.count()))) < 2000
        assert walker.sums.left == left
        assert walker.take_names(iter(["a"])) == ["a"]


def test_a_root_that_is_gone_is_an_error(tmp_path: Path) -> None:
    """One line, no trace."""
    order = json.dumps(ORDER | {"path": str(tmp_path / "none")})
    argv = [sys.executable, "-I", "-S", "-c", START, REPOSITORY, order]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "No such file or directory\n")


@contextmanager
def tmpfs(point: Path) -> Iterator[None]:
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(point)], check=True)
    try:
        yield
    finally:
        with suppress(OSError):
            subprocess.run(["umount", "--lazy", str(point)], check=False)


def test_a_tree_that_is_stale_is_no_empty_one(fuse: Fuse) -> None:
    """A root that answers ESTALE is an error in its words; a part of it is counted as not read."""
    names = os.listdir(fuse.point)
    fuse.fail(errno.ESTALE, "lookup")
    part = walked(fuse.point)
    assert (part["unread"], {*part["errors"].values()}) == (len(names), {"Stale file handle"})
    fuse.fail(errno.ESTALE, "getattr", "lookup", "opendir")
    order = {"path": str(fuse.point), "within": 10, "threads": 4, "processes": 1, "calls": 0}
    argv = [sys.executable, "-I", "-S", "-c", START, REPOSITORY, json.dumps({**order, "top": 1})]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode == 0, done.stdout) == (False, "")
    assert "Stale file handle" in done.stderr
