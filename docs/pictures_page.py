"""The status page, `status` and `top`, taken of a real service on the lab cluster."""

import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from docs.pictures_terminal import draw, terminal, top
from tests.lab.cluster import Lab

PORT = 19_650
SIZE = {"width": 1180, "height": 900}
CONFIG = """\
cluster: h100
state: {folder}/page-state
timezone: UTC
web: {{listen: "127.0.0.1:{port}"}}
checks:
  training: {{kind: job, every: 2s, name: llm-10b}}
  progress: {{kind: log, every: 2s, job: llm-10b, progress: 'iteration (\\d+)'}}
  disks: {{kind: fs, every: 2s, paths: [/, /tmp]}}
  capacity: {{kind: nodes, every: 2s, need: 4}}
channels:
  book: {{kind: file, path: "{folder}/book.jsonl"}}
"""


def page(lab: Lab, folder: Path, place: Path, submit: Callable[[], str]) -> None:
    """A job runs, a node is drained, and the page shows both."""
    config = folder / "page.yaml"
    config.write_text(CONFIG.format(folder=folder, port=PORT))
    lab.wait_state(submit(), "RUNNING", 30)
    lab.ask(["scontrol", "update", "nodename=node-3", "state=drain", "reason=RMA GPU3"])
    argv = [sys.executable, "-m", "sentinel", "run", "-c", str(config)]
    service = subprocess.Popen(argv, env=lab.env, stderr=subprocess.DEVNULL)
    try:
        _wait(lambda: "draining" in _text("/") and "running: job" in _text("/"))
        _wait(lambda: "79,400" in _text("/"))
        _shoot(place)
        env = {**lab.env, "HOME": str(folder), "SENTINEL_CONFIG": str(config)}
        draw("status", [("sentinel status", terminal(["status"], env))], place)
        draw("top", [("sentinel top", top(env))], place)
    finally:
        service.terminate()
        service.wait(30)
        lab.ask(["scontrol", "update", "nodename=node-3", "state=resume"])


def mail(place: Path) -> None:
    """The mail about a training that died, as a mail program of that width shows it."""
    from playwright.sync_api import sync_playwright

    from sentinel.channels.email import Email
    from sentinel.channels.format.examples import SAMPLES
    from sentinel.config.default import settings_from_data
    from sentinel.wiring import app

    block = {"kind": "email", "to": ["you@example.org"], "from": "you@example.org", "host": "x"}
    settings = settings_from_data({"channels": {"mail": block}}, app.CHECKS, app.CHANNELS)
    channel: Email = settings.channels[0].plugin
    html = dict(channel.preview(SAMPLES["firing"]))["html"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for width, name in ((800, "mail"), (360, "mail-phone")):
            window = browser.new_page(viewport={"width": width, "height": 640})
            window.set_content(html)
            window.screenshot(path=place / f"{name}.png", full_page=True)
            print(place / f"{name}.png")
        browser.close()


def _shoot(place: Path) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for scheme in ("light", "dark"):
            context = browser.new_context(color_scheme=scheme, viewport=SIZE)
            window = context.new_page()
            window.goto(f"http://127.0.0.1:{PORT}/")
            window.wait_for_timeout(500)
            path = place / f"page-{scheme}.png"
            window.screenshot(path=path, full_page=True)
            print(path)
        browser.close()


def _text(path: str) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{PORT}{path}", timeout=5) as answer:
            return re.sub("<[^>]*>", " ", answer.read().decode())
    except OSError:
        return ""


def _wait(ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not ready():
        if time.monotonic() > deadline:
            raise SystemExit("the page does not show the cluster within a minute")
        time.sleep(0.5)
