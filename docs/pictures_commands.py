"""`python -m docs.pictures --all FOLDER`: what each command and kind prints on a terminal, as PNG.

One picture a command and state: at 80 and at 160 columns, on a light and a dark terminal. They are there
to be looked at, not for the documentation. It needs the real Slurm of `tests.lab`.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, MONOKAI
from rich.text import Text

from tests.lab.cluster import Lab
from tests.lab.gpus import Failure, dcgmi_json, gpus_of, nvidia_smi
from tests.nodes.nodes import Nodes
from tests.service.screen import Screen

WIDTHS = (80, 160)
THEMES = (DEFAULT_TERMINAL_THEME, MONOKAI)
_COLOURS = re.compile(r"\x1b\[(?![0-9;]*m)[0-9;?]*[A-Za-z]")
_NAME = re.compile(r"^  ([a-z-]+): \{+kind", re.M)
_PAGE = "<style>body{{margin:8px;display:inline-grid;grid-template-columns:repeat(2,max-content);gap:8px}}pre{{margin:0;padding:8px;white-space:pre-wrap;word-break:break-all;font:13px/1.25 monospace}}.wide{{grid-column:1/3}}</style>{}"  # fmt: skip
_TERMINAL = '<pre class="{kind}" style="width:{width}.5ch;color:{{foreground}};background:{{background}}">{{code}}</pre>'

CONFIG = """\
cluster: h100
state: {folder}/state
remote: {{ssh_options: "-F {ssh} -o UserKnownHostsFile={known}", connect_timeout: 3s}}
channels: {{oncall: {{kind: file, path: {folder}/book.jsonl}}}}
checks:
  training: {{kind: job, min_gpus: 8, users: ["*"], for: 0s}}
  progress: {{kind: log, path: {work}/train.log, stale_after: 10s}}
  saved: {{kind: checkpoint, path: {work}/checkpoints, job: llama-70b, users: ["*"]}}
  storage: {{kind: fs, paths: [{work}, /tmp], crit: {{free: {free}}}}}
  tree: {{kind: du, paths: [{work}], size: {size}}}
  slurm: {{kind: slurm}}
  capacity: {{kind: nodes}}
  drained: {{kind: drained}}
  gpus: {{kind: gpu, nodes: all}}
  burn-in: {{kind: diag, nodes: idle, level: 2, archive: {folder}/archive}}
  hosts: {{kind: host, nodes: all, skip: [clock, gpus, dcgm]}}
  memory: {{kind: memory, nodes: all}}
  unused: {{kind: idle}}
  daemons: {{kind: service, processes: [{daemon}]}}
  raid: {{kind: exec, command: [/bin/sh, -c, "{raid}"]}}
  old-files: {{kind: clean, root: {work}/logs, match: "[.]log$", older_than: 7d}}
"""
UNSEEN = """\
  home: {{kind: quota, paths: [{work}]}}
  links: {{kind: network, nodes: all}}
  heat: {{kind: sensors, nodes: all}}
