"""One version of Slurm, built from its public release into a folder of its own.

Nothing of the machine's Slurm is touched: it lies in the cache, and only the lab uses it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

PUBLIC = "https://github.com/SchedMD/slurm.git"
FLAGS = "CFLAGS=-O0 -g0 -pipe -fcommon"
OPTIONS = ("--disable-slurmrestd", "--disable-dependency-tracking", "--without-rpath", FLAGS)
"""What the lab asks needs no REST daemon; -fcommon: 20.11 links with no newer gcc otherwise."""

NEEDED = ("auth_munge.so", "accounting_storage_mysql.so")
"""Plugins that configure leaves out with a warning where a library is missing; the lab needs them."""

PACKAGES = "gcc make libmunge-dev libjson-c-dev libhttp-parser-dev libmariadb-dev"
"""Debian's, which configure looks for; without libmariadb-dev there is no accounting."""


class NotBuilt(Exception):
    """Which step failed, where its log is, and how the log ends."""


def cache() -> Path:
    """Where versions are kept: $XDG_CACHE_HOME/sentinel/slurm."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base, "sentinel/slurm").absolute()


def place(version: str) -> Path:
    """The folder with `bin` and `sbin` of a version such as 25.11; ValueError for other words."""
    if not re.fullmatch(r"\d\d\.\d\d", version):
        raise ValueError(f"{version!r} is no version of Slurm such as 25.11")
    return cache() / version


def newest_built() -> str:
    """The newest version that is in the cache; empty where none is."""
    found = sorted(path.name for path in cache().glob("[0-9][0-9].[0-9][0-9]"))
    return max(filter(built, found), default="")


def built(version: str) -> bool:
    """Whether it is whole; a build that was broken off goes on where it was."""
    return (place(version) / "bin/squeue").exists()


def build(version: str, sources: Path | None, git: str = PUBLIC) -> Path:
    """Its folder; built from the folder of sources, or from the newest release of the version that
    the git repository has, unless that was done before. NotBuilt."""
    home = place(version)
    if built(version):
        return home
    work = home.with_suffix(f"{home.suffix}.build")
    work.mkdir(parents=True, exist_ok=True)
    source, stage = work / "source", work / "stage"
    if not source.exists():
        _sources(version, sources, git, work, source)
    if not (source / "config.status").exists():
        home_options = [f"--prefix={home}", f"--sysconfdir={home}/etc"]
        _step(work, "configure", ["./configure", *home_options, *OPTIONS], source)
    # The flags once more: configure puts -g -O1 behind them, which takes twice as long.
    _step(work, "make", ["make", f"-j{os.cpu_count() or 1}", "-C", "src", FLAGS], source)
    shutil.rmtree(stage, ignore_errors=True)
    _step(work, "install", ["make", "-C", "src", FLAGS, f"DESTDIR={stage}", "install"], source)
    made = stage.joinpath(*home.parts[1:])
    if missing := [name for name in NEEDED if not (made / "lib/slurm" / name).exists()]:
        # Anew, once the library is there: configure has decided.
        (source / "config.status").unlink()
        raise NotBuilt(f"{' and '.join(missing)} not built; needs {PACKAGES}")
    made.rename(home)
    shutil.rmtree(work)
    return home


def newest(tags: Sequence[str], version: str) -> str | None:
    """The tag of its newest release: slurm-25-11-7-1, no candidate."""
    begin = "slurm-" + version.replace(".", "-")
    found = (re.fullmatch(rf"{begin}-(\d+)-(\d+)", tag) for tag in tags)
    releases = [match for match in found if match]
    return max(releases, key=lambda m: (int(m[1]), int(m[2])))[0] if releases else None


def _sources(version: str, sources: Path | None, git: str, work: Path, source: Path) -> None:
    """In place as a whole or not at all."""
    fresh = work / "fresh"
    shutil.rmtree(fresh, ignore_errors=True)
    if sources:
        shutil.copytree(sources, fresh, symlinks=True)
    else:
        listed = _step(work, "list", ["git", "ls-remote", "--tags", "--refs", git], work)
        tag = newest([line.rpartition("/")[2] for line in listed.splitlines()], version)
        if tag is None:
            raise NotBuilt(f"{git} has no release of Slurm {version}")
        clone = ["git", "clone", "-q", "--depth=1", f"--branch={tag}", git, str(fresh)]
        _step(work, "clone", clone, work)
    fresh.rename(source)


def _step(work: Path, name: str, argv: Sequence[str], folder: Path) -> str:
    """What it prints, which is kept in a log."""
    log = work / f"{name}.log"
    with log.open("wb") as out:
        done = subprocess.run(
            argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False
        )
    told = log.read_text(errors="replace")
    if done.returncode:
        end = "\n".join(told.splitlines()[-5:])
        raise NotBuilt(f"{name} ended with {done.returncode} ({log}):\n{end}\nneeds {PACKAGES}")
    return told
