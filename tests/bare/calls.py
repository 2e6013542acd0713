"""What is called in a bare root: every command of the parsers as it is meant, and wrongly."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from sentinel.cli import _build_parser
from sentinel.cli.command_tree import ListedCommand, iterate_commands
from sentinel.wiring.app import CHECKS
from tests.cli.option_pairs import ALWAYS, PREPARATIONS, WORDS

HOME = "/mnt/home"
"""Where a call stands, and $HOME: a world that is made anew before each call."""

MEANT_WORDS = {
    **WORDS,
    "alerts silence": ["{alert}", "--for=1h"],
    "nodes drain": ["n1", "--reason=because"],
    "nodes test": ["n1", "--test=fs"],
    "stacks": ["15"],
    "gpus mark": ["{gpu}", "lemon", "--reason=because"],
    "gpus clear": ["{gpu}", "--reason=because"],
    "gpus forget": ["{gpu}", "1", "--reason=because"],
    "gpus import": [f"{HOME}/list.json"],
    "cron link": [f"--dir={HOME}/chain"],
    "state backup": [f"{HOME}/copy.db"],
    "state restore": [f"{HOME}/copy.db"],
}
"""What follows each command as it is meant; `{alert}` and the like stand for what the world has."""

MEANT_BEFORE = {**PREPARATIONS, "state restore": ("state backup {home}/copy.db",)}

KIND_WORDS = {
    "checkpoint": [f"--path={HOME}"],
    "cron": [f"--base={HOME}/base"],
    "du": [f"--path={HOME}"],
    "exec": ["--command=/bin/true"],
    "job": ["--name=train"],
    "log": ["--job=train"],
    "quota": [f"--path={HOME}"],
    "service": ["--unit=ssh"],
}
"""`check KIND` with as much as it asks for."""

FRESH = f"--config={HOME}/fresh.yaml"
VARIANTS = {
    "cron install": [[f"--mode={mode}"] for mode in ("systemd", "scrontab", "chain", "relay")],
    "init": [
        ["--yes", FRESH, "--by=none"],
        ["--yes", FRESH, "--by=systemd"],
        ["--yes", FRESH, "--by=service"],
        ["--yes", FRESH, "--by=crontab"],
        ["--yes", FRESH, "--by=chain"],
        ["--yes", FRESH, "--by=none", "--user=nosuchuser"],
        ["--yes", FRESH, "--by=none", "--mail=a@example.org"],
    ],
    "nodes test": [["n1", "--test=cuda"], ["n1", "--test=memory"], ["n1", "--test=ib"]],
    "top": [[]],
}
"""Further calls as they are meant: by every way that there is."""


@dataclass(frozen=True)
class Call:
    """One call: the command that it belongs to, how it is wrong (or `meant`), and its words."""

    command: str
    form: str
    words: list[str]
    before: list[str] = field(default_factory=list)
    """Calls before it, as one line each, without which it has nothing to do."""
    served: bool = False
    """Whether it goes on until it is ended: by SIGTERM, as systemd does."""


def find_calls() -> Iterator[Call]:
    """Every command that there is, in each form that it has."""
    for command in iterate_commands(_build_parser([])):
        if command.words and not _is_group(command):
            yield from _iterate_forms(command)
    for kind in sorted(CHECKS.kind_names()):
        words = ["check", kind, *KIND_WORDS.get(kind, [])]
        yield Call(f"check {kind}", "meant", words)
        yield Call(f"check {kind}", "no such option", [*words, "--bogus"])


def _is_group(command: ListedCommand) -> bool:
    """Whether it does nothing without one of the words below it."""
    return " ".join(command.words) in {"config", "state", "add", "notify"}


def _iterate_forms(command: ListedCommand) -> Iterator[Call]:
    name, words = " ".join(command.words), list(command.words)
    before, always = list(MEANT_BEFORE.get(name, ())), ALWAYS.get(name, [])
    meant = [*words, *MEANT_WORDS.get(name, []), *always]
    yield Call(name, "meant", meant, before, served=name == "run")
    for more in VARIANTS.get(name, []):
        yield Call(name, "meant", [*words, *more], before)
    yield Call(name, "no such word", [*words, *always, "no-such-thing"], before)
    yield Call(name, "no such option", [*words, "--bogus"])
    if "--config" in command.options:
        yield Call(name, "no such file", [*meant, f"--config={HOME}/nowhere.yaml"])
        yield Call(name, "a slip in it", [*meant, f"--config={HOME}/slip.yaml"])


FIT_WITHOUT_FILE = {
    "init": "it writes the file",
    "config check": "its answer",
    "config schema": "it needs none",
    "plugins": "it needs none",
    "gpus check": "a prolog must hold up no node",
    "cron remove": "it takes away what is there, and says what is wrong",
    "state check": "it looks at what is there, and says what is wrong",
}
"""Commands that may end with 0 to 2 where the file cannot be read, and why."""

FOREIGN_OPTIONS = {"submit": "what it does not know is an option of sbatch"}
"""Commands that hand an unknown option on to another program, and why."""

NOT_ENDED = -1

EXIT_CODES = {0, 1, 2, 3, 64, 65, 66, 67, 68, 69, 73, 74, 75, 77, 78}
"""Those of checks, and those of sysexits(3) but for 70 (a fault of the program's own)."""

RAW = re.compile(
    r"Traceback|[Ii]nternal error|\[Errno|Warning:|Exception|sh: \d+:|command not found"
    r"|object at 0x|No module named|NoneType"
)
"""What Python and shells say and no person should read."""


def find_faults(call: Call, code: int, text: str) -> Iterator[str]:
    """What is wrong with an answer; nothing where it is one that helps."""
    if code not in EXIT_CODES:
        yield "it did not end" if code == NOT_ENDED else f"exit code {code}"
    for line in text.splitlines():
        if RAW.search(line):
            yield f"raw: {line.strip()[:200]}"
    if code and not text.strip():
        yield "it says nothing"
    if call.form == "no such option" and code != 64 and call.command not in FOREIGN_OPTIONS:
        yield f"an option that there is not is taken: {code}"
    without_file = call.form in ("no such file", "a slip in it")
    if without_file and code < 3 and call.command not in FIT_WITHOUT_FILE:
        yield f"{call.form}, and it is taken all the same: {code}"
