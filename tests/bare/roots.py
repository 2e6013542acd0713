"""Minimal roots, made by mmdebstrap once and kept, and calls inside them."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tests.bare.calls import Call

REPOSITORY = Path(__file__).parents[2]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sentinel" / "roots"
RELEASES = {"bookworm": ("Debian 12", "3.11"), "trixie": ("Debian 13", "3.13")}
"""Debian's names of releases: what people call them, and the Python that they have."""

PACKAGES = {"python3": "", "python3,slurm-client": " with slurm-client"}
ROOTS = {
    f"{people}{more}": (release, packages)
    for release, (people, _) in RELEASES.items()
    for packages, more in PACKAGES.items()
}
"""By the head of its column: the release, and the packages beside those that dpkg and apt need."""

ENTER = """
mount -t tmpfs bare "$1" && mkdir "$1/upper" "$1/work" "$1/root" &&
mount -t overlay -o "lowerdir=$2,upperdir=$1/upper,workdir=$1/work" bare "$1/root" &&
mkdir -p "$1/root/opt/sentinel" "$1/root/opt/site" &&
mount --bind "$3/sentinel" "$1/root/opt/sentinel" && mount --bind "$4" "$1/root/opt/site" &&
mount -t proc proc "$1/root/proc" && cp "$3/tests/bare/inside.py" "$1/root/opt" &&
exec chroot "$1/root" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  PYTHONPATH=/opt:/opt/site PYTHONDONTWRITEBYTECODE=1 python3 /opt/inside.py
"""
"""What a call changes lies in a tmpfs and goes with this mount namespace."""


def make_root(name: str) -> Path:
    """The root's folder; made where it is not there, by a name of its own until it is whole."""
    release, packages = ROOTS[name]
    folder = CACHE / f"{release}-{packages.replace(',', '-')}"
    if not folder.exists():
        print(f"making {name} (a minute)", file=sys.stderr, flush=True)
        CACHE.mkdir(parents=True, exist_ok=True)
        part = folder.with_name(f"{folder.name}.part")
        subprocess.run(["rm", "-rf", str(part)], check=True)
        command = ["mmdebstrap", "--quiet", "--mode=root", "--variant=minbase"]
        command += [f"--include={packages}", release, str(part)]
        subprocess.run(command, check=True)
        part.rename(folder)
    return folder


def install_requirements(python: str, folder: Path) -> Path:
    """What sentinel needs, for that Python: as a user's pip would install it there."""
    site = folder / python
    if not site.exists():
        machine = platform.machine()
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(site)]
        command += ["--python-version", python, "--only-binary=:all:"]
        for glibc in ("manylinux_2_28", "manylinux_2_17", "manylinux2014"):
            command += ["--platform", f"{glibc}_{machine}"]
        subprocess.run([*command, *_read_requirements()], check=True)
    return site


def _read_requirements() -> list[str]:
    code = (
        "import importlib.metadata as m; print(*(r for r in m.requires('slurm-sentinel')"
        " if 'extra ==' not in r), sep='\\n')"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return told.stdout.split("\n")[:-1]


def call_in_root(
    name: str, calls: Sequence[Call], site: Path, point: Path
) -> list[tuple[int, str]]:
    """Exit code and text of each call, in a machine that is that root and no more; it has no network,
    and processes of its own."""
    point.mkdir()
    done = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "--net", "--uts", "--kill-child", "sh", "-c", ENTER,
         "sh", str(point), str(make_root(name)), str(REPOSITORY), str(site)],
        input=json.dumps([asdict(call) for call in calls]), stdout=subprocess.PIPE, text=True,
        check=True,
    )  # fmt: skip
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]
