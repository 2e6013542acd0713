"""Wheels of this tree, and of this tree as another version, in an environment of their own."""

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from sentinel import __version__
from tests.lab.systemd import ROOT

_PARTS = __version__.split(".")
NEXT = ".".join([*_PARTS[:-1], str(int(_PARTS[-1]) + 1)])
"""Another version than this one, whatever this is."""


def build_wheel(folder: Path, version: str = "", **changed: str) -> Path:
    """The wheel; with another version, and with other text in the place of some files (their names
    below sentinel/, `/` written as `__`, without `.py`)."""
    source = folder / f"source-{version or 'own'}"
    shutil.copytree(
        ROOT / "sentinel", source / "sentinel", ignore=lambda _, n: {"__pycache__"} & {*n}
    )
    for name in ("pyproject.toml", "README.md", "LICENSE", "packaging/index_readme.py"):
        (source / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    init = source / "sentinel" / "__init__.py"
    if version:
        text = init.read_text(encoding="utf-8")
        was = f'__version__ = "{__version__}"'
        assert was in text
        init.write_text(text.replace(was, f'__version__ = "{version}"'), encoding="utf-8")
    for name, text in changed.items():
        path = source / "sentinel" / f"{name.replace('__', '/')}.py"
        path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "-t",
        "wheel",
        "-d",
        str(source / "dist"),
    ]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (wheel,) = (source / "dist").glob("*.whl")
    return wheel


class Site:
    """A virtual environment that borrows the libraries of this one, but no sentinel."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
        (self.packages,) = folder.glob("lib/python*/site-packages")
        (self.packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
        self.python = folder / "bin" / "python"

    def install(self, wheel: Path) -> None:
        """As `pip install --upgrade` does; the libraries are there."""
        self._pip("install", "--quiet", "--no-deps", "--no-index", "--upgrade", str(wheel))

    def uninstall(self) -> None:
        self._pip("uninstall", "--quiet", "--yes", "slurm-sentinel")

    def _pip(self, *words: str) -> None:
        command = [sys.executable, "-m", "pip", "--python", str(self.python), *words]
        subprocess.run(command, check=True, capture_output=True)
