"""A tree for a package that brings its Python libraries along: /opt/sentinel and what lies in /usr.

The interpreter is the system's own (/usr/bin/python3.N); only its version has to be known here.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pyz

GLIBC = "2.28"
"""That of RHEL 8, the oldest system that gets a package."""
HOME = "opt/sentinel"
START = """\
#!/opt/sentinel/bin/python
from sentinel.cli import run_process

run_process()
"""
COMPILE = """\
#!/bin/sh
# Called by the package: compiled files are made here, for they fit one interpreter only.
cd / && exec /opt/sentinel/bin/python -m compileall -q -f --invalidation-mode unchecked-hash \\
    /opt/sentinel/lib
"""


def stage_bundle(
    tree: Path, python: str, installer: list[str], wanted: str, run: Callable[..., None]
) -> None:
    """All files of the package; ends the build where a library needs a newer glibc."""
    site = tree / HOME / f"lib/python{python}/site-packages"
    programs = tree / HOME / "bin"
    platform = f"x86_64-manylinux_{GLIBC.replace('.', '_')}"
    fits = ["--python-version", python, "--python-platform", platform]
    run(*installer, *fits, "--target", site, wanted)
    programs.mkdir()
    for program in sorted(site.glob("bin/*")):
        if program.read_bytes()[:4] == b"\x7fELF":  # py-spy; the rest are scripts of libraries
            shutil.move(program, programs / program.name)
    pyz.remove_superfluous(site)
    for name, text in {"sentinel": START, "compile": COMPILE}.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    (programs / "python").symlink_to(f"/usr/bin/python{python}")
    environment = f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {python}\n"
    (tree / HOME / "pyvenv.cfg").write_text(environment)
    (tree / "usr/bin").mkdir(parents=True)
    (tree / "usr/bin/sentinel").symlink_to("/opt/sentinel/bin/sentinel")
    for name, version in find_too_new([site, programs]):
        sys.exit(f"packages: {name} needs glibc {version}, and {GLIBC} is the oldest system's")


def find_too_new(folders: list[Path]) -> list[tuple[str, str]]:
    """Native files whose symbols need a newer glibc than the oldest system has."""
    limit = _to_numbers(GLIBC)
    natives = [p for folder in folders for p in folder.rglob("*") if _is_native(p)]
    if not natives:
        sys.exit("packages: no native library was found, so none was looked at")
    needs = ((path.name, read_needed_glibc(path)) for path in natives)
    return [(name, version) for name, version in needs if _to_numbers(version) > limit]


def read_needed_glibc(path: Path) -> str:
    """The highest version among the symbols that the file asks for."""
    done = subprocess.run(
        ["readelf", "--wide", "--version-info", str(path)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return highest_version(re.findall(r"Name: GLIBC_([\d.]+)", done.stdout))


def highest_version(versions: Iterable[str]) -> str:
    return max(versions, key=_to_numbers, default="0")


def _is_native(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def _to_numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
