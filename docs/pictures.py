"""`make pictures`: the pictures of README and docs, made from the real thing.

Starts the throw-away Slurm cluster of the tests, lets a training job die on it, and keeps what
the commands printed on a terminal of 90 columns as SVG.
"""

import os
import pty
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

from docs.pictures_page import page
from tests.lab.cluster import Lab
from tests.lab.smtp import SmtpServer

WIDTH = 90
PLACE = Path(__file__).parent / "pictures"
CONFIG = """\
cluster: h100
state: {folder}/state
checks:
  training: {{kind: job, every: 1s, name: llm-10b}}
  disks: {{kind: fs, every: 1m}}
channels:
  oncall: {{kind: email, to: [oncall@example.org], from: sentinel@example.org,
           host: 127.0.0.1, port: {port}, security: none}}
  screen: {{kind: console}}
"""
TRAINING = """\
for step in 79100 79200 79300 79400; do echo "iteration $step loss 2.1"; sleep 1; done
[ "$1" = dies ] || exec sleep 300
echo "RuntimeError: CUDA error: an illegal memory access was encountered" >&2; exit 1
"""


def main() -> None:
    """Write the pictures, replacing the old ones."""
    PLACE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name, Lab() as lab, SmtpServer(Path(name)) as smtp:
        folder = Path(name)
        (folder / "sentinel.yaml").write_text(CONFIG.format(folder=folder, port=smtp.port))
        night(lab, folder)
        lab.reset()
        page(lab, folder, PLACE, lambda: submit(lab, folder / "train.sh", "lives"))
    draw("check-fs", [("sentinel check fs", terminal(["check", "fs"], dict(os.environ)))])


def night(lab: Lab, folder: Path) -> None:
    """A job runs, dies, and runs again."""
    env = {**lab.env, "HOME": str(folder), "SENTINEL_CONFIG": str(folder / "sentinel.yaml")}
    script = folder / "train.sh"
    script.write_text(f"#!/bin/sh\n{TRAINING}")
    first = submit(lab, script, "dies")
    lab.wait_state(first, "RUNNING", 30)
    scenes = [
        ("sentinel check job --name llm-10b", terminal(["check", "job", "--name", "llm-10b"], env))
    ]
    terminal(["tick", "--all"], env)
    lab.wait_state(first, "FAILED", 30)
    time.sleep(1.1)
    scenes.append(("sentinel tick", terminal(["tick"], env)))
    submit(lab, script, "lives")
    time.sleep(1.5)
    scenes.append(("sentinel tick   # after it was submitted again", terminal(["tick"], env)))
    draw("night", scenes)
    alert = terminal(["alerts", "history", "--json"], env).split('"alert": "')[1].split('"')[0]
    draw("explain", [(f"sentinel explain {alert}", terminal(["explain", alert], env))])
    draw("doctor", [("sentinel doctor", terminal(["doctor"], env))])


def submit(lab: Lab, script: Path, fate: str) -> str:
    """The job's id."""
    out = lab.ask(
        ["sbatch", "--parsable", "-N4", "-J", "llm-10b", "-D", str(lab.work), str(script), fate]
    )
    return out.strip()


def terminal(argv: list[str], env: dict[str, str]) -> str:
    """What a command prints on a terminal."""
    ours, theirs = pty.openpty()
    env = {**env, "COLUMNS": str(WIDTH), "LINES": "60", "TERM": "xterm-256color"}
    with subprocess.Popen(
        [sys.executable, "-m", "sentinel", *argv],
        stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL, env=env, cwd="/",
    ):  # fmt: skip
        os.close(theirs)
        return read(ours)


def read(fd: int) -> str:
    """Everything until the other side is closed."""
    chunks = []
    while True:
        try:
            chunk = os.read(fd, 65536)
        except OSError:
            break
        if not chunk:
            break
        chunks.append(chunk)
    os.close(fd)
    return b"".join(chunks).decode("utf-8", "replace").replace("\r\n", "\n")


def draw(name: str, scenes: list[tuple[str, str]]) -> None:
    """One SVG with the commands and what they printed."""
    console = Console(record=True, width=WIDTH, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115
    for number, (command, output) in enumerate(scenes):
        gap = "\n" if number else ""
        console.print(Text(f"{gap}$ {command}", style="bold"))
        console.print(Text.from_ansi(output.rstrip("\n")))
    console.save_svg(str(PLACE / f"{name}.svg"), title="sentinel")
    print(PLACE / f"{name}.svg")


if __name__ == "__main__":
    main()
