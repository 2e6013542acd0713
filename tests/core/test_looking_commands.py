"""A line of a message that looks is safe to paste, whatever stands in it: root pastes each, and looks
at what ran. All templates of the house are found in its source."""

import ast
import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from msgspec.structs import replace

from sentinel.actions.announcements import ActionBulletin
from sentinel.checks.filesystems.remedies import list_lost_commands, list_usage_commands
from sentinel.core.command_places import group_by_place
from sentinel.core.guidance import (
    ADMINISTRATOR,
    ASK_CLUSTER,
    ActingCommand,
    Guidance,
    LookingCommand,
    look,
    name_config,
    show_end,
)
from sentinel.core.letters import Letter
from sentinel.core.model import Finding, Status
from tests.lab.systemd import ROOT

HOME = ROOT / "sentinel/core/guidance.py"
MAKERS = {"look", "LookingCommand"}
SHELLS = ("sh", "bash")
PARTS = [
    *("'; touch a; '", "$(touch a)", "`touch a`", '"; touch a; "', "; touch a", "| touch a"),
    *("&& touch a", "> a", "a & touch a", "\\", "*", "~root", "!!", "# a", "{0}", "%s", "a b", "é"),
]
"""What each of them does in a shell is `touch`, or another word than was meant."""
HOSTILE = "x" + " ".join(PARTS)
REFUSED = ["a\nb", "a\rtouch a", "-rf", "--help", "\x1b]0;x\x07", "a\u202eb", "\udc80", "a\u2028b"]
STAND_IN = """#!/bin/sh
printf '%s\\037' {name} "$@" '
' >>{told}
"""
SSH = '[ "$1" != -t ] || shift\n[ "$1" = n1 ] && shift && exec sh -c "$*"\n'
"""sshd gives all words, with blanks between them, to the shell of the user."""


def _calls() -> Iterator[tuple[Path, ast.Call, str]]:
    """All calls of `look` and of the type, with where they stand. Nobody gives them another name."""
    for path in sorted((ROOT / "sentinel").rglob("*.py")):
        text = path.read_text()
        nodes = [*ast.walk(ast.parse(text))] if any(f"{one}(" in text for one in MAKERS) else []
        names = {one for node in nodes if isinstance(node, ast.ImportFrom) for one in node.names}
        known = {one.name for one in names} & MAKERS if path != HOME else MAKERS
        assert not any(one.name in MAKERS and one.asname for one in names), path
        for node in nodes:
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(called, ast.Name) and called.id in known:
                yield path, node, called.id


def _templates() -> list[str]:
    texts = {
        call.args[0].value
        for _, call, name in _calls()
        if name == "look" and isinstance(call.args[0], ast.Constant)
    }
    return sorted(str(text) for text in texts if not str(text).startswith("ssh "))


TEMPLATES = _templates()


class Tools:
    """A hostile folder to stand in, and stand-ins for every program, which write down how they were
    called."""

    def __init__(self, folder: Path) -> None:
        self.bin, self.told, self.cwd = (
            folder / "bin",
            folder / "told",
            folder / "of $(touch a); 'x",
        )
        self.bin.mkdir()
        self.cwd.mkdir()
        for name in ("a", "-rf", "$(touch a)", "touch"):
            (self.cwd / name).write_text("#!/bin/sh\n")
            (self.cwd / name).chmod(0o755)
        first = {run[0] for text in TEMPLATES for run in _programs(text, "")}
        for name in {*first, "ssh", "touch", "sbatch"} - {"cd"}:
            text = STAND_IN.format(name=name, told=shlex.quote(str(self.told)))
            (self.bin / name).write_text(text + SSH * (name == "ssh"))
            (self.bin / name).chmod(0o755)
        (self.bin / "sh").symlink_to("/bin/sh")
        (self.bin / "env").symlink_to("/usr/bin/env")

    def paste(self, line: str, shell: str) -> list[list[str]]:
        """What ran, in the order of the alphabet: the parts of a pipe run at the same time."""
        self.told.write_text("")
        env = {"PATH": str(self.bin), "LC_ALL": "C.UTF-8"}
        argv = [f"/bin/{shell}", "-c", line]
        subprocess.run(argv, env=env, cwd=self.cwd, capture_output=True, check=False, timeout=30)
        return sorted(run.split("\x1f")[:-1] for run in self.told.read_text().split("\n\x1f")[:-1])


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    return Tools(tmp_path_factory.mktemp("tools"))


