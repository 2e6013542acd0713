"""A look starts fast: what it must not import, and that its parser is as good as argparse's own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sentinel import cli

HEAVY = {
    *("aiohttp", "apscheduler", "jinja2", "rich", "sqlite3", "yaml", "zoneinfo"),
    *("platform", "encodings.ascii"),
    *("asyncio", "concurrent.futures", "dataclasses", "inspect", "logging", "shutil"),
    *("socket", "ssl", "subprocess", "tempfile", "threading", "typing_extensions"),
    *(
        "sentinel.config.loader",
        "sentinel.config.settings",
        "sentinel.alerting.processor",
        "sentinel.engine.engine",
        "sentinel.slurm.client",
    ),
}
if sys.version_info < (3, 11):
    HEAVY -= {"subprocess", "threading"}  # of uuid, which msgspec imports
ASK_LIBRARIES = "import msgspec, rich.console, sys; print(*sys.modules)"
_OF_LIBRARIES = subprocess.run(
    [sys.executable, "-c", ASK_LIBRARIES], capture_output=True, text=True, check=True
).stdout.split()
OF_LIBRARIES = {"platform", "subprocess"} & {*_OF_LIBRARIES}
"""What old versions of libraries load whatever sentinel does; empty with those of today."""
SENDING = {"aiohttp", "aiosmtplib", "apscheduler", "smtplib", "multiprocessing"}
FILE = """\
state: state
checks: {load: {kind: exec, command: [/bin/true]}}
channels:
  terminal: {kind: console}
  book: {kind: file, path: /tmp/book}
  mail: {kind: email, to: [a@example.org], from: b@example.org, host: localhost}
  chat: {kind: slack, url: "https://hooks.slack.com/services/T0/B0/X"}
"""
LOOKED = """
import sys
from sentinel.cli import main
main({words!r})
print(*sorted(sys.modules), file=sys.stderr)
"""


@pytest.mark.parametrize(
    "words",
    [
        ["check", "fs", "--path", "/"],
        ["check", "fs", "--path", "/", "--nagios"],
        ["check", "fs", "--path", "/", "--warn", "used=80%", "--json"],
        ["check", "exec", "--command", "true"],
        ["check", "log", "--path", "/etc/passwd"],
    ],
)
def test_a_look_imports_nothing_heavy(words: list[str]) -> None:
    """Off a terminal; the numbers are benchmarks/bench_start.py's."""
    done = python(LOOKED.format(words=words))
    assert set(done.stderr.split()) & HEAVY == set()
    assert "sentinel.cli.check" in done.stderr.split()


@pytest.mark.parametrize("words", [["check", "load"], ["config", "check"]])
def test_with_a_file_nothing_is_imported_that_only_sends(words: list[str], tmp_path: Path) -> None:
    """Channels are read, and nothing is sent; there is no third party's kind to look for."""
    file = tmp_path / "sentinel.yaml"
    file.write_text(FILE)
    done = python(LOOKED.format(words=[*words, "-c", str(file)]))
    known = set(done.stderr.split())
    assert "sentinel.channels.email" in known
    assert known & SENDING == set()
    assert known & {"rich", "asyncio", "ssl", "importlib.metadata"} == set()
    assert words[0] == "check" or "sqlite3" not in known  # a check by its name reads the state


NOT_TO_READ = {"asyncio", "ssl", "socket", "subprocess", "multiprocessing", "importlib.metadata"}
NOT_TO_READ |= {"_hashlib", "concurrent.futures", "psycopg", "regex", "jinja2"}
READING = [
    ["status"],
    ["status", "--json"],
    ["alerts", "list"],
    ["alerts", "history"],
    ["alerts", "silences"],
    ["explain", "load"],
    ["incidents"],
    ["report"],
    ["gpus", "list"],
    ["gpus", "lemons"],
    ["nodes", "list"],
    ["diag", "list"],
]
MODULE_LIMITS = {
    "check fs --path /": 80,
    "check load": 178,
    "check disks": 178,
    "config check": 126,
    "config show": 125,
    "alerts list": 142,
    "alerts history": 142,
    "alerts silences": 141,
    "explain load": 148,  # the places of commands, which incidents show too
    "incidents": 144,
    "report": 149,
    "gpus list": 156,
    "gpus lemons": 156,
    "status": 170,
    "nodes list": 214,
    "diag list": 242,
    "cron status": 179,
    "tick": 201,
    "deliver": 201,
}
"""How many modules of sentinel a command may load. Each is a file to find and to read. Before you
raise one, look whether the command needs what it loads more."""
NEVER_LOADED = {"aiohttp", "aiosmtplib", "smtplib", "apscheduler", "psycopg", "regex", "jinja2"}
NEVER_LOADED |= {"multiprocessing", "importlib.metadata", "platform", "prometheus_client"}
"""What no command needs that ends at once, on a state in SQLite and with channels that need no network."""


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_who_reads_the_state_imports_neither_engine_nor_channels(
    words: list[str], state_with_an_alert: Path
) -> None:
    """A person at three in the morning waits for it. The numbers are benchmarks/bench_start.py's."""
    done = python(LOOKED.format(words=[*words, "-c", str(state_with_an_alert)]))
    known = set(done.stderr.split())
    assert f"sentinel.cli.{words[0]}" in known or words[0] == "explain"
    others = {name for name in known if name.startswith(("sentinel.engine", "sentinel.channels."))}
    assert others | known & NOT_TO_READ - OF_LIBRARIES == set()
    if words[0] != "nodes":
        assert "sqlite3" in known


