"""`make release VERSION=0.1.0`: set the version, check everything, build dist/, tag. Pushes nothing.

python packaging/release.py VERSION [--checks "make check"]

Started again after a failure, it goes on with what is left: a step that succeeded for this commit is
written down in build/release.json.
"""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
from datetime import date, datetime, timezone
from pathlib import Path

from tools import list_artefacts

ROOT = Path(__file__).parents[1]
DEFAULT_CHECKS = ".ci/run"
"""Everything: formatter, types, documentation, the suite, the long tests."""
PACKAGES = "make packages"
KINDS = ("sqlite", "postgresql")
UNRELEASED = "## Unreleased\n"

_OF_MAKE = ("ARGS", "MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS")

_VERSION = re.compile(r"\d+\.\d+\.\d+")
_HEADING = re.compile(r"^## (.*)$", re.MULTILINE)
_INIT_LINE = re.compile(r'^__version__ = "(.*)"$', re.MULTILINE)


class NotReady(Exception):
    """Why this cannot be released, and what to do."""


def main(words: list[str] | None = None) -> int:
    """0 when the tag is there; 1 when something is not as it should be, and nothing was tagged."""
    parser = argparse.ArgumentParser(prog="make release")
    parser.add_argument("version")
    parser.add_argument(
        "--checks", default=DEFAULT_CHECKS, help="the command that has to pass first"
    )
    args = parser.parse_args(words)
    try:
        tag = release(ROOT, args.version, args.checks)
    except NotReady as error:
        print(f"make release: {error}; nothing was tagged", file=sys.stderr)
        return 1
    print(
        f"{tag} is tagged; dist/ has what to publish, NOTES.md what to say. Then: git push origin HEAD {tag}"
    )
    return 0


def release(root: Path, version: str, checks: str) -> str:
    """The name of the tag; raises NotReady, which says what is left."""
    today = datetime.now(timezone.utc).date()
    require_free_version(root, version)
    commit_version(root, version, today)
    notes = check_tree(root, version, today)
    commit = _git(root, "rev-parse", "HEAD")
    commands = [checks, PACKAGES]
    for at, command in enumerate(commands):
        try:
            run_step(root, commit, command, version)
            check_unchanged(root, commit)
        except NotReady as error:
            left = ", ".join([*commands[at:], f"tag v{version}"])
            raise NotReady(
                f"{error}. Left to do: {left}; the same command goes on there"
            ) from error
    (root / "dist" / "NOTES.md").write_text(notes, encoding="utf-8")
    message = f"sentinel {version}\n\n{notes}"
    how = [
        "--annotate",
        "--cleanup=whitespace",
    ]  # lines that begin with # are headings, no comments
    _git(root, "tag", *how, f"v{version}", "--message", message, commit)
    return f"v{version}"


def require_free_version(root: Path, version: str) -> None:
    """Raises NotReady for what is no version, is tagged already, or not all committed."""
    if not _VERSION.fullmatch(version):
        raise NotReady(f"{version!r} is no version; write it like 0.1.0")
    if changed := _git(root, "status", "--porcelain"):
        raise NotReady(f"these files are not committed:\n{changed}\n")
    if f"v{version}" in _git(root, "tag", "--list").split():
        raise NotReady(f"the tag v{version} is there already")


def commit_version(root: Path, version: str, today: date) -> None:
    """Set the version, its heading in the changelog and its kept state, where they are not yet. All
    or nothing: raises NotReady with the tree as it was, which has to be clean."""
    try:
        set_version(root / "sentinel" / "__init__.py", version)
        set_heading(root / "CHANGELOG.md", version, today)
        find_notes((root / "CHANGELOG.md").read_text(encoding="utf-8"), version, today)
        if _find_missing_states(root, version):
            _run(root, f"{sys.executable} -m tests.store.golden {version}", "no state to keep")
        if _git(root, "status", "--porcelain"):
            _git(root, "add", "--all")
            _git(root, "commit", "--quiet", "--message", f"Release {version}")
            print(f"make release: committed version, changelog and state of {version}")
    except NotReady:
        _git(root, "reset", "--quiet", "--hard")
        _git(root, "clean", "--quiet", "--force", "--", "tests/store/states")
        raise


def set_version(init: Path, version: str) -> None:
    text = init.read_text(encoding="utf-8")
    init.write_text(_INIT_LINE.sub(f'__version__ = "{version}"', text), encoding="utf-8")