def _programs(text: str, value: str) -> list[list[str]]:
    """What a template runs, by a reading of our own: its words are plain, and `{}` is the value."""
    runs, globs = [list[str]()], shlex.shlex(text, posix=True, punctuation_chars="|;&")
    globs.whitespace_split, globs.commenters = True, "#"
    for word in globs:
        if word in ("|", ";", "&&"):
            runs.append([])
        else:
            runs[-1].append(word.replace("{}", value))
    return sorted(runs)


def test_there_are_templates() -> None:
    """Or the tests below would look at none."""
    assert len(TEMPLATES) > 50
    assert "ls -ld {}" in TEMPLATES


def test_a_command_is_made_of_a_literal_and_its_values_and_in_one_place() -> None:
    """No value is in the text, none stands in quotes, and a host of ssh is given by `on_node`."""
    for path, call, name in _calls():
        if name == "LookingCommand":
            assert path == HOME, f"{path}:{call.lineno}"
        if name != "look":
            continue
        where = f"{path}:{call.lineno}"
        assert isinstance(call.args[0], ast.Constant), where
        text = str(call.args[0].value)
        assert text.count("{}") == len(call.args) - 1, where
        assert not any(isinstance(one, ast.Starred) for one in call.args), where
        for before, after in zip(text.split("{}")[:-1], text.split("{}")[1:], strict=True):
            assert before[-1] in " =", where
            assert after[:1] in ("", " ", ","), where
            assert before.count("'") % 2 == before.count('"') % 2 == 0, where
        if path != HOME:
            assert not text.startswith("ssh "), where


def test_text_is_refused_by_the_type() -> None:
    """mypy reads what stands here."""
    assert get_type_hints(Finding)["commands"] == tuple[LookingCommand, ...]
    assert get_type_hints(Letter)["commands"] == tuple[LookingCommand, ...]
    assert get_type_hints(ActionBulletin)["command"] is LookingCommand


@pytest.mark.root
@pytest.mark.parametrize("text", TEMPLATES)
def test_pasted_by_root_only_the_programs_of_the_text_run(tools: Tools, text: str) -> None:
    """The value is one word of theirs, here and on a node, in each shell."""
    assert os.geteuid() == 0
    value = str(tools.cwd) if text.startswith("cd ") else HOSTILE
    command = look(text, *[value] * text.count("{}"))
    wanted = [run for run in _programs(text, value) if run[0] != "cd"]
    for shell in SHELLS:
        ran = tools.paste(command.render(), shell)
        if any("*" in word for word in shlex.split(text)):  # a shell reads more into those words
            assert [run[0] for run in ran] == [run[0] for run in wanted]
        else:
            assert ran == wanted
    there = tools.paste(command.on_node("n1").render(), "sh")
    assert [run for run in there if run[0] != "ssh"] == ran
    if not text.startswith("cd "):  # env starts no builtin
        far = tools.paste(command.for_cluster("ssh n1 env SLURM_CONF=/c ").render(), "sh")
        left = text.startswith(ASK_CLUSTER)
        assert [run for run in far if run[0] != "ssh"] == ([] if left else ran)
        assert ["ssh"] * (not text.startswith("sentinel")) == [r[0] for r in far if r[0] == "ssh"]


@pytest.mark.root
@pytest.mark.parametrize("value", PARTS)
def test_each_hostile_value_is_one_word(tools: Tools, value: str) -> None:
    """Of whichever program, beside an option and in front of a pipe, and as the name of a node."""
    for shell in SHELLS:
        assert tools.paste(look("ls -ld {}", value).render(), shell) == [["ls", "-ld", value]]
        both = look("sacct -j {} --format={} | cat -v", value, value)
        wanted = [["cat", "-v"], ["sacct", "-j", value, f"--format={value}"]]
        assert tools.paste(both.render(), shell) == wanted
        act = ActingCommand(owner=ADMINISTRATOR, argv=("sinfo", value), then=("df", f"-x={value}"))
        for before in ("", "ssh n1 ", "ssh n1 env SLURM_CONF=/c "):
            ran = [
                run
                for run in tools.paste(replace(act, before=before).render(), shell)
                if run[0] != "ssh"
            ]
            assert ran == [["df", f"-x={value}"], ["sinfo", value]]
        named = tools.paste(look("dmesg -T").on_node(value).render(), shell)
        assert named == [["ssh", value, "dmesg", "-T"]]