@pytest.mark.parametrize("words", MODULE_LIMITS)
def test_a_command_loads_no_more_modules_than_it_did(words: str, state_with_an_alert: Path) -> None:
    """What it takes to start follows from them, and no clock is asked."""
    config = [] if words.startswith("check fs") else ["-c", str(state_with_an_alert)]
    done = python(LOOKED.format(words=[*words.split(), *config]))
    known = set(done.stderr.splitlines()[-1].split())
    assert known & NEVER_LOADED - OF_LIBRARIES == set()
    own = {name for name in known if name.partition(".")[0] == "sentinel"}
    assert f"sentinel.cli.{cli.COMMANDS[words.split()[0]]}" in own
    assert len(own) <= MODULE_LIMITS[words], sorted(own)


def test_every_command_that_reads_the_state_has_a_limit() -> None:
    """A list beside another list is soon too short."""
    assert {" ".join(words) for words in READING} - {"status --json"} <= MODULE_LIMITS.keys()


@pytest.mark.parametrize(
    "words",
    [["status", "--json"], ["alerts", "list"], ["alerts", "history"], ["explain", "load"]],
    ids=" ".join,
)
def test_what_prints_no_table_imports_nothing_to_render_one(
    words: list[str], state_with_an_alert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines and JSON are written as they are."""
    monkeypatch.delenv("COLUMNS", raising=False)
    done = python(LOOKED.format(words=[*words, "-c", str(state_with_an_alert)]))
    assert "sentinel.cli.state" in done.stderr.split()
    assert "rich" not in done.stderr.split()


@pytest.fixture(scope="module")
def state_with_an_alert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a sentinel that has made one pass: a check failed."""
    folder = tmp_path_factory.mktemp("state")
    file = folder / "sentinel.yaml"
    file.write_text(f"""\
state: {folder}/state
checks:
  load: {{kind: exec, command: [/bin/false]}}
  disks: {{kind: fs, paths: [/]}}
channels:
  book: {{kind: file, path: {folder}/book}}
  mail: {{kind: email, to: [a@example.org], from: b@example.org, host: localhost}}
routes: [{{to: book}}]
""")
    done = python(LOOKED.format(words=["tick", "-c", str(file)]))
    assert (file.parent / "state" / "sentinel.db").exists(), done.stderr
    return file


@pytest.mark.parametrize("words", [["plugins"], ["config", "schema"]])
def test_what_sends_nothing_imports_no_http_client(words: list[str]) -> None:
    """Although every channel is looked at."""
    done = python(LOOKED.format(words=words))
    assert "sentinel.channels.slack" in done.stderr.split()
    assert "aiohttp" not in done.stderr.split()


def test_what_msgspec_goes_without_others_can_have() -> None:
    """A plugin imports typing_extensions as ever; who had it before keeps it."""
    later = "from sentinel.cli import startup; startup.prepare_startup(); import typing_extensions"
    assert python(later).returncode == 0
    before = "import typing_extensions as t, sys; from sentinel.cli import startup"
    same = "startup.prepare_startup(); sys.exit(sys.modules['typing_extensions'] is not t)"
    assert python(f"{before}; {same}").returncode == 0


def test_uuid_has_the_module_platform_where_it_asks_for_more() -> None:
    """Ours stands in for its one question of today."""
    code = "from sentinel.cli import startup; p = startup._PlatformStandIn(); import sys;"
    code += "sys.modules['platform'] = p; assert p.system() == p.uname().system;"
    code += "import platform; sys.exit(platform is p)"
    assert python(code).returncode == 0


@pytest.mark.parametrize(("columns", "width"), [("60", 58), ("200", 198), ("0", 78), ("x", 78)])
def test_help_is_as_wide_as_the_terminal(
    monkeypatch: pytest.MonkeyPatch, columns: str, width: int
) -> None:
    """As argparse has it: $COLUMNS, else the terminal's own, else 80, less a margin of 2."""
    monkeypatch.setenv("COLUMNS", columns)
    code = "from sentinel.cli.startup import CommandHelpFormatter; print(CommandHelpFormatter('x')._width)"
    done = python(code)
    assert done.stdout.strip() == str(width)


def python(code: str) -> "subprocess.CompletedProcess[str]":
    # Without `env` the child gets what readline, which pytest imports, has put beside os.environ.
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
