"""Runs inside a bare root, by its own python3 and nothing beside it: makes a small world and calls
sentinel there. Reads calls as JSON; prints [exit code, what it printed] for each, a line of JSON."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys

HOME = "/mnt/home"
CALL_LIMIT_S = 60
SERVED_S = 4
GPU = "GPU-12345678-1234-1234-1234-123456789abc"
CONFIG = f"""\
cluster: lab
state: {HOME}/the-state
slurm: {{timeout: 4s}}
channels: {{book: {{kind: file, path: {HOME}/book.jsonl}}}}
checks:
  disk: {{kind: fs, paths: [{HOME}]}}
  boom: {{kind: exec, command: [/bin/sh, -c, "echo broken; exit 2"]}}
"""


def call(words, served=False):
    """The exit code (-1: it had to be ended) and all that was printed."""
    command = [sys.executable, "-m", "sentinel", *words]
    with subprocess.Popen(
        command, cwd=HOME, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, start_new_session=True,
    ) as child:  # fmt: skip
        try:
            text, _ = child.communicate(timeout=SERVED_S if served else CALL_LIMIT_S)
            code = child.returncode
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGTERM if served else signal.SIGKILL)
            text, _ = child.communicate()
            code = child.returncode if served else -1
    return code, text.decode(errors="replace")


def write(name, text):
    """A file at home."""
    with open(os.path.join(HOME, name), "w", encoding="utf-8") as file:
        file.write(text)


def make_world():
    """Home as it is before each call; the alert in it."""
    for name in ("chain", "base", "archive"):
        os.makedirs(os.path.join(HOME, name))
    os.environ.update(HOME=HOME, SENTINEL_CONFIG=HOME + "/sentinel.yaml")
    write("sentinel.yaml", CONFIG)
    write("slip.yaml", "checks: {disk: {kind: fs, paths: [/], wran: 1}}\n")
    call(["tick", "--all"])
    write("list.json", call(["gpus", "export"])[1].partition("\n")[2])
    return re.findall(r'"id": "(\w+)"', call(["alerts", "list", "--json"])[1])[0]


def main():
    """Each call in a world that is as it was."""
    alert, pristine = make_world(), HOME + ".pristine"
    shutil.copytree(HOME, pristine)

    def spoken(words):
        return [word.format(home=HOME, alert=alert, gpu=GPU) for word in words]

    for one in json.load(sys.stdin):
        shutil.rmtree(HOME)
        shutil.copytree(pristine, HOME)
        for line in one["before"]:
            call(spoken(line.split()))
        print(json.dumps(call(spoken(one["words"]), one["served"])), flush=True)


main()
