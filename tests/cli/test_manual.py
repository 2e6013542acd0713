"""What people type first: help by another name, a slip of the finger, Tab, and man."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sentinel.cli import COMMANDS, _build_parser
from sentinel.cli.command_tree import iterate_commands


def said(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "sentinel", *words], capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip


@pytest.mark.parametrize("words", [(), ("alerts",), ("check", "fs"), ("config", "check")])
def test_help_comes_first_too(words: tuple[str, ...]) -> None:
    """`sentinel help X` is `sentinel X --help`."""
    asked = said("help", *words)
    assert (asked.returncode, asked.stdout) == (0, said(*words, "--help").stdout)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("statsu",), "status"),
        (("alerts", "lst"), "list"),
        (("undrain",), "sentinel nodes undrain"),
        (("help", "confg"), "config"),
        (("cron", "install", "--mode", "crntab"), "crontab"),
    ],
)
def test_what_was_meant(words: tuple[str, ...], meant: str) -> None:
    done = said(*words)
    assert done.returncode == 64
    assert f"did you mean '{meant}'?" in done.stderr


def test_an_option_before_the_command_is_told_where_it_goes() -> None:
    """Its value would be taken for the command."""
    done = said("-c", "sentinel.yaml", "status")
    assert (done.returncode, "-c: options go after the command" in done.stderr) == (64, True)


def completed(script: Path, *words: str) -> set[str]:
    """What bash offers after these words."""
    line = " ".join(f"'{word}'" for word in ("sentinel", *words))
    program = f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words)}; _sentinel"
    done = subprocess.run(
        ["bash", "-c", f'{program}; printf "%s\\n" "${{COMPREPLY[@]}}"'],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return {*done.stdout.split()}


def test_bash_completes_commands_and_options(tmp_path: Path) -> None:
    """Of the command that is being typed, whatever options stand between."""
    script = tmp_path / "sentinel"
    script.write_text(said("completion", "bash").stdout)
    assert {*COMMANDS} <= completed(script, "")
    assert completed(script, "alerts", "a") == {"ack"}
    assert completed(script, "-x", "config", "check", "--pr") == {"--proof"}
    assert completed(script, "completion", "") >= {"bash", "zsh", "fish"}


def test_the_other_shells_get_every_command() -> None:
    """fish in its own form, zsh by its reader of bash's."""
    fish = said("completion", "fish").stdout
    assert all(f"-a {name} -d " in fish for name in COMMANDS)
    assert said("completion", "zsh").stdout.startswith("#compdef sentinel\n")


def test_the_manual_page_has_every_command_and_no_fault(tmp_path: Path) -> None:
    """groff takes it without a warning."""
    page = said("man").stdout
    for command in iterate_commands(_build_parser([])):
        assert " ".join(("sentinel", *command.words)).replace("-", "\\-") in page
    if groff := shutil.which("groff"):
        done = subprocess.run(
            [groff, "-man", "-ww", "-Tutf8"],
            input=page,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr == ""


def test_every_option_says_what_it_does() -> None:
    """In words; the usual ones are not told again each time."""
    silent = {
        f"{' '.join(command.words)} {option}"
        for command in iterate_commands(_build_parser([]))
        for option, text in command.options.items()
        if not text
    }
    assert silent == set()


def test_a_tick_on_a_terminal_tells_each_trouble_once(tmp_path: Path) -> None:
    """By the channel that prints there, and not by the log and the list of checks again; the next
    tick, which has no news, still says what is wrong."""
    (tmp_path / "sentinel.yaml").write_text(
        "state: ./state\ncluster: lab\nchecks:\n"
        "  bad: {kind: exec, command: [/bin/sh, -c, 'echo out of ideas; exit 2']}\n"
        "  fine: {kind: exec, command: [/bin/sh, -c, 'exit 0']}\n"
        "channels: {here: {kind: console}}\n"
    )
    tick = f"{sys.executable} -m sentinel tick --all -c sentinel.yaml"
    for _ in range(2):
        done = subprocess.run(
            ["script", "-qec", tick, "/dev/null"], cwd=tmp_path, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        assert done.stdout.count("CRITICAL") == 1, done.stdout
        assert "OK" in done.stdout
