"""Rooms that can be deleted: what is left imports, starts, and says in one line what is missing.

Each room is really taken away: the rest is put into a folder of its own and run from there.
"""

import compileall
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sentinel.actions import KINDS as ACTIONS
from sentinel.channels import KINDS as CHANNELS
from sentinel.checks import KINDS as CHECKS
from tests.lab.systemd import ROOT

ROOMS = {
    "gpu": ["gpu", "checks/gpu", "checks/idle", "store/gpu_*", "cli/gpu*", "cli/ledger.py"],
    "diag": ["checks/diag", "actions/diag.py", "cli/diag*", "cli/gpu_bundle.py"],
    "chain": [
        "chain",
        "checks/chain*",
        "checks/cron*",
        "cli/cron.py",
        "doctor/cron.py",
        "init",
        "cli/init.py",
        "cli/add.py",
    ],
    "stacks": ["stacks", "actions/stacks.py", "cli/stacks.py", "checks/log/node_looks.py"],
    "web": ["web", "wiring/page.py", "wiring/metrics_file.py"],
    "fs": ["checks/fs", "checks/quota"],
}
"""What is taken out as a whole: the room, its kinds, and the commands about nothing else."""
ROOMS["gpu"] += ROOMS["diag"]  # a diagnosis is one of GPUs
NEEDS = {
    **{kind: f"checks: {{x: {{kind: {kind}}}}}" for kind in CHECKS},
    "web": "web: {listen: '127.0.0.1:8080'}",
    "stacks": "actions: {stacks: {enabled: true}}",
    "channels": "channels: {x: {kind: email}}",
    "actions": "actions: {drain: {enabled: true}}",
}
"""A file that asks for what was taken out."""

ASKED = {
    "web": "No module named 'sentinel.web'; the service watches without it",
    "stacks": "actions.stacks: there is no action 'stacks'",
    "channels": "channels.x.kind: there is no kind 'email'; known: console",
    "actions": "actions.drain: there is no action 'drain'",
}
"""What it is told, where that is no kind of check."""


def _home(target: str) -> str:
    """`checks/memory.py` or `checks/job`, of `sentinel.checks.memory:MemoryCheck`."""
    module = target.partition(":")[0].removesuffix(".check")
    folder = module.replace(".", "/").partition("/")[2]
    return folder if (ROOT / "sentinel" / folder).is_dir() else f"{folder}.py"


ALL = {
    **ROOMS,
    **{
        kind: [_home(target)]
        for kind, target in CHECKS.items()
        if kind not in ROOMS and _home(target) not in (*ROOMS["fs"], *ROOMS["gpu"])
    },
    "channels": [_home(target) for kind, target in CHANNELS.items() if kind != "console"],
    "actions": [_home(target) for kind, target in ACTIONS.items() if kind != "undrain"],
}

RUN = """
import asyncio, contextlib, importlib, io, json, os, pathlib, sys
PROGRAMS = {
    "sentinel.__main__",
    "sentinel.nodes.node_test",
    "sentinel.nodes.node_measure",
}  # run by name, and do so at import

def load(root):
    for path in sorted(pathlib.Path(root, "sentinel").rglob("*.py")):
        module = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        if module not in PROGRAMS:
            try:
                importlib.import_module(module)
            except Exception as error:
                yield f"{module}: {error!r}"

def said(words, call=None):
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        code = (call or sys.modules["sentinel.cli"].main)(words)
    return [words[-1] if words[0] == "check" else words[0], code, text.getvalue()]

def left(folder):
    # As in a new interpreter, but that the libraries are loaded already.
    for name in [name for name in sys.modules if name.partition(".")[0] == "sentinel"]:
        del sys.modules[name]
    sys.path[0] = folder
    rest, needs = ["-c", folder + "/rest.yaml"], ["-c", folder + "/needs.yaml"]
    faults = list(load(folder))
    assert sys.modules["sentinel.cli"].__file__.startswith(folder)
    commands = (["plugins"], ["config", "check", *rest], ["check", "fs"], ["check", "memory"],
                ["tick", *rest], ["config", "check", *needs])
    answers = [said(words) for words in commands]
    if folder.endswith("/web"):
        answers[-1] = said(needs[1:], page)
    return faults, answers

def page(words):
    # What `sentinel run` does for its page.
    app = sys.modules["sentinel.wiring.app"]
    from sentinel.wiring import service
    asyncio.run(service._start_web_server(None, app.load_settings(words[0]), None))

sys.path.insert(0, sys.argv[1])
assert not list(load(sys.argv[1]))
for folder in sys.argv[2:]:
    child = os.fork()
    if not child:
        with open(folder + "/answers.json", "w") as file:
            json.dump(left(folder), file)
        os._exit(0)
    os.waitpid(child, 0)
"""


def _linked(source: str, target: str) -> None:
    """A link to the same file; a copy where /tmp is another file system than the checkout."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _take_out(room: str, folder: Path) -> None:
    """All of sentinel but that room, compiled files too."""
    shutil.copytree(ROOT / "sentinel", folder / "sentinel", copy_function=_linked)
    gone = {path for part in ALL[room] for path in (folder / "sentinel").glob(part)}
    assert len(gone) >= len(set(ALL[room]))
    for path in gone:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    ok = "service, processes: [python]" if room == "exec" else "exec, command: [/bin/true]"
    (folder / "rest.yaml").write_text(
        f"state: {folder}/state\nchecks: {{ok: {{kind: {ok}}}}}\nchannels: {{c: {{kind: console}}}}\n"
    )
    (folder / "needs.yaml").write_text(NEEDS[room])


def _wrong(room: str, faults: list[str], answers: list[tuple[str, int, str]]) -> Iterator[str]:
    """What does not go on as it should."""
    yield from faults
    *others, (_, code, said) = answers
    for words, code_, text in others:
        if (code_, room) == (64, words):  # the check of that very kind
            code_ = int(f"no check or kind '{room}'; kinds: " not in text)
        if code_ or "Traceback" in text or "does not load" in text:
            yield f"{words}: {code_}, {text}"
    told = re.findall(ASKED.get(room, f"checks.x.kind: there is no kind '{room}'; known: "), said)
    errors = [
        line
        for line in said.splitlines()
        if "nobody is told" not in line and "nothing is watched" not in line
    ]
    if (code, len(told), len(errors)) != (None if room == "web" else 2, 1, 1):
        yield f"asked for it: {code}, {said}"


@pytest.mark.long
@pytest.mark.parametrize("quarter", range(4))
def test_without_any_room_the_rest_goes_on(tmp_path: Path, quarter: int) -> None:
    """Every other module imports, commands answer, and a file that needs the room is told so."""
    compileall.compile_dir(ROOT / "sentinel", quiet=1)  # once, not in each folder
    folders = {room: tmp_path / room for room in sorted(ALL)[quarter::4]}
    for room, folder in folders.items():
        folder.mkdir()
        _take_out(room, folder)
    command = [sys.executable, "-c", RUN, ROOT, *folders.values()]
    subprocess.run(command, timeout=110, check=True, cwd=tmp_path)
    answers = {room: json.loads((at / "answers.json").read_text()) for room, at in folders.items()}
    assert {r: w for r, found in answers.items() if (w := [*_wrong(r, *found)])} == {}
