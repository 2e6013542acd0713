"""What an ordinary user leaves in a folder of all that root cleans and adds up."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from pathlib import Path

from tests.hostile.stage import Outcome, Stage
from tests.lab.fuse import Fuse

STEPS = range(100, 1000, 100)
LEVELS = 8000
RENAME = """
import os, sys
os.chdir(sys.argv[1])
try:
    os.rename("data", "step0")
    os.rename("step900", "step1")
    for number in range(400, 900, 100):
        os.rename(f"step{number}", "aside")
        os.rename("aside", f"step{number}")
except PermissionError:
    pass  # the sticky bit
"""
DIG = """
import os, sys
os.chdir(sys.argv[1])
for _ in range(int(sys.argv[2])):
    os.mkdir("d")
    os.chdir("d")
"""
REMOVE = """
import subprocess, sys
from sentinel.clean.child import program_argv
from sentinel.clean.rules import RetentionRules
rules = RetentionRules(r"step(\\d+)", older_than=1.0, complete="weights").rules_text()
sys.exit(subprocess.run(program_argv(sys.argv[1], sys.argv[2], rules, sys.argv[3:] or None)).returncode)
"""


HOLD_LOCKS = """
import fcntl, os, sys, time
held = []
for folder, _, files in os.walk(sys.argv[1]):
    for name in (".", *files):
        try:
            held.append(os.open(os.path.join(folder, name), os.O_RDONLY))
            fcntl.flock(held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            pass
print(len(held), flush=True)
time.sleep(300)
"""
LINK = """
import os, sys
for name in sys.argv[3:]:
    os.symlink(f"{sys.argv[2]}/{os.path.basename(name)}", os.path.join(sys.argv[1], name))
"""


def link_where_root_writes(stage: Stage) -> Outcome:
    """Links of hers wait under the names that root writes: in the base of a cron directory that her group may
    write, in a state and in the folder of a `file` channel that everybody may."""
    kept = stage.folder / "of-root-alone"
    kept.mkdir(0o700)
    places = {
        "base": (".sentinel", "log"),
        "open-state": ("sentinel.db", "lock", "journal"),
        "books": ("book",),
    }
    for name, links in places.items():
        place = _make_folder(stage, name, 0o775 if name == "base" else 0o777)
        os.chown(place, -1, stage.mallory.gid)
        stage.python_as(stage.mallory, LINK, place, kept, *links).wait(30)
    script = stage.folder / "base" / "cron.hourly" / "x.slurm"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\nexit 0\n")
    config = stage.folder / "links.yaml"
    config.write_text(
        f"state: {stage.folder}/open-state\nchecks: {{disk: {{kind: fs, paths: [/]}}}}\n"
        f"channels: {{book: {{kind: file, path: {stage.folder}/books/book}}}}\n"
    )
    done = [
        _run(stage, [sys.executable, "-m", "sentinel", *words])
        for words in (["cron", "run", "--base", str(stage.folder / "base")],
                      ["tick", "-c", str(config)], ["notify", "test", "-c", str(config)])
    ]  # fmt: skip
    harm = [f"root wrote {path.name} where her link leads" for path in kept.iterdir()]
    told = [one.stdout + one.stderr for one in done]
    harm += [f"nobody is told: {text[-200:]}" for text in told if str(stage.folder) not in text]
    return Outcome(sum(map(len, places.values())), harm)


def hold_locks(stage: Stage) -> Outcome:
    """Mallory holds the lock of each folder that she may open below a base of root's, for ever."""
    base = stage.folder / "locked"
    script = base / "cron.hourly" / "x.slurm"
    script.parent.mkdir(parents=True)
    script.write_text("#!/bin/sh\nexit 0\n")
    argv = [sys.executable, "-m", "sentinel", "cron", "run", "--base", str(base)]
    _run(stage, argv)
    holder = stage.python_as(stage.mallory, HOLD_LOCKS, base)
    assert holder.stdout
    held = int(holder.stdout.readline())
    done = _run(stage, argv)
    holder.kill()
    stopped = "another pass" in done.stdout + done.stderr or done.returncode
    return Outcome(held, [f"nothing is run: {done.stdout[-200:]}"] if stopped else [])


def rename_what_root_cleans(stage: Stage) -> Outcome:
    """Data of alice's gets the name of an old step, and her newest step an old number; a mount whose
    server has ended lies beside them. Root removes what its rules say, in a folder of all and in one
    with the sticky bit."""
    harm = []
    for mode in (0o777, 0o1777):
        root = _make_folder(stage, f"steps-{mode:o}", mode)
        for name in ("data", *(f"step{number}" for number in STEPS)):
            (root / name).mkdir()
            (root / name / "weights").write_bytes(b"w" * 10_000)
            for path in (root / name, root / name / "weights"):
                os.chown(path, stage.alice.uid, stage.alice.gid)
        stage.python_as(stage.mallory, RENAME, root).wait(30)
        time.sleep(1.5)  # the rules remove what is older than a second
        done = _clean(stage, "remove", root, *sorted(p.name for p in root.iterdir()))
        kept = {p.name for p in root.iterdir()}
        if not kept & {"data", "step0"} or not kept & {"step1", "step900"}:
            harm.append(f"root removed what she had renamed: {done.stdout[:200]}")
    with Fuse(root / "step50", stage.mallory.uid) as mount:
        mount.fail(errno.ENOTCONN, "getattr", "lookup")
        done = [_clean(stage, "list", root)]
        mount.fail(0)
        mount.hold("getattr", "lookup", "opendir")
        done.append(_clean(stage, "list", root))
        waited = mount.withheld()
    harm += [f"nothing can be cleaned: {one.stderr[:200]}" for one in done if one.returncode]
    harm += ["a mount of hers was looked at"] if waited else []
    return Outcome(4, harm)


def dig_where_root_adds_up(stage: Stage) -> Outcome:
    """A folder of 8,000 levels in a tree that `du` walks."""
    root = _make_folder(stage, "tree", 0o1777)
    (root / "alice").write_bytes(b"a" * 5000)
    stage.python_as(stage.mallory, DIG, root, LEVELS).wait(60)
    words = ("check", "du", "--path", str(root), "--size", "1TB", "--timeout", "30s")
    argv = [sys.executable, "-m", "sentinel", *words]
    done = _run(stage, argv)
    subprocess.run(["rm", "-rf", str(root)], check=False)
    told = done.returncode in (0, 1) and "at least" in done.stdout
    return Outcome(LEVELS, [] if told else [f"du knows nothing of the tree: {done.stdout[:300]}"])


def _make_folder(stage: Stage, name: str, mode: int) -> Path:
    root = stage.folder / name
    root.mkdir()
    root.chmod(mode)
    return root


def _clean(stage: Stage, mode: str, root: Path, *names: str) -> subprocess.CompletedProcess[str]:
    return _run(stage, [sys.executable, "-c", REMOVE, mode, str(root), *names])


def _run(stage: Stage, argv: list[str]) -> subprocess.CompletedProcess[str]:
    """In a folder of its own, so that `--against` decides which sentinel it is."""
    env = {**os.environ, **stage.env}
    return subprocess.run(
        argv, env=env, cwd=stage.folder, capture_output=True, text=True, errors="replace",
        timeout=120, check=False,
    )  # fmt: skip