def set_heading(changelog: Path, version: str, today: date) -> None:
    """What stands below "Unreleased" becomes that version's, unless it has a heading already."""
    text = changelog.read_text(encoding="utf-8")
    if not any(heading.split(" ")[0] == version for heading in _HEADING.findall(text)):
        heading = f"{UNRELEASED}\n## {version} ({today.isoformat()})\n"
        changelog.write_text(text.replace(UNRELEASED, heading, 1), encoding="utf-8")


def _find_states(root: Path, version: str) -> list[Path]:
    states = root / "tests" / "store" / "states"
    return [states / f"{version}.{kind}.sql" for kind in KINDS]


def _find_missing_states(root: Path, version: str) -> list[Path]:
    return [path for path in _find_states(root, version) if not path.exists()]


def check_tree(root: Path, version: str, today: date) -> str:
    """The notes of that version, from the changelog; raises NotReady."""
    require_free_version(root, version)
    init = (root / "sentinel" / "__init__.py").read_text(encoding="utf-8")
    found = _INIT_LINE.findall(init)
    if found != [version]:
        raise NotReady(f"sentinel/__init__.py says {', '.join(found)}, not {version}")
    if _find_missing_states(root, version):
        raise NotReady(
            f"no state of {version} is kept for later versions: python -m tests.store.golden {version}"
        )
    return find_notes((root / "CHANGELOG.md").read_text(encoding="utf-8"), version, today)


def find_notes(changelog: str, version: str, today: date) -> str:
    """The section of that version, which has to be the newest; raises NotReady."""
    parts = _HEADING.split(changelog)
    sections = dict(zip(parts[1::2], (text.strip() for text in parts[2::2]), strict=True))
    wanted = f"{version} ({today.isoformat()})"
    first, heading = [*parts[1:4:2], "", ""][:2]
    if first != "Unreleased" or not _is_heading(heading, version, today):
        raise NotReady(f"CHANGELOG.md has to begin with '## Unreleased' and '## {wanted}'")
    if sections["Unreleased"]:
        raise NotReady(f"'## Unreleased' is not empty: move its lines below '## {heading}'")
    if not sections[heading]:
        raise NotReady(f"'## {heading}' says nothing: write its lines below '## Unreleased'")
    return sections[heading] + "\n"


def _is_heading(heading: str, version: str, today: date) -> bool:
    """Of that version, with a day that is not to come."""
    name, _, day = heading.partition(" ")
    try:
        return name == version and date.fromisoformat(day.strip("()")) <= today
    except ValueError:
        return False


def run_step(root: Path, commit: str, command: str, version: str) -> None:
    """Run it, unless it succeeded for this commit before; raises NotReady."""
    path = root / "build" / "release.json"
    book = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    done = book.get(commit, [])
    builds = command == PACKAGES
    if command in done and not (builds and find_unfit_artefacts(root / "dist", version)):
        print(f"make release: {command}: done before, for this commit", file=sys.stderr)
        return
    _run(root, command, "a step failed")
    if builds and (wrong := find_unfit_artefacts(root / "dist", version)):
        raise NotReady(wrong)
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({commit: [*done, command]}), encoding="utf-8")


def find_unfit_artefacts(dist: Path, version: str) -> str:
    """What is not there of all that is released, or does not fit its checksum; empty if all is well."""
    names = {path.name for path in dist.glob("*")}
    if missing := list_artefacts(version) - names:
        return f"not in dist/: {', '.join(sorted(missing))}"
    command = ["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"]
    done = subprocess.run(command, cwd=dist, capture_output=True, text=True, check=False)
    said = f"{done.stdout}{done.stderr}".strip()
    return f"dist/SHA256SUMS does not fit: {said}" if done.returncode else ""


def check_unchanged(root: Path, commit: str) -> None:
    """What is tagged is what was checked and built; raises NotReady."""
    if _git(root, "rev-parse", "HEAD") != commit or _git(root, "status", "--porcelain"):
        raise NotReady("the tree changed meanwhile")


def _run(root: Path, command: str, trouble: str) -> None:
    """Run a step. It gets no words that were meant for this program: `make` would hand ARGS on."""
    print(f"make release: {command}", file=sys.stderr)
    env = {name: text for name, text in os.environ.items() if name not in _OF_MAKE}
    done = subprocess.run(shlex.split(command), cwd=root, env=env, check=False)
    if done.returncode:
        raise NotReady(f"{trouble}: {command} ended with {done.returncode}")


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotReady(f"git {words[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
