"""Every option of every command beside every other: it changes the outcome, is read, or is refused.

    python -m tests.cli.option_pairs [COMMAND …]

Commands and options come from the parsers. Each call is a fork of one warm process in a small world
of its own: a state with alerts, stand-ins for Slurm's commands, a crontab. Printed: for each pair
what the second option did in the presence of the first.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from sentinel.cli import _build_parser, main
from tests.checks.cannot_tell.slurm_cases import CONFIG, FIELDS, PARTITIONS, nodes, queue, runs
from tests.checks.log.past_logs import make_life
from tests.slurm.answers import row

USAGE_EXIT = 64
CALL_LIMIT_S = 20

VALUES = {
    "--trust-group": "root",
    "--account": "science",
    "--at-least": "write=800",
    "--fresh": "3h",
    "--pairs": "2",
    "--share": "20%",
    "--archive": "{home}/archive",
    "--base": "{home}/base",
    "--by": "crontab",
    "--check": "boom",
    "--cluster": "moon",
    "--command": "true",
    "--config": "{home}/other.yaml",
    "--dir": "{home}/chain",
    "--dumps": "{home}/dumps",
    "--every": "7m",
    "--for": "90m",
    "--from": "{home}/*.out",
    "--gpus": "0",
    "--history": "n1",
    "--html": "{home}/page.html",
    "--job": "other",
    "--key-file": "{home}/key",
    "--limit": "2",
    "--list": "{home}/list.json",
    "--mail": "alice@example.org",
    "--mode": "crontab",
    "--note": "seen",
    "--output": "{home}/out.tar.gz",
    "--partition": "main",
    "--path": "{home}",
    "--plot": "{home}/plot.svg",
    "--py-spy": "{home}/bin/py-spy",
    "--qos": "high",
    "--reason": "because",
    "--reservation": "window",
    "--sample": "resolved",
    "--save": "{home}/saved",
    "--sbatch": "--exclusive",
    "--since": "2026-01-01",
    "--smtp": "localhost:1",
    "--spacing": "300",
    "--test": "clocks",
    "--time": "20",
    "cron install --time": "3h",
    "--timeout": "5s",
    "--trust": "root",
    "--until": "2099-01-01",
    "--user": "root",
    "--wait": "1s",
    "--webhook": "http://127.0.0.1:1/x",
    "--who": "carol",
    "--wish": "off",
    "--within": "2h",
    "--absences": "3",
    "--level": "2",
    "--strands": "2",
}
"""A value of each option that takes one, other than its default; of one command where others differ."""

RUNNING_ROW = queue(
    row(state=b"RUNNING", user=b"root", nodes=b"n1", count=b"1", started=b"1790000000")
).removeprefix(queue())
RUNNING_RUN = runs(
    "15 15 RUNNING None n1 1790000000 1790099999 0:0 15 train root main 1790000000 /w /w/o"
).removeprefix(runs())

WORDS = {
    "add job": ["train"],
    "add disk": ["/tmp"],
    "add mail": ["bob@example.org"],
    "add webhook": ["http://127.0.0.1:1/x"],
    "submit": ["{home}/train.sh"],
    "check": ["boom"],
    "alerts show": ["{alert}"],
    "alerts ack": ["{alert}"],
    "alerts silence": ["{alert}"],
    "alerts unsilence": ["boom"],
    "explain": ["{alert}"],
    "nodes drain": ["n1"],
    "nodes undrain": ["n2"],
    "nodes maintenance": ["on"],
    "nodes breaker": ["status"],
    "nodes probe": ["n1"],
    "nodes test": ["n1"],
    "stacks": ["15"],
    "diag run": ["n1"],
    "diag show": ["n1"],
    "gpus show": ["{gpu}"],
    "gpus mark": ["{gpu}", "good"],
    "gpus clear": ["{gpu}"],
    "gpus forget": ["{gpu}", "marked lemon"],
    "gpus import": ["{home}/list.json"],
    "gpus report": ["{gpu}"],
    "notify test": ["book"],
    "notify preview": ["book"],
    "completion": ["bash"],
    "config init": ["{home}/new.yaml"],
    "cron run": ["--base={home}/chain"],
}
"""What stands behind a command that needs more."""

GPU = "GPU-12345678-1234-1234-1234-123456789abc"

ALWAYS = {
    "init": ["--yes", "--by=none"],
    "top": ["--once"],
    "cron install": ["--mode=crontab"],
    "gpus mark": ["--reason=bad"],
    "gpus forget": ["--reason=bad"],
}
"""Options without which a command would wait for a person or for ever, or is refused."""

BASES = {**ALWAYS, "cron install": ["--print"]}
"""With a line of crontab the options of jobs are refused, so the job is printed."""

PREPARATIONS = {
    "alerts unsilence": ("alerts silence {alert} --for=1h",),
    "cron status": ("cron install --mode=crontab",),
    "cron ensure": ("cron install --mode=crontab",),
    "diag show": ("diag run n1 --archive={home}/archive",),
    "gpus show": ("gpus mark {gpu} lemon --reason=bad",),
    "gpus forget": ("gpus mark {gpu} lemon --reason=bad",),
    "gpus clear": ("gpus mark {gpu} lemon --reason=bad",),
    "gpus report": ("gpus mark {gpu} lemon --reason=bad",),
}
"""Calls before that of a command, without which it has nothing to do."""

NOT_PLAYED = ("run", "man", "cron link", "cron run", "deliver")
"""They wait for ever, render a page, or are called by a job alone."""


class RecordingNamespace(argparse.Namespace):
    """Notes which options a command reads, from the moment at which it is called."""

    reads: ClassVar[set[str] | None] = None

    def __getattribute__(self, name: str) -> Any:
        if name == "call":
            RecordingNamespace.reads = set()
        elif RecordingNamespace.reads is not None:
            RecordingNamespace.reads.add(name)
        return super().__getattribute__(name)


@dataclass(frozen=True)
class Option:
    """An option as it is typed, and where the parser puts it."""

    typed: str
    dest: str
    text: str


@dataclass(frozen=True)
class Command:
    """A command with the options that it takes and those that exclude each other in the parser."""

    words: tuple[str, ...]
    options: tuple[Option, ...]

    @property
    def name(self) -> str:
        return " ".join(self.words)


@dataclass(frozen=True)
class Outcome:
    """What a call printed, what it left, how it ended, and which options it read."""

    code: int
    text: str
    files: tuple[tuple[str, str], ...]
    reads: frozenset[str]

    @property
    def result(self) -> tuple[Any, ...]:
        return self.code, self.text, self.files


@dataclass
class Verdict:
    """What `second` does beside `first`: changes, read, refused, ignored or unreached."""

    command: str
    first: str
    second: str
    word: str
    alone: bool = field(default=False)


def find_commands(wanted: Sequence[str] = ()) -> Iterator[Command]:
    """Every command that does something, from the parsers."""

    def walk(parser: Any, words: tuple[str, ...]) -> Iterator[Command]:
        below = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
        if not below or parser.get_default("call"):
            yield Command(words, tuple(_iterate_options(parser, words)))
        for action in below:
            for word, inner in action.choices.items():
                yield from walk(inner, (*words, word))

    for command in walk(_build_parser([]), ()):
        if not command.words:
            continue
        meant = not wanted or not {command.name, command.words[0]}.isdisjoint(wanted)
        if command.name not in NOT_PLAYED and meant:
            yield command


def _iterate_options(parser: Any, words: Sequence[str]) -> Iterator[Option]:
    for action in parser._actions:
        names = [n for n in action.option_strings if n.startswith("--") and n != "--help"]
        if not names or names[0] == "--version":
            continue
        name = names[0]
        if action.nargs == 0:
            typed = name
        else:
            value = VALUES.get(" ".join([*words, name]), VALUES.get(name))
            if action.choices and value not in map(str, action.choices):
                value = str([c for c in action.choices if c != action.default][-1])
            if value is None:
                raise LookupError(f"{name} needs a value in VALUES")
            typed = f"{name}={value}"
        yield Option(typed, action.dest, name)


class World:
    """A folder with all that commands look at, made anew for each call at the same place."""

    def __init__(self, folder: Path) -> None:
        self.alert = ""
        self.home, self._pristine = folder / "home", folder / "pristine"
        self.home.mkdir()
        self._fill()
        shutil.copytree(self.home, self._pristine, symlinks=True)

    def _fill(self) -> None:
        home, programs = self.home, self.home / "bin"
        for name in ("bin", "chain", "base", "archive", "dumps", "saved"):
            (home / name).mkdir()
        for name in ("sentinel.yaml", "other.yaml"):
            (home / name).write_text(
                f"cluster: lab\nstate: {home}/the-state\nslurm: {{timeout: 4s}}\n"
                f"channels: {{book: {{kind: file, path: {home}/{name}-book.jsonl}}}}\n"
                "checks:\n"
                f"  disk: {{kind: fs, paths: [{home}]}}\n"
                '  boom: {kind: exec, command: [sh, -c, "echo broken; exit 2"]}\n'
            )
        (home / "llm-4711.out").write_text(make_life().text)
        (home / "train.sh").write_text("#!/bin/sh\n")
        for kept in (".local/state/sentinel/diag", "archive"):
            (home / kept).mkdir(parents=True, exist_ok=True)
            (home / kept / "dcgmi-r2-n1-20261120T211500Z.json").write_text("{}")
        (home / "key").write_text("0" * 64 + "\n")
        (home / "key").chmod(0o600)
        self._write_programs(programs)
        for _ in range(2):
            self._call(["tick", "--all"])
        self._call(["gpus", "export", f"--config={home}/sentinel.yaml"])
        shutil.copy(home.parent / "out", home / "list.json")
        self._call(["alerts", "list", "--json"])
        self.alert = re.findall(r'"id": "(\w+)"', (home.parent / "out").read_text())[0]

    def _write_programs(self, programs: Path) -> None:
        answers = {
            "squeue": (
                ("-h*STDOUT:", RUNNING_RUN),
                ("STDOUT:", runs() + RUNNING_RUN),
                ("-h*%o", RUNNING_ROW),
                ("%o", queue() + RUNNING_ROW),
                ("", ""),
            ),
            "scontrol": (
                ("show config", CONFIG),
                ("show partition", PARTITIONS.format(count=2)),
                ("show node", nodes("IDLE", "IDLE+DRAIN", more="Reason=because [root@1790000000]")),
                ("", ""),
            ),
            "sacct": (("--helpformat", FIELDS), ("", "")),
            "sbatch": (("", "77\n"),),
        }
        for name, some in answers.items():
            lines = ["#!/bin/sh", 'set -- "$@" "$SQUEUE_FORMAT$SQUEUE_FORMAT2"']
            lines += ['mark="${*##*%o}"', 'mark="${mark##*STDOUT:}"']
            lines += ['mark="${mark%% *}"; mark="${mark%.}"', 'case "$*" in']
            for at, (word, text) in enumerate(some):
                pattern = "*".join(f'"{part}"' for part in word.split("*"))
                (programs / f"{name}.{at}").write_text(text)
                lines.append(f'*{pattern}*) sed "s|§|$mark|g" {programs}/{name}.{at} ;;')
            (programs / name).write_text("\n".join([*lines, "esac", ""]))
        table = "case $1 in -l) cat {0} 2>/dev/null || {{ echo no crontab for me >&2; exit 1; }} ;; -r) rm {0} ;; -) cat >{0} ;; esac\n"
        (programs / "crontab").write_text("#!/bin/sh\n" + table.format(self.home / "crontab.txt"))
        for name in ("ssh", "srun", "scrontab", "systemctl", "py-spy"):
            (programs / name).write_text(f"#!/bin/sh\necho {name} cannot >&2\nexit 1\n")
        for path in programs.iterdir():
            path.chmod(0o755)

    def play(self, words: Sequence[str]) -> Outcome:
        """One call, in a world that is as it was."""
        shutil.rmtree(self.home)
        shutil.copytree(self._pristine, self.home, symlinks=True)
        before = PREPARATIONS.get(" ".join(words[:2]), ())
        if words[0] == "init" and "--undo" in words:
            before = ("init --yes --by=none",)
            before = (" ".join([*before, *(w for w in words if w.startswith("--config"))]),)
        for one in before:
            self._call(one.split())
        return self._call(words)

    def _call(self, words: Sequence[str]) -> Outcome:
        spoken = [word.format(home=self.home, alert=self.alert, gpu=GPU) for word in words]
        out, notes = self.home.parent / "out", self.home.parent / "notes"
        pid = os.fork()
        if pid == 0:
            self._run_in_child(spoken, out, notes)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        reads = json.loads(notes.read_text()) if notes.exists() else []
        notes.unlink(missing_ok=True)
        text = out.read_text("utf-8", "backslashreplace")
        return Outcome(code, _without_times(text), tuple(self._list_files()), frozenset(reads))

    def _run_in_child(self, words: list[str], out: Path, notes: Path) -> None:
        """Never returns."""
        code = 99
        try:
            os.setsid()
            signal.alarm(CALL_LIMIT_S)
            number = os.open(out, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(number, 1)
            os.dup2(number, 2)
            sys.stdin, sys.stdout, sys.stderr = (
                open(at, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
                for at, mode in enumerate("rww")
            )
            os.environ.update(
                HOME=str(self.home), SENTINEL_CONFIG=str(self.home / "sentinel.yaml"),
                PATH=f"{self.home}/bin:/usr/bin:/bin", LC_ALL="C.UTF-8",
            )  # fmt: skip
            if words[0] == "init":
                os.environ["SENTINEL_CONFIG"] = str(self.home / "init.yaml")
            os.chdir(self.home)
            argparse.Namespace = RecordingNamespace  # type: ignore[misc]
            sys.argv = ["sentinel", *words]
            try:
                code = main(words)
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else 1
            sys.stdout.flush()
            sys.stderr.flush()
            notes.write_text(json.dumps(sorted(RecordingNamespace.reads or ())))
        finally:
            os._exit(code)

    def _list_files(self) -> Iterator[tuple[str, str]]:
        for path in sorted(self.home.rglob("*")):
            name = _without_times(str(path.relative_to(self.home)))
            if path.is_file() and not name.startswith(("bin/", "the-state/")):
                yield name, _without_times(path.read_text("utf-8", "backslashreplace"))


_TIMES = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?|\b\d\d:\d\d(:\d\d)?\b|\b\d{10,}\b"
    r"|\b\d+(\.\d+)? ?(ms|s|min|m|h|KiB|MiB|GiB|TiB|%)(?![\w])|\b[0-9a-f]{8,}\b|\d+\.\d+"
)


def _without_times(text: str) -> str:
    """What differs from call to call in any case is left out."""
    return _TIMES.sub("#", text)


def judge_pairs(world: World, command: Command) -> Iterator[Verdict]:
    """Each option beside each other one."""
    before = [*command.words, *BASES.get(command.name, ())]
    after = WORDS.get(command.name, ())  # what follows a script is its own
    plain = world.play([*before, *after])
    alone = {o: world.play([*before, o.typed, *after]) for o in command.options}
    for first in command.options:
        for second in command.options:
            if command.options.index(second) <= command.options.index(first):
                continue
            both = world.play([*before, first.typed, second.typed, *after])
            for one, other in ((first, second), (second, first)):
                word = _judge(both, alone[one], other)
                own = alone[other].result != plain.result
                yield Verdict(command.name, one.typed, other.typed, word, own)


def _judge(both: Outcome, first: Outcome, second: Option) -> str:
    """What the second did to a call that had the first."""
    if both.code == USAGE_EXIT:
        return "refused"
    if first.code > 3 and both.code > 3:
        return "UNREACHED"
    if both.result != first.result:
        return "changes"
    if second.dest in both.reads or "__dict__" in both.reads:
        return "read"
    return "IGNORED"


EXPLAINED = {
    ("gpus export", "--json"): "its answer is JSON in any case",
}
"""Options that change nothing and are taken all the same, and why."""


def find_never_accepted(pairs: Sequence[Verdict]) -> set[str]:
    """Options that nothing accepts, so that no pair of them was tried: the base lacks something."""
    options = {one.second for one in pairs}
    return {o for o in options if all(v.word == "refused" for v in pairs if v.second == o)}


def is_ignored(verdict: Verdict) -> bool:
    """Whether nothing says why this option changes nothing."""
    return verdict.word == "IGNORED" and (verdict.command, verdict.second) not in EXPLAINED


def print_table(wanted: Sequence[str]) -> None:
    """A line for each command, and one for each pair that may be ignored."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        for command in find_commands(wanted):
            found = list(judge_pairs(world, command))
            count = {
                word: sum(v.word == word for v in found) for word in sorted({v.word for v in found})
            }
            print(f"{command.name:<20}", " ".join(f"{w} {n}" for w, n in count.items()), flush=True)
            for option in sorted(find_never_accepted(found)):
                print(f"    NEVER    {option}", flush=True)
            for one in found:
                if is_ignored(one) or (one.word == "read" and one.alone):
                    print(f"    {one.word:<8} {one.second} beside {one.first}", flush=True)


if __name__ == "__main__":
    print_table(sys.argv[1:])
