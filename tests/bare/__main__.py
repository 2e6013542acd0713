"""Every command on machines that have next to nothing, as root; about four minutes.

`python -m tests.bare [--root NAME] [--show] [COMMAND …]` makes minimal Debian roots with mmdebstrap,
calls there each command as it is meant and wrongly, and prints the exit codes, a column for each root.
0 when each answer is a sentence, else 1.
"""

import argparse
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.bare.calls import Call, find_calls, find_faults
from tests.bare.roots import RELEASES, ROOTS, call_in_root, install_requirements, make_root
from tests.lab import needs


def main() -> int:
    """Exit code."""
    parser = argparse.ArgumentParser(prog="tests.bare", description=__doc__)
    parser.add_argument("command", nargs="*", help="these alone, e.g. 'cron install'")
    parser.add_argument("--root", action="append", choices=[*ROOTS], metavar="NAME")
    parser.add_argument("--show", action="store_true", help="what each call printed, too")
    asked = parser.parse_args()
    if missing := needs.why_no_root() or (needs.absent(["mmdebstrap"]) and "needs mmdebstrap"):
        print(f"cannot start: {missing}", file=sys.stderr)
        return 69
    calls = [
        call
        for call in find_calls()
        if call.form in ("meant", "no such word")
        and (not asked.command or call.command in asked.command)
    ]
    names = asked.root or list(ROOTS)
    with tempfile.TemporaryDirectory(prefix="sentinel-bare-") as folder:
        found = _call_everywhere(names, calls, Path(folder))
    return _print_table(calls, found, asked.show)


def _call_everywhere(
    names: list[str], calls: list[Call], folder: Path
) -> dict[str, list[tuple[int, str]]]:
    sites = {
        release: install_requirements(python, folder)
        for release, (_, python) in RELEASES.items()
        if any(ROOTS[name][0] == release for name in names)
    }
    for name in names:
        make_root(name)
    with ThreadPoolExecutor(2) as pool:
        answers = pool.map(
            lambda at: call_in_root(
                names[at], calls, sites[ROOTS[names[at]][0]], folder / f"root-{at}"
            ),
            range(len(names)),
        )
        return dict(zip(names, answers, strict=True))


def _print_table(calls: list[Call], found: dict[str, list[tuple[int, str]]], show: bool) -> int:
    print("| call |", " | ".join(found), "|")
    print("| --- |", " | ".join("---" for _ in found), "|")
    faults = []
    for at, call in enumerate(calls):
        line = " ".join(call.words)
        print(f"| `{line}` |", " | ".join(str(answers[at][0]) for answers in found.values()), "|")
        for name, answers in found.items():
            code, text = answers[at]
            faults += [f"{line} in {name}: {fault}" for fault in find_faults(call, code, text)]
            if show:
                print(f"    {name}:", text.strip().replace("\n", "\n    "))
    for fault in faults:
        print(f"FAULT: {fault}")
    print(f"{len(calls)} calls in {len(found)} roots: {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
