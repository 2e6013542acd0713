"""Makes the clean Debians on which packages are tried: `python packaging/clean_systems.py [--sites] DIR`.

In them is what the packages in DIR say that they depend on, and a systemd to boot. Those of --sites have a
Slurm, cron and what `python3 -m venv` needs too: `make first-mail` plays sites on them.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

from system_packages import SYSTEMS
from tools import make_system

SUITES = {
    "debian13": ("trixie", "slurm-sentinel_*_all.deb"),
    "debian12": ("bookworm", "slurm-sentinel_*~debian12_amd64.deb"),
}
BESIDE = {"systemd", "rpm"}
"""rpm: the .rpm is tried on Debian 12, with a lent Python 3.12."""

ON_SITES = {"cron", "munge", "python3-venv", "slurm-wlm"}


def read_dependencies(deb: Path) -> set[str]:
    """The first of alternatives, without versions."""
    command = ["dpkg-deb", "-f", str(deb), "Depends"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {re.split(r"[ (:|]", word.strip())[0] for word in said.split(",")}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("dist", type=Path, metavar="DIR")
    options.add_argument("--sites", action="store_true")
    given = options.parse_args()
    if not [*given.dist.glob("*.deb")]:
        sys.exit(f"no package lies in {given.dist}: make packages first")
    for name, (suite, pattern) in SUITES.items():
        folder = SYSTEMS / (name.replace("debian", "site") if given.sites else name)
        for deb in given.dist.glob(pattern):
            wanted = {*read_dependencies(deb), *BESIDE, *(ON_SITES if given.sites else ())}
            print(make_system(folder, suite, sorted(wanted)))


if __name__ == "__main__":
    main()
