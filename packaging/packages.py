"""Builds all that is released: `python packaging/packages.py DIR` (make packages).

Each Python distribution is built twice, the second time from its own sdist, and compared.
"""

import argparse
import filecmp
import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyz
import system_packages
from tools import BUNDLED_DEBS, CHECKSUMS, NAME, ROOT, list_artefacts, read_version, run_tool

TRAINING = ROOT / "packaging" / "training"
LOWEST_PYTHON = "3.10"
EXTRAS = ("apprise", "gpu", "pictures", "postgres", "stacks")


def set_source_date() -> None:
    """The time of all files in all packages: that of the last commit. Reproducible builds need it."""
    if "SOURCE_DATE_EPOCH" not in os.environ:
        command = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        os.environ["SOURCE_DATE_EPOCH"] = done.stdout.strip() or str(pyz.EPOCH)
    os.environ["TZ"] = "UTC"


def build_distribution(source: Path, out: Path) -> None:
    """Wheel and sdist."""
    with tempfile.TemporaryDirectory() as folder:
        first, again = Path(folder) / "first", Path(folder) / "again"
        _build_with_hatchling(source, first)
        (sdist,) = first.glob("*.tar.gz")
        unpacked = Path(folder) / "unpacked"
        with tarfile.open(sdist) as tar:
            safe = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
            tar.extractall(unpacked, **safe)  # type: ignore[arg-type]  # noqa: S202
        _build_with_hatchling(unpacked / sdist.name.removesuffix(".tar.gz"), again)
        for built in sorted(first.iterdir()):
            compare_builds(built, again / built.name)
            shutil.copy(built, out / built.name)


def _build_with_hatchling(source: Path, out: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(out)]
    run_tool(*command, cwd=source)


def compare_builds(first: Path, again: Path) -> None:
    if not filecmp.cmp(first, again, shallow=False):
        sys.exit(f"packages: {first.name} is not the same when it is built twice")


def build_zipapp(out: Path, constraints: Path) -> None:
    """Twice too."""
    with tempfile.TemporaryDirectory() as folder:
        again = Path(folder) / out.name
        for path in (out, again):
            pyz.build(path, NAME, make_installer(constraints))
        compare_builds(out, again)


def lock_constraints(out: Path, distributions: list[Path]) -> None:
    """Every library with its hashes, for every Python that is supported; and sentinel's own."""
    options = ["--universal", "--generate-hashes", "--no-header", "--no-annotate", "--quiet"]
    command = [sys.executable, "-m", "uv", "pip", "compile", *options, "--all-extras"]
    run_tool(*command, "--python-version", LOWEST_PYTHON, "-o", out, ROOT / "pyproject.toml")
    hashes = [f"--hash=sha256:{hash_file(path)}" for path in sorted(distributions)]
    with out.open("a") as file:
        file.write(" \\\n    ".join([f"{NAME}=={read_version()}", *hashes]) + "\n")


def make_installer(constraints: Path) -> list[str]:
    """A command that installs nothing but what the constraints name, by its hash; wheels only."""
    command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--only-binary", ":all:"]
    return [*command, "-c", str(constraints), "--find-links", str(constraints.parent)]


def write_sbom(out: Path, constraints: Path) -> None:
    """CycloneDX of an environment with all extras, made of nothing but the constraints."""
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder) / "bin/python"
        run_tool(sys.executable, "-m", "venv", "--without-pip", folder)
        wanted = f"{NAME}[{','.join(EXTRAS)}]"
        run_tool(*make_installer(constraints), "--python", python, wanted)
        tool = [sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible"]
        run_tool(*tool, "--pyproject", ROOT / "pyproject.toml", "-o", out, python)
    sbom = json.loads(out.read_text(encoding="utf-8"))
    own = sbom["metadata"]["component"]
    own["version"] = read_version()
    own["components"] = [_describe_uplot()]
    sbom["components"] = [part for part in sbom["components"] if part["name"] != NAME]
    out.write_text(json.dumps(sbom, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _describe_uplot() -> dict[str, object]:
    """The one library that lies in the package itself."""
    source = (ROOT / "sentinel/web/static/uplot.js").read_text(encoding="utf-8")
    found = re.search(r"(https://\S+) \(v([\d.]+)\)", source)
    assert found is not None
    return {
        "type": "library",
        "name": "uplot",
        "version": found[2],
        "licenses": [{"license": {"id": "MIT"}}],
        "purl": f"pkg:npm/uplot@{found[2]}",
        "externalReferences": [{"type": "vcs", "url": found[1]}],
    }


def hash_file(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_checksums(folder: Path) -> None:
    """As `sha256sum --check` reads them."""
    paths = sorted(path for path in folder.iterdir() if path.is_file() and path.name != CHECKSUMS)
    lines = [f"{hash_file(path)}  {path.name}\n" for path in paths]
    (folder / CHECKSUMS).write_text("".join(lines))


def build_packages(out: Path, only: str) -> None:
    """All of them in their order, or those whose name has this word."""
    set_source_date()
    out.mkdir(parents=True, exist_ok=True)
    stem = f"{NAME}-{read_version()}"
    constraints = out / f"{stem}-constraints.txt"
    sdist = out / f"slurm_sentinel-{read_version()}.tar.gz"
    installer = make_installer(constraints)
    steps: dict[str, Callable[[], object]] = {
        "wheel and sdist": lambda: build_distribution(ROOT, out),
        "wheel and sdist of sentinel.training": lambda: build_distribution(TRAINING, out),
        "constraints": lambda: lock_constraints(constraints, [*out.glob("slurm_sentinel-*")]),
        "zipapp": lambda: build_zipapp(out / "sentinel.pyz", constraints),
        "SBOM": lambda: write_sbom(out / f"{stem}.cdx.json", constraints),
        "deb for debian13": lambda: system_packages.build_native_deb(out, sdist),
        **{
            f"deb for {name}": functools.partial(
                system_packages.build_bundled_deb, out, sdist, name, installer
            )
            for name in BUNDLED_DEBS
        },
        "rpm": lambda: system_packages.build_rpm(out, installer),
        "checksums": lambda: write_checksums(out),
    }
    chosen = {name: step for name, step in steps.items() if only in name}
    for number, (name, step) in enumerate(chosen.items(), 1):
        print(f"{number} of {len(chosen)}: {name}", file=sys.stderr)
        step()
    if not only and (missing := list_artefacts(read_version()) - {p.name for p in out.iterdir()}):
        sys.exit(f"packages: not made: {', '.join(sorted(missing))}")
    for path in sorted(out.iterdir()):
        print(f"{path.stat().st_size / 1e6:7.2f} MB  {path}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("out", type=Path, metavar="DIR", help="emptied first, but for --only")
    options.add_argument(
        "--only", default="", metavar="WORD", help="steps whose name has this word"
    )
    args = options.parse_args()
    if not args.only:
        shutil.rmtree(args.out, ignore_errors=True)
    build_packages(args.out.resolve(), args.only)


if __name__ == "__main__":
    main()