"""
"""What the nodes of the lab lack. No pass runs these."""

_GOOD = {"free": "1MB", "size": "1TB", "daemon": "munged", "raid": "echo OK: 8 of 8 disks work"}
_BAD = {"free": "900PB", "size": "1kB", "daemon": "opensm",
        "raid": "echo CRITICAL: md0 is degraded, sdc has failed; exit 2"}  # fmt: skip
COMMANDS = (
    "status", "top --once", "alerts list", "alerts history", "incidents", "report", "nodes list",
    "nodes list --history node-0", "nodes probe node-0", "nodes undrain node-0 --dry-run",
    "nodes drain node-1 --reason test --dry-run", "gpus list", "gpus show {gpu}", "diag show node-0",
    "stacks {job}", "explain {alert}", "config check", "cron status", "doctor", "state check",
    "notify preview", "init --dry-run", "plugins",
)  # fmt: skip
_STEPS = 'for n in 1 2 3 4 5 6 7 8 9; do echo "iteration ${n}00 loss 2.$((9 - n))"; done'


class Scene:
    """A cluster of four nodes, and a sentinel that looks after it by passes."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.lab, self.folder = lab, folder
        self.nodes = Nodes(lab, folder)
        self.config, self.unseen = folder / "sentinel.yaml", folder / "unseen.yaml"
        self.job = ""
        for name in ("logs", "checkpoints/step900", "home"):
            (lab.work / name).mkdir(parents=True)
        (lab.work / "checkpoints/step900/model.pt").write_bytes(bytes(9_000_000))
        (lab.work / "train.log").write_text("iteration 900 loss 2.1\n")

    def be_well(self) -> None:
        """Two trainings run, and nothing is wrong."""
        for number, node in enumerate(self.lab.nodes):
            node.stand_in("nvidia-smi", nvidia_smi(gpus_of(number)))
            node.stand_in("dcgmi", dcgmi_json("4", node=number))
        self._write(_GOOD)
        go = f"{_STEPS}; exec sleep 900"
        asked = {"nodes": 1, "gres": "gpu:8", "output": f"{self.lab.work}/%j.out"}
        for name in ("llama-70b", "vision-7b"):
            self.job = self.lab.sbatch(go, name=name, **asked)
            self.lab.wait_state(self.job, "RUNNING")
        self.run_passes()

    def be_in_trouble(self) -> None:
        """A training died, a node is drained, a GPU is missing, and limits are crossed."""
        self.lab.ask(["scancel", "--name=llama-70b", "--signal=KILL", "--full"])
        self.lab.ask(["scontrol", "update", "nodename=node-3", "state=drain", "reason=bad DIMM"])
        self.lab.nodes[0].stand_in("nvidia-smi", nvidia_smi(gpus_of(0)[:7]))
        self.lab.nodes[0].kernel_says("NVRM: Xid (PCI:0000:18:00): 79, GPU has fallen off the bus.")
        self.lab.nodes[2].stand_in("dcgmi", dcgmi_json("4", [Failure(gpu=3)], node=2), 226)
        self._write(_BAD)
        self.run_passes()

    def run_passes(self) -> None:
        for _ in range(3):
            self.run("tick")

    def run(self, *words: str) -> str:
        told = [sys.executable, "-m", "sentinel", *words, "-c", str(self.config)]
        own = {**self.lab.env, "HOME": f"{self.lab.work}/home"}
        return subprocess.run(told, env=own, capture_output=True, text=True, check=False).stdout

    def draw(self, words: list[str]) -> Iterator[str]:
        """The command as HTML, once for each width and theme."""
        own = {**self.lab.env, "HOME": f"{self.lab.work}/home"}
        file = (
            self.unseen
            if words[0] == "check" and words[1] in _NAME.findall(UNSEEN)
            else self.config
        )
        told = [] if words[0] in ("init", "plugins") else ["-c", str(file)]
        for width in WIDTHS:
            with Screen([*words, *told], own, str(self.lab.work), width) as screen:
                screen.wait(120)
            kind = "wide" if width > WIDTHS[0] else "narrow"
            for theme in THEMES:
                yield to_html(
                    f"$ sentinel {' '.join(words)}\n{clean(screen.text)}", width, theme, kind
                )

    def _write(self, limits: dict[str, str]) -> None:
        known = {"folder": self.folder, "work": self.lab.work, "ssh": self.nodes.config}
        for path, text in ((self.config, CONFIG), (self.unseen, CONFIG + UNSEEN)):
            path.write_text(text.format(**known, known=self.nodes.known, **limits))


def clean(text: str) -> str:
    """What is left on the glass: without lines that were drawn over, and only with colours."""
    lines = [line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n")]
    return _COLOURS.sub("", "\n".join(line for line in lines if not line.startswith("… ")))


def to_html(text: str, width: int, theme: object, kind: str) -> str:
    with open(os.devnull, "w") as nowhere:
        console = Console(record=True, width=width + 1, file=nowhere, force_terminal=True)
        console.print(Text.from_ansi(text.rstrip()), soft_wrap=True)
        return console.export_html(
            theme=theme, inline_styles=True, code_format=_TERMINAL.format(kind=kind, width=width)
        )


def draw_all(folder: Path) -> None:
    """Write the pictures into the folder: NAME-well.png and NAME-trouble.png."""
    from playwright.sync_api import sync_playwright

    folder.mkdir(parents=True, exist_ok=True)
    scene_folder = folder / "scene"
    shutil.rmtree(scene_folder, ignore_errors=True)
    scene_folder.mkdir()
    kinds = _NAME.findall(CONFIG + UNSEEN)
    with Lab(nodes=4) as lab, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        window = browser.new_page(viewport={"width": 1500, "height": 600})
        scene = Scene(lab, scene_folder)
        for state, begin in (("well", scene.be_well), ("trouble", scene.be_in_trouble)):
            begin()
            gpu, alert = gpus_of(0)[7].uuid, find_alert(scene)
            asked = [line.format(gpu=gpu, job=scene.job, alert=alert) for line in COMMANDS]
            for line in (*asked, *(f"check {name}" for name in kinds)):
                name = re.sub(r"[^a-z0-9]+", "-", line.lower().replace(gpu.lower(), "")).strip("-")
                window.set_content(_PAGE.format("".join(scene.draw(line.split()))))
                window.locator("body").screenshot(path=folder / f"{name}-{state}.png")
                print(folder / f"{name}-{state}.png", flush=True)
        browser.close()


def find_alert(scene: Scene) -> str:
    """The id of the first alert; a word that is none where all is well."""
    found = re.search(r'"id": ?"([0-9a-f]{10})"', scene.run("alerts", "list", "--json"))
    return found[1] if found else "none"