@pytest.mark.root
@pytest.mark.parametrize("value", REFUSED)
def test_what_would_be_an_option_or_another_name_makes_no_command(tools: Tools, value: str) -> None:
    """A comment says that it is left out; it holds nothing of the value. A healthy one beside it."""
    said = "# ls is left out: a name in it begins with - or does not print"
    left = look("ls -ld {} | cat -v", value)
    assert left.render() == left.for_cluster("env A=b ").render() == said
    assert left.on_node("n1").render() == said
    assert look("dmesg").on_node(value).render() == said.replace("ls", "ssh")
    for shell in SHELLS:
        assert tools.paste(said, shell) == []
    assert group_by_place([said], "n1") == (("", (said,)),)
    assert look("ls -ld {}", "/a-rf").render() == "ls -ld /a-rf"


SCRIPTS = {
    *("chain/install", "chain/program_copies", "chain/script", "chain/timers", "core/guidance"),
    *("core/settings", "actions/diag", "checks/diag/dispatch", "cli/submit"),
    *("init/survey", "nodes/frame", "nodes/script", "nodes/settings", "slurm/client"),
    *("slurm/sbatch_words", "stacks/script", "clean/root_path"),
}
"""They write or read scripts for a machine, or show what was run: no message's commands. The program
that removes files (clean) runs with Python's own modules alone."""


def test_words_are_quoted_in_one_place() -> None:
    """A module that quotes words itself makes a command of its own."""
    using = {
        str(path.relative_to(ROOT / "sentinel").with_suffix(""))
        for path in (ROOT / "sentinel").rglob("*.py")
        if "shlex" in path.read_text()
    }
    assert using == SCRIPTS


def _is_command(span: str) -> bool:
    """Whether something stands before the value, and is no key of the configuration."""
    return bool(span.strip()) and span.split()[0][-1] != ":"


def test_a_command_within_a_sentence_is_quoted_too() -> None:
    """Between backticks no value stands as it is; a key of the configuration (`for: 2h`) may."""
    bare = []
    for path in (ROOT / "sentinel").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.JoinedStr):
                continue
            span = ""  # what stands since an opening backtick
            is_open = False
            for part in node.values:
                if isinstance(part, ast.Constant):
                    *whole, last = str(part.value).split("`")
                    is_open ^= len(whole) % 2 == 1
                    span = last if whole else span + last
                elif isinstance(part, ast.FormattedValue) and is_open and _is_command(span):
                    bare.append((str(path.relative_to(ROOT)), ast.unparse(part.value)))
    assert sorted(bare) == sorted(NAMED)


NAMED = [
    ("sentinel/checks/idle/findings.py", "number"),
    ("sentinel/checks/idle/findings.py", "number"),
    ("sentinel/checks/job/guidance.py", "number"),
    ("sentinel/checks/job/guidance.py", "number"),
    ("sentinel/checks/users.py", "what[0]"),
    ("sentinel/clean/root_path.py", "quote(os.path.dirname(reached))"),
]
"""`number` was quoted before; `what` is a word of ours."""


@pytest.mark.root
def test_what_looks_at_a_hostile_folder_changes_nothing(tmp_path: Path) -> None:
    """With the real programs: the folder and the log of a job that a user named."""
    folder = tmp_path / "a'; touch owned; '$(touch owned)"
    folder.mkdir()
    for name in ("-rf", "$(touch owned)", "`touch owned`", "x\n; touch owned", "\x1b]0;x\x07"):
        (folder / name).write_text("touch owned\n\x1b]0;x\x07")
    log = folder / "; touch owned #.log"
    log.symlink_to(folder / "-rf")
    before = sorted(tmp_path.rglob("*"))
    path, looked = str(folder), list[LookingCommand]()
    looked += [*list_usage_commands(path, inodes=True), *list_lost_commands(path)]
    looked += [show_end(str(log), own=False)]
    for shell in SHELLS:
        for command in looked:
            argv = [shell, "-c", command.render()]
            done = subprocess.run(argv, cwd=folder, capture_output=True, check=False, timeout=30)
            assert (b"\x1b" in done.stdout, b"owned" in done.stderr) == (False, False), command
    assert sorted(tmp_path.rglob("*")) == before


