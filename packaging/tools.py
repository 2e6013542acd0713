"""What the builders of packages share: how they call programs, the version, clean Debian systems."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAME = "slurm-sentinel"
BUNDLED_DEBS = {"debian12": "3.11", "ubuntu22.04": "3.10", "ubuntu24.04": "3.12"}
"""Systems and the versions of their Pythons."""
CHECKSUMS = "SHA256SUMS"


def list_artefacts(version: str) -> set[str]:
    """The names of all that is released."""
    return {
        f"slurm_sentinel-{version}-py3-none-any.whl",
        f"slurm_sentinel-{version}.tar.gz",
        f"slurm_sentinel_training-{version}-py3-none-any.whl",
        f"slurm_sentinel_training-{version}.tar.gz",
        f"{NAME}-{version}-constraints.txt",
        f"{NAME}-{version}.cdx.json",
        "sentinel.pyz",
        f"{NAME}_{version}_all.deb",
        *(f"{NAME}_{version}~{system}_amd64.deb" for system in BUNDLED_DEBS),
        f"{NAME}-{version}-1.x86_64.rpm",
        CHECKSUMS,
    }


def run_tool(*words: object, **options: object) -> None:
    """Ends the build with the tool's own words where it fails."""
    command = [*map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    if done.returncode:
        print(done.stdout, done.stderr, sep="\n", file=sys.stderr)
        sys.exit(f"packages: exit code {done.returncode} of {' '.join(command)}")


def read_version() -> str:
    found = re.search(r'__version__ = "(.+)"', (ROOT / "sentinel/__init__.py").read_text())
    assert found is not None
    return found[1]


def make_system(folder: Path, suite: str, packages: list[str]) -> Path:
    """A minimal Debian with these packages; kept, and made anew where they have changed."""
    wanted = f"{suite} {' '.join(sorted(packages))}\n"
    stamp = folder.with_suffix(".packages")
    if not stamp.exists() or stamp.read_text() != wanted:
        run_tool("rm", "-rf", folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        include = [f"--include={','.join(packages)}"] if packages else []
        run_tool("mmdebstrap", "--quiet", "--variant=apt", *include, suite, folder)
        stamp.write_text(wanted)
    return folder
