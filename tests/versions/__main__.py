"""On which versions of Slurm does sentinel work? Builds them, runs the tests on one, writes the table.

`python -m tests.versions build 25.11 26.05`, `run 26.05 [what pytest takes]`, `table`.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.lab import needs
from tests.lab.paths import ROOT
from tests.versions import build, results

SYSTEM, NEWEST = "system", "newest"


def main(argv: list[str] | None = None) -> int:
    """0 when all was built, or all tests passed."""
    parser = argparse.ArgumentParser(prog="python -m tests.versions", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("build", help="build versions, unless they are in the cache")
    make.add_argument("versions", nargs="+", metavar="VERSION", help="such as 25.11")
    make.add_argument("--sources", type=Path, help="a folder with the sources of the one version")
    make.add_argument("--git", default=build.PUBLIC, help="where its releases are (%(default)s)")
    run = commands.add_parser("run", help="run tests on a version and keep what they said")
    run.add_argument(
        "version",
        help=f"one that was built; `{NEWEST}` of them, if any; `{SYSTEM}`: the machine's own",
    )
    run.add_argument("tests", nargs=argparse.REMAINDER, help="for pytest; all that use the lab")
    commands.add_parser("table", help=f"write what was kept into {results.PAGE.name}")
    args = parser.parse_args(argv)
    if args.command == "build":
        if args.sources and len(args.versions) > 1:
            parser.error("--sources is of one version")
        return build_all(args.versions, args.sources, args.git)
    if args.command == "run":
        version = build.newest_built() if args.version == NEWEST else args.version
        if not version:
            print(f"no Slurm was built in {build.cache()}: nothing to run")
            return 0
        return run_on(version, args.tests or ["tests"])
    results.write()
    return 0


def build_all(versions: list[str], sources: Path | None, git: str) -> int:
    """Each that fails is named, and the others are built."""
    failed = 0
    for version in versions:
        try:
            print(f"Slurm {version} is in {build.build(version, sources, git)}", flush=True)
        except (build.NotBuilt, ValueError, OSError) as error:
            failed = 1
            print(f"Slurm {version} was not built: {error}", file=sys.stderr, flush=True)
    return failed


def run_on(version: str, tests: list[str]) -> int:
    """pytest's exit code; 69 (sysexits: unavailable) where the version is not built."""
    path = f"{os.environ.get('PATH', '')}:{needs.SYSTEM_PATH}"
    env = {**os.environ, "SENTINEL_LAB": "required", "PATH": path}
    if version != SYSTEM:
        if not build.built(version):
            print(f"not built: python -m tests.versions build {version}", file=sys.stderr)
            return 69
        home = build.place(version)
        env |= {"SENTINEL_SLURM": str(home), "PATH": f"{home}/bin:{home}/sbin:{path}"}
    number = full_version(env)
    with tempfile.TemporaryDirectory(prefix="sentinel-versions-") as folder:
        xml = Path(folder, "results.xml")
        argv = [sys.executable, "-m", "pytest", "-q", "-m", "lab", f"--junitxml={xml}"]
        code = subprocess.run([*argv, *tests], env=env, cwd=ROOT, check=False).returncode
        if xml.exists():
            results.keep(number, results.read(xml))
    results.write()
    return code


def full_version(env: dict[str, str]) -> str:
    """`26.05.3`: what its own slurmctld says."""
    told = subprocess.run(
        ["slurmctld", "-V"], env=env, capture_output=True, text=True, check=True, timeout=30
    )
    return told.stdout.split()[1]


if __name__ == "__main__":
    sys.exit(main())