def test_commands_look_natural() -> None:
    """No quote where none is needed; a remote shell gets one word only where it needs one."""
    assert look("scontrol show node {}", "gpu07").render() == "scontrol show node gpu07"
    assert look("sinfo -R -n {}", "gpu[1-8]").render() == "sinfo -R -n 'gpu[1-8]'"
    assert look("squeue").for_cluster("env SLURM_CONF=/c ").render() == "env SLURM_CONF=/c squeue"
    assert look("df -h {}", "/x").on_node("n1").render() == "ssh n1 df -h /x"
    assert look("df -h {}", "/x").on_node("").render() == "df -h /x"
    assert look("du {} | sort", "/a b").on_node("n1").render() == (
        """ssh n1 'du '"'"'/a b'"'"'' | sort"""
    )
    assert look("sudo ipmitool sdr").on_node("n1").render() == "ssh -t n1 sudo ipmitool sdr"


@pytest.mark.parametrize("kind", [tuple, list])
def test_text_of_a_plugin_is_a_command_if_a_shell_would_only_run_its_words(kind: Any) -> None:
    """Other text is shown as text, with the details."""
    told = kind(["sinfo -R", "du /x | sort", "tail $(x)", "a\nb", "", look("sdiag")])
    found = Finding(subject="x", status=Status.WARNING, summary="", details="d", commands=told)
    assert [one.render() for one in found.commands] == ["sinfo -R", "sdiag"]
    assert found.details.splitlines() == [
        *("d", "to look closer: du /x | sort", "to look closer: tail $(x)"),
        r"to look closer: a\nb",
    ]


@pytest.mark.root
@pytest.mark.parametrize("before", ["ssh n1 ", "ssh n1 env SLURM_CONF=/c ", "env SLURM_CONF=/c "])
def test_a_sentence_about_another_cluster_asks_that_one(tools: Tools, before: str) -> None:
    """A job or node of the same name here is another one. Each command of Slurm between backticks begins
    as those below it do; other words stay."""
    told = Guidance(
        impact="`scancel 7`",
        todo="`ps` below. Else `scancel 7`, then `sbatch --exclude='n[1-2]'`; `squeue` below; `for: 2h`",
        ask="run `scontrol update nodename=n1 state=resume`, `sacctmgr show`",
    )
    there = told.for_cluster(before)
    spans = [*there.todo.split("`")[1::2], *there.ask.split("`")[1::2]]
    assert [one.startswith(before[:4]) for one in spans] == [0, 1, 1, 1, 0, 1, 0]
    shown = tools.paste(spans[2], "sh")
    assert [run for run in shown if run[0] != "ssh"] == [["sbatch", "--exclude=n[1-2]"]]
    assert (there.impact, there.todo.count("`")) == (told.impact, told.todo.count("`"))


@pytest.mark.root
def test_what_only_the_sentinel_at_hand_would_do_is_a_comment_for_another_cluster(
    tools: Tools,
) -> None:
    """It would drain or test the node of the same name here. What reads its own configuration stays."""
    preview = look("sentinel nodes undrain {} --dry-run", "n1")
    test = ActingCommand(owner=ADMINISTRATOR, argv=("sentinel", "nodes", "test", "n1"))
    for one in (preview, test):
        assert tools.paste(one.render(), "sh") == [one.render().split()]
        found = Finding(
            subject="x",
            status=Status.WARNING,
            summary="",
            commands=(one,) if isinstance(one, LookingCommand) else (),
            acts=(one,) if isinstance(one, ActingCommand) else (),
        ).for_cluster("env SLURM_CONF=/c ")
        line = "".join(command.render() for command in (*found.commands, *found.acts))
        assert line == f"# by a sentinel of that cluster: {one.render()}"
        assert tools.paste(line, "sh") == []
        assert group_by_place([line], "n1") == (("", (line,)),)
        assert name_config(line, "/c.yaml") == line
    assert look("sentinel check {}", "x").for_cluster("ssh n1 ").render() == "sentinel check x"
