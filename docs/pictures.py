"""`make pictures`: the pictures of README and docs, made from the real thing.

Starts the throw-away Slurm cluster of the tests, lets a training job die on it, and keeps what
the commands printed on a terminal of 90 columns as SVG, and the page as PNG.
"""

import os
import tempfile
import time
from pathlib import Path

from docs.pictures_page import mail, page
from docs.pictures_terminal import PLACE, draw, terminal
from tests.lab.cluster import Lab
from tests.lab.smtp import SmtpServer
from tests.nodes.nodes import Nodes

CONFIG = """\
cluster: h100
state: {folder}/state
remote: {{ssh_options: "-F {ssh} -o UserKnownHostsFile={known}"}}
checks:
  training: {{kind: job, every: 1s, for: 0s, name: llm-10b}}
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
        nodes = Nodes(lab, folder)
        (folder / "sentinel.yaml").write_text(
            CONFIG.format(folder=folder, port=smtp.port, ssh=nodes.config, known=nodes.known)
        )
        night(lab, folder)
        lab.reset()
        mail(PLACE)
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


if __name__ == "__main__":
    main()
