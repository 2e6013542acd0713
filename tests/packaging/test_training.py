"""slurm-sentinel-training: one module for environments that train, alone and beside all of sentinel.

Built and installed for real, offline; packaging/training/pyproject.toml says how the two fit.
"""

import subprocess
import sys
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

from tests.lab.systemd import ROOT

ALONE, ALL = "slurm-sentinel-training", "slurm-sentinel"
OFFLINE = ("--no-index", "--no-deps")
USE = (
    "import sys; here = {*sys.modules}\n"  # Debian's Python has a sitecustomize
    "from sentinel.training import Guard; guard = Guard(memory=None)\n"
    "print(guard.should_stop(), *sorted(name for name in sys.modules if 'sentinel' in name),\n"
    "      *({m.partition('.')[0] for m in {*sys.modules} - here} - {*sys.stdlib_module_names}))\n"
)


def pip(*words: object) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert not done.returncode, done.stderr


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Both distributions, built from this checkout by what `dev` brings."""
    built = {}
    for name, source in {ALONE: ROOT / "packaging/training", ALL: ROOT}.items():
        folder = tmp_path_factory.mktemp(name)
        pip("wheel", *OFFLINE, "--no-build-isolation", "-w", folder, source)
        (built[name],) = folder.iterdir()
    return built


class Environment:
    """An empty one: no library, not even pip."""

    def __init__(self, folder: Path, wheels: dict[str, Path]) -> None:
        self.python, self.wheels = folder / "bin/python", wheels
        venv = [sys.executable, "-m", "venv", "--without-pip", folder]
        subprocess.run(venv, check=True, timeout=60)

    def install(self, name: str) -> None:
        pip("--python", self.python, "install", *OFFLINE, "--no-compile", self.wheels[name])

    def remove(self, name: str) -> None:
        pip("--python", self.python, "uninstall", "--yes", name)

    def used(self, code: str = USE) -> list[str]:
        """What is printed; `-I` sees neither the working directory nor PYTHONPATH."""
        command = [self.python, "-I", "-c", code]
        return subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=60
        ).stdout.split()


@pytest.fixture
def environment(tmp_path: Path, wheels: dict[str, Path]) -> Environment:
    """One for each test."""
    return Environment(tmp_path / "venv", wheels)


def test_it_is_one_module_and_needs_nothing(wheels: dict[str, Path]) -> None:
    """No file lies where one of all of sentinel's lies: whoever removes one breaks the other."""
    names = {name: set(zipfile.ZipFile(path).namelist()) for name, path in wheels.items()}
    code = {name for name in names[ALONE] if name.endswith(".py")}
    assert code == {"sentinel/training/__init__.py"}
    assert not names[ALONE] & names[ALL]
    with zipfile.ZipFile(wheels[ALONE]) as wheel:
        (metadata,) = (name for name in names[ALONE] if name.endswith("METADATA"))
        assert b"Requires-Dist" not in wheel.read(metadata)


def test_an_index_shows_what_it_is(wheels: dict[str, Path]) -> None:
    """Whose it is, a page with an example that runs, and classifiers that an index takes."""
    with zipfile.ZipFile(wheels[ALONE]) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith("METADATA"))
        metadata = message_from_bytes(wheel.read(name))
    assert metadata["Author"] == "The sentinel authors"
    assert metadata["License-Expression"] == "Apache-2.0"
    example = str(metadata.get_payload()).split("```")[1].removeprefix("python")
    begin = "steps, train, save_checkpoint = 2, print, print\n"
    said = subprocess.run(
        [sys.executable, "-c", begin + example], capture_output=True, text=True, check=True
    )
    assert said.stdout == "0\n1\n"
    named = metadata.get_all("Classifier", [])
    assert len(named) > 5
    assert set(named) - pytest.importorskip("trove_classifiers").classifiers == set()


@pytest.mark.parametrize("order", [(ALONE, ALL), (ALL, ALONE)], ids=["alone-all", "all-alone"])
def test_beside_all_of_sentinel_both_work_and_both_can_go(
    environment: Environment, order: tuple[str, str]
) -> None:
    """In either order. Alone it brings no other module, neither sentinel's nor anybody's."""
    first, second = order
    works = ["False", "sentinel", "sentinel.training", "sentinel"]
    environment.install(first)
    assert environment.used() == works
    environment.install(second)
    assert environment.used() == works
    assert len(environment.used("import sentinel; print(sentinel.__version__)")) == 1
    environment.remove(first)
    assert environment.used() == works


def test_its_sdist_holds_the_module_and_builds_the_same_wheel(
    tmp_path: Path, wheels: dict[str, Path]
) -> None:
    """Far from a checkout, as an index would build it."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT / "packaging/training", check=True, timeout=60)
    (sdist,) = tmp_path.glob("*.tar.gz")
    pip("wheel", *OFFLINE, "--no-build-isolation", "-w", tmp_path, sdist)
    assert (tmp_path / wheels[ALONE].name).read_bytes() == wheels[ALONE].read_bytes()
