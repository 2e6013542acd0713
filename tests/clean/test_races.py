"""Somebody changes the tree between a look and a change: what nobody looked at never goes.

The other side moves in an audit hook (PEP 578), called right before the very system call.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sentinel.clean.gone_marks import GONE_PREFIX, LOOKED
from sentinel.clean.tree import MAX_DEPTH
from tests.clean.world import names, renewed, treasure

PROGRAM = """
import json, os, shutil, sys, time
from sentinel.clean.removal_doubts import is_immutable
from sentinel.clean.rules import RetentionRules
from sentinel.clean.tree import CheckpointRoot, RemovalRefused, UnclearPointer
path, event, word, moves, act = sys.argv[1:]
moves = json.loads(moves)
def hook(name, args):
    if moves and name == event and word in str(args[0]):
        exec(moves.pop(0))
os.chdir(path)
rules = RetentionRules(r"step(\\d+)", complete="weights")
root = CheckpointRoot(path)
victim = [e for e in root.find_steps(rules) if e.first_name == "step1"][0]
sys.addaudithook(hook)
try:
    print("said:", eval(act))
except (RemovalRefused, UnclearPointer, OSError) as error:
    print("failed:", error)
assert not moves, "the race was not run"
"""
REMOVE = "root.remove_step(victim, rules, time.monotonic() + 30)"
SWAP = "os.rename('step1', '../aside'); os.rename('../treasure', 'step1')"


def raced(root: Path, event: str, word: str, *moves: str, act: str = REMOVE) -> str:
    """What came of it when somebody made a move right before each such event."""
    renewed(root)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(root), event, word, json.dumps(moves), act],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert not done.returncode, done.stderr
    return done.stdout


def set_aside(root: Path) -> list[str]:
    return [n for n in names(root) if n.startswith((GONE_PREFIX, LOOKED))]


def test_what_was_put_in_its_place_is_put_back(root: Path) -> None:
    """Another directory of that name, right before it is renamed."""
    assert "was replaced meanwhile" in raced(root, "os.rename", "step1", SWAP)
    assert (root / "step1" / "gold").read_text() == "gold"
    assert set_aside(root) == []


@pytest.mark.parametrize("kind", ["link", "file"])
def test_a_link_or_a_file_in_its_place_is_put_back(root: Path, kind: str) -> None:
    """And what it names is not touched."""
    make = "os.symlink('../treasure', " if kind == "link" else "os.link('../treasure/gold', "
    move = f"os.rename('step1', '../aside'); {make}'step1')"
    assert "was replaced meanwhile" in raced(root, "os.rename", "step1", move)
    assert (root / "step1").is_symlink() is (kind == "link")
    assert treasure(root) == "gold"
    assert set_aside(root) == []


@pytest.mark.parametrize(
    "taken", ["os.mkdir('step1'); open('step1/x', 'w')", "open('step1', 'w').write('x')"]
)
@pytest.mark.parametrize(
    ("swap", "event"),
    [
        (SWAP, "os.rename"),
        (f"{SWAP.split(';')[0]}; os.rename('../treasure/gold', 'step1')", "os.link"),
    ],
    ids=["directory", "file"],
)
def test_what_cannot_be_put_back_is_left_and_named(
    root: Path, taken: str, swap: str, event: str
) -> None:
    """Its place was taken again: neither is lost, and no later run ends what was not proven."""
    take = f"event, word = {event!r}, 'looked'; moves.append({taken!r})"
    said = raced(root, "os.rename", "step1", f"global event, word\n{swap}; {take}")
    (left,) = set_aside(root)
    assert left.startswith(LOOKED)
    assert left in said
    found = root / left
    assert (found / "gold" if found.is_dir() else found).read_text() == "gold"
    taken_by = root / "step1"
    assert (taken_by / "x").exists() or taken_by.read_text() == "x"


@pytest.mark.parametrize("kind", ["link", "directory"])
def test_a_directory_inside_that_is_swapped_is_not_entered(root: Path, kind: str) -> None:
    """Right before it is opened to be emptied; what stands there now stays."""
    make = "symlink" if kind == "link" else "rename"
    swap = (
        "os.chdir([n for n in os.listdir() if 'gone' in n][0]); "
        f"os.rename('inner', 'was'); os.{make}('../../treasure', 'inner')"
    )
    assert "failed" in raced(root, "open", "inner", "pass", swap)
    if kind == "link":
        assert treasure(root) == "gold"
    else:
        (left,) = set_aside(root)
        assert (root / left / "inner" / "gold").read_text() == "gold"


def test_a_directory_that_grows_too_deep_is_not_followed_to_its_end(root: Path) -> None:
    """Each level costs a descriptor: somebody else could use up all of them."""
    move = (
        "here = os.getcwd(); os.chdir('step1/inner')\n"
        f"for _ in range({MAX_DEPTH}): os.mkdir('d'); os.chdir('d')\n"
        "os.chdir(here)"
    )
    assert f"deeper than {MAX_DEPTH} levels" in raced(root, "os.rename", "step1", move)
    assert len(set_aside(root)) == 1


@pytest.mark.parametrize(("word", "left"), [("inner", True), ("step1", False)])
def test_what_vanishes_during_a_look_is_no_error(root: Path, word: str, left: bool) -> None:
    """A run removes its own old checkpoints all the time."""
    move = f"shutil.rmtree('step1{'/inner' if left else ''}')"
    look = "[e.first_name for e in root.find_steps(rules)]"
    said = raced(root, "open", word, move, act=look)
    assert ("step1" in said) is left
    assert "step5" in said


def test_all_may_vanish_during_a_look(root: Path) -> None:
    """The first directory when it is opened, the others before they are looked at."""
    look = "[e.first_name for e in root.find_steps(rules)]"
    move = "[shutil.rmtree(name) for name in os.listdir()]"
    assert raced(root, "open", "step", move, act=look) == "said: []\n"


@pytest.mark.root
def test_a_file_that_is_unlocked_during_a_look_is_not_called_immutable(root: Path) -> None:
    weights = root / "step1" / "weights"
    if subprocess.run(["chattr", "+i", weights], capture_output=True, check=False).returncode:
        pytest.skip("the file system knows no immutable files")
    look = "is_immutable('step1/weights', root.fd)"
    try:
        assert raced(root, "open", "step1/weights", "pass", act=look) == "said: True\n"
        # A list does not ask, as that costs a call a file; the removal does, before anything is renamed.
        listed = raced(
            root, "open", "step1", "pass", act="[s.held for s in root.find_steps(rules)]"
        )
        assert "immutable" not in listed
        assert "immutable" in raced(root, "open", "step1", "pass")
        assert set_aside(root) == []
        unlocks = "os.system('chattr -i step1/weights')"
        assert raced(root, "open", "step1/weights", unlocks, act=look) == "said: False\n"
    finally:
        subprocess.run(["chattr", "-i", weights], check=True)
